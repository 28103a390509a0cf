//! Asking armed processes to record: the other side of `injected/armed`.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::format::{ARMED, ASK, HEADER, STOP, header};

/// The variable by which a process knows its folder.
pub const FOLDER: &str = "SYNCSCOPE_AUDIT_FOLDER";

/// A process that records when it is asked to.
#[derive(Clone, Debug)]
pub struct ArmedProcess {
    /// Its number.
    pub number: u32,
    folder: PathBuf,
}

impl ArmedProcess {
    /// Those of a process and of all that it started, and whether any of them was begun to be armed.
    pub fn of(number: u32) -> (Vec<Self>, bool) {
        let begun: Vec<Self> = with_children(number)
            .into_iter()
            .filter_map(|number| Some(Self { number, folder: folder_of(number)? }))
            .collect();
        let is_begun = !begun.is_empty();
        (begun.into_iter().filter(|process| process.file(ARMED).exists()).collect(), is_begun)
    }

    fn file(&self, ending: &str) -> PathBuf {
        self.folder.join(format!("{}.{ending}", self.number))
    }

    /// Asks it to record to a folder for some time.
    ///
    /// # Errors
    /// The file by which it is asked cannot be written.
    pub fn ask(&self, records: &Path, stacks: &str, length: Duration) -> io::Result<()> {
        // It is whole when it is there.
        let part = self.file("part");
        let text =
            [records.as_os_str().as_bytes(), format!("\n{stacks}\n{}\n", length.as_millis()).as_bytes()].concat();
        fs::write(&part, text)?;
        fs::rename(part, self.file(ASK))
    }

    /// Asks it to end the recording.
    ///
    /// # Errors
    /// The file by which it is asked cannot be written.
    pub fn stop(&self) -> io::Result<()> {
        fs::write(self.file(STOP), [])
    }

    /// Whether it has ended its recording to a folder, or itself.
    pub fn is_over(&self, records: &Path) -> bool {
        let recorded = records.read_dir().into_iter().flatten().flatten().map(|entry| entry.path());
        recorded.filter_map(|path| header_of(&path)).any(|head| {
            let number = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
            number(header::PROCESS) == self.number && number(header::ENDED) == 1
        }) || !Path::new("/proc").join(self.number.to_string()).exists()
    }
}

fn header_of(path: &Path) -> Option<[u8; HEADER]> {
    let mut head = [0; HEADER];
    File::open(path).ok()?.read_exact(&mut head).ok()?;
    Some(head)
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
        assert!(ArmedProcess::of(child.id()).0.is_empty());
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
