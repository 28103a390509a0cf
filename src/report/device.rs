//! Which device a command means, why there is none of CUDA's, and the environment of a run on it.

use std::env;

use crate::results::Environment;
use syncscope::device::Device;

/// The device that the command names, else the best there is. Says what it is, and why it is no GPU.
pub(super) fn open(named: Option<&str>) -> anyhow::Result<Device> {
    let device = match named.filter(|name| *name != "auto") {
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

/// The environment of a run on `device`, started by `command`.
pub(crate) fn environment(device: &Device, command: Vec<String>) -> Environment {
    let mut environment = Environment::now(device, command);
    environment.program.commit = option_env!("SYNCSCOPE_COMMIT").map(str::to_owned);
    environment.program.dirty = option_env!("SYNCSCOPE_DIRTY").map(|dirty| dirty == "true");
    environment
}
