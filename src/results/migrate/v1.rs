//! Schema 1: one run a file, rows within experiments, and rows that name neither heading nor label.

use serde::{Deserialize, Serialize};

use super::super::environment::{DeviceDescription, Environment, Host, Program};
use super::super::row::{Derivation, MetricSpec, Parameters, Row, Series};
use super::super::run::{
    ExperimentRun, Recorded, RecordedTimeline, Results, Run, RunOutcome, SCHEMA_VERSION, SYNCSCOPE, TelemetrySample,
};
use super::super::selection::Selection;
use super::super::system::System;
use super::described;
use crate::device::Telemetry;
use crate::measure::{Clock, StoppedBy};
use crate::units::Unit;

/// Reads a file of schema 1.
pub(super) fn read(text: &str) -> Result<Results, serde_json::Error> {
    serde_json::from_str::<OldRun>(text).map(Results::from)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OldRun {
    #[serde(rename = "schema_version")]
    _schema_version: u32,
    partial: bool,
    #[serde(default)]
    selection: Selection,
    #[serde(default)]
    resumed: Vec<String>,
    suite: serde_json::Value,
    environment: OldEnvironment,
    experiments: Vec<OldExperiment>,
    #[serde(default)]
    peers: Vec<System>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OldEnvironment {
    started: String,
    host: OldHost,
    device: OldDevice,
    program: OldProgram,
    cuda_unavailable: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OldHost {
    cpu: String,
    logical_cpus: usize,
    memory_bytes: u64,
    system: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OldDevice {
    name: String,
    engine: String,
    model: String,
    memory_bytes: Option<u64>,
    wait_policy: String,
    facts: Vec<(String, String)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OldProgram {
    version: String,
    commit: Option<String>,
    dirty: Option<bool>,
    profile: String,
    command: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OldExperiment {
    name: String,
    duration: f64,
    before: Option<Telemetry>,
    after: Option<Telemetry>,
    failure: Option<String>,
    rows: Vec<OldRow>,
    #[serde(default)]
    timelines: Vec<OldTimeline>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OldRow {
    id: String,
    #[serde(default)]
    parameters: Parameters,
    unit: Unit,
    outcome: Outcome,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OldTimeline {
    name: String,
    parameters: Parameters,
    recorded: Recorded,
    #[serde(default)]
    unrecorded_s: Vec<f64>,
    #[serde(default)]
    recorded_s: Vec<f64>,
}

/// What came of a row of schema 1. Files of other systems have it, too.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Outcome {
    /// It was measured.
    Measured {
        /// What took the samples.
        instrument: Instrument,
        /// The samples in the order in which they were taken, in the row's unit.
        samples: Vec<f64>,
        /// Which rule ended the sampling.
        stopped_by: StoppedBy,
    },
    /// It was computed from measured rows, round by round.
    Derived {
        /// What kind of computation it was.
        derivation: Derivation,
        /// How, for a reader.
        formula: String,
        /// The results in the order of the rounds, in the row's unit.
        samples: Vec<f64>,
    },
    /// It has no meaning on this engine.
    NotApplicable {
        /// Why.
        reason: String,
    },
    /// The run was interrupted before it was reached.
    Interrupted,
    /// It could have been measured and was not.
    Skipped {
        /// Why.
        reason: String,
    },
    /// It was tried and failed.
    Failed {
        /// Why.
        reason: String,
    },
}

/// What took a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Instrument {
    /// The host's monotonic clock.
    HostClock,
    /// Two events on a stream of the device.
    DeviceEvents,
    /// Not a time: a value that was observed.
    Observation,
}

impl From<Instrument> for Clock {
    fn from(instrument: Instrument) -> Self {
        match instrument {
            Instrument::HostClock => Clock::Host,
            Instrument::DeviceEvents => Clock::DeviceEvents,
            Instrument::Observation => Clock::Observed,
        }
    }
}

/// The one parameter that was renamed.
fn renamed(name: &str) -> &str {
    if name == "turns" { "iterations" } else { name }
}

fn parameters(old: Parameters) -> Parameters {
    old.into_iter().map(|(name, value)| (renamed(&name).to_owned(), value)).collect()
}

/// The suite, with its keys of today.
fn suite(mut old: serde_json::Value) -> serde_json::Value {
    let Some(suite) = old.as_object_mut() else { return old };
    for key in ["experiments", "on_cpu"] {
        let entries = suite.get_mut(key).and_then(|entries| entries.as_array_mut()).into_iter().flatten();
        for parameters in entries.filter_map(|entry| entry.as_object_mut()?.values_mut().next()?.as_object_mut()) {
            if let Some(value) = parameters.remove("turns") {
                parameters.insert(renamed("turns").to_owned(), value);
            }
        }
    }
    if let Some(cpu) = suite.remove("on_cpu") {
        suite.insert("engines".to_owned(), serde_json::json!({ "cpu": cpu }));
    }
    old
}

impl From<OldRun> for Results {
    fn from(old: OldRun) -> Self {
        let id = format!("{SYNCSCOPE}-1");
        let (mut rows, mut order, mut telemetry, mut timelines) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for experiment in old.experiments {
            let name = experiment.name;
            rows.extend(experiment.rows.into_iter().map(|row| {
                let (provenance, outcome) = row.outcome.split();
                let (group, label) = described(&row.id);
                let (parameters, unit) = (parameters(row.parameters), row.unit);
                let spec =
                    MetricSpec { id: row.id, group, label, unit, parameters, provenance, work: None, floor: None };
                Row { spec, series: vec![Series { run: id.clone(), outcome }] }
            }));
            telemetry.extend(
                [experiment.before, experiment.after].into_iter().flatten().map(|sensors| TelemetrySample {
                    at: None,
                    experiment: name.clone(),
                    sensors,
                }),
            );
            timelines.extend(experiment.timelines.into_iter().map(|old| RecordedTimeline {
                run: id.clone(),
                name: old.name,
                parameters: parameters(old.parameters),
                recorded: old.recorded,
                untraced_s: old.unrecorded_s,
                traced_s: old.recorded_s,
            }));
            let (duration, failure) = (experiment.duration, experiment.failure);
            order.push(ExperimentRun { name, summary: String::new(), duration, failure });
        }
        let outcome = if old.partial { RunOutcome::Interrupted } else { RunOutcome::Complete };
        let (started, resumed, system) = (old.environment.started.clone(), old.resumed, SYNCSCOPE.to_owned());
        let environment = Environment::from(old.environment);
        let run = Run { id, system, started, resumed, environment, telemetry, order, outcome };
        let (suite, selection, schema_version) = (suite(old.suite), old.selection, SCHEMA_VERSION);
        let mut results = Results { schema_version, suite, selection, runs: vec![run], rows, timelines };
        for mut system in old.peers {
            system.rows.iter_mut().for_each(|row| row.parameters = parameters(std::mem::take(&mut row.parameters)));
            let id = format!("{}-{}", system.name, results.runs.len());
            let specs: Vec<MetricSpec> = results.rows.iter().map(|row| row.spec.clone()).collect();
            let (run, rows) = system.into_run(id, &specs);
            results.runs.push(run);
            results.merge(rows);
        }
        results
    }
}

impl From<OldEnvironment> for Environment {
    fn from(old: OldEnvironment) -> Self {
        let (host, device, program) = (old.host, old.device, old.program);
        Self {
            host: Host {
                cpu: host.cpu,
                logical_cpus: Some(host.logical_cpus),
                memory_bytes: Some(host.memory_bytes),
                system: Some(host.system),
            },
            device: DeviceDescription {
                name: device.name,
                engine: device.engine,
                model: device.model,
                memory_bytes: device.memory_bytes,
                wait_policy: Some(device.wait_policy),
                facts: device.facts,
            },
            program: Program {
                name: SYNCSCOPE.to_owned(),
                version: program.version,
                libraries: Vec::new(),
                commit: program.commit,
                dirty: program.dirty,
                profile: Some(program.profile),
                command: program.command,
            },
            cuda_unavailable: old.cuda_unavailable,
        }
    }
}
