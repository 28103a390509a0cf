//! Reading and writing results files (JSON).

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::migrate;
use super::run::Results;
use crate::error::FileError;

impl Results {
    /// Reads a results file.
    ///
    /// # Errors
    /// [`FileError`] says whether the file cannot be read, is not whole, or has a version that is not read.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        let text = std::fs::read_to_string(path).map_err(|source| io(path, source))?;
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

    /// Finds out whether a results file can be written, before anything is measured for it.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn check_writable(path: &Path) -> Result<(), FileError> {
        if path.is_dir() {
            return Err(io(path, std::io::ErrorKind::IsADirectory.into()));
        }
        temporary_beside(path).map(drop)
    }

    /// Writes a results file. Atomic: whoever reads `path` sees the old file or the whole new one.
    ///
    /// # Errors
    /// [`FileError::Io`] names the file.
    pub fn write(&self, path: &Path) -> Result<(), FileError> {
        let text = serde_json::to_string_pretty(self)
            .map_err(|error| FileError::whole(path.display().to_string(), error.to_string()))?;
        let mut file = temporary_beside(path)?;
        file.write_all(text.as_bytes()).and_then(|()| file.write_all(b"\n")).map_err(|source| io(path, source))?;
        file.as_file().sync_all().map_err(|source| io(path, source))?;
        file.persist(path).map_err(|error| io(path, error.error))?;
        Ok(())
    }
}

/// A file in the folder of `path`, which is made where it is not there.
fn temporary_beside(path: &Path) -> Result<tempfile::NamedTempFile, FileError> {
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

fn io(path: &Path, source: std::io::Error) -> FileError {
    FileError::Io { path: path.to_owned(), source }
}
