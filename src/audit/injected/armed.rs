//! Armed: the library waits, and records only for the times that `report audit now` asks for.
//!
//! Whoever asks leaves a file beside that by which the process says that it is armed. The watcher looks for it ten times a second,
//! which takes some microseconds: the program's descriptors, signals and sockets are its own. Before it is asked, CUPTI is
//! not loaded.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::thread::sleep;
use std::time::{Duration, Instant};
use std::{env, fs};

use crate::format::{ARMED, ASK, STOP};

/// Set, the process is armed.
const VARIABLE: &str = "SYNCSCOPE_AUDIT_ARMED";
/// How often it is looked for whether something is asked.
const PERIOD: Duration = Duration::from_millis(100);

/// The folder in which it is asked, by files that are named after the process; none where it is not armed.
static FOLDER: OnceLock<PathBuf> = OnceLock::new();

/// What is asked.
pub(crate) struct Ask {
    /// Where the records go.
    pub(crate) folder: PathBuf,
    /// Of which calls stacks are taken.
    pub(crate) stacks: String,
    /// Up to when it is recorded.
    until: Instant,
}

/// Arms the process if that is asked for; whether it is.
pub(crate) fn begin(folder: &str) -> bool {
    env::var_os(VARIABLE).is_some() && FOLDER.set(folder.into()).is_ok() && fs::write(own(ARMED), []).is_ok()
}

fn own(ending: &str) -> PathBuf {
    let folder = FOLDER.get().map(PathBuf::as_path).unwrap_or("".as_ref());
    folder.join(format!("{}.{ending}", std::process::id()))
}

/// Whether the process is armed.
pub(crate) fn is_armed() -> bool {
    FOLDER.get().is_some()
}

/// Waits until something is asked.
pub(crate) fn wait() -> Ask {
    loop {
        if let Ok(text) = fs::read_to_string(own(ASK)) {
            // What was asked to stop before is over.
            [ASK, STOP].iter().for_each(|ending| _ = fs::remove_file(own(ending)));
            if let Some(ask) = Ask::of(&text) {
                return ask;
            }
        }
        sleep(PERIOD);
    }
}

impl Ask {
    /// A line each: the folder, the stacks, the milliseconds.
    fn of(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let (folder, stacks) = (lines.next()?.into(), lines.next()?.to_owned());
        let length = Duration::from_millis(lines.next()?.parse().ok()?);
        Some(Self { folder, stacks, until: Instant::now().checked_add(length)? })
    }

    /// Whether its time is over, or it was told to stop.
    pub(crate) fn is_over(&self) -> bool {
        Instant::now() >= self.until || fs::exists(own(STOP)).unwrap_or(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ask_is_a_folder_the_stacks_and_a_time() {
        let ask = Ask::of("/tmp/a folder\nall\n60000\n").unwrap();
        assert_eq!((ask.folder, &*ask.stacks), ("/tmp/a folder".into(), "all"));
        for text in ["", "/tmp\nall", "/tmp\nall\n-1", "/tmp\nall\n99999999999999999999"] {
            assert!(Ask::of(text).is_none(), "{text}");
        }
    }
}
