//! Runs a suite on a device.
//!
//! A run is one process. What it measures joins what earlier runs of the same results file measured, so that a file can
//! be added to run by run: see [`Session::next`].

mod describe;
mod length;
mod schema;
mod suite;

use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

pub use describe::describe;
pub use length::{Length, length};
use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
pub use suite::ENGINES;
pub use suite::Suite;

use crate::affinity;
use crate::device::Device;
use crate::error::panic_message;
use crate::experiment::{AnyExperiment, Bench, Part, Registry, RegistryEntry, RunObserver, Turn, record_scenarios};
use crate::measure::{HostSpeed, Protocol, Sampler};
use crate::results::{
    Environment, ExperimentRun, MetricSpec, Outcome, Plan, Recorded, RecordedTimeline, Results, Row, Rows, Run,
    RunOutcome, SCHEMA_VERSION, SYNCSCOPE, Selection, TelemetrySample, code_of, host_clock, now,
};

/// The experiments of every run that its suite does not name: a suite that does states parameters itself.
const OF_EVERY_RUN: [&str; 2] = ["self-audit", "ceilings"];

/// What a run needs: the suite and who knows its experiments, the device, and whom to tell and to listen to.
///
/// ```no_run
/// use std::sync::Arc;
///
/// use syncscope::device::Device;
/// use syncscope_suite::experiment::{Registry, RunObserver};
/// use syncscope::measure::Progress;
/// use syncscope_results::{Environment, Parameters, Plan, Selection};
/// use syncscope_suite::runner::{Session, Suite, empty_results};
///
/// struct Quiet;
///
/// impl RunObserver for Quiet {
///     fn experiment(&self, _: usize, _: usize, _: &str) {}
///     fn group(&self, _: &[&str], _: &Parameters) {}
///     fn progress(&self, _: Progress) {}
/// }
///
/// let (registry, device) = (Registry::builtin(), Device::best()?);
/// let suite = Suite::parse("title: Launches\nexperiments: [launch-path: {}]", "launches.yaml", &registry)?;
/// let environment = Environment::now(&device, Vec::new());
/// let results = empty_results(suite.source.clone(), Selection::default(), Plan::default(), environment.clone());
/// let session = Session {
///     suite: &suite,
///     registry: &registry,
///     device: &device,
///     observer: Arc::new(Quiet),
///     interrupt: Arc::default(),
/// };
/// let results = session.next(results, environment);
/// results.write("results.json".as_ref())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Session<'a> {
    /// The suite.
    pub suite: &'a Suite,
    /// The experiments that there are.
    pub registry: &'a Registry,
    /// Where to measure.
    pub device: &'a Device,
    /// Told what the run is doing.
    pub observer: Arc<dyn RunObserver>,
    /// Once it is true the run ends after the current sample.
    pub interrupt: Arc<AtomicBool>,
}

/// The results of a run that begins now and has measured nothing yet.
pub fn empty_results(suite: serde_json::Value, selection: Selection, plan: Plan, environment: Environment) -> Results {
    let (runs, rows, timelines) = (vec![empty_run(1, environment)], Rows::default(), Vec::new());
    let samples_sha256 = None;
    Results { schema_version: SCHEMA_VERSION, suite, selection, plan, runs, rows, timelines, samples_sha256 }
}

fn empty_run(number: usize, environment: Environment) -> Run {
    Run {
        id: format!("{SYNCSCOPE}-{number}"),
        system: SYNCSCOPE.to_owned(),
        started: now(),
        resumed: Vec::new(),
        environment,
        telemetry: Vec::new(),
        algorithms: Vec::new(),
        order: Vec::new(),
        outcome: RunOutcome::Interrupted,
    }
}

