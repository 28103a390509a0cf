//! Runs a suite on a device.

mod describe;
mod suite;

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

pub use describe::describe;
pub use suite::Suite;

use crate::device::Device;
use crate::error::panic_message;
use crate::experiment::{AnyExperiment, Bench, Part, Registry, RunObserver, record_scenarios};
use crate::measure::Sampler;
use crate::results::{
    Environment, ExperimentRun, Outcome, Results, Row, Run, RunOutcome, SCHEMA_VERSION, SYNCSCOPE, Selection,
    TelemetrySample, now,
};

/// The experiments of every run: the first before a suite's own, the second after them. A suite that names one states
/// its place and parameters itself.
const OF_EVERY_RUN: [&str; 2] = ["self-audit", "ceilings"];

/// Runs the rows of `suite` that `selection` holds on `device`: the self-audit first, then its experiments in order, then
/// the peak rates.
///
/// A row or an experiment that fails is in the results with its reason, and the others run. Once `interrupt` is true the
/// run ends after the current sample.
pub fn run(
    suite: &Suite,
    registry: &Registry,
    selection: &Selection,
    device: &Device,
    environment: Environment,
    observer: &Arc<dyn RunObserver>,
    interrupt: &Arc<AtomicBool>,
) -> Results {
    let results = empty_results(suite.source.clone(), selection.clone(), environment);
    go_on(results, suite, registry, device, observer, interrupt)
}

/// The results of a run that begins now and has measured nothing yet.
pub fn empty_results(suite: serde_json::Value, selection: Selection, environment: Environment) -> Results {
    let run = Run {
        id: format!("{SYNCSCOPE}-1"),
        system: SYNCSCOPE.to_owned(),
        started: now(),
        resumed: Vec::new(),
        environment,
        telemetry: Vec::new(),
        order: Vec::new(),
        outcome: RunOutcome::Interrupted,
    };
    let (rows, timelines) = (Vec::new(), Vec::new());
    Results { schema_version: SCHEMA_VERSION, suite, selection, runs: vec![run], rows, timelines }
}

/// Runs what an interrupted run did not finish, on the same device; what it finished is kept as it is.
pub fn resume(
    mut results: Results,
    suite: &Suite,
    registry: &Registry,
    device: &Device,
    observer: &Arc<dyn RunObserver>,
    interrupt: &Arc<AtomicBool>,
) -> Results {
    results.runs[0].resumed.push(now());
    go_on(results, suite, registry, device, observer, interrupt)
}

