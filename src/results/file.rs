//! Reading and writing results files (JSON).

use std::collections::BTreeSet;
use std::path::Path;

use super::migrate;
use super::run::Results;
use crate::error::FileError;
use crate::files::{Target, read_text};

impl Results {
    /// Reads a results file.
    ///
    /// # Errors
    /// [`FileError`] says whether the file cannot be read, is not whole, or has a version that is not read.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        let text = read_text(path, MOST_BYTES).map_err(|source| io(path, source))?;
        Self::parse(&text, path)
    }

    /// Reads results from their text; `path` names it in errors.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn parse(text: &str, path: &Path) -> Result<Self, FileError> {
        let results = migrate::read(text, &path.display().to_string())?;
        results.check().map_err(|message| FileError::whole(path.display().to_string(), message))?;
        Ok(results)
    }

    /// Finds the first reference that leads nowhere.
    fn check(&self) -> Result<(), String> {
        if self.runs.is_empty() {
            return Err("it holds no run".to_owned());
        }
        let mut runs = BTreeSet::new();
        if let Some(run) = self.runs.iter().find(|run| !runs.insert(run.id.as_str())) {
            return Err(format!("two runs are named `{}`", run.id));
        }
        for row in &self.rows {
            let mut seen = BTreeSet::new();
            for run in row.series.iter().map(|series| series.run.as_str()) {
                if !runs.contains(run) {
                    return Err(format!("`{}` has samples of a run `{run}`, which is not there", row.spec.title()));
                }
                if !seen.insert(run) {
                    return Err(format!("`{}` has samples of the run `{run}` twice", row.spec.title()));
                }
            }
        }
        match self.timelines.iter().find(|scenario| !runs.contains(scenario.run.as_str())) {
            Some(scenario) => {
                Err(format!("`{}` was recorded by a run `{}`, which is not there", scenario.name, scenario.run))
            }
            None => Ok(()),
        }
    }

    /// Claims a file that results are to be written to: one that is not there or is empty, or a results file.
    ///
    /// # Errors
    /// [`FileError::Io`] names the file.
    pub(crate) fn claim(path: &Path) -> Result<Target, FileError> {
        Target::claim(path, |there| Self::read(there).is_ok()).map_err(|source| io(path, source))
    }

    /// Writes a results file. Atomic: whoever reads `path` sees the old file or the whole new one. A pipe or a device is
    /// written into, a link followed. A file that holds no results is not replaced.
    ///
    /// # Errors
    /// [`FileError::Io`] names the file.
    pub fn write(&self, path: &Path) -> Result<(), FileError> {
        Self::claim(path)?.write(self.to_json(path)?.as_bytes()).map_err(|source| io(path, source))
    }

    /// The text of a results file.
    pub(crate) fn to_json(&self, path: &Path) -> Result<String, FileError> {
        let text = serde_json::to_string_pretty(self);
        text.map(|text| text + "\n").map_err(|error| FileError::whole(path.display().to_string(), error.to_string()))
    }
}

/// The most bytes of a results file, or of what another system measured, that are read.
pub(super) const MOST_BYTES: usize = 256 << 20;

fn io(path: &Path, source: std::io::Error) -> FileError {
    FileError::Io { path: path.to_owned(), source }
}
