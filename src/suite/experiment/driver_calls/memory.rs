//! `driver-calls.memory`: allocating, freeing, page-locking and mapping memory.

use super::DriverCalls;
use crate::device::calls::Family;
use crate::experiment::Bench;

pub(super) fn run(experiment: &DriverCalls, bench: &mut Bench) {
    let ids = ["driver-calls.memory.blocks", "driver-calls.memory.ready", "driver-calls.memory.behind"];
    experiment.family(bench, Family::Memory, "Allocating and freeing", ids);
}
