//! Measures the runs of a results file, each in a process of its own, so that none inherits the state of another and one
//! that crashes costs its own rows alone.
//!
//! Each reads the run's checkpoint, and sends what it measures as it goes, which is added to it here.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::Display;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;

use super::interrupt::Forward;
use super::keep::Keeper;
use super::peer::OtherSystem;
use super::run::Limits;
use super::terminal::OutputOptions;
use super::{AlreadyReported, AppContext, End, argument, invocation, program, told};
use crate::book::{Warning, WarningSubject};
use crate::error::{FileError, explained};
use crate::results::{Environment, LONGEST_FILE, Outcome, Piece, Results, grouped, without_folders};

/// What is said where no further run is kept.
const TOO_LONG: &str =
    "longer than what is read of a file; those that are there are kept. Fewer samples or rows leave room";

/// What a run left, and where it is: the file that was asked for, if that could be written.
pub(super) struct FinishedRuns {
    pub(super) results: Results,
    pub(super) file: PathBuf,
    is_elsewhere: bool,
    /// Whether an error ended the runs, or another system could not be measured.
    is_failed: bool,
    /// Whether no further run fits into the file.
    is_full: bool,
}

/// Where a run on a device is made: asked of a process of its own, so that this one never holds the device beside those
/// that measure.
pub(super) fn describe(device: &str, limits: &Limits) -> anyhow::Result<Environment> {
    let mut command = measuring(own_program()?, limits);
    let output = command
        .args(["next-run", "--device", device])
        .args(OutputOptions::handed_on())
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output();
    let output = output.context("cannot start a process to look at the device")?;
    anyhow::ensure!(output.status.code().is_some(), "looking at the device: {}", how_it_ended(output.status));
    if !output.status.success() {
        let end = if output.status.code() == Some(End::Refused as i32) { End::Refused } else { End::Failed };
        return Err(AlreadyReported(end).into());
    }
    let mut environment: Environment = serde_json::from_slice(&output.stdout).context("what it says of the device")?;
    environment.program.command = without_folders(command_line());
    Ok(environment)
}

/// The command as the user gave it, the program by its own name.
pub(super) fn command_line() -> Vec<String> {
    let arguments = std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned());
    std::iter::once(program()).chain(arguments).collect()
}

/// The variables that turn NVLink multicast between GPUs off: NCCL's, PyTorch's symmetric memory, NVSHMEM's. It can disturb a
/// host that others share, so it takes a word of the user's.
pub(super) const WITHOUT_MULTICAST: [(&str, &str); 3] =
    [("NCCL_NVLS_ENABLE", "0"), ("TORCH_SYMM_MEM_DISABLE_MULTICAST", "1"), ("NVSHMEM_DISABLE_NVLS", "1")];

/// A program that measures, with as many queues of a GPU as there are, unless the user says otherwise: where streams share
/// one, a gate that holds a stream can hold another, and a call seems to wait that does not.
pub(super) fn measuring(program: impl AsRef<OsStr>, limits: &Limits) -> Command {
    let mut command = Command::new(program);
    if !limits.allow_multicast {
        command.envs(WITHOUT_MULTICAST);
    }
    if std::env::var_os("CUDA_DEVICE_MAX_CONNECTIONS").is_none() {
        command.env("CUDA_DEVICE_MAX_CONNECTIONS", "32");
    }
    command
}

pub(super) fn own_program() -> anyhow::Result<PathBuf> {
    std::env::current_exe().context("cannot find this program")
}

/// Measures what `results` lack, by turns with other systems where there are any, and has `keeper` write the results file, also where an error ends the runs before their end.
pub(super) fn measure(
    results: Results,
    keeper: &mut Keeper,
    peers: &[OtherSystem],
    limits: &Limits,
    carried: &AppContext,
) -> anyhow::Result<FinishedRuns> {
    let forward = Forward::listen()?;
    let file = keeper.checkpoint(&results)?;
    let mut runs = Runs { results, file, keeper, peers, lacks_peer: false, is_full: false, limits, carried, forward };
    let ended = runs.measure();
    let Runs { results, keeper, forward, lacks_peer, is_full, .. } = runs;
    if results.rows.is_empty() {
        keeper.give_up();
        if forward.is_interrupted() {
            alert!("nothing was measured, and no file is kept");
            return Err(AlreadyReported(End::Interrupted).into());
        }
        ended?;
        anyhow::bail!("nothing was measured");
    }
    if let Err(error) = &ended {
        alert!("error: {}", told(error));
    }
    let is_failed = (ended.is_err() || lacks_peer) && !forward.is_interrupted();
    Ok(FinishedRuns { is_failed, is_full, ..finish(results, keeper)? })
}

