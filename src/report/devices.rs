//! `report devices`: lists the devices of this machine.

use clap::Args;
use serde::Serialize;

use super::End;
use super::device::why_no_gpu;
use super::facts::{Facts, Form};
use syncscope::device::Device;

/// List the devices of this machine, and say why there is no GPU where there is none
#[derive(Args)]
#[command(after_help = "Example:\n  report devices")]
pub(super) struct Arguments {
    #[command(flatten)]
    form: Form,
}

#[derive(Serialize)]
struct Devices {
    devices: Vec<Named>,
    /// Why there is no CUDA device, where there is none.
    cuda_unavailable: Option<String>,
}

#[derive(Serialize)]
struct Named {
    name: String,
    model: String,
}

impl Facts for Devices {
    const COMMAND: &'static str = "devices";

    fn say(&self) {
        for device in &self.devices {
            say!("{:<8} {}", device.name, device.model);
        }
        if let Some(reason) = &self.cuda_unavailable {
            say!("no GPU: {reason}");
        }
    }
}

pub(super) fn execute(arguments: &Arguments) -> anyhow::Result<End> {
    let devices = Device::list().into_iter().map(|device| Named { name: device.name, model: device.model }).collect();
    let cuda_unavailable = why_no_gpu();
    arguments.form.print(&Devices { devices, cuda_unavailable })?;
    Ok(End::Well)
}
