//! Keeps what a run measures: a checkpoint after each experiment, and the results file at the end.
//!
//! The checkpoint lies beside the results file (`results.checkpoint.json`), in the working folder where that cannot be
//! written, or among temporary files; `--resume` takes it. It goes when the results are written.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::program;
use crate::error::FileError;
use crate::files::Target;
use crate::results::{Results, Row};

const CHECKPOINT: &str = ".checkpoint";

/// Keeps the results of one run.
pub(super) struct Keeper {
    out: PathBuf,
    state: Mutex<State>,
}

struct State {
    target: Option<Target>,
    /// Whether the target is a checkpoint itself: no other is written beside it.
    is_checkpoint: bool,
    checkpoint: Checkpoint,
    kept: Option<Results>,
    running: Vec<Row>,
}

/// Where checkpoints go.
struct Checkpoint {
    /// Where they may go, if they cannot go where they go now.
    places: VecDeque<PathBuf>,
    current: Option<(PathBuf, Target)>,
    written: Vec<PathBuf>,
    failed: bool,
}

/// The results file that a run resumed from `file` writes, where the user names none: its own, or that of its checkpoint.
pub(super) fn out_of(file: &Path) -> PathBuf {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    match name.rfind(CHECKPOINT).filter(|_| name.ends_with(".json")) {
        Some(start) => file.with_file_name(format!("{}.json", &name[..start])),
        None => file.to_owned(),
    }
}

impl Keeper {
    /// Claims the results file before anything is measured for it; `resumed` is the file that the run goes on from.
    pub(super) fn begin(out: &Path, resumed: Option<&Path>) -> Result<Self, FileError> {
        let target = Target::claim(out).map_err(|source| FileError::Io { path: out.to_owned(), source })?;
        // A checkpoint's own are called as those of its results file.
        let name = out_of(out).file_name().unwrap_or_default().to_string_lossy().into_owned();
        let stem = name.strip_suffix(".json").unwrap_or(&name);
        let beside = matches!(target, Target::File { .. }).then(|| out.with_file_name(""));
        let folders = beside.into_iter().chain([PathBuf::new(), std::env::temp_dir()]);
        let mut places: VecDeque<PathBuf> = folders.map(|folder| free(&folder, stem)).collect();
        let left = out.with_file_name(format!("{stem}{CHECKPOINT}.json"));
        match resumed {
            // Of files that are gone on from, only a run's own checkpoint is replaced and, in the end, removed.
            Some(file) if file != out && out_of(file) == out => places.push_front(file.to_owned()),
            // The process of a run is given a checkpoint to add to: that none was left, the one that starts it says.
            None if left.is_file() && out_of(out) == out => {
                note!("an earlier run did not end; to go on from it: {} run --resume {}", program(), left.display());
            }
            _ => {}
        }
        let checkpoint = Checkpoint { places, current: None, written: Vec::new(), failed: false };
        let state = State { target: Some(target), is_checkpoint: false, checkpoint, kept: None, running: Vec::new() };
        Ok(Self { out: out.to_owned(), state: Mutex::new(state) })
    }

    /// Claims a checkpoint that a run is to be added to: what is measured goes there as it comes.
    pub(super) fn of_checkpoint(file: &Path) -> Result<Self, FileError> {
        let keeper = Self::begin(file, None)?;
        keeper.state().is_checkpoint = true;
        Ok(keeper)
    }

    /// Writes a checkpoint.
    pub(super) fn keep(&self, results: &Results) {
        let mut state = self.state();
        state.running.clear();
        state.kept = Some(results.clone());
        // Before the first row there is nothing to keep; after a rescue it is kept.
        if results.rows.is_empty() || state.target.is_none() {
            return;
        }
        let Ok(text) = results.to_json(&self.out) else { return };
        let itself = state.target.as_ref().filter(|_| state.is_checkpoint);
        if itself.is_some_and(|target| target.write(text.as_bytes()).is_ok()) {
            return;
        }
        if let Err(error) = state.checkpoint.write(text.as_bytes())
            && !std::mem::replace(&mut state.checkpoint.failed, true)
        {
            note!("no checkpoint can be written, and the run goes on without: {error}");
        }
    }

    /// Writes a checkpoint for the processes of the runs, and says where it is.
    pub(super) fn checkpoint(&self, results: &Results) -> anyhow::Result<PathBuf> {
        let text = results.to_json(&self.out)?;
        let mut state = self.state();
        let written = state.checkpoint.write(text.as_bytes());
        let path = written.map_err(|error| anyhow::anyhow!("what is measured can be kept nowhere: {error}"))?;
        // Until the next time it is theirs to write.
        state.checkpoint.current = None;
        state.checkpoint.places.push_front(path.clone());
        Ok(path)
    }

