//! The content of a results file: runs of one suite on one machine, by one system or several, and what they left.
//!
//! All raw samples are kept in the order in which they were taken; estimates are computed from them by whoever reads
//! the file, so that a better estimate needs no new run. A results file may come from anywhere: reading one checks its
//! version and its references first and never trusts its samples to be consistent.

use serde::{Deserialize, Serialize};

use super::environment::Environment;
use super::lookup::Lookup;
use super::row::{Outcome, Parameters, Row};
use super::selection::Selection;
use crate::device::Telemetry;
use crate::timeline::Timeline;

/// The version of the schema that this program writes.
pub const SCHEMA_VERSION: u32 = 2;

/// The system under test that this library is.
pub const SYNCSCOPE: &str = "syncscope";

/// The content of a results file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Results {
    /// The version of this schema.
    pub schema_version: u32,
    /// The suite, as it was read.
    pub suite: serde_json::Value,
    /// Which of the suite's rows were to be measured.
    #[serde(default, skip_serializing_if = "Selection::is_all")]
    pub selection: Selection,
    /// The runs, each a process; the first is the one that the file is about.
    pub runs: Vec<Run>,
    /// The rows, in the order in which they were measured first.
    pub rows: Vec<Row>,
    /// The timelines that were recorded after the rows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timelines: Vec<RecordedTimeline>,
}

/// One run: a process that measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// The identifier, by which rows name it: `syncscope-1`.
    pub id: String,
    /// The system under test: `syncscope`, `PyTorch`.
    pub system: String,
    /// When it began, in UTC, RFC 3339.
    pub started: String,
    /// When it was resumed after an interrupt, in UTC, RFC 3339.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resumed: Vec<String>,
    /// Where and with what it was made.
    pub environment: Environment,
    /// What the device's sensors said, in the order of time; empty where it has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub telemetry: Vec<TelemetrySample>,
    /// The experiments in the order in which they ran.
    pub order: Vec<ExperimentRun>,
    /// How it ended.
    pub outcome: RunOutcome,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RunOutcome {
    /// Every row was reached.
    Complete,
    /// It was interrupted: the rows that it did not reach say so.
    Interrupted,
}

/// One experiment of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExperimentRun {
    /// The experiment's name: `sync-points`.
    pub name: String,
    /// What it asks.
    pub summary: String,
    /// How long it took, in seconds.
    pub duration: f64,
    /// Why the experiment as a whole failed, where it did; the rows it had left are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// What the device's sensors said at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TelemetrySample {
    /// Seconds since the run began; none where that was not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<f64>,
    /// The experiment that was about to run or had just run.
    pub experiment: String,
    /// What the sensors said.
    pub sensors: Telemetry,
}

/// A scenario that was recorded, or why it was not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordedTimeline {
    /// The identifier of the run that recorded it.
    pub run: String,
    /// The scenario, by the row that times it: `overlap.finish.complete`.
    pub name: String,
    /// What it ran with.
    pub parameters: Parameters,
    /// What was recorded.
    pub recorded: Recorded,
    /// How long a pass held the host untraced, in seconds: taken before the traced passes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub untraced_s: Vec<f64>,
    /// How long a pass held the host while it was traced, in seconds: the overhead of tracing is the difference.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub traced_s: Vec<f64>,
}

/// What became of a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Recorded {
    /// It was recorded.
    Timeline(Timeline),
    /// It was not, for this reason.
    Failed(String),
}

impl Run {
    /// What the sensors said before and after an experiment.
    pub fn telemetry_of(&self, experiment: &str) -> Vec<&TelemetrySample> {
        self.telemetry.iter().filter(|sample| sample.experiment == experiment).collect()
    }

    /// Why the clocks were held back around an experiment, each reason once; empty where nothing is known to have been.
    pub fn throttle_reasons(&self, experiment: &str) -> Vec<&str> {
        let samples = self.telemetry_of(experiment);
        let mut reasons: Vec<&str> =
            samples.into_iter().flat_map(|sample| &sample.sensors.throttle_reasons).map(String::as_str).collect();
        reasons.sort_unstable();
        reasons.dedup();
        reasons
    }
}

impl Results {
    /// The title that the suite gives.
    pub fn title(&self) -> &str {
        self.suite.get("title").and_then(serde_json::Value::as_str).unwrap_or("Results")
    }

    /// The run that the file is about: the first.
    pub fn run(&self) -> &Run {
        &self.runs[0]
    }

    /// Where and with what the first run was made.
    pub fn environment(&self) -> &Environment {
        &self.run().environment
    }

    /// The systems that were measured, the one that the file is about first.
    pub fn systems(&self) -> Vec<&str> {
        let mut systems: Vec<&str> = Vec::new();
        for run in &self.runs {
            if !systems.contains(&run.system.as_str()) {
                systems.push(&run.system);
            }
        }
        systems
    }

    /// The runs of one system, in their order.
    pub fn runs_of<'a>(&'a self, system: &'a str) -> impl Iterator<Item = &'a Run> {
        self.runs.iter().filter(move |run| run.system == system)
    }

    /// The rows of the system that the file is about.
    pub fn lookup(&self) -> Lookup<'_> {
        self.lookup_of(&self.run().system)
    }

    /// The rows of one system.
    pub fn lookup_of(&self, system: &str) -> Lookup<'_> {
        let runs = self.runs.iter().filter(|run| run.system == system).map(|run| run.id.as_str()).collect();
        Lookup::new(&self.rows, runs)
    }

    /// What the first run left of each of its rows, in order.
    pub fn outcomes(&self) -> impl Iterator<Item = (&Row, &Outcome)> {
        let run = self.run().id.as_str();
        self.rows.iter().filter_map(move |row| row.outcome(run).map(|outcome| (row, outcome)))
    }

    /// The scenario with this name that was recorded first.
    pub fn timeline(&self, name: &str) -> Option<&RecordedTimeline> {
        self.timelines.iter().find(|scenario| scenario.name == name)
    }

    /// Whether a run was interrupted.
    pub fn is_partial(&self) -> bool {
        self.runs.iter().any(|run| run.outcome == RunOutcome::Interrupted)
    }

    /// Whether an experiment or a row failed.
    pub fn has_failures(&self) -> bool {
        let failed = |outcome: &Outcome| matches!(outcome, Outcome::Failed { .. });
        self.runs.iter().any(|run| run.order.iter().any(|experiment| experiment.failure.is_some()))
            || self.rows.iter().flat_map(|row| &row.series).any(|series| failed(&series.outcome))
    }
}
