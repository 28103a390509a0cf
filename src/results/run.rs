//! The content of a results file: runs of one suite on one machine, by one system or several, and what they left.
//!
//! All raw samples are kept in the order in which they were taken; estimates are computed from them by whoever reads
//! the file, so that a better estimate needs no new run. A results file may come from anywhere: reading one checks its
//! version and its references first and never trusts its samples to be consistent.

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use serde::de::{Deserializer, Error};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::environment::Environment;
use super::lookup::Lookup;
use super::row::{Outcome, Parameters, Row};
use super::rows::Rows;
use super::selection::Selection;
use crate::device::Telemetry;
use crate::timeline::Timeline;

/// The version of the schema that this program writes.
pub const SCHEMA_VERSION: u32 = 2;

/// The system under test that this library is.
pub const SYNCSCOPE: &str = "syncscope";

/// The content of a results file.
///
/// ```
/// use std::path::Path;
/// use syncscope_results::{Parameters, Results};
///
/// let results = Results::read(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../book/results/two-gpus.json.gz")))?;
/// let idle = results.lookup().estimate("idle-device.other", &Parameters::new());
/// assert!(results.environment().device.model.starts_with("NVIDIA"));
/// assert!(idle.is_ok_and(|seconds| seconds.low <= seconds.median && seconds.median <= seconds.high));
/// # Ok::<(), syncscope_results::error::FileError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Results {
    /// The version of this schema.
    pub schema_version: u32,
    /// The suite, as it was read.
    #[serde(deserialize_with = "short")]
    pub suite: serde_json::Value,
    /// Which of the suite's rows were to be measured.
    #[serde(default, skip_serializing_if = "Selection::is_all")]
    pub selection: Selection,
    /// Which runs there are to be.
    #[serde(default)]
    pub plan: Plan,
    /// The runs, each a process; the system of the first is the one that the file is about.
    pub runs: Vec<Run>,
    /// The rows, in the order in which they were measured first.
    pub rows: Rows,
    /// The timelines that were recorded after the rows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timelines: Vec<RecordedTimeline>,
    /// The SHA-256 of the samples, in a file; reading compares and takes it, and writing computes it anew. A file from before
    /// it was kept has none.
    #[serde(default, skip_serializing)]
    pub samples_sha256: Option<String>,
}

/// What a run left since the last piece of it. A checkpoint is a results file with pieces behind it, one a line, each added
/// as it came: what is there need not be written again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Piece {
    /// The run as it stands, with what the sensors said since.
    pub run: Run,
    /// The rows that it measured since, with all of their samples of this run.
    pub rows: Vec<Row>,
    /// The timelines, where they were recorded since.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timelines: Vec<RecordedTimeline>,
}

impl Piece {
    /// Its line in a checkpoint. It is of ASCII, so that a part of it is a text, too.
    pub fn to_line(&self) -> serde_json::Result<String> {
        let escaped = |c: char| match c.is_ascii() {
            true => c.to_string(),
            false => c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect(),
        };
        Ok(serde_json::to_string(self)?.chars().map(escaped).chain(["\n".to_owned()]).collect())
    }

    /// The piece of such a line.
    pub fn of_line(line: &str) -> serde_json::Result<Self> {
        serde_json::from_str(line)
    }
}

/// Reads a suite, which is refused where it is longer than one may be: in memory a value takes many times the bytes of
/// its text.
fn short<'de, D: Deserializer<'de>>(deserializer: D) -> Result<serde_json::Value, D::Error> {
    let text = Box::<RawValue>::deserialize(deserializer)?;
    match text.get().len() {
        0..=MAX_SUITE_BYTES => serde_json::from_str(text.get()).map_err(D::Error::custom),
        _ => Err(D::Error::custom(format!("a suite has {} MB of text at most", MAX_SUITE_BYTES >> 20))),
    }
}

/// Which runs a results file is to hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// How many of each system.
    pub runs: u32,
    /// The systems that are measured by turns with the first, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub with: Vec<String>,
}

