//! The file that nvbench writes by `--json` or `--jsonbin`, and beside it, by the latter, the folder with the samples: of each
//! state's GPU times one file of little-endian `float32`, in seconds.

use std::fs;
use std::path::{Component, Path};

use serde::Deserialize;
use serde_json::Value;

use super::{
    Imported, Machine, Outcome, Parameter, Parameters, Provenance, System, at, measured, parameter, read_json, row,
    times,
};
use crate::environment::{without_folders, written};
use crate::error::FileError;
use crate::file::MAX_BYTES;
use crate::measure::{Clock, StoppedBy};
use crate::system::SYSTEM_SCHEMA_VERSION;
use crate::units::counted;

const NAME: &str = "nvbench";

#[derive(Deserialize)]
struct Content {
    #[serde(default)]
    meta: Meta,
    #[serde(default)]
    devices: Vec<Device>,
    benchmarks: Vec<Benchmark>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Meta {
    argv: Vec<String>,
    version: Versions,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Versions {
    nvbench: Option<Version>,
}

#[derive(Deserialize)]
struct Version {
    string: String,
}

#[derive(Deserialize)]
struct Device {
    id: u64,
    name: String,
}

#[derive(Deserialize)]
struct Benchmark {
    name: String,
    states: Option<Vec<State>>,
}

/// A benchmark with one value of each of its axes.
#[derive(Deserialize)]
struct State {
    #[serde(default)]
    device: u64,
    axis_values: Option<Vec<Named>>,
    summaries: Option<Vec<Summary>>,
    #[serde(default)]
    is_skipped: bool,
    skip_reason: Option<String>,
}

#[derive(Deserialize)]
struct Summary {
    tag: String,
    data: Option<Vec<Named>>,
}

#[derive(Deserialize)]
struct Named {
    name: String,
    r#type: String,
    #[serde(default)]
    value: Value,
}

impl Named {
    /// Numbers are written as texts.
    fn text(&self) -> String {
        self.value.as_str().map_or_else(|| self.value.to_string(), str::to_owned)
    }

    fn parameter(&self) -> (String, Parameter) {
        let value = if self.r#type == "string" { Parameter::Text(self.text()) } else { parameter(&self.text()) };
        (self.name.clone(), value)
    }
}

/// A way in which nvbench times a state.
struct Stopwatch {
    id: &'static str,
    label: &'static str,
    clock: Clock,
    /// The summary that names the file of its samples, where it keeps them.
    samples: Option<&'static str>,
    mean: &'static str,
}

const STOPWATCHES: [Stopwatch; 4] = [
    Stopwatch {
        id: "cold.gpu",
        label: "GPU time, L2 cache flushed",
        clock: Clock::DeviceEvents,
        samples: Some("nv/json/bin:nv/cold/sample_times"),
        mean: "nv/cold/time/gpu/mean",
    },
    Stopwatch {
        id: "cold.cpu",
        label: "CPU time, L2 cache flushed",
        clock: Clock::Host,
        samples: None,
        mean: "nv/cold/time/cpu/mean",
    },
    Stopwatch {
        id: "batch.gpu",
        label: "GPU time of one in a batch",
        clock: Clock::DeviceBatch,
        samples: None,
        mean: "nv/batch/time/gpu/mean",
    },
    Stopwatch {
        id: "cpu-only",
        label: "CPU time",
        clock: Clock::Host,
        samples: Some("nv/json/bin:nv/cpu_only/sample_times"),
        mean: "nv/cpu_only/time/cpu/mean",
    },
];

/// What the process measured that wrote this file.
pub(super) fn read(path: &Path) -> Result<Imported, FileError> {
    let wrong = |message: String| FileError::whole(path.display().to_string(), message);
    let Content { meta, devices, benchmarks } = read_json(path, "a file of nvbench (--json, --jsonbin)")?;
    let (mut specs, mut rows) = (Vec::new(), Vec::new());
    let mut device = None;
    for Benchmark { name, states } in &benchmarks {
        for state in states.iter().flatten() {
            if *device.get_or_insert(state.device) != state.device {
                return Err(wrong("it is of several devices: run nvbench with `--devices` for each".to_owned()));
            }
            let parameters: Parameters = state.axis_values.iter().flatten().map(Named::parameter).collect();
            for watch in &STOPWATCHES {
                let Some(outcome) = outcome(path, state, watch)? else { continue };
                let id = format!("{NAME}.{name}.{}", watch.id);
                let (spec, row) =
                    row(times(id, name, watch.label, parameters.clone(), Provenance::measured(watch.clock)), outcome);
                specs.push(spec);
                rows.push(row);
            }
        }
    }
    if rows.is_empty() {
        return Err(wrong("nvbench measured no time in it".to_owned()));
    }
    let model =
        devices.into_iter().find(|own| Some(own.id) == device).map_or_else(|| "unknown".to_owned(), |own| own.name);
    let machine = Machine::of_model(model);
    // nvbench does not say when it ran.
    let started = written(fs::metadata(path).and_then(|there| there.modified()).map_err(at(path))?);
    let versions = meta.version.nvbench.map(|version| (NAME.to_owned(), version.string)).into_iter().collect();
    let (name, code) = (NAME.to_owned(), None);
    let system = System { schema_version: SYSTEM_SCHEMA_VERSION, name, started, versions, machine, code, rows };
    Ok(Imported { system, specs, engine: "cuda", command: without_folders(meta.argv) })
}

/// What a stopwatch showed of a state; none where it was not used.
fn outcome(path: &Path, state: &State, watch: &Stopwatch) -> Result<Option<Outcome>, FileError> {
    if state.is_skipped {
        let reason = state.skip_reason.clone().unwrap_or_else(|| "nvbench skipped it".to_owned());
        return Ok((watch.id == STOPWATCHES[0].id).then_some(Outcome::Skipped { reason }));
    }
    let summary = |tag| state.summaries.iter().flatten().find(move |summary: &&Summary| summary.tag == tag);
    let field =
        |summary: &Summary, name: &str| summary.data.iter().flatten().find(|own| own.name == name).map(Named::text);
    let file = watch.samples.and_then(summary).and_then(|of| Some((field(of, "filename")?, field(of, "size")?)));
    let values = match (file, summary(watch.mean).and_then(|mean| field(mean, "value"))) {
        (Some((name, size)), _) => samples(path, &name, &size)?,
        (None, Some(mean)) => vec![mean.parse().unwrap_or(f64::NAN)],
        (None, None) => return Ok(None),
    };
    let outcome = measured(values, StoppedBy::RelativeError).ok_or_else(|| {
        let message = format!("a time in `{}` or in its file of samples is no number of seconds", watch.mean);
        FileError::whole(path.display().to_string(), message)
    })?;
    Ok(Some(outcome))
}

/// The samples in the file of this name. Its folder lies beside the results, wherever nvbench was started.
fn samples(path: &Path, name: &str, size: &str) -> Result<Vec<f64>, FileError> {
    let wrong = |file: &Path, message: String| FileError::whole(file.display().to_string(), message);
    let mut parts = Path::new(name).components().rev();
    let (Some(Component::Normal(file)), Some(Component::Normal(folder))) = (parts.next(), parts.next()) else {
        return Err(wrong(path, format!("`{name}` names no file in the folder of its samples")));
    };
    let file = path.with_file_name(folder).join(file);
    let count: u64 = size.parse().unwrap_or(0);
    match fs::metadata(&file).map_err(at(&file))?.len() {
        bytes if count == 0 || count.checked_mul(4) != Some(bytes) || bytes > MAX_BYTES as u64 => {
            return Err(wrong(&file, format!("it has {}, and is to hold {size} samples", counted(bytes, "byte"))));
        }
        _ => {}
    }
    let bytes = fs::read(&file).map_err(at(&file))?;
    Ok(bytes.as_chunks().0.iter().map(|sample| f64::from(f32::from_le_bytes(*sample))).collect())
}
