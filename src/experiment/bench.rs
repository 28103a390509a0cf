//! Where an experiment runs its cases and leaves its rows.
//!
//! A group of cases is sampled together, interleaved, so that its rows can be compared. A group that fails leaves
//! each of its rows as failed, with the reason, and the experiment goes on.

use std::fmt::Display;
use std::fs::File;
use std::io::Write;
use std::sync::Arc;

use super::row::{Derivation, Outcome, Parameter, Parameters, Row};
use super::{RowPlan, Selection};
use crate::device::{Device, Stream};
use crate::error::{DeviceError, MeasureError};
use crate::measure::{Case, Progress, Sampler, StoppedBy};
use crate::tensor::Tensor;

/// Told what a bench is doing.
pub trait Watcher: Send + Sync {
    /// A group of rows begins.
    fn begins(&self, rows: &[&str], parameters: &Parameters);

    /// The group has come this far.
    fn advances(&self, progress: Progress);
}

/// The device and the sampler of an experiment, and the rows that it has left so far.
pub struct Bench {
    device: Device,
    sampler: Sampler,
    watcher: Arc<dyn Watcher>,
    plan: Vec<RowPlan>,
    selection: Selection,
    finished: Vec<Row>,
    rows: Vec<Row>,
    interrupted: bool,
}

impl Bench {
    /// A bench for the rows of `plan` on `device`.
    pub fn new(device: &Device, sampler: Sampler, plan: Vec<RowPlan>, watcher: Arc<dyn Watcher>) -> Self {
        let observer = Arc::clone(&watcher);
        let sampler = sampler.sync_between(device).observed_by(Arc::new(move |progress| observer.advances(progress)));
        let (selection, finished, rows) = (Selection::default(), Vec::new(), Vec::new());
        Self { device: device.clone(), sampler, watcher, plan, selection, finished, rows, interrupted: false }
    }

    /// With only the rows of `selection` measured; the others are left as skipped.
    #[must_use]
    pub fn selecting(mut self, selection: Selection) -> Self {
        self.selection = selection;
        self
    }

