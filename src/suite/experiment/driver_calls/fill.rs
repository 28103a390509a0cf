//! `driver-calls.fill`: setting memory of all kinds to a value.

use super::DriverCalls;
use crate::device::calls::Family;
use crate::experiment::Bench;

pub(super) fn run(experiment: &DriverCalls, bench: &mut Bench) {
    let ids = ["driver-calls.fill.blocks", "driver-calls.fill.ready", "driver-calls.fill.behind"];
    experiment.family(bench, Family::Fill, "Filling memory", ids);
}
