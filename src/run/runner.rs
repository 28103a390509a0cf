//! Runs a suite on a device.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::environment::Environment;
use super::results::{ExperimentRun, Run, SCHEMA_VERSION};
use super::suite::Suite;
use crate::device::{Device, Telemetry};
use crate::error::{DeviceError, panic_message};
use crate::experiment::{Bench, Entry, Watcher};
use crate::measure::Sampler;

/// The device that a suite asks for.
///
/// # Errors
/// As [`Device::open`] and [`Device::best`].
pub fn device_of(suite: &Suite) -> Result<Device, DeviceError> {
    match suite.device.as_str() {
        "auto" => Device::best(),
        name => Device::open(name),
    }
}

/// Runs `suite` on `device`: the self-audit first, then its experiments in order. `begins` is told of each experiment
/// (its place from 0, how many there are, its name), `watcher` of what happens in it. Once `interrupt` is true the run
/// ends after the current sample; what was left out is there as skipped.
///
/// A row or an experiment that fails is in the result with its reason; the others run.
pub fn run(
    suite: &Suite,
    device: &Device,
    environment: Environment,
    interrupt: &Arc<AtomicBool>,
    watcher: &Arc<dyn Watcher>,
    mut begins: impl FnMut(usize, usize, &str),
) -> Run {
    let audit = Entry::suited_to("self-audit", device.properties().engine);
    let chosen = suite.experiments_on(device.properties().engine);
    let audit = audit.filter(|audit| !chosen.iter().any(|entry| entry.name() == audit.name()));
    let entries: Vec<&Entry> = audit.iter().chain(chosen).collect();
    let mut experiments = Vec::new();
    for (i, entry) in entries.iter().enumerate() {
        if !interrupt.load(Ordering::Relaxed) {
            begins(i, entries.len(), entry.name());
        }
        let sampler = Sampler::new(suite.sampling.clone()).interrupted_by(Arc::clone(interrupt));
        experiments.push(run_one(entry, device, sampler, watcher));
    }
    Run {
        schema_version: SCHEMA_VERSION,
        partial: interrupt.load(Ordering::Relaxed),
        suite: suite.clone(),
        environment,
        experiments,
    }
}

/// Runs one experiment on `device`.
pub fn run_one(entry: &Entry, device: &Device, sampler: Sampler, watcher: &Arc<dyn Watcher>) -> ExperimentRun {
    let experiment = entry.experiment();
    let before = telemetry(device);
    let start = Instant::now();
    let mut bench = Bench::new(device, sampler, experiment.rows(), Arc::clone(watcher));
    // A panic in one experiment is a defect of that one: the others run, and the results say what happened.
    let outcome = catch_unwind(AssertUnwindSafe(|| experiment.run(&mut bench)));
    let failure = outcome.err().map(|panic| panic_message(&*panic));
    let duration = start.elapsed().as_secs_f64();
    ExperimentRun {
        name: entry.name().to_owned(),
        duration,
        before,
        after: telemetry(device),
        rows: bench.finish(failure.as_deref()),
        failure,
    }
}

/// Sensors that cannot be read are as good as none: they explain a measurement, they are not one.
fn telemetry(device: &Device) -> Option<Telemetry> {
    device.telemetry().ok().flatten()
}
