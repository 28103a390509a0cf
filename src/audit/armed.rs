//! Asking armed processes to record: the other side of `injected/armed`.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use super::format::{ARMED, ASK, BEGUN, ENDED};

/// The variable by which a process knows its folder.
pub const FOLDER: &str = "SYNCSCOPE_AUDIT_FOLDER";

/// A process that records when it is asked to.
#[derive(Clone, Debug)]
pub struct ArmedProcess {
    /// Its number.
    pub number: u32,
    folder: PathBuf,
}

/// A recording that was asked for. It also ends when this is dropped, and when this process ends, however.
#[derive(Debug)]
pub struct AskedRecording {
    /// The process.
    pub process: ArmedProcess,
    records: PathBuf,
    /// Locked: the process sees by that that somebody asks.
    ask: Option<File>,
}

/// What became of a recording that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The process has not begun it.
    None,
    /// It records.
    Recording,
    /// It has ended the recording, or itself.
    Ended,
}

impl ArmedProcess {
    /// Those of a process and of all that it started.
    ///
    /// # Errors
    /// Why none is armed, in words.
    pub fn of(number: u32) -> Result<Vec<Self>, &'static str> {
        let begun: Vec<Self> = with_children(number)
            .into_iter()
            .filter_map(|number| Some(Self { number, folder: folder_of(number)? }))
            .collect();
        let (is_begun, is_left) = (!begun.is_empty(), begun.iter().all(|process| !process.folder.exists()));
        let armed: Vec<Self> = begun.into_iter().filter(|process| process.file(ARMED).exists()).collect();
        match (armed.is_empty(), is_begun, is_left) {
            (false, ..) => Ok(armed),
            (true, false, _) if !Path::new("/proc").join(number.to_string()).exists() => Err("does not exist"),
            (true, false, _) => Err("is not armed, and neither is any that it started"),
            (true, true, true) => Err("was begun by an audit that has ended, and cannot be asked any more"),
            (true, true, false) => Err("is to be armed, and has not begun to use CUDA"),
        }
    }

    fn file(&self, ending: &str) -> PathBuf {
        self.folder.join(format!("{}.{ending}", self.number))
    }

    /// Asks it to record to a folder for some time.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] where another program asks; else the file by which it is asked cannot be written.
    pub fn ask(self, records: &Path, stacks: &str, length: Duration) -> io::Result<AskedRecording> {
        /// The process itself tries the lock for a moment.
        const TRIES: u32 = 20;
        let mut ask = File::options().write(true).create(true).truncate(false).open(self.file(ASK))?;
        let mut tries = 1;
        while let Err(error) = ask.try_lock() {
            if tries == TRIES || matches!(error, TryLockError::Error(_)) {
                return Err(error.into());
            }
            tries += 1;
            sleep(Duration::from_millis(10));
        }
        let text =
            [records.as_os_str().as_bytes(), format!("\n{stacks}\n{}\n", length.as_millis()).as_bytes()].concat();
        ask.set_len(0)?;
        ask.write_all(&text)?;
        Ok(AskedRecording { process: self, records: records.to_owned(), ask: Some(ask) })
    }
}

impl AskedRecording {
    /// Ends it.
    pub fn stop(&mut self) {
        self.ask = None;
    }

    /// What became of it.
    pub fn answer(&self) -> Answer {
        let text = fs::read_to_string(self.process.file(ARMED)).unwrap_or_default();
        let is_there = Path::new("/proc").join(self.process.number.to_string()).exists();
        match text.strip_prefix(&*self.records.to_string_lossy()).map(str::trim) {
            _ if !is_there => Answer::Ended,
            Some(ENDED) => Answer::Ended,
            Some(BEGUN) => Answer::Recording,
            _ => Answer::None,
        }
    }
}

/// A process and all that it started, and those started in turn.
fn with_children(number: u32) -> Vec<u32> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for process in numbers {
        if let Some(parent) = parent_of(process) {
            children.entry(parent).or_default().push(process);
        }
    }
    let (mut all, mut known) = (vec![number], HashSet::from([number]));
    let mut next = 0;
    while let Some(parent) = all.get(next) {
        let more = children.remove(parent).unwrap_or_default();
        all.extend(more.into_iter().filter(|child| known.insert(*child)));
        next += 1;
    }
    all.sort_unstable();
    all
}

/// The fourth field of its line; the second is a name in parentheses, which may hold anything.
fn parent_of(process: u32) -> Option<u32> {
    let line = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    line.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// The folder that a process was begun with.
fn folder_of(process: u32) -> Option<PathBuf> {
    let environment = fs::read(format!("/proc/{process}/environ")).ok()?;
    let begin = [FOLDER.as_bytes(), b"="].concat();
    let value = environment.split(|byte| *byte == 0).find_map(|variable| variable.strip_prefix(&*begin))?;
    Some(PathBuf::from(std::ffi::OsStr::from_bytes(value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_and_what_it_started_are_found_and_none_is_armed_by_itself() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let found = with_children(std::process::id());
        assert!(found.contains(&std::process::id()) && found.contains(&child.id()), "{found:?}");
        let not_armed = "is not armed, and neither is any that it started";
        assert_eq!(ArmedProcess::of(child.id()).unwrap_err(), not_armed);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(ArmedProcess::of(child.id()).unwrap_err(), "does not exist");
    }
}