/// The runs of a results file, as they are measured one after the other.
struct Runs<'a> {
    /// What is measured so far.
    results: Results,
    /// Where the process of the next run reads it.
    file: PathBuf,
    keeper: &'a mut Keeper,
    /// The other systems that are measured by turns.
    peers: &'a [OtherSystem],
    /// Whether one could not be measured.
    lacks_peer: bool,
    is_full: bool,
    limits: &'a Limits,
    carried: &'a AppContext,
    forward: Forward,
}

impl Runs<'_> {
    /// Measures them until all are there, an interrupt, the end of the budget, or an error that the next one would meet, too.
    fn measure(&mut self) -> anyhow::Result<()> {
        let begun = Instant::now();
        // How long the longest run of each system took.
        let mut longest: BTreeMap<String, Duration> = BTreeMap::new();
        while self.results.is_partial() && !self.forward.is_interrupted() {
            let system = next_system(&self.results);
            if self.limits.budget.is_some_and(|budget| begun.elapsed() + expected(&longest, &system) > budget) {
                alert!("the budget leaves no time for another run of {system}");
                break;
            }
            if !self.has_room()? {
                alert!("another run of {system} would make the results {TOO_LONG}");
                self.is_full = true;
                break;
            }
            let start = Instant::now();
            self.next(&system)?;
            self.file = match self.keeper.checkpoint(&self.results) {
                Err(error) if error.is::<FileError>() => {
                    alert!("the run of {system} is not kept: it would make the results {TOO_LONG}");
                    let last = self.results.runs_of(&system).last().map(|run| run.id.clone());
                    self.results.remove(last.as_slice());
                    self.is_full = true;
                    break;
                }
                file => file?,
            };
            let longest = longest.entry(system).or_default();
            *longest = start.elapsed().max(*longest);
        }
        Ok(())
    }

    /// Whether a further run fits into the results file, if it leaves as much as those that are there.
    fn has_room(&self) -> anyhow::Result<bool> {
        let there = if self.results.rows.is_empty() { 0 } else { fs::metadata(&self.file)?.len() as usize };
        Ok(there + there / self.results.runs.len().max(1) <= LONGEST_FILE)
    }

    /// Measures the next one, of this system.
    fn next(&mut self, system: &str) -> anyhow::Result<()> {
        let number = over(&self.results, system) + 1;
        note!("run {number} of {}: {system}", self.results.plan.runs);
        let Some(peer) = self.peers.iter().find(|peer| peer.name() == system) else { return self.next_own(number) };
        match peer.measure(self.limits, &self.results, number, &self.forward, self.carried) {
            Ok(measured) => self.results.add_run(measured),
            // It may be whole when the runs go on.
            Err(_) if self.forward.is_interrupted() => {}
            Err(reason) => {
                alert!("{system} is not measured: {}", explained(&reason));
                self.results.plan.with.retain(|with| with != system);
                self.lacks_peer = true;
            }
        }
        Ok(())
    }

    /// Measures the next run of this program, the `number`th, in a process of its own.
    fn next_own(&mut self, number: usize) -> anyhow::Result<()> {
        let before = finished(&self.results);
        let (results, keeper) = (&mut self.results, &mut *self.keeper);
        let mut whole: Option<String> = None;
        let unread = |error: &dyn Display| alert!("a part of what run {number} left cannot be read: {error}");
        let status = self.forward.attend(own_process(&self.file, self.limits)?, |line| match &mut whole {
            Some(whole) => whole.extend([line, "\n"]),
            None if line.is_empty() => whole = Some(String::new()),
            None => match Piece::of_line(line) {
                Ok(piece) => {
                    results.add(piece.clone());
                    keeper.add(&piece, results);
                }
                Err(error) => unread(&error),
            },
        })?;
        match whole.map(|text| Results::parse(&text, &self.file)) {
            Some(Ok(whole)) => self.results = whole,
            Some(Err(error)) => unread(&error),
            None => {}
        }
        if self.forward.is_interrupted() {
            return Ok(());
        }
        let how = how_it_ended(status);
        // Its device was lost: the rows by which that happened have failed, and the next process goes on with the others.
        if status.success() && finished(&self.results) > before && self.results.runs.iter().any(|run| !run.is_over()) {
            alert!("run {number}: the device was lost; another process goes on with the rows that are left");
            return Ok(());
        }
        // Of one that was killed no row may be left that could say it.
        if self.results.end_open_run(&how) {
            alert!("run {number}: {how}; what it had not measured by then is missing");
        }
        // An error that a process could tell is the next one's, too.
        let is_told = self.results.rows.is_empty() && status.code().is_some_and(|code| code != 0);
        anyhow::ensure!(!is_told, AlreadyReported(End::Failed));
        let is_measured = over(&self.results, self.results.run().system.as_str()) >= number;
        anyhow::ensure!(is_measured, "run {number} did not begin: {how}");
        Ok(())
    }
}

