//! Reading and writing results files (JSON).

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::path::Path;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::digest;
use super::run::{Piece, Recorded, RecordedTimeline, Results, SCHEMA_VERSION};
use crate::error::{FileError, at};
use crate::files::{Target, is_kind, packed_as, read_text, text_of, unpacked};

impl Results {
    /// Reads a results file, which may be packed by gzip.
    ///
    /// # Errors
    /// [`FileError`] says whether the file cannot be read, is not whole, or has a version that is not read.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        let text = read_text(path, MAX_BYTES).map_err(at(path))?;
        Self::parse(&text, path)
    }

    /// Reads results from the content of a file that `path` names in errors.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn of_content(content: &[u8], path: &Path) -> Result<Self, FileError> {
        let text = unpacked(content, MAX_BYTES).and_then(text_of).map_err(at(path))?;
        Self::parse(&text, path)
    }

    /// Reads results from their text; `path` names it in errors.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn parse(text: &str, path: &Path) -> Result<Self, FileError> {
        let origin = path.display().to_string();
        // A checkpoint has pieces behind the file that it began as.
        let (text, pieces) = text.split_at(text.find("\n}\n").map_or(text.len(), |end| end + 3));
        let mut results: Self = of_version(SCHEMA_VERSION, text, &origin, "a whole results file")?;
        let wrong = |message: String| FileError::whole(origin.clone(), message);
        results.check().map_err(wrong)?;
        if results.samples_sha256.take().is_some_and(|stated| stated != results.samples_digest()) {
            return Err(wrong(ALTERED.to_owned()));
        }
        if !pieces.trim().is_empty() {
            // The process that wrote the last may have ended meanwhile.
            let whole = pieces.rfind('\n').map_or("", |end| &pieces[..end]);
            for line in whole.lines() {
                let syntax = |error| FileError::json(&origin, "a piece of a run", &error);
                results.add(Piece::of_line(line).map_err(syntax)?);
            }
            results.check().map_err(wrong)?;
        }
        Ok(results)
    }

    /// Finds the first reference that leads nowhere, and the first run, row or timeline that contradicts itself.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.runs.is_empty() {
            return Err("it holds no run".to_owned());
        }
        if self.runs.len() > MAX_RUNS {
            return Err(format!("it holds {} runs, and {MAX_RUNS} are the most", self.runs.len()));
        }
        if self.plan.runs == 0 {
            return Err("its plan is of 0 runs, and one is the fewest".to_owned());
        }
        let mut systems = BTreeMap::new();
        if let Some(run) = self.runs.iter().find(|run| systems.insert(run.id.as_str(), run.system.as_str()).is_some()) {
            return Err(format!("two runs are named `{}`", run.id));
        }
        let all = self.systems().len();
        if all > MAX_SYSTEMS {
            return Err(format!("it holds runs of {all} systems, and {MAX_SYSTEMS} are the most"));
        }
        self.runs.iter().try_for_each(|run| run.check().map_err(|why| format!("the run `{}` {why}", run.id)))?;
        let mut places = HashMap::new();
        for (place, row) in self.rows.iter().enumerate() {
            let title = row.spec.title();
            row.check().map_err(|why| format!("`{title}` {why}"))?;
            let mut seen = HashSet::new();
            for run in row.series.iter().map(|series| series.run.as_str()) {
                let Some(system) = systems.get(run) else {
                    return Err(format!("`{title}` has samples of a run `{run}`, which is not there"));
                };
                let first = *places.entry((title.clone(), *system)).or_insert(place);
                if !seen.insert(run) || first != place && self.rows[first].outcome(run).is_some() {
                    return Err(format!("`{title}` has samples of the run `{run}` twice"));
                }
                if first != place {
                    return Err(format!("`{title}` is two rows of {system}: one row holds what all of its runs left"));
                }
            }
        }
        self.timelines.iter().try_for_each(|scenario| self.check_timeline(scenario, &systems))
    }

    /// Finds what cannot be of a scenario. One that was not recorded may have any name.
    fn check_timeline(&self, scenario: &RecordedTimeline, systems: &BTreeMap<&str, &str>) -> Result<(), String> {
        let RecordedTimeline { run, name, recorded, .. } = scenario;
        if !systems.contains_key(run.as_str()) {
            return Err(format!("`{name}` was recorded by a run `{run}`, which is not there"));
        }
        if matches!(recorded, Recorded::Timeline(_)) && self.rows.of(name).next().is_none() {
            return Err(format!("it holds a timeline of `{name}`, and no row of this name"));
        }
        match scenario.untraced_s.iter().chain(&scenario.traced_s).find(|seconds| **seconds < 0.0) {
            Some(seconds) => Err(format!("a pass of `{name}` took {seconds} s")),
            None => Ok(()),
        }
    }

    /// Claims a file that results are to be written to: one that is not there or is empty, or a results file, which `see` is
    /// shown.
    ///
    /// # Errors
    /// [`FileError::Io`] names the file.
    pub fn claim(path: &Path, see: impl FnOnce(&Self)) -> Result<Target, FileError> {
        Target::claim(path, |there| is_kind(Self::read(there).inspect(see))).map_err(at(path))
    }

    /// Writes a results file. Atomic: whoever reads `path` sees the old file or the whole new one. A pipe or a device is
    /// written into, a link followed. A file that holds no results is not replaced.
    ///
    /// # Errors
    /// [`FileError::Io`] or, where the file could be claimed, [`FileError::Unwritten`] names it.
    pub fn write(&self, path: &Path) -> Result<(), FileError> {
        let written = Self::claim(path, |_| ())?.write(&self.to_content(path)?);
        written.map_err(FileError::unwritten(path))
    }

    /// The digest that a file of these samples has.
    pub fn samples_digest(&self) -> String {
        digest::of_samples(&self.rows)
    }

    /// The content of a results file: packed where the name of `path` ends in `.gz`.
    ///
    /// # Errors
    /// It is longer than what is read.
    pub fn to_content(&self, path: &Path) -> Result<Vec<u8>, FileError> {
        let wrong = |error: &dyn fmt::Display| FileError::whole(path.display().to_string(), error.to_string());
        let mut text = serde_json::to_vec_pretty(self).map_err(|error| wrong(&error))?;
        // The digest stands at the end.
        text.truncate(text.len() - "\n}".len());
        text.extend(format!(",\n  \"samples_sha256\": \"{}\"\n}}\n", self.samples_digest()).bytes());
        if text.len() > MAX_BYTES {
            return Err(wrong(&format_args!("longer than {} MB, the most that is read", MAX_BYTES >> 20)));
        }
        packed_as(path, text).map_err(|error| wrong(&error))
    }
}

/// Reads what a file of this program's own holds (`what`, in errors), of which the version of its schema comes first: only one
/// is read.
pub(super) fn of_version<T: DeserializeOwned>(read: u32, text: &str, origin: &str, what: &str) -> Result<T, FileError> {
    #[derive(Deserialize)]
    struct Versioned {
        schema_version: u64,
    }
    let syntax = |error| FileError::json(origin, what, &error);
    let Versioned { schema_version: found } = serde_json::from_str(text).map_err(syntax)?;
    match found == u64::from(read) {
        true => serde_json::from_str(text).map_err(syntax),
        false => Err(FileError::Version { origin: origin.to_owned(), found, read }),
    }
}

/// Why a file whose digest is another is not read.
const ALTERED: &str = "its samples are not those that were written: their digest is another than `samples_sha256` says; \
                       take the file anew from where it was measured";

/// The most bytes of a results file, or of what another system measured, that are read, and so the most that are written.
pub const MAX_BYTES: usize = 256 << 20;
/// How many runs one may hold: ten systems, each with as many as a suite may have.
pub const MAX_RUNS: usize = 10_000;
/// Of how many systems.
const MAX_SYSTEMS: usize = 100;

#[cfg(test)]
mod tests;