impl Default for Plan {
    fn default() -> Self {
        Self { runs: 1, with: Vec::new() }
    }
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
    /// The algorithm that a library computed each matmul by, by type and shape, in words; empty where no library chose one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub algorithms: Vec<(String, String)>,
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
    /// It was interrupted: the rows that it did not reach say so, and it can go on.
    Interrupted,
    /// Its process ended before its time: the rows that it did not reach say how, and the other runs stand.
    Failed,
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
    /// The digest of the code that measured it, where it comes with the library.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
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
    /// The clock of the processor on which the host measures, in MHz; none where the system does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_mhz: Option<f64>,
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

/// The most bytes of a suite: as YAML it has fewer, also where aliases repeat parts of it.
const MAX_SUITE_BYTES: usize = 16 << 20;

/// How many facts a run may state of its environment: some hundred times as many as a machine has.
const MAX_FACTS: usize = 10_000;

impl Run {
    /// Finds what cannot be of a run, to be read behind its name.
    pub fn check(&self) -> Result<(), String> {
        let is_no_time = |time: &&String| time.parse::<Timestamp>().is_err();
        let times =
            std::iter::once(("began", &self.started)).chain(self.resumed.iter().map(|time| ("was resumed", time)));
        if let Some((what, time)) = times.into_iter().find(|(_, time)| is_no_time(time)) {
            return Err(format!("{what} at `{time}`, which is no time such as `2026-11-01T12:00:00Z`"));
        }
        let facts = self.environment.facts().count();
        if facts > MAX_FACTS {
            return Err(format!("states {facts} facts of its environment, and {MAX_FACTS} are the most"));
        }
        match self.order.iter().find(|left| left.duration < 0.0) {
            Some(left) => Err(format!("took {} s for `{}`", left.duration, left.name)),
            None => Ok(()),
        }
    }

    /// Whether nothing more is measured for it.
    pub fn is_over(&self) -> bool {
        self.outcome != RunOutcome::Interrupted
    }

