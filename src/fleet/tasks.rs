//! The folder of a job of many tasks: which of them left no results, and why.
//!
//! ```text
//! job/fleet.yaml       how many tasks there are
//!     fleet.sh         what a scheduler runs
//!     task-3.json      the results of a task, whole
//!     task-3.log       what it said
//!     task-3.exit      the exit code of one that left no results
//!     .tasks/          what tasks that have not ended keep
//! ```

use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::FileError;
use crate::files::{is_missing, open_plain, text_of, unpacked};
use crate::yaml;

/// The file that says how many tasks there are.
pub const PLAN: &str = "fleet.yaml";
/// The file that a scheduler runs.
pub const SCRIPT: &str = "fleet.sh";
/// The most tasks of a job. Slurm's own limit on arrays is lower at most sites.
pub const MAX_TASKS: u32 = 100_000;

/// A job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct JobPlan {
    /// How many tasks there are: 0, 1, and so on.
    pub tasks: u32,
}

/// A task that left no results.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MissingTask {
    /// The folder of the job.
    pub folder: PathBuf,
    /// Its number.
    pub task: u32,
    reason: String,
}

impl std::fmt::Display for MissingTask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: task {}: {}", self.folder.display(), self.task, self.reason)
    }
}

/// The tasks of the job in `folder` that left no results, with the reason; none where there is no job.
///
/// # Errors
/// What says how many tasks there are cannot be read.
pub fn missing(folder: &Path) -> Result<Vec<MissingTask>, FileError> {
    let file = folder.join(PLAN);
    if is_missing(&file) {
        return Ok(Vec::new());
    }
    let JobPlan { tasks } = yaml::parse_as_json(&yaml::read(&file)?, &file.display().to_string())?;
    if tasks > MAX_TASKS {
        let message = format!("{tasks} tasks: a job has at most {MAX_TASKS}");
        return Err(FileError::whole(file.display().to_string(), message));
    }
    let missing = (0..tasks).filter(|task| is_missing(&folder.join(format!("task-{task}.json"))));
    Ok(missing.map(|task| MissingTask { folder: folder.to_owned(), task, reason: reason(folder, task) }).collect())
}

/// Why a task left no results, as far as its files say.
fn reason(folder: &Path, task: u32) -> String {
    const LONGEST_CODE: usize = 16;
    let exit = folder.join(format!("task-{task}.exit"));
    let code =
        open_plain(&exit).and_then(|file| text_of(unpacked(BufReader::new(file), LONGEST_CODE)?)).unwrap_or_default();
    let log = folder.join(format!("task-{task}.log"));
    let how = match code.trim() {
        "" if open_plain(&log).is_err() => return format!("it did not start: there is no {}", log.display()),
        // A full disk takes no exit code.
        "" => "no exit code: it runs, was killed, or the disk was full".to_owned(),
        code => format!("exit code {code}"),
    };
    match last_line(&log) {
        Some(line) => format!("{how}; the last line of {}: {line}", log.display()),
        None => format!("{how}; {} is empty", log.display()),
    }
}

/// The last line of a file that is not empty, as far as it is short.
fn last_line(file: &Path) -> Option<String> {
    const TAIL: u64 = 4096;
    const LONGEST: usize = 300;
    let mut log = open_plain(file).ok()?;
    let length = log.metadata().ok()?.len();
    log.seek(SeekFrom::Start(length.saturating_sub(TAIL))).ok()?;
    let mut bytes = Vec::new();
    log.take(TAIL).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.chars().take(LONGEST).collect())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_task_without_results_is_named_with_its_exit_code_and_its_last_line() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        assert_eq!(missing(folder.path()).unwrap(), []);
        write(PLAN, "tasks: 5\n");
        write("task-0.json", "{}");
        write("task-1.log", "run 1 of 3\nerror: no GPU\n\n");
        write("task-1.exit", "1\n");
        write("task-2.log", "");
        write("task-3.log", "slurmstepd: error: *** JOB 7 CANCELLED ***");
        let said: Vec<String> = missing(folder.path()).unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(said.len(), 4, "{said:?}");
        for (said, parts) in said.iter().zip([
            ["task 1: exit code 1; the last line of ", "task-1.log: error: no GPU"],
            ["task 2: no exit code", "is empty"],
            ["task 3: no exit code", "JOB 7 CANCELLED"],
            ["task 4: it did not start", "task-4.log"],
        ]) {
            assert!(parts.iter().all(|part| said.contains(part)), "{said}");
        }
    }

    #[test]
    #[cfg(unix)]
    fn a_pipe_among_the_files_of_a_job_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(PLAN), "tasks: 1\n").unwrap();
        for name in ["task-0.exit", "task-0.log"] {
            assert!(std::process::Command::new("mkfifo").arg(folder.path().join(name)).status().unwrap().success());
        }
        assert_eq!(missing(folder.path()).unwrap().len(), 1);
    }

    #[test]
    #[cfg(unix)]
    fn a_link_among_the_files_of_a_job_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("job")).unwrap();
        fs::write(at("secret"), "secret").unwrap();
        fs::write(at("job").join(PLAN), "tasks: 1\n").unwrap();
        for name in ["task-0.exit", "task-0.log"] {
            std::os::unix::fs::symlink(at("secret"), at("job").join(name)).unwrap();
        }
        let [MissingTask { reason, .. }] = missing(&at("job")).unwrap().try_into().unwrap();
        assert!(!reason.contains("secret"), "{reason}");
    }

    #[test]
    fn a_log_of_any_bytes_is_read_at_its_end_only() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        fs::write(&log, [vec![0xff; 100_000], b"\nthe end".to_vec()].concat()).unwrap();
        assert_eq!(last_line(&log).as_deref(), Some("the end"));
        fs::write(&log, vec![b'x'; 100_000]).unwrap();
        assert_eq!(last_line(&log).map(|line| line.len()), Some(300));
        assert_eq!(last_line(folder.path()), None);
    }

    #[test]
    fn a_wrong_number_of_tasks_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        for wrong in ["tasks: 4000000000\n", "tasks: -1\n", "tasks: 1\nmore: 2\n", "["] {
            fs::write(folder.path().join(PLAN), wrong).unwrap();
            assert!(missing(folder.path()).is_err(), "{wrong}");
        }
    }
}
