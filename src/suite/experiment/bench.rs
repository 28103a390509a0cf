//! Measures the groups that an experiment declared.
//!
//! The rows of a [`Group`] are sampled together, interleaved, so that they can be compared. A group that fails leaves each
//! of its rows as failed, with the reason, and the others are measured.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Display;
use std::fs::File;
use std::io::Write;
use std::sync::Arc;
use std::time::Instant;

use super::Result;
use super::group::{Group, Part, Repeats};
use crate::device::{Device, Stream};
use crate::error::{DeviceError, MeasureError};
use crate::measure::{Clock, Progress, Protocol, Sampler, StoppedBy};
use crate::results::{
    MetricSpec, MissingReason, Outcome, Parameters, Piece, Provenance, Results, Row, Selection, Series, titled,
};
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

    /// What the run has left since it was last told: as it begins, and after each experiment.
    fn keep(&self, _piece: &Piece) {}
}

/// Where the groups of an experiment are measured, in one pass of a run.
pub(crate) struct Bench {
    device: Device,
    sampler: Sampler,
    observer: Arc<dyn RunObserver>,
    /// The run, and when it began, for the start times of samples.
    run: String,
    begun: Instant,
    selection: Selection,
    interrupted: bool,
    /// What earlier passes of the run, or an earlier try of it, left of rows, by their titles.
    earlier: HashMap<String, Outcome>,
    /// Which pass it is, from 0, of those that this says.
    pass: usize,
    sampling: Protocol,
    /// Why a row was given up that earlier passes measured.
    given_up: Option<String>,
    rows: Vec<Row>,
}

impl Bench {
    /// A bench on `device` for the run with the identifier `run`, which began at `begun`.
    pub(crate) fn new(
        device: &Device,
        sampler: Sampler,
        observer: Arc<dyn RunObserver>,
        run: &str,
        begun: Instant,
    ) -> Self {
        let told = Arc::clone(&observer);
        Self {
            device: device.clone(),
            sampler: sampler.sync_between(device).observed_by(Arc::new(move |progress| told.progress(progress))),
            observer,
            run: run.to_owned(),
            begun,
            selection: Selection::default(),
            interrupted: false,
            earlier: HashMap::new(),
            pass: 0,
            sampling: Protocol::default(),
            given_up: None,
            rows: Vec::new(),
        }
    }

    /// As pass `pass`, from 0, of those that the sampling of the run says, each of which takes a share of the samples. What is
    /// decided by trials is decided in the first. A pass that an earlier try of the run left of an experiment in `results` is
    /// not made again, and rows that their selection does not hold are left as skipped.
    pub(crate) fn in_pass(mut self, pass: usize, sampling: &Protocol, results: &Results, experiment: &str) -> Self {
        (self.pass, self.sampling, self.selection) = (pass, sampling.clone(), results.selection.clone());
        let whole = |row: &Row| Some((row.spec.title(), row.outcome(&self.run)?.clone().whole_passes()?));
        self.earlier = results.rows.of_experiment(experiment).filter_map(whole).collect();
        self
    }

