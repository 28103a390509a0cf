//! Runs a suite on a device.
//!
//! A run is one process. What it measures joins what earlier runs of the same results file measured, so that a file can
//! be added to run by run: see [`Session::next`].

mod length;
mod schema;
mod suite;

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

pub use length::{Length, bytes, length};
use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
pub use suite::{ENGINES, Suite};

use crate::affinity;
use crate::device::Device;
use crate::error::panic_message;
use crate::experiment::{AnyExperiment, Bench, Group, Part, Registry, RegistryEntry, RunObserver, record_scenarios};
use crate::measure::{HostSpeed, Protocol, Sampler};
use crate::results::{
    Environment, ExperimentRun, MetricSpec, Outcome, Piece, Plan, Recorded, RecordedTimeline, Results, Row, Rows, Run,
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
///     has_timelines: true,
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
    /// Whether scenarios are recorded, where the results hold none yet.
    pub has_timelines: bool,
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

impl Session<'_> {
    /// Measures one run: goes on with the one that was interrupted, or else begins the next, whose `environment` this is.
    ///
    /// The experiments run in an order drawn for the run. A row or an experiment that fails is in the results with its
    /// reason, and the others run. Where the device is lost by it, they are interrupted: another process goes on with them. What an earlier try of the run finished is kept as it is.
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
        // Where the host's thread has no processor of its own, what computes beside it is part of the run.
        let host = affinity::measuring().map(|_| Arc::new(HostSpeed::new()));
        let mut running = Running { results, at, id, begun: Instant::now(), host };
        self.observer.keep(&running.piece(Vec::new(), Vec::new()));
        self.measure(&mut running);
        let Running { mut results, id, .. } = running;
        self.sort(&mut results);
        let finished = results.rows.iter().filter_map(|row| row.outcome(&id)).all(Outcome::is_finished);
        results.runs[at].outcome = if finished { RunOutcome::Complete } else { RunOutcome::Interrupted };
        results
    }

    fn measure(&self, running: &mut Running) {
        let engine = self.device.properties().engine;
        // Another sequence for each run of a file, the same on every machine.
        let number = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        let seed = running.id.bytes().fold(self.suite.sampling.seed, number);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let chosen = experiments(self.suite, self.registry, engine);
        let selection = running.results.selection.clone();
        let declared: Vec<Declared<'_>> = chosen.iter().map(|own| Declared::of(own.as_ref(), engine)).collect();
        let mut experiments: Vec<&Declared<'_>> = declared.iter().filter(|own| own.is_chosen(&selection)).collect();
        let passes = self.suite.sampling.all_passes();
        for pass in 0..passes {
            experiments.shuffle(&mut random);
            for (place, experiment) in experiments.iter().enumerate() {
                if !self.is_interrupted() {
                    self.observer.experiment(
                        pass * experiments.len() + place,
                        passes * experiments.len(),
                        experiment.experiment.name(),
                    );
                }
                let (device, begun) = (self.device, running.begun);
                let ((left, rows), sensed) = watched(device, begun, experiment.experiment.name(), || {
                    self.measure_part(running, experiment, Part::Timed, pass, &mut random)
                });
                self.observer.keep(&running.leave(left, rows, sensed));
            }
            if self.is_interrupted() {
                running.cut_short(&self.suite.sampling);
                break;
            }
        }
        self.measure_later(running, &experiments, Part::Connected, &mut random);
        // Recordings leave their traces in the process: not before the last row that needs none has been measured.
        self.measure_later(running, &experiments, Part::Recorded, &mut random);
        // Once a file is enough.
        if self.has_timelines && running.results.timelines.is_empty() && !self.is_interrupted() {
            let id = running.id.clone();
            let planned: Vec<&MetricSpec> = declared.iter().flat_map(Declared::rows).collect();
            let record = |own: &&Declared<'_>| record_scenarios(own.experiment, &selection, self.device, &id);
            let recorded = experiments.iter().flat_map(record);
            let timelines: Vec<_> = recorded.map(|scenario| timed(scenario, &planned)).collect();
            let piece = Piece { timelines, ..running.piece(Vec::new(), Vec::new()) };
            running.results.timelines.clone_from(&piece.timelines);
            self.observer.keep(&piece);
        }
        self.measure_later(running, &experiments, Part::Last, &mut random);
    }

    /// Measures those rows of experiments that are of a later part of a run.
    fn measure_later(
        &self,
        running: &mut Running,
        experiments: &[&Declared<'_>],
        part: Part,
        random: &mut Xoshiro256PlusPlus,
    ) {
        for experiment in experiments.iter().filter(|own| own.groups.iter().any(|group| group.part() == part)) {
            let (left, rows) = self.measure_part(running, experiment, part, 0, random);
            self.observer.keep(&running.leave(left, rows, Vec::new()));
        }
    }

    /// Measures the rows of an experiment that are of one part of a run, in one of its passes. Those of the later parts have one.
    fn measure_part(
        &self,
        running: &Running,
        declared: &Declared<'_>,
        part: Part,
        pass: usize,
        random: &mut Xoshiro256PlusPlus,
    ) -> (ExperimentRun, Vec<Row>) {
        let sampling = &self.suite.sampling;
        let share = if part == Part::Timed { sampling.of_pass(pass) } else { sampling.clone() };
        let protocol = Protocol { seed: random.random(), ..share };
        let host = running.host.clone();
        let sampler = Sampler::new(protocol).interrupted_by(Arc::clone(&self.interrupt)).watching(host);
        let mut bench = Bench::new(self.device, sampler, Arc::clone(&self.observer), &running.id, running.begun)
            .in_pass(pass, sampling, &running.results, declared.experiment.name());
        let mut order = Xoshiro256PlusPlus::seed_from_u64(random.random());
        let (start, mut failure) = (Instant::now(), declared.failure.clone());
        let groups: Vec<&Group> = declared.groups.iter().filter(|group| group.part() == part).collect();
        let mut drawn = groups.clone();
        drawn.shuffle(&mut order);
        for group in drawn {
            // A panic in one group is a defect of that one: the others run, and the results say what happened.
            let outcome = catch_unwind(AssertUnwindSafe(|| affinity::kept(|| bench.sample(group))));
            failure = failure.or(outcome.err().map(|panic| panic_message(&*panic)));
        }
        groups.iter().for_each(|group| bench.compute(group));
        let planned = groups.into_iter().flat_map(Group::rows).cloned().collect();
        let (rows, given_up) = bench.finish(planned, failure.as_deref());
        let failure = failure.or(given_up);
        let (name, summary) = (declared.experiment.name().to_owned(), declared.experiment.summary().to_owned());
        let code = code_of(&name, declared.engine).map(str::to_owned);
        (ExperimentRun { name, summary, duration: start.elapsed().as_secs_f64(), code, failure }, rows)
    }

    /// Whether nothing more is to be measured here, because somebody asked for it or because the device is lost.
    fn is_interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed) || self.device.is_lost()
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
fn timed(scenario: RecordedTimeline, rows: &[&MetricSpec]) -> RecordedTimeline {
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
    experiments(suite, registry, engine).iter().flat_map(|own| own.plan(engine)).collect()
}

