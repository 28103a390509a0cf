//! Keeps what a run measures: a piece of the checkpoint after each experiment, and the results file at the end.
//!
//! The checkpoint lies beside the results file (`results.checkpoint.json`), in the working folder where that cannot be
//! written, or among temporary files; `--resume` takes it. It goes when the results are written.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::{argument, invocation, output};
use crate::error::{FileError, at};
use crate::files::Target;
use crate::results::{LONGEST_FILE, Piece, Results};

const CHECKPOINT: &str = ".checkpoint";

/// Keeps the results of one run.
pub(super) struct Keeper {
    /// The results file.
    pub(super) out: PathBuf,
    target: Target,
    checkpoint: Checkpoint,
}

/// Where checkpoints go.
struct Checkpoint {
    /// What they are called, without the number and the ending.
    stem: OsString,
    /// The folders where they may go, the best first.
    places: Vec<PathBuf>,
    current: Option<(PathBuf, Target)>,
    /// Files of this run, which go when its results are whole elsewhere.
    written: Vec<PathBuf>,
    failed: bool,
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
        let mut keeper = Self::of(out, target);
        if is_partial {
            let (file, program) = (argument(out), invocation());
            note!(
                "{file} is of runs that did not end, and will be replaced; to go on from it: {program} run --resume {file}"
            );
        }
        let left = out.with_file_name(joined(&keeper.checkpoint.stem, ".json"));
        if left != out && left.is_file() {
            note!("an earlier run did not end; to go on from it: {} run --resume {}", invocation(), argument(&left));
        }
        keeper.checkpoint.claim(|_| Ok(())).map_err(at(&left))?;
        Ok(keeper)
    }

    /// Claims the results file of a run that goes on from `file`, and the file where it is the run's own: what it holds is
    /// to be read from now on, when no other process adds to it.
    pub(super) fn resume(file: &Path, out: &Path) -> Result<Self, FileError> {
        fs::metadata(file).map_err(at(file))?;
        if file == out {
            return Ok(Self::of(out, Target::claim_to_add(out).map_err(at(out))?));
        }
        let mut keeper = Self::of(out, Results::claim(out, |_| ())?);
        // Of other files that are gone on from, only a run's own checkpoint is replaced and, in the end, removed.
        if out_of(file) == out {
            let target = Target::claim_to_add(file).map_err(at(file))?;
            keeper.checkpoint.current = Some((file.to_owned(), target));
            keeper.checkpoint.written.push(file.to_owned());
        }
        Ok(keeper)
    }

    fn of(out: &Path, target: Target) -> Self {
        output::give_way(out);
        // A checkpoint's own are called as those of its results file.
        let own = out_of(out);
        let name = own.file_name().unwrap_or_default().as_bytes();
        let stem = joined(OsStr::from_bytes(name.strip_suffix(b".json").unwrap_or(name)), CHECKPOINT);
        let beside = matches!(target, Target::File { .. }).then(|| out.with_file_name(""));
        let places = beside.into_iter().chain([PathBuf::new(), std::env::temp_dir()]).collect();
        let checkpoint = Checkpoint { stem, places, current: None, written: Vec::new(), failed: false };
        Self { out: out.to_owned(), target, checkpoint }
    }

    /// Writes a checkpoint of all, and says where it is.
    pub(super) fn checkpoint(&mut self, results: &Results) -> anyhow::Result<PathBuf> {
        // A text, to which pieces are added, whatever the results file is.
        let written = self.checkpoint.write(&results.to_content(&self.out.with_extension("json"))?);
        written.map_err(|error| anyhow::anyhow!("what is measured can be kept nowhere: {error}"))
    }

    /// Adds a piece of the run to the checkpoint; where that cannot be done, writes all again, there or elsewhere.
    pub(super) fn add(&mut self, piece: &Piece, results: &Results) {
        // Before the first row there is nothing to keep.
        if results.rows.is_empty() {
            return;
        }
        let current = self.checkpoint.current.as_ref();
        let add = |line: String| current.is_some_and(|(_, to)| to.append(line.as_bytes(), LONGEST_FILE).is_ok());
        if piece.to_line().is_ok_and(add) {
            return;
        }
        let Ok(content) = results.to_content(&self.out.with_extension("json")) else { return };
        if let Err(error) = self.checkpoint.write(&content)
            && !std::mem::replace(&mut self.checkpoint.failed, true)
        {
            alert!("no checkpoint can be written, and the run goes on without: {error}");
        }
    }

    /// Takes the checkpoint away where it holds nothing.
    pub(super) fn give_up(&mut self) {
        self.checkpoint.remove(&self.out);
    }

    /// Writes the results file, or where that fails another, and says so. Where the results are then.
    pub(super) fn finish(&mut self, results: &Results) -> anyhow::Result<PathBuf> {
        let content = results.to_content(&self.out)?;
        let Err(error) = self.target.write(&content) else {
            self.checkpoint.remove(&self.out);
            return Ok(self.out.clone());
        };
        alert!("{}: {error}", self.out.display());
        match self.checkpoint.write(&content) {
            Ok(path) => {
                alert!("the results went to {} instead", path.display());
                self.checkpoint.remove(&path);
                Ok(path)
            }
            Err(error) => {
                let last = self.checkpoint.written.last();
                let kept = last.map_or_else(String::new, |path| format!("; a part of them is in {}", path.display()));
                Err(anyhow::anyhow!("the results could not be written anywhere: {error}{kept}"))
            }
        }
    }
}

