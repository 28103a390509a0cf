//! `driver-calls.object`: making and ending streams and events.

use super::DriverCalls;
use crate::device::calls::Family;
use crate::experiment::Bench;

pub(super) fn run(experiment: &DriverCalls, bench: &mut Bench) {
    let ids = ["driver-calls.object.blocks", "driver-calls.object.ready", "driver-calls.object.behind"];
    experiment.family(bench, Family::Object, "Streams and events", ids);
}
