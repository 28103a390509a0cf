//! The folder that criterion writes: in each benchmark's folder one folder a baseline, with `benchmark.json`, which says what it
//! is, and `sample.json`, the iterations and the nanoseconds of each sample.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use serde::Deserialize;
use walkdir::WalkDir;

use super::{Imported, Machine, Parameters, Provenance, System, at, measured, parameter, read_json, row, times};
use crate::environment::written;
use crate::error::FileError;
use crate::measure::{Clock, StoppedBy};
use crate::system::SYSTEM_SCHEMA_VERSION;

const NAME: &str = "criterion";
/// Folders of criterion: the benchmark's group, its function and its parameter, the baseline, and what is in it.
const MAX_DEPTH: usize = 5;

#[derive(Deserialize)]
struct Benchmark {
    group_id: String,
    function_id: Option<String>,
    value_str: Option<String>,
}

#[derive(Deserialize)]
struct Samples {
    iters: Vec<f64>,
    times: Vec<f64>,
}

/// What the process measured that wrote the baseline of this name.
pub(super) fn read(root: &Path, baseline: &str) -> Result<Imported, FileError> {
    let mut started = SystemTime::now();
    let (mut specs, mut rows) = (Vec::new(), Vec::new());
    for entry in WalkDir::new(root).max_depth(MAX_DEPTH).sort_by_file_name() {
        let entry = entry.map_err(|error| FileError::whole(root.display().to_string(), error.to_string()))?;
        let Some(folder) = entry.path().parent().filter(|_| entry.file_name() == "benchmark.json") else { continue };
        if folder.file_name().is_none_or(|name| name != baseline) {
            continue;
        }
        let samples = folder.join("sample.json");
        started = started.min(fs::metadata(&samples).and_then(|there| there.modified()).map_err(at(&samples))?);
        let (spec, row) = of_benchmark(&read_json(entry.path(), "what criterion says of a benchmark")?, &samples)?;
        specs.push(spec);
        rows.push(row);
    }
    if rows.is_empty() {
        let message = format!("no benchmark of criterion has a baseline `{baseline}` in it");
        return Err(FileError::whole(root.display().to_string(), message));
    }
    let machine = Machine::of_model("unknown");
    let (name, started, versions) = (NAME.to_owned(), written(started), Vec::new());
    let system = System { schema_version: SYSTEM_SCHEMA_VERSION, name, started, versions, machine, code: None, rows };
    Ok(Imported { system, specs, engine: "cpu", command: Vec::new() })
}

fn of_benchmark(benchmark: &Benchmark, samples: &Path) -> Result<(super::MetricSpec, super::SystemRow), FileError> {
    let wrong = |message: &str| FileError::whole(samples.display().to_string(), message);
    let Samples { iters, times: nanoseconds } = read_json(samples, "samples of criterion")?;
    if iters.len() != nanoseconds.len() || iters.is_empty() {
        return Err(wrong("it has not as many times as counts of iterations, or none"));
    }
    let values = iters.iter().zip(&nanoseconds).map(|(iters, time)| time / iters * 1e-9).collect();
    let outcome = measured(values, StoppedBy::TimeLimit);
    let outcome = outcome.ok_or_else(|| wrong("a time or a count of iterations in it is none"))?;
    let Benchmark { group_id, function_id, value_str } = benchmark;
    let label = function_id.as_deref().unwrap_or(group_id);
    let id = [Some(NAME), Some(group_id), function_id.as_deref()].into_iter().flatten().collect::<Vec<_>>().join(".");
    let parameters = value_str.iter().map(|text| ("parameter".to_owned(), parameter(text))).collect::<Parameters>();
    // The loops differ in length: none is shorter.
    let iterations = iters.iter().copied().fold(f64::INFINITY, f64::min).max(1.0) as u64;
    let spec = times(id, group_id, label, parameters, Provenance::Measured { clock: Clock::Host, iterations });
    Ok(row(spec, outcome))
}