impl Checkpoint {
    /// Claims the first place that can be claimed and passes `is_well`.
    fn claim(&mut self, is_well: impl Fn(&Target) -> io::Result<()>) -> io::Result<PathBuf> {
        let mut last = io::Error::other("no place is left");
        for folder in &self.places {
            match claim_in(folder, &self.stem).and_then(|claimed| is_well(&claimed.1).map(|()| claimed)) {
                Ok(claimed) => return Ok(self.current.insert(claimed).0.clone()),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Writes all to the place of the last checkpoint, or else to the first that can be written. Where none can, nothing is
    /// added to what is there before all is written again.
    fn write(&mut self, content: &[u8]) -> io::Result<PathBuf> {
        let path = match self.current.take().filter(|(_, target)| target.write(content).is_ok()) {
            Some(current) => self.current.insert(current).0.clone(),
            None => self.claim(|target| target.write(content))?,
        };
        if !self.written.contains(&path) {
            self.written.push(path.clone());
        }
        Ok(path)
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

/// Claims the first name in a folder that no file has: an earlier run's checkpoint is not this one's to replace.
fn claim_in(folder: &Path, stem: &OsStr) -> io::Result<(PathBuf, Target)> {
    // Only a default folder may be missing, and that of the results file was made when it was claimed.
    if !folder.as_os_str().is_empty() && !folder.is_dir() {
        return Err(io::Error::new(io::ErrorKind::NotFound, format!("there is no folder {}", folder.display())));
    }
    let numbers = std::iter::once(String::new()).chain((2..).map(|number: u32| format!("-{number}")));
    for path in numbers.map(|number| folder.join(joined(stem, &format!("{number}.json")))) {
        if let Some(target) = Target::claim_new(&path)? {
            return Ok((path, target));
        }
    }
    Err(io::Error::other("no name is left"))
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
    fn behind_a_write_that_failed_everywhere_the_next_is_of_all() {
        let outer = tempfile::tempdir().unwrap();
        let folder = outer.path().join("folder");
        fs::create_dir(&folder).unwrap();
        let mut checkpoint = Checkpoint {
            stem: "r.checkpoint".into(),
            places: vec![folder.clone()],
            current: None,
            written: Vec::new(),
            failed: false,
        };
        checkpoint.write(b"first").unwrap();
        fs::rename(&folder, outer.path().join("elsewhere")).unwrap();
        assert!(checkpoint.write(b"first, second").is_err() && checkpoint.current.is_none());
        fs::rename(outer.path().join("elsewhere"), &folder).unwrap();
        let path = checkpoint.write(b"first, second, third").unwrap();
        assert_eq!(fs::read(path).unwrap(), b"first, second, third");
        assert!(checkpoint.current.is_some());
    }

    #[test]
    fn a_checkpoint_takes_a_name_that_no_file_has_and_no_other_run_has_claimed() {
        let folder = tempfile::tempdir().unwrap();
        let claim = || claim_in(folder.path(), "r.checkpoint".as_ref()).unwrap();
        let [(first, target), (second, _kept)] = [claim(), claim()];
        assert!(first.ends_with("r.checkpoint.json") && second.ends_with("r.checkpoint-2.json"));
        target.write(b"first").unwrap();
        drop(target);
        assert!(claim().0.ends_with("r.checkpoint-3.json"));
        let missing = folder.path().join("missing");
        assert!(claim_in(&missing, "r.checkpoint".as_ref()).is_err() && !missing.exists());
        assert_eq!(fs::read(first).unwrap(), b"first");
    }
}
