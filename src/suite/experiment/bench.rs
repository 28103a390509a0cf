//! Where an experiment declares its rows and has them measured.
//!
//! An experiment declares a row where it measures it: identifier, label and unit in one call, with the case that takes its
//! samples; clock, iterations and work come from the same declaration. A [`Group`] is sampled together, interleaved, so
//! that its rows can be compared. A group that fails leaves each of its rows as failed, with the reason, and the
//! experiment goes on.
//!
//! [`Bench::plan`] runs an experiment with no device: every declaration is kept, and nothing else happens.

use std::collections::HashMap;
use std::fmt::Display;
use std::fs::File;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use super::group::Group;
use super::registry::AnyExperiment;
use crate::device::{Device, Stream};
use crate::error::DeviceError;
use crate::measure::{Progress, Protocol, Sampler};
use crate::results::{MetricSpec, Outcome, Parameter, Parameters, Results, Row, Selection, Series};
use crate::tensor::Tensor;

/// Told what a run is doing.
pub trait RunObserver: Send + Sync {
    /// An experiment begins: its place from 0, how many there are, its name.
    fn experiment(&self, place: usize, of: usize, name: &str);

    /// A group of rows begins.
    fn group(&self, rows: &[&str], parameters: &Parameters);

    /// The group has come this far.
    fn progress(&self, progress: Progress);

    /// The rows of the experiment that is running, as far as they are measured.
    fn measured(&self, _rows: &[Row]) {}

    /// All that the run has left, before its first experiment and after each.
    fn keep(&self, _results: &Results) {}
}

/// The parts of a run: what changes the process for the calls after it is measured after those.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Rows that need no recording.
    Timed,
    /// Rows that need devices which are connected. The access between these stays.
    Connected,
    /// Rows that come from recordings. Once a process has recorded its device, its later calls take longer.
    Recorded,
    /// Rows whose measurement makes all later calls of the process slower.
    Last,
}

impl Part {
    /// All of them, in their order.
    pub const ALL: [Self; 4] = [Part::Timed, Part::Connected, Part::Recorded, Part::Last];
}

/// Where the rows of an experiment are measured, or, without a device, only declared.
pub struct Bench {
    engine: String,
    /// The part that is measured now; all where rows are only declared.
    part: Option<Part>,
    pub(super) measuring: Option<Measuring>,
    pub(super) selection: Selection,
    pub(super) interrupted: bool,
    declared: Vec<MetricSpec>,
    /// What earlier passes of the run, or an earlier try of it, left of rows, by their titles.
    earlier: HashMap<String, Outcome>,
    /// Which pass it is, from 0, of those that this says.
    pass: usize,
    sampling: Protocol,
    /// Why a row was given up that earlier passes measured.
    given_up: Option<String>,
    rows: Vec<Row>,
    run: String,
    turn: Turn,
    /// The groups that the experiment has come to in this turn, by the part that each is of.
    groups: Vec<Part>,
}

/// What an experiment is run for. So that its groups can be measured in any order, it is run once for each of them, and a
/// last time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// To measure and compute all, in the order in which it declares its groups.
    All,
    /// To measure one group, by its place from 0.
    Group(usize),
    /// To compute what is derived from rows, when all are measured.
    Derived,
}

/// What measures.
#[derive(Clone)]
pub(super) struct Measuring {
    pub(super) device: Device,
    pub(super) sampler: Sampler,
    pub(super) observer: Arc<dyn RunObserver>,
    /// When the run began, for the start times of samples.
    pub(super) begun: Instant,
}

impl Bench {
    /// A bench on `device` for the run with the identifier `run`, which began at `begun`.
    pub fn new(device: &Device, sampler: Sampler, observer: Arc<dyn RunObserver>, run: &str, begun: Instant) -> Self {
        let told = Arc::clone(&observer);
        let sampler = sampler.sync_between(device).observed_by(Arc::new(move |progress| told.progress(progress)));
        let measuring = Measuring { device: device.clone(), sampler, observer, begun };
        Self { measuring: Some(measuring), ..Self::without_device(device.properties().engine, run) }
    }

    fn without_device(engine: &str, run: &str) -> Self {
        Self {
            engine: engine.to_owned(),
            part: None,
            measuring: None,
            selection: Selection::default(),
            interrupted: false,
            declared: Vec::new(),
            earlier: HashMap::new(),
            pass: 0,
            sampling: Protocol::default(),
            given_up: None,
            rows: Vec::new(),
            run: run.to_owned(),
            turn: Turn::All,
            groups: Vec::new(),
        }
    }

