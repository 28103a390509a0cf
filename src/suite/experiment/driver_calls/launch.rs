//! `driver-calls.launch`: launches of kernels, and settings of the context.

use super::DriverCalls;
use crate::device::calls::Family;
use crate::experiment::Bench;

pub(super) fn run(experiment: &DriverCalls, bench: &mut Bench) {
    let ids = ["driver-calls.launch.blocks", "driver-calls.launch.ready", "driver-calls.launch.behind"];
    experiment.family(bench, Family::Launch, "Launches and limits", ids);
}
