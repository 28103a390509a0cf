//! The results of a run, as they are kept in a file (JSON).
//!
//! All raw samples are kept in the order in which they were taken; estimates are computed from them by whoever reads
//! the file, so that a better estimate needs no new run. A results file may come from anywhere: reading one checks its
//! version first and never trusts its content to be consistent.

use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::environment::Environment;
use super::migrate;
use super::peer::Peer;
use super::suite::Suite;
use crate::device::Telemetry;
use crate::error::ResultsError;
use crate::experiment::{Lookup, Outcome, RecordedTimeline, Row, Selection};

/// The version of the schema that this program writes.
pub const SCHEMA_VERSION: u32 = 1;

/// One run of a suite on one machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// The version of this schema.
    pub schema_version: u32,
    /// Whether the run was interrupted: the rows that it did not reach say so.
    pub partial: bool,
    /// Which of the suite's rows were to be measured.
    #[serde(default, skip_serializing_if = "Selection::is_all")]
    pub selection: Selection,
    /// When it was resumed after an interrupt, in UTC, RFC 3339.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resumed: Vec<String>,
    /// The suite as it was run.
    pub suite: Suite,
    /// Where, when and with what it was run.
    pub environment: Environment,
    /// What each experiment left, in the order in which they ran.
    pub experiments: Vec<ExperimentRun>,
    /// What other programs measured of the same work on the same machine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub peers: Vec<Peer>,
}

/// What one experiment left.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExperimentRun {
    /// The experiment's name: `sync-points`.
    pub name: String,
    /// How long it took, in seconds.
    pub duration: f64,
    /// The device's sensors before it ran, where it has any.
    pub before: Option<Telemetry>,
    /// The device's sensors after it ran.
    pub after: Option<Telemetry>,
    /// Why the experiment as a whole failed, where it did; the rows it had left are kept.
    pub failure: Option<String>,
    /// Its rows.
    pub rows: Vec<Row>,
    /// Its scenes, recorded after all rows of all experiments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timelines: Vec<RecordedTimeline>,
}

impl ExperimentRun {
    /// Whether it failed, or one of its rows.
    pub fn has_failures(&self) -> bool {
        self.failure.is_some() || self.rows.iter().any(|row| matches!(row.outcome, Outcome::Failed { .. }))
    }

    /// Why the clocks were held back before or after it, each reason once; empty where nothing is known to have been.
    pub fn throttle_reasons(&self) -> Vec<&str> {
        let mut reasons: Vec<&str> = [&self.before, &self.after]
            .into_iter()
            .flatten()
            .flat_map(|t| &t.throttle_reasons)
            .map(String::as_str)
            .collect();
        reasons.sort_unstable();
        reasons.dedup();
        reasons
    }
}

impl Run {
    /// All rows, in the order in which they were left.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.experiments.iter().flat_map(|experiment| &experiment.rows)
    }

    /// The scene with this name, of the experiment that played it first.
    pub fn timeline(&self, name: &str) -> Option<&RecordedTimeline> {
        self.experiments.iter().flat_map(|experiment| &experiment.timelines).find(|scene| scene.name == name)
    }

    /// All rows, to find things in.
    pub fn lookup(&self) -> Lookup<'_> {
        Lookup::new(self.rows())
    }

    /// Whether an experiment or a row failed.
    pub fn has_failures(&self) -> bool {
        self.experiments.iter().any(ExperimentRun::has_failures)
    }

    /// Reads a results file.
    ///
    /// # Errors
    /// [`ResultsError`] says whether the file cannot be read, is not whole, or has a version that is not read.
    pub fn read(path: &Path) -> Result<Self, ResultsError> {
        let text = std::fs::read_to_string(path).map_err(|source| io(path, source))?;
        Self::parse(&text, path)
    }

    /// Reads results from their text; `path` names it in errors.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn parse(text: &str, path: &Path) -> Result<Self, ResultsError> {
        migrate::read(text, path)
    }

    /// Finds out whether a results file can be written, before anything is measured for it.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn check_writable(path: &Path) -> Result<(), ResultsError> {
        if path.is_dir() {
            return Err(io(path, std::io::ErrorKind::IsADirectory.into()));
        }
        temporary_beside(path).map(drop)
    }

    /// Writes a results file. Atomic: whoever reads `path` sees the old file or the whole new one.
    ///
    /// # Errors
    /// [`ResultsError::Io`] names the file.
    pub fn write(&self, path: &Path) -> Result<(), ResultsError> {
        let text = serde_json::to_string_pretty(self)
            .map_err(|error| ResultsError::Content { path: path.to_owned(), message: error.to_string() })?;
        let mut file = temporary_beside(path)?;
        file.write_all(text.as_bytes()).and_then(|()| file.write_all(b"\n")).map_err(|source| io(path, source))?;
        file.as_file().sync_all().map_err(|source| io(path, source))?;
        file.persist(path).map_err(|error| io(path, error.error))?;
        Ok(())
    }
}

/// A file in the folder of `path`, which is made where it is not there.
fn temporary_beside(path: &Path) -> Result<tempfile::NamedTempFile, ResultsError> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).map_or(PathBuf::from("."), Path::to_owned);
    std::fs::create_dir_all(&folder).map_err(|source| io(&folder, source))?;
    readable().tempfile_in(&folder).map_err(|source| io(&folder, source))
}

/// Temporary files are their owner's alone; a results file is for whoever the user's mask lets read it.
fn readable() -> tempfile::Builder<'static, 'static> {
    #[allow(unused_mut, reason = "where files have no modes")]
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder
}

fn io(path: &Path, source: std::io::Error) -> ResultsError {
    ResultsError::Io { path: path.to_owned(), source }
}