    /// Takes the checkpoint away where it holds nothing; the place of the results file.
    pub(super) fn give_up(&self) -> PathBuf {
        let mut state = self.state();
        state.target = None;
        state.checkpoint.remove(&self.out);
        self.out.clone()
    }

    /// Remembers the rows of the experiment that is running.
    pub(super) fn measured(&self, rows: &[Row]) {
        self.state().running = rows.to_vec();
    }

    /// Writes the results file, or where that fails another, and says so. Where the results are then.
    pub(super) fn finish(&self, results: &Results) -> anyhow::Result<PathBuf> {
        let mut state = self.state();
        let text = results.to_json(&self.out)?;
        let target = state.target.take();
        let written = target.as_ref().map_or(Ok(()), |target| target.write(text.as_bytes()));
        let Err(error) = written else {
            state.checkpoint.remove(&self.out);
            return Ok(self.out.clone());
        };
        note!("{}: {error}", self.out.display());
        match state.checkpoint.write(text.as_bytes()) {
            Ok(path) => {
                note!("the results went to {} instead", path.display());
                // Its lock goes with it.
                state.checkpoint.current = None;
                Ok(path)
            }
            Err(error) => {
                let last = state.checkpoint.written.last();
                let kept = last.map_or_else(String::new, |path| format!("; a part of them is in {}", path.display()));
                Err(anyhow::anyhow!("the results could not be written anywhere: {error}{kept}"))
            }
        }
    }

    /// Writes what there is, where the run itself cannot: the program is about to end. Where it is then; `None` where there
    /// was nothing to do.
    pub(super) fn rescue(&self) -> Option<PathBuf> {
        let left = {
            let mut state = self.state();
            let running = std::mem::take(&mut state.running);
            state.kept.take().filter(|_| state.target.is_some()).map(|mut results| {
                results.merge(running);
                results
            })
        };
        match self.finish(&left?) {
            Ok(path) => {
                note!("interrupted within a sample; to go on: {} run --resume {}", program(), path.display());
                Some(path)
            }
            Err(error) => {
                note!("error: {error}");
                Some(self.out.clone())
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Checkpoint {
    /// Writes to the place of the last checkpoint, or else to the next that can be written.
    fn write(&mut self, content: &[u8]) -> io::Result<PathBuf> {
        let mut last = io::Error::other("no place is left");
        loop {
            if let Some((path, target)) = &self.current {
                match target.write(content) {
                    Ok(()) => {
                        if !self.written.contains(path) {
                            self.written.push(path.clone());
                        }
                        return Ok(path.clone());
                    }
                    Err(error) => last = error,
                }
                self.current = None;
            }
            let Some(path) = self.places.pop_front() else { return Err(last) };
            match Target::claim(&path) {
                Ok(target) => self.current = Some((path, target)),
                Err(error) => last = error,
            }
        }
    }

    /// Removes all checkpoints but one that became the results file.
    fn remove(&mut self, out: &Path) {
        self.current = None;
        for path in self.written.drain(..).filter(|path| path != out) {
            // The results are whole without it.
            let _ = fs::remove_file(path);
        }
    }
}

/// The first name that no file has: an earlier run's checkpoint is not this one's to replace.
fn free(folder: &Path, stem: &str) -> PathBuf {
    let names = std::iter::once(String::new()).chain((2..).map(|number: u32| format!("-{number}")));
    let mut paths = names.map(|number| folder.join(format!("{stem}{CHECKPOINT}{number}.json")));
    paths.find(|path| fs::symlink_metadata(path).is_err()).unwrap_or_else(|| folder.join(stem))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_leads_back_to_its_results_file() {
        for (file, out) in [
            ("a/results.checkpoint.json", "a/results.json"),
            ("a/results.checkpoint-2.json", "a/results.json"),
            ("a/results.json", "a/results.json"),
        ] {
            assert_eq!(out_of(Path::new(file)), Path::new(out));
        }
    }

    #[test]
    fn an_earlier_checkpoint_keeps_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let first = free(folder.path(), "r");
        fs::write(&first, "").unwrap();
        assert!(first.ends_with("r.checkpoint.json") && free(folder.path(), "r").ends_with("r.checkpoint-2.json"));
    }
}
