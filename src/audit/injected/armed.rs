//! Armed: the library waits, and records only for the times that `report audit now` asks for.
//!
//! Whoever asks writes what is asked into a file, and holds a lock on it for as long as that is wanted: where it was killed, there
//! is no lock any more, and the recording ends. What became of it is answered in the file by which the process says that it is
//! armed. The watcher looks for an ask ten times a second, which takes some microseconds. The files are in its own table of
//! descriptors: the program's descriptors, signals and sockets are its own. Before something is asked, CUPTI is not loaded.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::thread::sleep;
use std::time::{Duration, Instant};
use std::{env, io};

use crate::format::{ARMED, ASK, BEGUN, ENDED};

/// Set, the process is armed.
const VARIABLE: &str = "SYNCSCOPE_AUDIT_ARMED";
/// How often it is looked for whether something is asked.
const PERIOD: Duration = Duration::from_millis(100);

/// The folder in which it is asked; none where the process is not armed.
static FOLDER: OnceLock<PathBuf> = OnceLock::new();

/// What is asked.
pub(crate) struct Ask {
    /// Where the records go: another folder each time.
    pub(crate) folder: PathBuf,
    /// Of which calls stacks are taken.
    pub(crate) stacks: String,
    /// Up to when it is recorded.
    until: Instant,
}

/// All asks, one after the other.
#[derive(Default)]
pub(crate) struct Asks {
    /// The folder of the last one.
    last: PathBuf,
    /// The folder in which it is asked, held: were the program that armed this process killed, another would remove it.
    held: Option<File>,
}

/// Arms the process if that is asked for; whether it is.
pub(crate) fn begin(folder: &str) -> bool {
    env::var_os(VARIABLE).is_some() && FOLDER.set(folder.into()).is_ok() && fs::write(own(ARMED), []).is_ok()
}

fn folder() -> &'static Path {
    FOLDER.get().map_or("".as_ref(), PathBuf::as_path)
}

fn own(ending: &str) -> PathBuf {
    folder().join(format!("{}.{ending}", std::process::id()))
}

/// Whether the process is armed.
pub(crate) fn is_armed() -> bool {
    FOLDER.get().is_some()
}

impl Asks {
    /// Waits until something is asked.
    pub(crate) fn next(&mut self) -> Ask {
        loop {
            if self.held.is_none() {
                self.held = File::open(folder()).ok().filter(|folder| folder.try_lock_shared().is_ok());
            }
            if let Some(ask) = Ask::read(&own(ASK)).filter(|ask| ask.folder != self.last) {
                self.last.clone_from(&ask.folder);
                ask.answer(BEGUN);
                return ask;
            }
            sleep(PERIOD);
        }
    }
}

impl Ask {
    /// What is asked in a file; none where whoever wrote it does not hold it any more.
    fn read(file: &Path) -> Option<Self> {
        let file = File::open(file).ok()?;
        let is_held = matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
        is_held.then(|| io::read_to_string(file).ok()).flatten().and_then(|text| Self::of(&text))
    }

    /// A line each: the folder, the stacks, the milliseconds.
    fn of(text: &str) -> Option<Self> {
        let mut lines = text.strip_suffix('\n')?.lines();
        let (folder, stacks) = (lines.next()?.into(), lines.next()?.to_owned());
        let length = Duration::from_millis(lines.next()?.parse().ok()?);
        Some(Self { folder, stacks, until: Instant::now().checked_add(length)? })
    }

    /// Whether its time is over, or nobody asks for it any more.
    pub(crate) fn is_over(&self) -> bool {
        Instant::now() >= self.until || Self::read(&own(ASK)).is_none_or(|now| now.folder != self.folder)
    }

    /// Its recording has ended.
    pub(crate) fn end(&self) {
        self.answer(ENDED);
    }

    /// Says what became of it. Whoever asked also looks whether the process is there.
    fn answer(&self, what: &str) {
        let _ = fs::write(own(ARMED), format!("{}\n{what}\n", self.folder.display()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ask_is_a_folder_the_stacks_and_a_time() {
        let ask = Ask::of("/tmp/a folder\nall\n60000\n").unwrap();
        assert_eq!((ask.folder, &*ask.stacks), ("/tmp/a folder".into(), "all"));
        for text in ["", "/tmp\nall", "/tmp\nall\n600", "/tmp\nall\n-1\n", "/tmp\nall\n99999999999999999999\n"] {
            assert!(Ask::of(text).is_none(), "{text}");
        }
    }

    #[test]
    fn what_nobody_holds_is_not_asked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("1.ask");
        fs::write(&path, "/tmp\nall\n60000\n").unwrap();
        assert!(Ask::read(&path).is_none());
        let holder = File::open(&path).unwrap();
        holder.lock().unwrap();
        assert!(Ask::read(&path).is_some());
        drop(holder);
        assert!(Ask::read(&path).is_none());
    }
}
