//! Where a run is made, and by which commit of this program.

use syncscope::device::Device;

use crate::results::Environment;

/// The environment of a run on `device`, started by `command`.
pub(crate) fn environment(device: &Device, command: Vec<String>) -> Environment {
    let mut environment = Environment::now(device, command);
    environment.program.commit = option_env!("SYNCSCOPE_COMMIT").map(str::to_owned);
    environment.program.dirty = option_env!("SYNCSCOPE_DIRTY").map(|dirty| dirty == "true");
    environment
}
