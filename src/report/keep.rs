//! Keeps what a run measures: a piece of the checkpoint after each experiment, and the results file at the end.
//!
//! The checkpoint lies beside the results file (`results.checkpoint.json`), in the working folder where that cannot be
//! written, or among temporary files; `--resume` takes it. It goes when the results are written.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{argument, invocation, output};
use crate::error::{FileError, at};
use crate::files::Target;
use crate::results::{LONGEST_FILE, Piece, Results, Row};

const CHECKPOINT: &str = ".checkpoint";

/// Keeps the results of one run.
pub(super) struct Keeper {
    /// The results file.
    pub(super) out: PathBuf,
    state: Mutex<State>,
}

struct State {
    target: Option<Target>,
    checkpoint: Checkpoint,
    /// What a process that measures has left so far, and whether the target holds it.
    kept: Option<Results>,
    is_in_target: bool,
    running: Vec<Row>,
}

/// Where checkpoints go.
struct Checkpoint {
    /// What they are called, without the number and the ending.
    stem: OsString,
    /// Where they may go, if they cannot go where they go now.
    places: VecDeque<Place>,
    current: Option<(PathBuf, Target)>,
    /// Files of this run, which go when its results are whole elsewhere.
    written: Vec<PathBuf>,
    failed: bool,
}

enum Place {
    /// A file of this run.
    File(PathBuf),
    /// A folder: the first name that no file has. An earlier run's checkpoint is not this one's to replace.
    Folder(PathBuf),
}

/// The results file that a run resumed from `file` writes, where the user names none: its own, or that of its checkpoint.
pub(super) fn out_of(file: &Path) -> PathBuf {
    let name = file.file_name().unwrap_or_default().as_bytes();
    let start = name.windows(CHECKPOINT.len()).rposition(|part| part == CHECKPOINT.as_bytes());
    match start.filter(|_| name.ends_with(b".json")) {
        // A packed file's name stands whole in that of its checkpoint.
        Some(start) if name[..start].ends_with(b".gz") => file.with_file_name(OsStr::from_bytes(&name[..start])),
        Some(start) => file.with_file_name(joined(OsStr::from_bytes(&name[..start]), ".json")),
        None => file.to_owned(),
    }
}

/// A name with `ending` behind it, which need not be text.
fn joined(name: &OsStr, ending: &str) -> OsString {
    let mut whole = name.to_owned();
    whole.push(ending);
    whole
}

impl Keeper {
    /// Claims the results file, and a place for its checkpoint, before anything is measured for it.
    pub(super) fn begin(out: &Path) -> Result<Self, FileError> {
        let mut is_partial = false;
        let target = Results::claim(out, |there| is_partial = there.is_partial())?;
        let keeper = Self::of(out, target);
        if is_partial {
            let (file, program) = (argument(out), invocation());
            note!(
                "{file} is of runs that did not end, and will be replaced; to go on from it: {program} run --resume {file}"
            );
        }
        let mut state = keeper.state();
        let left = out.with_file_name(joined(&state.checkpoint.stem, ".json"));
        if left != out && left.is_file() {
            note!("an earlier run did not end; to go on from it: {} run --resume {}", invocation(), argument(&left));
        }
        state.checkpoint.claim().map_err(at(&left))?;
        drop(state);
        Ok(keeper)
    }

    /// Claims the results file of a run that goes on from `file`, and the file where it is the run's own: what it holds is
    /// to be read from now on, when no other process adds to it.
    pub(super) fn resume(file: &Path, out: &Path) -> Result<Self, FileError> {
        fs::metadata(file).map_err(at(file))?;
        if file == out {
            return Ok(Self::of(out, Target::claim_to_add(out).map_err(at(out))?));
        }
        let keeper = Self::of(out, Results::claim(out, |_| ())?);
        // Of other files that are gone on from, only a run's own checkpoint is replaced and, in the end, removed.
        if out_of(file) == out {
            let target = Target::claim_to_add(file).map_err(at(file))?;
            let mut state = keeper.state();
            state.checkpoint.current = Some((file.to_owned(), target));
            state.checkpoint.written.push(file.to_owned());
        }
        Ok(keeper)
    }

    /// Claims a checkpoint of these results, to which a run is to be added: what is measured goes there as it comes.
    pub(super) fn of_checkpoint(file: &Path, results: &Results) -> Result<Self, FileError> {
        let keeper = Self::of(file, Target::claim_to_add(file).map_err(at(file))?);
        keeper.state().kept = Some(results.clone());
        Ok(keeper)
    }