    /// The rows in the order of `planned`, those that the experiment was to produce. One that it left out is there as
    /// failed, so that it cannot go unseen; the reason is `failure`, why the experiment ended. And why a row was given up that
    /// earlier passes had measured.
    pub(crate) fn finish(mut self, planned: Vec<MetricSpec>, failure: Option<&str>) -> (Vec<Row>, Option<String>) {
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

    /// Measures the rows of a group that have a case.
    pub(crate) fn sample(&mut self, group: &Group) {
        let (before, mut due) = (self.rows.len(), Vec::new());
        for (place, spec) in group.rows.iter().enumerate() {
            match self.left_out(group, spec) {
                _ if matches!(spec.provenance, Provenance::Derived { .. }) => {}
                Some(absent) => self.push(spec.clone(), absent),
                None if self.is_due(spec) => due.push(place),
                None => {}
            }
        }
        if !due.is_empty() {
            for (place, outcome) in self.outcomes(group, &due) {
                self.push(group.rows[place].clone(), outcome);
            }
        }
        self.tell(before);
    }

    /// Computes the derived rows of a group, once all groups of its part are sampled.
    pub(crate) fn compute(&mut self, group: &Group) {
        let before = self.rows.len();
        for spec in group.rows.iter().filter(|spec| matches!(spec.provenance, Provenance::Derived { .. })) {
            let outcome = self.left_out(group, spec).unwrap_or_else(|| self.computed(spec));
            self.push(spec.clone(), outcome);
        }
        self.tell(before);
    }

    /// What stands for a row that is not to be measured.
    fn left_out(&self, group: &Group, spec: &MetricSpec) -> Option<Outcome> {
        if self.selection.holds(&spec.id) { group.left_out.as_deref() } else { Some(MissingReason::BY_CHOICE) }
            .map(skipped)
    }

    /// Samples the rows of a group at these places.
    fn outcomes(&mut self, group: &Group, due: &[usize]) -> Vec<(usize, Outcome)> {
        // What a lost device does not measure another process can.
        self.interrupted |= self.sampler.is_interrupted() || self.device.is_lost();
        if self.interrupted {
            return due.iter().map(|place| (*place, Outcome::Interrupted)).collect();
        }
        let ids: Vec<&str> = due.iter().map(|place| group.rows[*place].id.as_str()).collect();
        self.observer.group(&ids, &group.rows[due[0]].parameters);
        let (mut left, mut outcomes) = (due.to_vec(), Vec::new());
        while !left.is_empty() {
            match self.sampled(group, &left) {
                Ok(sampled) => {
                    outcomes.extend(sampled);
                    break;
                }
                Err((place, reason)) => {
                    left.retain(|own| *own != place);
                    outcomes.push((place, Outcome::Failed { reason }));
                }
            }
        }
        outcomes
    }

    /// Samples the rows of a group at these places together, or says which of them cannot be launched behind a gate: others may be
    /// timed all the same.
    fn sampled(&mut self, group: &Group, due: &[usize]) -> std::result::Result<Vec<(usize, Outcome)>, (usize, String)> {
        let all = |places: &[usize], outcome: Outcome| places.iter().map(|place| (*place, outcome.clone())).collect();
        let made = match group.cases(&self.device, due) {
            Ok(made) => made,
            Err(error) => return Ok(all(due, unmade(&error))),
        };
        let (mut cases, mut places, mut outcomes) = (Vec::new(), Vec::new(), Vec::new());
        for (place, case) in due.iter().copied().zip(made) {
            match case {
                Ok(case) => {
                    cases.push(case);
                    places.push(place);
                }
                Err(error) => outcomes.push((place, unmade(&error))),
            }
        }
        if cases.is_empty() {
            return Ok(outcomes);
        }
        let stride = self.stride(places.iter().map(|place| &group.rows[*place]));
        let sampler = self.sampler.changed(|stated| match group.repeats {
            Repeats::AsStated => stated.of_stride(stride),
            Repeats::Unwarmed => stated.of_stride(stride).with_warmup(0),
            Repeats::Trials(count) => Protocol::samples(count.get()).with_warmup(0).with_seed(stated.seed),
        });
        outcomes.extend(match sampler.sample(cases) {
            Ok(kept) => {
                self.interrupted |= kept.stopped_by == StoppedBy::Interrupt;
                let in_passes = self.takes_part_in_passes(group);
                let sampled = Outcome::of_rounds(kept, self.begun).map(|mut outcome| {
                    outcome.measured_mut().filter(|_| !in_passes).iter_mut().for_each(|own| own.passes.clear());
                    outcome
                });
                places.into_iter().zip(sampled).collect::<Vec<_>>()
            }
            Err(MeasureError::Interrupted) => {
                self.interrupted = true;
                all(&places, Outcome::Interrupted)
            }
            Err(error) => {
                if let Some(place) = places.iter().find(|place| is_batch(&group.rows[**place], &error)) {
                    return Err((*place, error.to_string()));
                }
                all(&places, Outcome::Failed { reason: error.to_string() })
            }
        });
        Ok(outcomes)
    }

    fn computed(&self, spec: &MetricSpec) -> Outcome {
        let Provenance::Derived { formula, operands, .. } = &spec.provenance else {
            return Outcome::Failed { reason: "a measured row has no formula".to_owned() };
        };
        let found = operands.iter().map(|operand| {
            let samples = self.samples(&operand.id, operand.parameters.as_ref().unwrap_or(&spec.parameters))?;
            Ok((operand.name.as_str(), samples))
        });
        match found.collect::<Result<Vec<(&str, Cow<'_, [f64]>)>, Box<Outcome>>>() {
            Err(absent) if *absent == skipped(MissingReason::BY_CHOICE) => {
                skipped("the rows that it is computed from were left out by choice")
            }
            Err(absent) => *absent,
            Ok(found) => Outcome::computed(formula, &found, &spec.parameters),
        }
    }

    /// Whether this pass is to measure a row; one that it is not to stands here as it was left.
    fn is_due(&mut self, spec: &MetricSpec) -> bool {
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
    fn stride<'s>(&self, specs: impl Iterator<Item = &'s MetricSpec>) -> usize {
        let earlier = specs.filter_map(|spec| self.earlier.get(&spec.title()));
        earlier.map(|outcome| outcome.stride(&self.sampling)).max().unwrap_or(1)
    }

    /// Whether the rows of a group have samples in each pass.
    fn takes_part_in_passes(&self, group: &Group) -> bool {
        let is_made_once = matches!(group.repeats, Repeats::Trials(_)) || group.part != Part::Timed;
        self.sampling.all_passes() == 1 || !is_made_once
    }

    /// Tells what stands here, where a group left any of it.
    fn tell(&self, before: usize) {
        if self.rows.len() > before {
            self.observer.measured(&self.rows);
        }
    }

    /// Leaves what came of a row, behind what earlier passes left of it.
    fn push(&mut self, spec: MetricSpec, outcome: Outcome) {
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

    /// What stands here of a row, or an earlier part of the run left of it.
    pub(super) fn outcome(&self, id: &str, parameters: &Parameters) -> Option<&Outcome> {
        let row = self.rows.iter().find(|row| row.spec.is(id, parameters));
        row.map_or_else(|| self.earlier.get(&titled(id, parameters)), |row| row.outcome(&self.run))
    }

    /// The samples of such a row, or the outcome of one that has none.
    pub(super) fn samples(&self, id: &str, parameters: &Parameters) -> Result<Cow<'_, [f64]>, Box<Outcome>> {
        let none = || match self.interrupted {
            true => Box::new(Outcome::Interrupted),
            false => Box::new(Outcome::Failed { reason: format!("there is no row `{id}` to compute it from") }),
        };
        let outcome = self.outcome(id, parameters).ok_or_else(none)?;
        outcome.values().ok_or_else(|| Box::new(outcome.clone()))
    }
}

fn skipped(reason: &str) -> Outcome {
    Outcome::Skipped { reason: reason.to_owned() }
}

/// Whether an error is of the case of this row, which is timed in batches behind a gate.
fn is_batch(spec: &MetricSpec, error: &MeasureError) -> bool {
    let is_behind_gate = matches!(spec.provenance, Provenance::Measured { clock: Clock::DeviceBatch, .. });
    is_behind_gate && matches!(error, MeasureError::Case { case, .. } if *case == spec.title())
}

/// What a case could not be made for.
fn unmade(error: &DeviceError) -> Outcome {
    match error {
        DeviceError::NotApplicable { reason, .. } => Outcome::NotApplicable { reason: reason.clone() },
        error => Outcome::Failed { reason: error.to_string() },
    }
}

/// Enqueues one iteration of the texts' loop: a random matrix, multiplied by itself.
pub(super) fn random_matmul(stream: &Stream, n: usize) -> Result<Tensor<f32>> {
    let a = stream.normal::<f32>([n, n])?;
    a.matmul(&a)
}

/// The floating-point operations of a matmul of two matrices of `n` rows and columns: `2 · n³`.
pub(super) fn matmul_flops(n: usize) -> f64 {
    2.0 * (n as f64).powi(3)
}

/// Where printed tensors go: a system call, but no terminal, whose speed would be measured too.
pub(super) fn null_device() -> Result<File> {
    let path = if cfg!(windows) { "NUL" } else { "/dev/null" };
    File::options().write(true).open(path).map_err(|error| host_failure("open", &error))
}

/// Formats and writes a tensor, as a print does.
pub(super) fn print_to(file: &mut File, tensor: &dyn Display) -> Result<()> {
    writeln!(file, "{tensor}").map_err(|error| host_failure("write", &error))
}

fn host_failure(call: &'static str, error: &std::io::Error) -> DeviceError {
    DeviceError::call_failed("the host", call, error.to_string())
}
