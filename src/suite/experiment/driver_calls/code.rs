//! `driver-calls.code`: loading code, and the first launch of what was loaded.

use super::DriverCalls;
use crate::device::calls::Family;
use crate::experiment::Bench;

pub(super) fn run(experiment: &DriverCalls, bench: &mut Bench) {
    let ids = ["driver-calls.code.blocks", "driver-calls.code.ready", "driver-calls.code.behind"];
    experiment.family(bench, Family::Code, "Loading code", ids);
}