fn go_on(
    mut results: Results,
    suite: &Suite,
    registry: &Registry,
    device: &Device,
    observer: &Arc<dyn RunObserver>,
    interrupt: &Arc<AtomicBool>,
) -> Results {
    let engine = device.properties().engine;
    let chosen = suite.experiments_on(engine);
    let unless_chosen = |name: &str| {
        let entry = registry.get(name).filter(|_| !chosen.iter().any(|experiment| experiment.name() == name));
        entry.map(|entry| entry.default_for(engine))
    };
    let [first, last] = OF_EVERY_RUN.map(unless_chosen);
    let selection = results.selection.clone();
    let has_rows =
        |experiment: &&dyn AnyExperiment| Bench::plan(*experiment, engine).iter().any(|spec| selection.holds(&spec.id));
    let all = first.iter().chain(chosen).chain(&last).map(AsRef::as_ref);
    let experiments: Vec<&dyn AnyExperiment> = all.filter(has_rows).collect();
    let begun = Instant::now();
    let mut earlier = std::mem::take(&mut results.rows);
    let mut order = std::mem::take(&mut results.runs[0].order);
    order.reverse();
    let mut recorded_before = Vec::new();
    for (place, experiment) in experiments.iter().enumerate() {
        observer.keep(&so_far(&results, &earlier, &order));
        if !interrupt.load(Ordering::Relaxed) {
            observer.experiment(place, experiments.len(), experiment.name());
        }
        // By place: a suite may name an experiment twice.
        let before = order.pop().filter(|left| left.name == experiment.name());
        let own = |row: &Row| row.spec.experiment() == experiment.name();
        let (mine, others): (Vec<Row>, Vec<Row>) = std::mem::take(&mut earlier).into_iter().partition(own);
        earlier = others;
        let sampler = Sampler::new(suite.sampling.clone()).interrupted_by(Arc::clone(interrupt));
        let run = &mut results.runs[0];
        let bench = Bench::new(device, sampler, Arc::clone(observer), &run.id, begun)
            .selecting(selection.clone())
            .continuing(&mine);
        recorded_before.extend(mine);
        telemetry(run, experiment.name(), device, begun);
        let (mut left, rows) = run_parts(*experiment, bench, engine, &[Part::Timed]);
        telemetry(run, experiment.name(), device, begun);
        left.duration += before.map_or(0.0, |before| before.duration);
        run.order.push(left);
        results.rows.extend(rows);
    }
    observer.keep(&so_far(&results, &earlier, &order));
    // Recordings leave their traces in the process: not before the last row that needs none has been measured.
    for (place, experiment) in experiments.iter().enumerate() {
        let planned = Bench::plan_of(*experiment, engine, &[Part::Recorded]);
        if planned.is_empty() {
            continue;
        }
        let sampler = Sampler::new(suite.sampling.clone()).interrupted_by(Arc::clone(interrupt));
        let run = &mut results.runs[0];
        let bench = Bench::new(device, sampler, Arc::clone(observer), &run.id, begun)
            .selecting(selection.clone())
            .continuing(&recorded_before);
        let (left, rows) = run_parts(*experiment, bench, engine, &[Part::Recorded]);
        run.order[place].duration += left.duration;
        run.order[place].failure = run.order[place].failure.take().or(left.failure);
        results.rows.extend(rows);
    }
    in_order(&mut results.rows, &experiments, engine);
    if results.timelines.is_empty() && !interrupt.load(Ordering::Relaxed) {
        let id = results.runs[0].id.clone();
        let recorded = experiments.iter().flat_map(|experiment| record_scenarios(*experiment, &selection, device, &id));
        results.timelines = recorded.collect();
    }
    // Other systems' rows stay; those of this run that were measured again are there already.
    results.merge(earlier);
    let finished = results.outcomes().all(|(_, outcome)| Outcome::is_finished(outcome));
    results.runs[0].outcome = if finished { RunOutcome::Complete } else { RunOutcome::Interrupted };
    results
}

/// What a run has left, with what an earlier try left of experiments that it has not reached; `order` is a stack.
fn so_far(results: &Results, earlier: &[Row], order: &[ExperimentRun]) -> Results {
    let mut all = results.clone();
    all.merge(earlier.to_vec());
    all.runs[0].order.extend(order.iter().rev().cloned());
    all
}

/// Puts rows in the order in which their experiments declare them.
fn in_order(rows: &mut [Row], experiments: &[&dyn AnyExperiment], engine: &str) {
    let planned = experiments.iter().flat_map(|experiment| Bench::plan(*experiment, engine));
    let mut places: HashMap<String, usize> = HashMap::new();
    for (place, spec) in planned.enumerate() {
        places.entry(spec.title()).or_insert(place);
    }
    rows.sort_by_cached_key(|row| places.get(&row.spec.title()).copied());
}

/// Runs one experiment on `bench`: what is said of it as a whole, and its rows.
pub fn run_one(experiment: &dyn AnyExperiment, bench: Bench, engine: &str) -> (ExperimentRun, Vec<Row>) {
    run_parts(experiment, bench, engine, &Part::ALL)
}

/// Runs these parts of one experiment.
fn run_parts(
    experiment: &dyn AnyExperiment,
    mut bench: Bench,
    engine: &str,
    parts: &[Part],
) -> (ExperimentRun, Vec<Row>) {
    let planned = Bench::plan_of(experiment, engine, parts);
    let start = Instant::now();
    // A panic in one experiment is a defect of that one: the others run, and the results say what happened.
    let measured = AssertUnwindSafe(|| parts.iter().for_each(|part| bench.measure(experiment, *part)));
    let failure = catch_unwind(measured).err().map(|panic| panic_message(&*panic));
    let rows = bench.finish(planned, failure.as_deref());
    let (name, summary) = (experiment.name().to_owned(), experiment.summary().to_owned());
    (ExperimentRun { name, summary, duration: start.elapsed().as_secs_f64(), failure }, rows)
}

/// Keeps what the sensors say. Sensors that cannot be read are as good as none: they explain a measurement, they are not
/// one.
fn telemetry(run: &mut Run, experiment: &str, device: &Device, begun: Instant) {
    if let Some(sensors) = device.telemetry().ok().flatten() {
        let at = Some(begun.elapsed().as_secs_f64());
        run.telemetry.push(TelemetrySample { at, experiment: experiment.to_owned(), sensors });
    }
}