    /// The rows that `experiment` produces on an engine, in the order in which it declares them; needs no device. Where
    /// the experiment panics, those that it declared before.
    pub fn plan(experiment: &dyn AnyExperiment, engine: &str) -> Vec<MetricSpec> {
        Self::without_device(engine, "").planned(experiment).declared
    }

    /// Those of them that are of one part of a run.
    pub fn plan_of(experiment: &dyn AnyExperiment, engine: &str, part: Part) -> Vec<MetricSpec> {
        Self { part: Some(part), ..Self::without_device(engine, "") }.planned(experiment).declared
    }

    /// The part of a run that each group of `experiment` is of, in the order in which it declares them.
    pub fn groups(experiment: &dyn AnyExperiment, engine: &str) -> Vec<Part> {
        Self::without_device(engine, "").planned(experiment).groups
    }

    fn planned(mut self, experiment: &dyn AnyExperiment) -> Self {
        // A run of such an experiment says why it ended.
        _ = catch_unwind(AssertUnwindSafe(|| experiment.run(&mut self)));
        self
    }

    /// Begins a turn of a part: the experiment is run for it next.
    pub fn begin(&mut self, part: Part, turn: Turn) {
        (self.part, self.turn) = (Some(part), turn);
        self.groups.clear();
    }

    /// With only the rows of `selection` measured; the others are left as skipped.
    #[must_use]
    pub fn selecting(mut self, selection: Selection) -> Self {
        self.selection = selection;
        self
    }