    /// What the sensors said before and after each experiment, by its name.
    pub fn telemetry_by_experiment(&self) -> HashMap<&str, Vec<&TelemetrySample>> {
        let mut found: HashMap<&str, Vec<&TelemetrySample>> = HashMap::new();
        for sample in &self.telemetry {
            found.entry(&sample.experiment).or_default().push(sample);
        }
        found
    }
}

/// Why the clocks were held back, each reason once.
pub fn throttle_reasons<'a>(samples: impl IntoIterator<Item = &'a TelemetrySample>) -> Vec<&'a str> {
    let reasons = samples.into_iter().flat_map(|sample| &sample.sensors.throttle_reasons);
    let mut reasons: Vec<&str> = reasons.map(String::as_str).collect();
    reasons.sort_unstable();
    reasons.dedup();
    reasons
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
        let mut seen = HashSet::new();
        self.runs.iter().map(|run| run.system.as_str()).filter(|system| seen.insert(*system)).collect()
    }

    /// Whether the runs of a system stand by turns with those of the first: each beside a neighbour, but for a last one,
    /// whose neighbour a budget or an interrupt kept away.
    pub fn by_turns(&self, system: &str) -> bool {
        let first = self.run().system.as_str();
        let order: Vec<bool> = self
            .runs
            .iter()
            .filter_map(|run| [(first, true), (system, false)].into_iter().find(|(name, _)| *name == run.system))
            .map(|(_, own)| own)
            .collect();
        order.chunks_exact(2).all(|pair| pair[0] != pair[1])
    }

    /// The names of the experiments, in the order of the rows; last those that left none.
    pub fn experiments(&self) -> Vec<&str> {
        let rows = self.rows.iter().map(|row| row.spec.experiment());
        let ran = self.runs_of(&self.run().system).flat_map(|run| &run.order).map(|left| left.name.as_str());
        let mut seen = HashSet::new();
        rows.chain(ran).filter(|name| seen.insert(*name)).collect()
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
        let runs = || self.runs.iter().filter(|run| run.system == system);
        Lookup::new(&self.rows, runs().map(|run| run.id.as_str()).collect()).with_sensors(runs())
    }

    /// Ends the run that is not over, because its process ended before its time: the rows that it did not finish fail with
    /// `reason`. Whether there was one.
    pub fn end_open_run(&mut self, reason: &str) -> bool {
        let Some(run) = self.runs.iter_mut().find(|run| !run.is_over()) else { return false };
        run.outcome = RunOutcome::Failed;
        let of_run = self.rows.iter_mut().flat_map(|row| &mut row.series).filter(|series| series.run == run.id);
        for series in of_run.filter(|series| !series.outcome.is_finished()) {
            series.outcome = Outcome::Failed { reason: reason.to_owned() };
        }
        true
    }

    /// What the runs of the system that the file is about left, row by row.
    pub fn outcomes(&self) -> impl Iterator<Item = (&Row, &Outcome)> {
        let runs: Vec<&str> = self.runs_of(&self.run().system).map(|run| run.id.as_str()).collect();
        self.rows.iter().flat_map(move |row| {
            let own = row.series.iter().filter(|series| runs.contains(&series.run.as_str()));
            own.map(move |series| (row, &series.outcome)).collect::<Vec<_>>()
        })
    }

    /// Adds what a run left since the last piece of it.
    pub fn add(&mut self, piece: Piece) {
        let Piece { run, rows, timelines } = piece;
        let id = run.id.clone();
        match self.runs.iter_mut().find(|own| own.id == id) {
            Some(own) => {
                let mut telemetry = std::mem::take(&mut own.telemetry);
                telemetry.extend(run.telemetry);
                *own = Run { telemetry, ..run };
            }
            None => self.runs.push(run),
        }
        self.put_rows(&id, rows);
        if !timelines.is_empty() {
            self.timelines = timelines;
        }
    }

    /// Puts rows of a run in the place of what stood of them.
    pub fn put_rows(&mut self, run: &str, rows: Vec<Row>) {
        let of_run = self.rows.iter().enumerate().filter(|(_, row)| row.outcome(run).is_some());
        let places: HashMap<String, usize> = of_run.map(|(place, row)| (row.spec.title(), place)).collect();
        let mut new = Vec::new();
        for row in rows {
            match places.get(&row.spec.title()) {
                Some(place) => {
                    let own = &mut self.rows[*place].series;
                    own.retain(|series| series.run != run);
                    own.extend(row.series);
                }
                None => new.push(row),
            }
        }
        self.merge(new);
    }

    /// The scenario with this name that was recorded first.
    pub fn timeline(&self, name: &str) -> Option<&RecordedTimeline> {
        self.timelines.iter().find(|scenario| scenario.name == name)
    }

    /// Whether a run was interrupted, or one that is planned is missing.
    pub fn is_partial(&self) -> bool {
        !self.missing_runs().is_empty()
    }

    /// Which runs were interrupted, and of which systems some are missing, each in words.
    pub fn missing_runs(&self) -> Vec<String> {
        [self.interrupted_runs(), self.runs_to_come()].concat()
    }

    /// Which runs were interrupted, each in words.
    pub fn interrupted_runs(&self) -> Vec<String> {
        let cut = self.runs.iter().filter(|run| run.outcome == RunOutcome::Interrupted);
        cut.map(|run| format!("the run {} was interrupted", run.id)).collect()
    }

    /// Of which systems planned runs are missing, each with how many of how many are there.
    pub fn runs_to_come(&self) -> Vec<String> {
        let systems = std::iter::once(&self.run().system).chain(&self.plan.with);
        let planned = self.plan.runs as usize;
        let counted = systems.map(|system| (system, self.runs_of(system).count()));
        let missing = counted.filter(|(_, made)| *made < planned);
        missing.map(|(system, made)| format!("{system}: {made} of {planned} runs are there")).collect()
    }

    /// Whether it holds the runs of another file, with what each left there: that one was written before later runs were made.
    pub fn goes_on_from(&self, other: &Self) -> bool {
        let has_run = |run: &Run| self.runs.iter().any(|own| (&own.id, &own.started) == (&run.id, &run.started));
        let has_row = |row: &Row| {
            let mut own = self.rows.at(&row.spec.id, &row.spec.parameters);
            own.any(|own| row.series.iter().all(|series| own.outcome(&series.run) == Some(&series.outcome)))
        };
        self.runs.len() > other.runs.len() && other.runs.iter().all(has_run) && other.rows.iter().all(has_row)
    }

    /// Whether an experiment or a row failed.
    pub fn has_failures(&self) -> bool {
        let failed = |outcome: &Outcome| matches!(outcome, Outcome::Failed { .. });
        let ended_early = |run: &Run| run.outcome == RunOutcome::Failed;
        self.runs.iter().any(|run| ended_early(run) || run.order.iter().any(|left| left.failure.is_some()))
            || self.rows.iter().flat_map(|row| &row.series).any(|series| failed(&series.outcome))
    }
}
