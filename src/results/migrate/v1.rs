//! Schema 1: one run a file, rows within experiments, and rows that name neither heading nor label.

use serde::{Deserialize, Serialize};

use super::super::environment::{DeviceDescription, Environment, Host, Program};
use super::super::formula::FormulaOperand;
use super::super::row::{self, Derivation, MetricSpec, Parameters, Provenance, Row, Series};
use super::super::run::{
    ExperimentRun, Plan, Recorded, RecordedTimeline, Results, Run, RunOutcome, SCHEMA_VERSION, SYNCSCOPE,
    TelemetrySample,
};
use super::super::selection::Selection;
use super::super::system::{Machine, System, SystemRow};
use super::described;
use crate::device::Telemetry;
use crate::measure::{Clock, StoppedBy};
use crate::units::Unit;

/// Reads a file of schema 1.
pub(crate) fn read(text: &str) -> Result<Results, serde_json::Error> {
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
    #[serde(deserialize_with = "super::super::bounded::value")]
    suite: serde_json::Value,
    environment: OldEnvironment,
    experiments: Vec<OldExperiment>,
    #[serde(default)]
    peers: Vec<OldPeer>,
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
struct OldPeer {
    schema_version: u32,
    name: String,
    started: String,
    versions: Vec<(String, String)>,
    machine: Machine,
    rows: Vec<OldRow>,
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

/// What came of a row.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
enum Outcome {
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
                let (provenance, outcome) = row.outcome.split(&row.id);
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
                    host_mhz: None,
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
            order.push(ExperimentRun { name, summary: String::new(), duration, code: None, failure });
        }
        let outcome = if old.partial { RunOutcome::Interrupted } else { RunOutcome::Complete };
        let (started, resumed, system) = (old.environment.started.clone(), old.resumed, SYNCSCOPE.to_owned());
        let environment = Environment::from(old.environment);
        let algorithms = Vec::new();
        let run = Run { id, system, started, resumed, environment, telemetry, algorithms, order, outcome };
        let (suite, selection, schema_version) = (suite(old.suite), old.selection, SCHEMA_VERSION);
        let (plan, runs) = (Plan::default(), vec![run]);
        let mut results = Results {
            schema_version,
            suite,
            selection,
            plan,
            runs,
            rows: rows.into(),
            timelines,
            samples_sha256: None,
        };
        old.peers.into_iter().for_each(|peer| results.add_run(peer.into()));
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
                facts: Vec::new(),
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
                facts: Vec::new(),
            },
            cuda_unavailable: old.cuda_unavailable,
        }
    }
}

impl From<OldPeer> for System {
    fn from(old: OldPeer) -> Self {
        let row = |row: OldRow| SystemRow {
            id: row.id,
            parameters: parameters(row.parameters),
            unit: row.unit,
            outcome: row.outcome.split("").1,
        };
        Self {
            schema_version: old.schema_version,
            name: old.name,
            started: old.started,
            versions: old.versions,
            machine: old.machine,
            code: None,
            rows: old.rows.into_iter().map(row).collect(),
        }
    }
}

/// The two rows of a difference, `a − b`, by the last parts of their identifiers: schema 1 names no others.
fn subtracted(id: &str, derivation: Derivation, formula: &str) -> Vec<FormulaOperand> {
    let (Derivation::Difference, Some((from, less)), Some((parent, _))) =
        (derivation, formula.split_once(" − "), id.rsplit_once('.'))
    else {
        return Vec::new();
    };
    let operand =
        |name: &str| FormulaOperand { name: name.to_owned(), id: format!("{parent}.{name}"), parameters: None };
    vec![operand(from), operand(less)]
}

impl Outcome {
    /// How its samples were taken, and what came of it. What was not measured has no clock: the host's stands there.
    fn split(self, id: &str) -> (Provenance, row::Outcome) {
        let measured = |clock| Provenance::measured(clock);
        match self {
            Self::Measured { instrument, samples, stopped_by } => {
                (measured(instrument.into()), row::Outcome::of_samples(samples, stopped_by))
            }
            Self::Derived { derivation, formula, samples } => {
                let operands = subtracted(id, derivation, &formula);
                (Provenance::Derived { derivation, formula, operands }, row::Outcome::Derived { samples })
            }
            Self::NotApplicable { reason } => (measured(Clock::Host), row::Outcome::NotApplicable { reason }),
            Self::Interrupted => (measured(Clock::Host), row::Outcome::Interrupted),
            Self::Skipped { reason } => (measured(Clock::Host), row::Outcome::Skipped { reason }),
            Self::Failed { reason } => (measured(Clock::Host), row::Outcome::Failed { reason }),
        }
    }
}
