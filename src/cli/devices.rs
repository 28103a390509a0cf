//! `report devices`: lists the devices of this machine.

use clap::Args;

use super::End;
use crate::device::Device;

/// List the devices of this machine, and say why there is no GPU where there is none
#[derive(Args)]
#[command(after_help = "Example:\n  report devices")]
pub(super) struct Arguments {}

pub(super) fn execute(_: &Arguments) -> anyhow::Result<End> {
    for device in Device::list() {
        say!("{:<8} {}", device.name, device.model);
    }
    if let Some(reason) = Device::cuda_unavailable() {
        say!("no GPU: {reason}");
    }
    Ok(End::Well)
}
