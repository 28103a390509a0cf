//! `driver-calls.device`: contexts, devices, and what lies between two of them.

use super::DriverCalls;
use crate::device::calls::Family;
use crate::experiment::Bench;

pub(super) fn run(experiment: &DriverCalls, bench: &mut Bench) {
    let ids = ["driver-calls.device.blocks", "driver-calls.device.ready", "driver-calls.device.behind"];
    experiment.family(bench, Family::Device, "Contexts and devices", ids);
}