/// The numbers that a run draws: another sequence for each run of a file, the same on every machine.
fn random(seed: u64, run: &str) -> Xoshiro256PlusPlus {
    let number = run.bytes().fold(seed, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    Xoshiro256PlusPlus::seed_from_u64(number)
}

impl Session<'_> {
    /// Measures one run: goes on with the one that was interrupted, or else begins the next, whose `environment` this is.
    ///
    /// The experiments run in an order drawn for the run. A row or an experiment that fails is in the results with its
    /// reason, and the others run. What an earlier try of the run finished is kept as it is.
    pub fn next(&self, mut results: Results, environment: Environment) -> Results {
        let own = |run: &Run| run.system == SYNCSCOPE;
        let open = results.runs.iter().position(|run| own(run) && run.outcome == RunOutcome::Interrupted);
        let at = open.unwrap_or_else(|| {
            let number = results.runs_of(SYNCSCOPE).count() + 1;
            results.runs.push(empty_run(number, environment));
            results.runs.len() - 1
        });
        if !results.runs[at].order.is_empty() {
            results.runs[at].resumed.push(now());
        }
        let id = results.runs[at].id.clone();
        let earlier = results.take_rows(&id);
        let order = std::mem::take(&mut results.runs[at].order);
        // Where the host's thread has no processor of its own, what computes beside it is part of the run.
        let host = affinity::measuring().map(|_| Arc::new(HostSpeed::new()));
        let mut running = Running { results, at, id, begun: Instant::now(), host, rows: Vec::new(), earlier, order };
        self.measure(&mut running);
        let Running { mut results, id, rows, earlier, .. } = running;
        results.merge(rows);
        // What was finished and is no longer in the suite's order.
        results.merge(earlier);
        self.sort(&mut results);
        let finished = results.rows.iter().filter_map(|row| row.outcome(&id)).all(Outcome::is_finished);
        results.runs[at].outcome = if finished { RunOutcome::Complete } else { RunOutcome::Interrupted };
        results
    }

    fn measure(&self, running: &mut Running) {
        let engine = self.device.properties().engine;
        let mut random = random(self.suite.sampling.seed, &running.id);
        let chosen = experiments(self.suite, self.registry, engine);
        let selection = running.results.selection.clone();
        let has_rows = |experiment: &&dyn AnyExperiment| {
            Bench::plan(*experiment, engine).iter().any(|spec| selection.holds(&spec.id))
        };
        let mut experiments: Vec<&dyn AnyExperiment> = chosen.iter().map(Chosen::get).filter(has_rows).collect();
        let passes = self.suite.sampling.all_passes();
        for pass in 0..passes {
            experiments.shuffle(&mut random);
            for (place, experiment) in experiments.iter().enumerate() {
                self.observer.keep(&running.so_far());
                if !self.is_interrupted() {
                    self.observer.experiment(
                        pass * experiments.len() + place,
                        passes * experiments.len(),
                        experiment.name(),
                    );
                }
                let (device, begun) = (self.device, running.begun);
                let (left, sensed) = watched(device, begun, experiment.name(), || {
                    self.measure_part(running, *experiment, Part::Timed, pass, &mut random)
                });
                running.run().telemetry.extend(sensed);
                running.add(left);
            }
            if self.is_interrupted() {
                running.cut_short(&self.suite.sampling);
                break;
            }
        }
        self.observer.keep(&running.so_far());
        self.measure_later(running, &experiments, Part::Connected, &mut random);
        // Recordings leave their traces in the process: not before the last row that needs none has been measured.
        self.measure_later(running, &experiments, Part::Recorded, &mut random);
        // Once a file is enough.
        if running.results.timelines.is_empty() && !self.is_interrupted() {
            let id = running.id.clone();
            let planned = planned(self.suite, self.registry, engine);
            let recorded =
                experiments.iter().flat_map(|experiment| record_scenarios(*experiment, &selection, self.device, &id));
            running.results.timelines = recorded.map(|scenario| timed(scenario, &planned)).collect();
        }
        self.measure_later(running, &experiments, Part::Last, &mut random);
        running.run().algorithms = self.device.algorithms();
    }

    /// Measures those rows of experiments that are of a later part of a run.
    fn measure_later(
        &self,
        running: &mut Running,
        experiments: &[&dyn AnyExperiment],
        part: Part,
        random: &mut Xoshiro256PlusPlus,
    ) {
        let engine = self.device.properties().engine;
        for experiment in experiments {
            if Bench::plan_of(*experiment, engine, part).is_empty() {
                continue;
            }
            let left = self.measure_part(running, *experiment, part, 0, random);
            running.add(left);
        }
        self.observer.keep(&running.so_far());
    }

    /// Measures the rows of an experiment that are of one part of a run, in one of its passes. Those of the later parts have one.
    fn measure_part(
        &self,
        running: &mut Running,
        experiment: &dyn AnyExperiment,
        part: Part,
        pass: usize,
        random: &mut Xoshiro256PlusPlus,
    ) -> ExperimentRun {
        let sampling = &self.suite.sampling;
        let share = if part == Part::Timed { sampling.of_pass(pass) } else { sampling.clone() };
        let protocol = Protocol { seed: random.random(), ..share };
        let host = running.host.clone();
        let sampler = Sampler::new(protocol).interrupted_by(Arc::clone(&self.interrupt)).watching(host);
        let bench = Bench::new(self.device, sampler, Arc::clone(&self.observer), &running.id, running.begun)
            .selecting(running.results.selection.clone())
            .in_pass(pass, sampling.clone())
            .continuing(
                running.rows.iter().chain(&running.earlier).filter(|row| row.spec.experiment() == experiment.name()),
            );
        let (left, rows) = run_parts(experiment, bench, self.device.properties().engine, &[part], random.random());
        running.put(rows);
        left
    }

    fn is_interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }

    /// Brings the rows into the order of the suite, whatever the order in which they were measured.
    fn sort(&self, results: &mut Results) {
        let engine = self.device.properties().engine;
        let planned = planned(self.suite, self.registry, engine);
        let places: HashMap<String, usize> = planned.iter().map(MetricSpec::title).zip(0..).collect();
        results.rows.sort_by_cached_key(|row| places.get(&row.spec.title()).copied().unwrap_or(usize::MAX));
    }
}

