//! `driver-calls.graph`: capturing, instantiating, updating and launching graphs.

use super::DriverCalls;
use crate::device::calls::Family;
use crate::experiment::Bench;

pub(super) fn run(experiment: &DriverCalls, bench: &mut Bench) {
    let ids = ["driver-calls.graph.blocks", "driver-calls.graph.ready", "driver-calls.graph.behind"];
    experiment.family(bench, Family::Graph, "Graphs", ids);
}