    fn of(out: &Path, target: Target) -> Self {
        output::give_way(out);
        // A checkpoint's own are called as those of its results file.
        let own = out_of(out);
        let name = own.file_name().unwrap_or_default().as_bytes();
        let stem = joined(OsStr::from_bytes(name.strip_suffix(b".json").unwrap_or(name)), CHECKPOINT);
        let beside = matches!(target, Target::File { .. }).then(|| out.with_file_name(""));
        let places = beside.into_iter().chain([PathBuf::new(), std::env::temp_dir()]).map(Place::Folder).collect();
        let checkpoint = Checkpoint { stem, places, current: None, written: Vec::new(), failed: false };
        let state = State { target: Some(target), checkpoint, kept: None, is_in_target: true, running: Vec::new() };
        Self { out: out.to_owned(), state: Mutex::new(state) }
    }

    /// Adds a piece of the run to the checkpoint; where that cannot be done, writes all again, there or elsewhere.
    pub(super) fn keep(&self, piece: &Piece) {
        let mut state = self.state();
        let State { target, checkpoint, kept, is_in_target, running } = &mut *state;
        running.clear();
        // After a rescue all is written.
        let (Some(target), Some(kept)) = (target, kept) else { return };
        kept.add(piece.clone());
        // Before the first row there is nothing to keep.
        if kept.rows.is_empty() {
            return;
        }
        let add = |line: String| target.append(line.as_bytes(), LONGEST_FILE).is_ok();
        if *is_in_target && piece.to_line().is_ok_and(add) {
            return;
        }
        let Ok(content) = self.of_checkpoint_file(kept) else { return };
        *is_in_target = target.write(&content).is_ok();
        if !*is_in_target
            && let Err(error) = checkpoint.write(&content)
            && !std::mem::replace(&mut checkpoint.failed, true)
        {
            alert!("no checkpoint can be written, and the run goes on without: {error}");
        }
    }

    /// The content of a checkpoint: a text, to which pieces are added, whatever the results file is.
    fn of_checkpoint_file(&self, results: &Results) -> Result<Vec<u8>, FileError> {
        results.to_content(&self.out.with_extension("json"))
    }

    /// Writes a checkpoint for the processes of the runs, and says where it is.
    pub(super) fn checkpoint(&self, results: &Results) -> anyhow::Result<PathBuf> {
        let content = self.of_checkpoint_file(results)?;
        let mut state = self.state();
        let written = state.checkpoint.write(&content);
        let path = written.map_err(|error| anyhow::anyhow!("what is measured can be kept nowhere: {error}"))?;
        // Until the next time it is theirs to write.
        state.checkpoint.current = None;
        state.checkpoint.places.push_front(Place::File(path.clone()));
        Ok(path)
    }

    /// Takes over the file where a process left the results because it could not write the checkpoint.
    pub(super) fn take_over(&self, file: &Path) {
        let mut state = self.state();
        state.checkpoint.places.push_front(Place::File(file.to_owned()));
        state.checkpoint.written.push(file.to_owned());
    }

    /// Lets a file of this run be what it is: it is neither written nor removed from now on.
    pub(super) fn leave(&self, file: &Path) {
        let mut state = self.state();
        state.checkpoint.written.retain(|path| path != file);
        state.checkpoint.places.retain(|place| !matches!(place, Place::File(path) if path == file));
    }

    /// Takes the checkpoint away where it holds nothing.
    pub(super) fn give_up(&self) {
        let mut state = self.state();
        state.target = None;
        state.checkpoint.remove(&self.out);
    }

    /// Remembers the rows of the experiment that is running.
    pub(super) fn measured(&self, rows: &[Row]) {
        self.state().running = rows.to_vec();
    }