/// A scenario that a row times; one that none does failed, since no reader finds it.
fn timed(scenario: RecordedTimeline, rows: &[MetricSpec]) -> RecordedTimeline {
    let is_timed = rows.iter().any(|row| row.id == scenario.name);
    match scenario.recorded {
        Recorded::Timeline(_) if !is_timed => {
            let reason = "no row is called so, and a scenario is named by the row that times it".to_owned();
            RecordedTimeline { recorded: Recorded::Failed(reason), ..scenario }
        }
        _ => scenario,
    }
}

/// The rows that a run of a suite measures on a device of `engine`, in the order of the suite; needs no device.
pub fn planned(suite: &Suite, registry: &Registry, engine: &str) -> Vec<MetricSpec> {
    experiments(suite, registry, engine).iter().flat_map(|own| Bench::plan(own.get(), engine)).collect()
}

/// The experiments of a run on a device of `engine` that its suite does not name: those of every run, and the others where it
/// asks for all.
pub fn unnamed(suite: &Suite, registry: &Registry, engine: &str) -> Vec<&'static str> {
    let unnamed = |own: &Chosen<'_>| matches!(own, Chosen::Default(_)).then(|| own.get().name());
    experiments(suite, registry, engine).iter().filter_map(unnamed).collect()
}

/// The experiments of a run, in the order of the suite. Of those that it does not name the self-audit is the first and the
/// peak rates are the last; the others stand between, where the suite asks for all.
fn experiments<'a>(suite: &'a Suite, registry: &Registry, engine: &str) -> Vec<Chosen<'a>> {
    let chosen = suite.experiments_on(engine);
    let is_chosen = |name: &str| chosen.iter().any(|experiment| experiment.name() == name);
    let unless_chosen =
        |entry: &RegistryEntry| (!is_chosen(entry.name)).then(|| Chosen::Default(entry.default_for(engine)));
    let [first, last] = OF_EVERY_RUN.map(|name| registry.get(name).and_then(unless_chosen));
    let is_left_out = |name: &str| OF_EVERY_RUN.contains(&name) || suite.except.iter().any(|own| own == name);
    let others = registry.entries().iter().filter(|entry| suite.all && !is_left_out(entry.name));
    let chosen = chosen.iter().map(|own| Chosen::Suite(own.as_ref()));
    first.into_iter().chain(chosen).chain(others.filter_map(unless_chosen)).chain(last).collect()
}

/// An experiment of a run.
enum Chosen<'a> {
    Suite(&'a dyn AnyExperiment),
    Default(Box<dyn AnyExperiment>),
}

impl Chosen<'_> {
    fn get(&self) -> &dyn AnyExperiment {
        match self {
            Chosen::Suite(experiment) => *experiment,
            Chosen::Default(experiment) => experiment.as_ref(),
        }
    }
}

/// A run that is being measured.
struct Running {
    /// The other runs, and this one without its rows.
    results: Results,
    /// Where this run stands among them.
    at: usize,
    id: String,
    begun: Instant,
    /// How fast the host computes, where its thread is kept on a processor of its own.
    host: Option<Arc<HostSpeed>>,
    /// What it has left.
    rows: Vec<Row>,
    /// What an earlier try of it left of experiments that it has not reached.
    earlier: Vec<Row>,
    /// The experiments of that try.
    order: Vec<ExperimentRun>,
}

impl Running {
    fn run(&mut self) -> &mut Run {
        &mut self.results.runs[self.at]
    }

    fn so_far(&self) -> Results {
        let mut all = self.results.clone();
        all.merge(self.rows.clone());
        all.merge(self.earlier.clone());
        let reached = |left: &&ExperimentRun| !all.runs[self.at].order.iter().any(|own| own.name == left.name);
        let before: Vec<ExperimentRun> = self.order.iter().filter(reached).cloned().collect();
        all.runs[self.at].order.extend(before);
        all
    }

