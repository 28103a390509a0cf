//! Runs a suite on a device.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::environment::{Environment, now};
use super::results::{ExperimentRun, Run, SCHEMA_VERSION};
use super::suite::Suite;
use crate::device::{Device, Telemetry};
use crate::error::{DeviceError, panic_message};
use crate::experiment::{Bench, Entry, Selection, Watcher, scenes};
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

/// Who is told what a run is doing, and how it is asked to end.
pub struct Attendance<'a> {
    /// Told of each experiment that begins: its place from 0, how many there are, its name.
    pub begins: &'a dyn Fn(usize, usize, &str),
    /// Told of what happens within an experiment.
    pub watcher: Arc<dyn Watcher>,
    /// Once it is true the run ends after the current sample.
    pub interrupt: Arc<AtomicBool>,
}

/// Runs the rows of `suite` that `selection` holds on `device`: the self-audit first, then its experiments in order, then
/// the ceilings.
///
/// A row or an experiment that fails is in the result with its reason, and the others run.
pub fn run(
    suite: &Suite,
    selection: &Selection,
    device: &Device,
    environment: Environment,
    attendance: &Attendance<'_>,
) -> Run {
    let empty = Run {
        schema_version: SCHEMA_VERSION,
        partial: false,
        selection: selection.clone(),
        resumed: Vec::new(),
        suite: suite.clone(),
        environment,
        experiments: Vec::new(),
        peers: Vec::new(),
    };
    go_on(empty, device, attendance)
}

/// Runs what an interrupted run did not finish, on the same device; what it finished is kept as it is.
pub fn resume(mut run: Run, device: &Device, attendance: &Attendance<'_>) -> Run {
    run.resumed.push(now());
    go_on(run, device, attendance)
}

fn go_on(mut run: Run, device: &Device, attendance: &Attendance<'_>) -> Run {
    let engine = device.properties().engine;
    let chosen = run.suite.experiments_on(engine);
    let unless_chosen = |name| {
        Entry::default_for(name, engine)
            .filter(|of_every_run| !chosen.iter().any(|entry| entry.name() == of_every_run.name()))
    };
    let (audit, ceilings) = (unless_chosen("self-audit"), unless_chosen("ceilings"));
    let has_rows = |entry: &&Entry| entry.experiment().rows().iter().any(|row| run.selection.holds(row.id));
    let entries: Vec<&Entry> = audit.iter().chain(chosen).chain(&ceilings).filter(has_rows).collect();
    let mut experiments = Vec::new();
    for (place, entry) in entries.iter().enumerate() {
        // By place: a suite may name an experiment twice.
        let earlier = run.experiments.get(place).filter(|earlier| earlier.name == entry.name());
        if !attendance.interrupt.load(Ordering::Relaxed) {
            (attendance.begins)(place, entries.len(), entry.name());
        }
        let sampler = Sampler::new(run.suite.sampling.clone()).interrupted_by(Arc::clone(&attendance.interrupt));
        experiments.push(run_one(entry, &run.selection, earlier, device, sampler, &attendance.watcher));
    }
    // Recording leaves its traces in the process: not before the last row has been timed.
    for (entry, left) in entries.iter().zip(&mut experiments) {
        if left.timelines.is_empty() && !attendance.interrupt.load(Ordering::Relaxed) {
            left.timelines = scenes(entry.experiment(), &run.selection, device);
        }
    }
    run.experiments = experiments;
    let partial = run.rows().any(|row| !row.is_finished());
    Run { partial, ..run }
}

/// Runs one experiment on `device`; what `earlier` finished is taken over.
pub fn run_one(
    entry: &Entry,
    selection: &Selection,
    earlier: Option<&ExperimentRun>,
    device: &Device,
    sampler: Sampler,
    watcher: &Arc<dyn Watcher>,
) -> ExperimentRun {
    if let Some(earlier) = earlier.filter(|earlier| earlier.rows.iter().all(|row| row.is_finished())) {
        return earlier.clone();
    }
    let experiment = entry.experiment();
    let before = telemetry(device);
    let start = Instant::now();
    let mut bench = Bench::new(device, sampler, experiment.rows(), Arc::clone(watcher))
        .selecting(selection.clone())
        .continuing(earlier.map_or(&[], |earlier| &earlier.rows));
    // A panic in one experiment is a defect of that one: the others run, and the results say what happened.
    let outcome = catch_unwind(AssertUnwindSafe(|| experiment.run(&mut bench)));
    let failure = outcome.err().map(|panic| panic_message(&*panic));
    ExperimentRun {
        name: entry.name().to_owned(),
        duration: earlier.map_or(0.0, |earlier| earlier.duration) + start.elapsed().as_secs_f64(),
        before: earlier.map_or(before, |earlier| earlier.before.clone()),
        after: telemetry(device),
        rows: bench.finish(failure.as_deref()),
        timelines: earlier.map_or_else(Vec::new, |earlier| earlier.timelines.clone()),
        failure,
    }
}

/// Sensors that cannot be read are as good as none: they explain a measurement, they are not one.
fn telemetry(device: &Device) -> Option<Telemetry> {
    device.telemetry().ok().flatten()
}