    /// Writes the results file, or where that fails another, and says so. Where the results are then.
    pub(super) fn finish(&self, results: &Results) -> anyhow::Result<PathBuf> {
        let mut state = self.state();
        let target = state.target.take();
        let content = results.to_content(&self.out)?;
        let written = target.as_ref().map_or(Ok(()), |target| target.write(&content));
        let Err(error) = written else {
            state.checkpoint.remove(&self.out);
            return Ok(self.out.clone());
        };
        alert!("{}: {error}", self.out.display());
        match state.checkpoint.write(&content) {
            Ok(path) => {
                alert!("the results went to {} instead", path.display());
                state.checkpoint.remove(&path);
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
                if let Some(run) = running.first().and_then(|row| row.series.first()).map(|series| series.run.clone()) {
                    results.put_rows(&run, running);
                }
                results
            })
        };
        match self.finish(&left?) {
            Ok(path) => {
                alert!("interrupted within a sample");
                Some(path)
            }
            Err(error) => {
                alert!("error: {error}");
                Some(self.out.clone())
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Checkpoint {
    /// Claims the next place that can be written.
    fn claim(&mut self) -> io::Result<()> {
        let mut last = io::Error::other("no place is left");
        while let Some(place) = self.places.pop_front() {
            match place.claim(&self.stem) {
                Ok(claimed) => {
                    self.current = Some(claimed);
                    return Ok(());
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Writes to the place of the last checkpoint, or else to the next that can be written.
    fn write(&mut self, content: &[u8]) -> io::Result<PathBuf> {
        let mut last = None;
        loop {
            if let Some((path, target)) = &self.current {
                match target.write(content) {
                    Ok(()) => {
                        if !self.written.contains(path) {
                            self.written.push(path.clone());
                        }
                        return Ok(path.clone());
                    }
                    Err(error) => last = Some(error),
                }
                self.current = None;
            }
            // Why a place could not be written says more than that none is left.
            self.claim().map_err(|error| last.take().unwrap_or(error))?;
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

impl Place {
    fn claim(self, stem: &OsStr) -> io::Result<(PathBuf, Target)> {
        let folder = match self {
            Self::File(path) => return Target::claim_to_add(&path).map(|target| (path, target)),
            // Only a default folder may be missing, and that of the results file was made when it was claimed.
            Self::Folder(folder) if !folder.as_os_str().is_empty() && !folder.is_dir() => {
                let message = format!("there is no folder {}", folder.display());
                return Err(io::Error::new(io::ErrorKind::NotFound, message));
            }
            Self::Folder(folder) => folder,
        };
        let numbers = std::iter::once(String::new()).chain((2..).map(|number: u32| format!("-{number}")));
        for path in numbers.map(|number| folder.join(joined(stem, &format!("{number}.json")))) {
            if let Some(target) = Target::claim_new(&path)? {
                return Ok((path, target));
            }
        }
        Err(io::Error::other("no name is left"))
    }
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
            ("a/results.json.gz.checkpoint.json", "a/results.json.gz"),
        ] {
            assert_eq!(out_of(Path::new(file)), Path::new(out));
        }
        let [file, out] = [&b"r\xfe.checkpoint-2.json"[..], b"r\xfe.json"].map(OsStr::from_bytes);
        assert_eq!(out_of(Path::new(file)), Path::new(out));
    }

    #[test]
    fn what_was_kept_on_the_way_goes_also_where_the_results_go_elsewhere() {
        use crate::results::{Plan, Selection};

        let folder = tempfile::tempdir().unwrap();
        let device = syncscope::device::Device::open("cpu:0").unwrap();
        let environment = crate::device::environment(&device, Vec::new());
        let results =
            crate::runner::empty_results(serde_json::json!({}), Selection::default(), Plan::default(), environment);
        let out = folder.path().join("r.json");
        let keeper = Keeper::begin(&out).unwrap();
        let first = keeper.checkpoint(&results).unwrap();
        let elsewhere = folder.path().join("elsewhere.json");
        fs::write(&elsewhere, "a part").unwrap();
        keeper.take_over(&elsewhere);
        // No file takes the place of a folder.
        fs::create_dir(&out).unwrap();
        let written = keeper.finish(&results).unwrap();
        assert_eq!(written, elsewhere);
        assert!(Results::read(&written).is_ok() && !first.exists());
    }

    #[test]
    fn a_checkpoint_takes_a_name_that_no_file_has_and_no_other_run_has_claimed() {
        let folder = tempfile::tempdir().unwrap();
        let claim = || Place::Folder(folder.path().to_owned()).claim("r.checkpoint".as_ref()).unwrap();
        let [(first, target), (second, _kept)] = [claim(), claim()];
        assert!(first.ends_with("r.checkpoint.json") && second.ends_with("r.checkpoint-2.json"));
        target.write(b"first").unwrap();
        drop(target);
        assert!(claim().0.ends_with("r.checkpoint-3.json"));
        let missing = folder.path().join("missing");
        assert!(Place::Folder(missing.clone()).claim("r.checkpoint".as_ref()).is_err() && !missing.exists());
        assert_eq!(fs::read(first).unwrap(), b"first");
    }
}
