//! Which device a command means, and why there is none of CUDA's.

use std::env;

use crate::runner::Suite;
use syncscope::device::Device;

/// The device that the command names, else the one that the suite asks for. Says what it is, and why it is no GPU.
pub(super) fn open(named: Option<&str>, suite: Option<&Suite>) -> anyhow::Result<Device> {
    let asked = named.or(suite.map(|suite| suite.device.as_str()));
    let device = match asked.filter(|name| *name != "auto") {
        Some(name) => Device::open(name)?,
        None => {
            if let Some(reason) = why_no_gpu() {
                note!("no GPU: {reason}");
            }
            Device::best()?
        }
    };
    note!("device: {} ({})", device.name(), device.properties().model);
    Ok(device)
}

/// Why there is no GPU, where there is none.
pub(super) fn why_no_gpu() -> Option<String> {
    Device::cuda_unavailable().map(|reason| format!("{reason}{}", hidden()))
}

/// What the variables that may hide GPUs say, to be read behind a reason why one is not there.
pub(super) fn hidden() -> String {
    let said = |name: &str| {
        let value = env::var_os(name)?;
        Some(format!("; {name} is `{}`, which may hide GPUs", value.to_string_lossy()))
    };
    ["CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"].into_iter().filter_map(said).collect()
}
