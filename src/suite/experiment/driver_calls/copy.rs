//! `driver-calls.copy`: copies in all directions, from and to all kinds of memory.

use super::DriverCalls;
use crate::device::calls::Family;
use crate::experiment::Bench;

pub(super) fn run(experiment: &DriverCalls, bench: &mut Bench) {
    let ids = ["driver-calls.copy.blocks", "driver-calls.copy.ready", "driver-calls.copy.behind"];
    experiment.family(bench, Family::Copy, "Copies", ids);
}