    /// Adds what a pass or a part left of an experiment to what stands of it; what an earlier try took is counted once.
    fn add(&mut self, mut left: ExperimentRun) {
        let is_it = |own: &ExperimentRun| own.name == left.name;
        if let Some(place) = self.order.iter().position(is_it) {
            left.duration += self.order.remove(place).duration;
        }
        match self.run().order.iter_mut().find(|own| own.name == left.name) {
            Some(whole) => {
                whole.duration += left.duration;
                whole.failure = whole.failure.take().or(left.failure);
            }
            None => self.run().order.push(left),
        }
    }

    /// Puts rows in the place of what stood of them.
    fn put(&mut self, rows: Vec<Row>) {
        let titles: HashSet<String> = rows.iter().map(|row| row.spec.title()).collect();
        let experiments: HashSet<&str> = rows.iter().map(|row| row.spec.experiment()).collect();
        let stays = |row: &Row| !(experiments.contains(row.spec.experiment()) && titles.contains(&row.spec.title()));
        self.earlier.retain(stays);
        self.rows.retain(stays);
        self.rows.extend(rows);
    }

    /// Marks the rows of which passes are missing: the run was interrupted.
    fn cut_short(&mut self, sampling: &Protocol) {
        for series in self.rows.iter_mut().flat_map(|row| &mut row.series).filter(|series| series.run == self.id) {
            if series.outcome.is_finished() && series.outcome.passes_done(sampling) < sampling.all_passes() {
                let outcome = std::mem::replace(&mut series.outcome, Outcome::Interrupted);
                series.outcome = outcome.followed_by(Outcome::Interrupted);
            }
        }
    }
}

/// Does what is to be watched, and reads the sensors before it, twice a second beside it, and after it.
///
/// Sensors that cannot be read are as good as none: they explain a measurement, they are not one.
fn watched<T>(
    device: &Device,
    begun: Instant,
    experiment: &str,
    work: impl FnOnce() -> T,
) -> (T, Vec<TelemetrySample>) {
    const OFTEN: Duration = Duration::from_millis(500);
    let read = || {
        let sensors = device.telemetry().ok().flatten()?;
        let at = Some(begun.elapsed().as_secs_f64());
        Some(TelemetrySample { at, experiment: experiment.to_owned(), sensors, host_mhz: host_clock::mhz() })
    };
    let Some(first) = read() else { return (work(), Vec::new()) };
    let (end, ended) = mpsc::channel::<()>();
    thread::scope(|scope| {
        let sense = move || {
            let mut sensed = vec![first];
            while ended.recv_timeout(OFTEN) == Err(RecvTimeoutError::Timeout) {
                sensed.extend(read());
            }
            sensed.extend(read());
            sensed
        };
        let Ok(beside) = thread::Builder::new().spawn_scoped(scope, sense) else { return (work(), Vec::new()) };
        let done = work();
        drop(end);
        (done, beside.join().unwrap_or_default())
    })
}

/// Runs one experiment on `bench`, its groups in an order that is drawn by `seed`: what is said of it as a whole, and its
/// rows.
pub fn run_one(experiment: &dyn AnyExperiment, bench: Bench, engine: &str, seed: u64) -> (ExperimentRun, Vec<Row>) {
    run_parts(experiment, bench, engine, &Part::ALL, seed)
}

/// Runs these parts of one experiment.
fn run_parts(
    experiment: &dyn AnyExperiment,
    mut bench: Bench,
    engine: &str,
    parts: &[Part],
    seed: u64,
) -> (ExperimentRun, Vec<Row>) {
    let planned = parts.iter().flat_map(|part| Bench::plan_of(experiment, engine, *part)).collect();
    let groups = Bench::groups(experiment, engine);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let start = Instant::now();
    let mut failure = None;
    for part in parts {
        let mut turns: Vec<Turn> = (0..groups.len()).filter(|place| groups[*place] == *part).map(Turn::Group).collect();
        turns.shuffle(&mut random);
        for turn in turns.into_iter().chain([Turn::Derived]) {
            bench.begin(*part, turn);
            // A panic in one group is a defect of that one: the others run, and the results say what happened.
            let run = || affinity::kept(|| experiment.run(&mut bench));
            let outcome = catch_unwind(AssertUnwindSafe(run));
            failure = failure.or(outcome.err().map(|panic| panic_message(&*panic)));
        }
    }
    let (rows, given_up) = bench.finish(planned, failure.as_deref());
    let failure = failure.or(given_up);
    let (name, summary) = (experiment.name().to_owned(), experiment.summary().to_owned());
    let code = code_of(&name).map(str::to_owned);
    (ExperimentRun { name, summary, duration: start.elapsed().as_secs_f64(), code, failure }, rows)
}