    /// With the finished ones of `rows` taken over from an earlier run instead of measured again.
    #[must_use]
    pub fn continuing(mut self, rows: &[Row]) -> Self {
        self.finished = rows.iter().filter(|row| row.is_finished()).cloned().collect();
        self
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Samples the cases that `make` builds, interleaved, and leaves one row for each of `ids`. A case is named by the
    /// identifier of its row.
    pub(super) fn group(
        &mut self,
        ids: &[&'static str],
        parameters: &Parameters,
        make: impl FnOnce(&Device) -> Result<Vec<Case<'static>>, DeviceError>,
    ) {
        let (chosen, others): (Vec<_>, Vec<_>) = ids.iter().copied().partition(|id| self.selection.holds(id));
        self.skipped(&others, parameters, NOT_CHOSEN);
        let ids = &chosen[..];
        if ids.is_empty() || self.take_over(ids, parameters) {
            return;
        }
        if self.interrupted {
            return self.leave(ids, parameters, || Outcome::Interrupted);
        }
        self.watcher.begins(ids, parameters);
        let mut cases = match make(&self.device) {
            Ok(cases) => cases,
            Err(DeviceError::NotApplicable { reason, .. }) => return self.not_applicable(ids, parameters, &reason),
            Err(error) => return self.failed(ids, parameters, &error.to_string()),
        };
        cases.retain(|case| ids.contains(&case.name()));
        let sampled = self.sampler.sample(cases);
        match sampled {
            Ok(sampled) => {
                self.interrupted |= sampled.stopped_by == StoppedBy::Interrupt;
                for &id in ids {
                    let outcome = match sampled.get(id) {
                        Some(samples) => Outcome::Measured {
                            instrument: self.planned(id).instrument,
                            samples: samples.values().to_vec(),
                            stopped_by: sampled.stopped_by,
                        },
                        None => Outcome::Failed { reason: "the experiment made no case for it".to_owned() },
                    };
                    self.push(id, parameters, outcome);
                }
            }
            Err(MeasureError::Interrupted) => {
                self.interrupted = true;
                self.leave(ids, parameters, || Outcome::Interrupted);
            }
            Err(error) => self.failed(ids, parameters, &error.to_string()),
        }
    }

    /// Leaves a row that is computed, round by round, from rows that stand here already. What is missing of an operand
    /// is missing of the row, for the same reason.
    ///
    /// Operands of one group were interleaved, so that their samples of one round belong together; for others, pairing
    /// is by order alone, up to the shorter.
    pub(super) fn derive(&mut self, id: &'static str, parameters: &Parameters, formula: Formula<'_>) {
        if !self.selection.holds(id) {
            return self.skipped(&[id], parameters, NOT_CHOSEN);
        }
        let samples: Result<Vec<&[f64]>, Outcome> =
            formula.operands.iter().map(|(operand, parameters)| self.samples(operand, parameters)).collect();
        let outcome = match samples {
            Err(Outcome::Skipped { reason }) if reason == NOT_CHOSEN => {
                Outcome::Skipped { reason: "the rows that it is computed from were left out by choice".to_owned() }
            }
            Err(absent) => absent,
            Ok(operands) => {
                let rounds = operands.iter().map(|samples| samples.len()).min().unwrap_or(0);
                let round = |i: usize| operands.iter().map(|samples| samples[i]).collect::<Vec<f64>>();
                let samples = (0..rounds).map(|i| (formula.compute)(&round(i))).collect();
                Outcome::Derived { derivation: formula.derivation, formula: formula.text.to_owned(), samples }
            }
        };
        self.push(id, parameters, outcome);
    }

    /// Leaves the difference of two rows of one group, which have the same parameters.
    pub(super) fn difference(&mut self, id: &'static str, parameters: &Parameters, [from, less]: [&'static str; 2]) {
        let short = |id: &'static str| id.rsplit('.').next().unwrap_or(id);
        let text = format!("{} − {}", short(from), short(less));
        let (derivation, operands) = (Derivation::Difference, &[(from, parameters), (less, parameters)]);
        self.derive(id, parameters, Formula { derivation, text: &text, operands, compute: &|x| x[0] - x[1] });
    }

    /// The samples of a row that stands here, or the outcome of one that has none.
    fn samples(&self, id: &str, parameters: &Parameters) -> Result<&[f64], Outcome> {
        let row = self.rows.iter().find(|row| row.id == id && row.parameters == *parameters);
        match row.map(|row| &row.outcome) {
            Some(Outcome::Measured { samples, .. } | Outcome::Derived { samples, .. }) => Ok(samples),
            Some(absent) => Err(absent.clone()),
            None => Err(Outcome::Failed { reason: format!("there is no row `{id}` to compute it from") }),
        }
    }

    /// Leaves the rows `ids` as having no meaning here.
    pub(super) fn not_applicable(&mut self, ids: &[&'static str], parameters: &Parameters, reason: &str) {
        self.leave(ids, parameters, || Outcome::NotApplicable { reason: reason.to_owned() });
    }

    /// Leaves the rows `ids` as not measured, though they could have been.
    pub(super) fn skipped(&mut self, ids: &[&'static str], parameters: &Parameters, reason: &str) {
        self.leave(ids, parameters, || Outcome::Skipped { reason: reason.to_owned() });
    }

    /// Leaves the rows `ids` as failed.
    pub(super) fn failed(&mut self, ids: &[&'static str], parameters: &Parameters, reason: &str) {
        self.leave(ids, parameters, || Outcome::Failed { reason: reason.to_owned() });
    }

    /// The rows. A planned row that the experiment left out is there as failed, with `failure` (why the experiment ended)
    /// as the reason, so that it cannot go unseen.
    pub fn finish(mut self, failure: Option<&str>) -> Vec<Row> {
        let left = |id: &str| self.rows.iter().any(|row| row.id == id);
        let missing: Vec<_> = self.plan.iter().copied().filter(|plan| !left(plan.id)).collect();
        for plan in missing {
            let reason = failure.unwrap_or("the experiment left no such row").to_owned();
            self.push(plan.id, &Parameters::new(), Outcome::Failed { reason });
        }
        self.rows
    }

    /// Takes the rows over from an earlier run, if that finished all of them.
    fn take_over(&mut self, ids: &[&'static str], parameters: &Parameters) -> bool {
        let found = |id: &&str| self.finished.iter().find(|row| row.id == *id && row.parameters == *parameters);
        let rows: Option<Vec<Row>> = ids.iter().map(|id| found(id).cloned()).collect();
        rows.is_some_and(|rows| {
            self.rows.extend(rows);
            true
        })
    }

    fn leave(&mut self, ids: &[&'static str], parameters: &Parameters, outcome: impl Fn() -> Outcome) {
        for id in ids {
            self.push(id, parameters, outcome());
        }
    }

    fn push(&mut self, id: &'static str, parameters: &Parameters, outcome: Outcome) {
        let unit = self.planned(id).unit;
        self.rows.push(Row { id: id.to_owned(), parameters: parameters.clone(), unit, outcome });
    }

    fn planned(&self, id: &'static str) -> RowPlan {
        let plan = self.plan.iter().find(|plan| plan.id == id);
        *plan.unwrap_or(&RowPlan::host_time(id, "not in the experiment's plan"))
    }
}

const NOT_CHOSEN: &str = "left out by choice";

/// How a derived row is computed.
pub(super) struct Formula<'a> {
    /// What kind of computation it is.
    pub(super) derivation: Derivation,
    /// How, for a reader.
    pub(super) text: &'a str,
    /// The rows that it is computed from: identifiers and parameters.
    pub(super) operands: &'a [(&'static str, &'a Parameters)],
    /// The value of a round from the operands' samples of that round.
    pub(super) compute: &'a dyn Fn(&[f64]) -> f64,
}

/// Parameters from names and values.
pub(super) fn parameters<const N: usize>(pairs: [(&str, Parameter); N]) -> Parameters {
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// A size or count as a parameter.
pub(super) fn integer(value: usize) -> Parameter {
    Parameter::Integer(value as u64)
}

/// A name as a parameter.
pub(super) fn text(value: &str) -> Parameter {
    Parameter::Text(value.to_owned())
}

/// Enqueues one step: draws a matrix and multiplies it by itself.
pub(super) fn step(stream: &Stream, n: usize) -> Result<Tensor<f32>, DeviceError> {
    let a = stream.normal::<f32>([n, n])?;
    a.matmul(&a)
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