/// The experiments of a run, in the order of the suite. Of those that it does not name the self-audit is the first and the
/// peak rates are the last; the others stand between, where the suite asks for all.
fn experiments(suite: &Suite, registry: &Registry, engine: &str) -> Vec<Arc<dyn AnyExperiment>> {
    let unless_named = |entry: &RegistryEntry| (!suite.names(entry.name, engine)).then(|| entry.default_for(engine));
    let [first, last] = OF_EVERY_RUN.map(|name| registry.get(name).and_then(unless_named));
    let is_left_out = |name: &str| OF_EVERY_RUN.contains(&name) || suite.except.iter().any(|own| own == name);
    let others = registry.ready().filter(|entry| suite.all && !is_left_out(entry.name));
    let named = suite.experiments_on(engine).iter().cloned();
    first.into_iter().chain(named).chain(others.filter_map(unless_named)).chain(last).collect()
}

/// A run that is being measured.
struct Running {
    /// The other runs, and what this one has left.
    results: Results,
    /// Where this run stands among them.
    at: usize,
    id: String,
    begun: Instant,
    /// How fast the host computes, where its thread is kept on a processor of its own.
    host: Option<Arc<HostSpeed>>,
}

impl Running {
    /// What it left since the last piece.
    fn piece(&self, rows: Vec<Row>, telemetry: Vec<TelemetrySample>) -> Piece {
        Piece { run: Run { telemetry, ..self.results.runs[self.at].clone() }, rows, timelines: Vec::new() }
    }

    /// Adds what a pass or a part left of an experiment, which is a piece of the run.
    fn leave(&mut self, left: ExperimentRun, rows: Vec<Row>, telemetry: Vec<TelemetrySample>) -> Piece {
        let order = &mut self.results.runs[self.at].order;
        match order.iter_mut().find(|own| own.name == left.name) {
            Some(whole) => {
                whole.duration += left.duration;
                whole.failure = whole.failure.take().or(left.failure);
            }
            None => order.push(left),
        }
        let piece = self.piece(rows, telemetry);
        self.results.add(piece.clone());
        piece
    }

    /// Marks the rows of which passes are missing: the run was interrupted.
    fn cut_short(&mut self, sampling: &Protocol) {
        let series = self.results.rows.iter_mut().flat_map(|row| &mut row.series);
        for series in series.filter(|series| series.run == self.id) {
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

/// An experiment of a run, and what it declared.
struct Declared<'a> {
    experiment: &'a dyn AnyExperiment,
    engine: &'a str,
    groups: Vec<Group>,
    /// Why it declared nothing.
    failure: Option<String>,
}

impl<'a> Declared<'a> {
    fn of(experiment: &'a dyn AnyExperiment, engine: &'a str) -> Self {
        let (groups, failure) = match experiment.declared(engine) {
            Ok(groups) => (groups, None),
            Err(failure) => (Vec::new(), Some(failure)),
        };
        Self { experiment, engine, groups, failure }
    }

    fn rows(&self) -> impl Iterator<Item = &MetricSpec> {
        self.groups.iter().flat_map(Group::rows)
    }

    /// Whether a selection holds any of it. One with a defect is run, so that the results say so.
    fn is_chosen(&self, selection: &Selection) -> bool {
        self.rows().any(|spec| selection.holds(&spec.id))
            || (self.failure.is_some() && selection.holds(self.experiment.name()))
    }
}