    /// With what earlier passes of the same run, or an earlier try of it, left in `rows`: a pass that stands there is not made
    /// again.
    #[must_use]
    pub fn continuing<'r>(mut self, rows: impl IntoIterator<Item = &'r Row>) -> Self {
        let whole = |row: &Row| Some((row.spec.title(), row.outcome(&self.run)?.clone().whole_passes()?));
        self.earlier = rows.into_iter().filter_map(whole).collect();
        self
    }

    /// As pass `pass`, from 0, of those that the sampling of the run says, each of which takes a share of the samples. What is
    /// decided by trials is decided in the first.
    #[must_use]
    pub fn in_pass(mut self, pass: usize, sampling: Protocol) -> Self {
        (self.pass, self.sampling) = (pass, sampling);
        self
    }

    /// The engine of the device: `cuda`, `cpu`.
    pub fn engine(&self) -> &str {
        &self.engine
    }

    /// The device; `None` where rows are only declared.
    pub fn device(&self) -> Option<&Device> {
        self.measuring.as_ref().map(|measuring| &measuring.device)
    }

    /// A group of rows under a heading, measured with the same parameters.
    pub fn group<'p>(
        &mut self,
        heading: &str,
        parameters: impl IntoIterator<Item = (&'p str, Parameter)>,
    ) -> Group<'_, Device> {
        let parameters = parameters.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Group::new(self, heading, parameters)
    }

    /// The rows in the order of `planned`, those that the experiment was to produce. One that it left out is there as
    /// failed, so that it cannot go unseen; the reason is `failure`, why the experiment ended. And why a row was given up that
    /// earlier passes had measured.
    pub fn finish(mut self, planned: Vec<MetricSpec>, failure: Option<&str>) -> (Vec<Row>, Option<String>) {
        let places: Vec<String> = planned.iter().map(MetricSpec::title).collect();
        for spec in planned {
            if !self.rows.iter().any(|row| row.spec.is(&spec.id, &spec.parameters)) {
                let reason = failure.unwrap_or("the experiment left no such row").to_owned();
                self.push(spec, Outcome::Failed { reason });
            }
        }
        self.rows.sort_by_cached_key(|row| {
            let title = row.spec.title();
            places.iter().position(|place| *place == title)
        });
        (self.rows, self.given_up)
    }

    /// What the next group does in this turn: whether it is of the part, whether it measures, whether it computes.
    pub(super) fn next_group(&mut self, part: Part) -> (bool, bool, bool) {
        let place = self.groups.len();
        self.groups.push(part);
        let of_part = self.part.is_none_or(|now| now == part);
        let all = self.turn == Turn::All;
        (of_part, of_part && (all || self.turn == Turn::Group(place)), of_part && (all || self.turn == Turn::Derived))
    }

    pub(super) fn declare(&mut self, spec: &MetricSpec) {
        self.declared.push(spec.clone());
    }

    /// Whether this pass is to measure a row; one that it is not to stands here as it was left.
    pub(super) fn is_due(&mut self, spec: &MetricSpec) -> bool {
        let earlier = if self.earlier.is_empty() { None } else { self.earlier.remove_entry(&spec.title()) };
        match earlier {
            Some((_, outcome)) if outcome.passes_done(&self.sampling) > self.pass => {
                self.push(spec.clone(), outcome);
                false
            }
            earlier => {
                self.earlier.extend(earlier);
                true
            }
        }
    }

    /// Of how many passes these rows, which are sampled together, take part in one.
    pub(crate) fn stride(&self, specs: &[MetricSpec]) -> usize {
        let earlier = specs.iter().filter_map(|spec| self.earlier.get(&spec.title()));
        earlier.map(|outcome| outcome.stride(&self.sampling)).max().unwrap_or(1)
    }

    /// Whether a row of a group has samples in each pass.
    pub(super) fn takes_part_in_passes(&self, by_trials: bool) -> bool {
        self.sampling.all_passes() == 1 || !(by_trials || self.part != Some(Part::Timed))
    }

    /// How many rows stand here.
    pub(super) fn left(&self) -> usize {
        self.rows.len()
    }

    /// Tells what stands here.
    pub(super) fn tell(&self) {
        if let Some(measuring) = &self.measuring {
            measuring.observer.measured(&self.rows);
        }
    }

    /// Leaves what came of a row, behind what earlier passes left of it.
    pub(super) fn push(&mut self, spec: MetricSpec, outcome: Outcome) {
        let earlier = if self.earlier.is_empty() { None } else { self.earlier.remove(&spec.title()) };
        if let (Some(Outcome::Measured { .. }), Outcome::Failed { reason }) = (&earlier, &outcome) {
            let (title, pass) = (spec.title(), self.pass + 1);
            self.given_up.get_or_insert_with(|| format!("`{title}`, in pass {pass}: {reason}"));
        }
        let outcome = match earlier {
            Some(earlier) => earlier.followed_by(outcome),
            None => outcome,
        };
        self.rows.push(Row { spec, series: vec![Series { run: self.run.clone(), outcome }] });
    }

    /// What stands here of a row.
    pub(super) fn outcome(&self, id: &str, parameters: &Parameters) -> Option<&Outcome> {
        let row = self.rows.iter().find(|row| row.spec.is(id, parameters));
        row.and_then(|row| row.outcome(&self.run))
    }

    /// The samples of a row that stands here, or the outcome of one that has none.
    pub(super) fn samples(&self, id: &str, parameters: &Parameters) -> Result<&[f64], Box<Outcome>> {
        match self.outcome(id, parameters) {
            Some(Outcome::Measured { samples, .. } | Outcome::Derived { samples }) => Ok(samples),
            Some(absent) => Err(Box::new(absent.clone())),
            None => {
                let reason = format!("there is no row `{id}` to compute it from");
                Err(Box::new(Outcome::Failed { reason }))
            }
        }
    }
}

/// Enqueues one iteration of the texts' loop: a random matrix, multiplied by itself.
pub(super) fn random_matmul(stream: &Stream, n: usize) -> Result<Tensor<f32>, DeviceError> {
    let a = stream.normal::<f32>([n, n])?;
    a.matmul(&a)
}

/// The floating-point operations of a matmul of two matrices of `n` rows and columns: `2 · n³`.
pub(super) fn matmul_flops(n: usize) -> f64 {
    2.0 * (n as f64).powi(3)
}

/// Where printed tensors go: a system call, but no terminal, whose speed would be measured too.
pub(super) fn null_device() -> Result<File, DeviceError> {
    let path = if cfg!(windows) { "NUL" } else { "/dev/null" };
    File::options().write(true).open(path).map_err(|error| host_failure("open", &error))
}

/// Formats and writes a tensor, as a print does.
pub(super) fn print_to(file: &mut File, tensor: &dyn Display) -> Result<(), DeviceError> {
    writeln!(file, "{tensor}").map_err(|error| host_failure("write", &error))
}

fn host_failure(call: &'static str, error: &std::io::Error) -> DeviceError {
    DeviceError::CallFailed { device: "the host".to_owned(), call, reason: error.to_string() }
}
