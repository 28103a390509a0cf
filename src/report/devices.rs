//! `report devices`: lists the devices of this machine.

use clap::Args;
use serde_json::json;

use super::End;
use super::device::why_no_gpu;
use super::output::Form;
use syncscope::device::Device;

/// List the devices of this machine, and say why there is no GPU where there is none
#[derive(Args)]
#[command(after_help = "Example:\n  report devices")]
pub(super) struct Arguments {
    #[command(flatten)]
    form: Form,
}

pub(super) fn execute(arguments: &Arguments) -> anyhow::Result<End> {
    let (devices, unavailable) = (Device::list(), why_no_gpu());
    let named = devices.iter().map(|device| json!({ "name": device.name, "model": device.model }));
    let facts = json!({ "devices": named.collect::<Vec<_>>(), "cuda_unavailable": unavailable });
    arguments.form.print("devices", &facts, || {
        devices.iter().for_each(|device| say!("{:<8} {}", device.name, device.model));
        if let Some(reason) = &unavailable {
            say!("no GPU: {reason}");
        }
    })?;
    Ok(End::Well)
}
