//! What other benchmarks measured, as results: the files that nvbench and criterion write.
//!
//! Each of nvbench's files and each of criterion's baselines is of one process, and so a run.

mod criterion;
mod nvbench;

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use super::catalog::Catalog;
use super::file::MAX_BYTES;
use super::row::{MetricSpec, Outcome, Parameter, Parameters, Provenance};
use super::run::{Plan, Results};
use super::system::{Machine, System, SystemRow};
use crate::error::{FileError, at};
use crate::files::read_text;
use crate::measure::StoppedBy;
use crate::units::Unit;

/// The name under which criterion keeps what it measured last.
pub const NEWEST_BASELINE: &str = "new";

/// One process of another benchmark.
struct Imported {
    system: System,
    /// What its rows are.
    specs: Vec<MetricSpec>,
    engine: &'static str,
    command: Vec<String>,
}

impl Results {
    /// Reads what nvbench wrote by `--json` or `--jsonbin` (a file), or criterion (a folder, `target/criterion`, of which each of
    /// `baselines` is a run). Times are in seconds.
    ///
    /// Where nvbench kept no samples, its mean is the one sample of a row. The formats are those of nvbench's
    /// `json_printer.cu` (1.0) and of criterion 0.8.
    ///
    /// # Errors
    /// [`FileError`] names the file that cannot be read, is neither's, or was not measured as those before it.
    pub fn import(paths: &[PathBuf], baselines: &[String]) -> Result<Self, FileError> {
        let mut runs = Vec::new();
        for path in paths {
            match path.is_dir() {
                true => baselines
                    .iter()
                    .try_for_each(|name| criterion::read(path, name).map(|run| runs.push((path, run))))?,
                false => runs.push((path, nvbench::read(path)?)),
            }
        }
        let catalog = Catalog::new(runs.iter().flat_map(|(_, run)| run.specs.clone()));
        let plan = Plan { runs: runs.len().try_into().unwrap_or(u32::MAX), ..Plan::default() };
        let mut results: Option<Self> = None;
        for (path, Imported { system, engine, command, .. }) in runs {
            let wrong = |message| FileError::whole(path.display().to_string(), message);
            let results = match &mut results {
                None => results.insert(Self { plan: plan.clone(), ..system.into_results(&catalog) }),
                Some(before) if before.run().system != system.name => {
                    return Err(wrong(format!(
                        "it is of {}, and those before of {}",
                        system.name,
                        before.run().system
                    )));
                }
                Some(before) => match system.mismatches(before).first() {
                    Some(mismatch) => return Err(wrong(format!("not measured as those before it: {mismatch}"))),
                    None => {
                        before.add_run_of(system, &catalog);
                        before
                    }
                },
            };
            if let Some(run) = results.runs.last_mut() {
                run.environment.device.engine = engine.to_owned();
                run.environment.program.command = command;
            }
            results.check().map_err(wrong)?;
        }
        results.ok_or_else(|| FileError::whole("import", "no file was named"))
    }
}

/// A row of one process.
fn row(spec: MetricSpec, outcome: Outcome) -> (MetricSpec, SystemRow) {
    let (id, parameters, unit) = (spec.id.clone(), spec.parameters.clone(), spec.unit);
    (spec, SystemRow { id, parameters, unit, outcome })
}

/// Times in seconds; `None` where one is none.
fn measured(values: Vec<f64>, stopped: StoppedBy) -> Option<Outcome> {
    let are_times = values.iter().all(|value| value.is_finite() && *value >= 0.0);
    are_times.then(|| Outcome::of_samples(values, stopped))
}

/// What a row of times is.
fn times(id: String, group: &str, label: &str, parameters: Parameters, provenance: Provenance) -> MetricSpec {
    let (group, label, unit) = (group.to_owned(), label.to_owned(), Unit::Seconds);
    MetricSpec { id, group, label, unit, parameters, provenance, work: None, floor: None }
}

/// A parameter that is written as text.
fn parameter(text: &str) -> Parameter {
    let number = || text.parse().ok().filter(|number: &f64| number.is_finite()).map(Parameter::Number);
    text.parse().ok().map(Parameter::Integer).or_else(number).unwrap_or_else(|| Parameter::Text(text.to_owned()))
}

/// What a file of JSON holds, of which `what` says what it should be.
fn read_json<T: DeserializeOwned>(path: &Path, what: &str) -> Result<T, FileError> {
    let text = read_text(path, MAX_BYTES).map_err(at(path))?;
    serde_json::from_str(&text).map_err(|error| FileError::json(path.display().to_string(), what, &error))
}

#[cfg(test)]
mod tests;