/// Has `keeper` write the results file, and says what is to be known of the results.
pub(super) fn finish(results: Results, keeper: &mut Keeper) -> anyhow::Result<FinishedRuns> {
    let file = keeper.finish(&results)?;
    for warning in Warning::of(&results).iter().filter(|warning| warning.about == WarningSubject::Sharing) {
        alert!("{warning}");
    }
    Ok(FinishedRuns { is_elsewhere: file != keeper.out, is_failed: false, is_full: false, results, file })
}

/// How long the next run of a system may take: as long as its longest, and as long as that of any while it had none.
fn expected(longest: &BTreeMap<String, Duration>, system: &str) -> Duration {
    longest.get(system).or_else(|| longest.values().max()).copied().unwrap_or_default()
}

/// The system whose turn it is: of those with the fewest runs the first.
fn next_system(results: &Results) -> String {
    let own = results.run().system.as_str();
    let all = std::iter::once(own).chain(results.plan.with.iter().map(String::as_str));
    all.min_by_key(|system| over(results, system)).unwrap_or(own).to_owned()
}

/// How many runs of a system are over.
fn over(results: &Results, system: &str) -> usize {
    results.runs_of(system).filter(|run| run.is_over()).count()
}

/// How many rows are measured, or known to fail, in all runs together.
fn finished(results: &Results) -> usize {
    results.rows.iter().flat_map(|row| &row.series).filter(|series| series.outcome.is_finished()).count()
}

/// Begins a process of this program that measures the next run of `file`, and sends what it left.
fn own_process(file: &Path, limits: &Limits) -> anyhow::Result<Child> {
    let mut command = measuring(own_program()?, limits);
    command.arg("next-run").args(OutputOptions::handed_on()).arg("--").arg(file);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    // Its own group: a signal of the terminal reaches it through this process alone, once.
    command.process_group(0).spawn().context("cannot start a process for the run")
}

fn how_it_ended(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match status.signal() {
        Some(signal) => format!("its process was ended by signal {signal}"),
        None => format!("its process ended with the exit code {}", status.code().unwrap_or_default()),
    }
}

impl FinishedRuns {
    /// How the runs ended; where some are missing with the command that goes on.
    pub(super) fn end(&self) -> End {
        say_failures(&self.results);
        if self.results.is_partial() && !self.is_full {
            alert!("not all was measured; to go on: {} run --resume {}", invocation(), argument(&self.file));
            return if self.is_failed { End::Failed } else { End::Interrupted };
        }
        if self.is_failed || self.is_full || self.results.has_failures() || self.is_elsewhere {
            End::Failed
        } else {
            End::Well
        }
    }
}

/// Says which experiments and rows failed and why, each reason once.
pub(super) fn say_failures(results: &Results) {
    const MAX: usize = 10;
    let order = results.runs.iter().flat_map(|run| &run.order);
    let experiments = order.filter_map(|left| Some((left.failure.as_deref()?, left.name.clone())));
    let rows = results.rows.iter().flat_map(|row| row.series.iter().map(move |series| (row, &series.outcome)));
    let rows = rows.filter_map(|(row, outcome)| match outcome {
        Outcome::Failed { reason } => Some((reason.as_str(), row.spec.title())),
        _ => None,
    });
    let reasons = grouped(experiments.chain(rows));
    for (reason, names) in reasons.iter().take(MAX) {
        let more = if names.len() == 1 { String::new() } else { format!(" and {} more", names.len() - 1) };
        alert!("{}{more} failed: {reason}", names[0]);
    }
    if reasons.len() > MAX {
        alert!("{} further reasons are in the results file", reasons.len() - MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the environment of a process says of a variable.
    fn set(command: &Command, name: &str) -> Option<String> {
        let (_, value) = command.get_envs().find(|(own, _)| *own == name)?;
        Some(value?.to_string_lossy().into_owned())
    }

    #[test]
    fn a_run_is_expected_to_take_as_long_as_the_longest_of_its_system() {
        let seconds = Duration::from_secs;
        assert_eq!(expected(&BTreeMap::new(), "own"), Duration::ZERO);
        let longest = [("own", 170), ("other", 25)].map(|(system, length)| (system.to_owned(), seconds(length)));
        let found = ["own", "other", "third"].map(|system| expected(&longest.clone().into(), system));
        assert_eq!(found, [170, 25, 170].map(seconds));
    }

    #[test]
    fn a_process_that_measures_may_use_multicast_only_where_the_user_allows_it() {
        let limits = |allow_multicast| Limits { budget: None, python: PathBuf::new(), allow_multicast };
        let (off, allowed) = (measuring("report", &limits(false)), measuring("report", &limits(true)));
        for (name, value) in
            [("NCCL_NVLS_ENABLE", "0"), ("TORCH_SYMM_MEM_DISABLE_MULTICAST", "1"), ("NVSHMEM_DISABLE_NVLS", "1")]
        {
            assert_eq!(set(&off, name).as_deref(), Some(value));
            assert_eq!(set(&allowed, name), None);
        }
    }
}
