//! `driver-calls.wait`: calls that wait for work, ask about it, or are enqueued to order streams.

use super::DriverCalls;
use crate::device::calls::Family;
use crate::experiment::Bench;

pub(super) fn run(experiment: &DriverCalls, bench: &mut Bench) {
    let ids = ["driver-calls.wait.blocks", "driver-calls.wait.ready", "driver-calls.wait.behind"];
    experiment.family(bench, Family::Wait, "Waiting and ordering", ids);
}
