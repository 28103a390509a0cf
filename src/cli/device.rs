//! Which device a command means.

use crate::device::Device;
use crate::runner::Suite;

/// The device that the command names, else the one that the suite asks for. Says what it is, and why it is no GPU.
pub(super) fn open(named: Option<&str>, suite: Option<&Suite>) -> anyhow::Result<Device> {
    let asked = named.or(suite.map(|suite| suite.device.as_str()));
    let device = match asked.filter(|name| *name != "auto") {
        Some(name) => Device::open(name)?,
        None => {
            if let Some(reason) = Device::cuda_unavailable() {
                note!("no GPU: {reason}");
            }
            Device::best()?
        }
    };
    note!("device: {} ({})", device.name(), device.properties().model);
    Ok(device)
}
