//! `report audit now`: records a program that runs armed.

use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag::register;
use syncscope_audit::{self as audit, Answer, ArmedProcess, AskedRecording, AuditReport, ProgramRecording};

use super::super::naming::invocation;
use super::super::run::{count, duration};
use super::super::{End, UsageError};
use super::{Asked, Shown, Stacks};
use crate::files::Scratch;

/// Record a program that runs armed, and say where it waits
#[derive(Args)]
#[command(after_help = "\
The recording ends before its time by Ctrl-C, and what was recorded is said.

Exit codes: 0, 1 where a budget or a baseline does not hold, 2 where no such process is armed, or another program records it now.

Examples:
  report audit now 4711 --for 10s
  report audit now 4711 --iterations 20 --stacks all --html audit.html")]
pub(super) struct Arguments {
    /// The number of the process; those that it started are recorded, too
    #[arg(value_parser = process, allow_negative_numbers = true)]
    pid: u32,
    /// For how long: 5s, 1m. With --iterations, for how long at most
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    length: Option<Duration>,
    /// Record this many iterations of each process; where none are found, 15 s
    #[arg(long, value_name = "COUNT", value_parser = count::<u64>)]
    iterations: Option<u64>,
    /// Which calls have their stack looked up; else a sample, or all where a baseline or a budget names lines
    #[arg(long, value_name = "WHICH")]
    stacks: Option<Stacks>,
    #[command(flatten)]
    shown: Shown,
}

/// The number of a process: 0 is none, and all others were started by 1.
fn process(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(0) => Err("no program has the number 0".to_owned()),
        Ok(1) => Err("1 is the system's first process, which started all others: state that of the program".to_owned()),
        Ok(number) => Ok(number),
        Err(_) => Err("expected the number of a process, such as 4711".to_owned()),
    }
}

/// For how long it is recorded where that is not stated; at most, where iterations are; and where none are found meanwhile.
const USUAL: Duration = Duration::from_secs(5);
const LONGEST: Duration = Duration::from_secs(60);
const WITHOUT: Duration = Duration::from_secs(15);
/// How often it is looked at, and how often iterations are counted, which takes at most one part in so many of the time.
const LOOK: Duration = Duration::from_millis(50);
const COUNTED: Duration = Duration::from_millis(500);
const COUNTING_SHARE: u32 = 10;
/// How long a process may take to answer, and to end its records.
const ANSWERED: Duration = Duration::from_secs(10);
const LATE: Duration = Duration::from_secs(60);
/// What is not answered in this time after an interrupt will not be recorded.
const INTERRUPTED: Duration = Duration::from_secs(1);

pub(super) fn now(arguments: &Arguments) -> anyhow::Result<End> {
    let asked = Asked::of(&arguments.shown, arguments.stacks, &[])?;
    let processes = armed(arguments.pid)?;
    let recording = record(arguments, &asked, processes)?;
    asked.say(&recording, &format!("process {}", arguments.pid), true)
}

fn armed(pid: u32) -> Result<Vec<ArmedProcess>, UsageError> {
    ArmedProcess::of(pid).map_err(|why| {
        UsageError(format!("process {pid} {why}: `{} audit --armed -- COMMAND` begins one that is", invocation()))
    })
}

/// Has them record until the time is over, or this process is asked to end, and reads what they left.
fn record(arguments: &Arguments, asked: &Asked<'_>, processes: Vec<ArmedProcess>) -> anyhow::Result<ProgramRecording> {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        register(signal, Arc::clone(&interrupted)).context("cannot listen for signals")?;
    }
    let folder = Scratch::new().context("cannot make a folder for the records")?;
    let usual = if arguments.iterations.is_some() { LONGEST } else { USUAL };
    let length = arguments.length.unwrap_or(usual);
    let mut recordings = Vec::new();
    for process in processes {
        let number = process.number;
        recordings.push(process.ask(folder.path(), &asked.stacks.name(), length).map_err(
            |error| match error.kind() {
                ErrorKind::WouldBlock => UsageError(format!("another program records process {number} now")).into(),
                _ => anyhow::Error::from(error).context(format!("cannot ask process {number}")),
            },
        )?);
    }
    let begun = Instant::now();
    let mut count_at = begun + COUNTED;
    // Since when nobody wants them to go on.
    let mut enough: Option<Instant> = None;
    while recordings.iter().any(|one| is_awaited(one, begun, enough)) {
        sleep(LOOK);
        let mut is_enough = interrupted.load(Ordering::Relaxed) || begun.elapsed() > length + ANSWERED;
        if let Some(iterations) = arguments.iterations.filter(|_| Instant::now() >= count_at) {
            let counting = Instant::now();
            let made = made(&audit::read_records(folder.path())?, asked);
            let is_in_vain = made == 0 && arguments.length.is_none() && begun.elapsed() > WITHOUT;
            is_enough |= made >= iterations || is_in_vain;
            // The programs run beside it.
            count_at = Instant::now() + COUNTED.max(COUNTING_SHARE * counting.elapsed());
        }
        if is_enough && enough.is_none() {
            enough = Some(Instant::now());
            recordings.iter_mut().for_each(AskedRecording::stop);
        }
    }
    let recorded = audit::read_records(folder.path())?;
    for one in &recordings {
        let number = one.process.number;
        match one.answer() {
            Answer::Ended if recorded.holds(number) => {}
            Answer::Ended => {
                alert!("warning: process {number} left no records: it ended, is of another user, or the disk is full");
            }
            _ => alert!("warning: process {number} did not answer: it is stopped, or runs another program now"),
        }
    }
    if let Some(iterations) = arguments.iterations {
        let found = match made(&recorded, asked) {
            0 => Some("no iterations were found".to_owned()),
            made => (made < iterations).then(|| format!("{made} of {iterations} iterations were made")),
        };
        if let Some(found) = found {
            let advice = "record for longer (`--for`), or state what an iteration is (`--step`)";
            alert!("warning: {found} in {:.1?}: {advice}", begun.elapsed());
        }
    }
    Ok(recorded)
}

/// Whether there is more to come of a recording.
fn is_awaited(recording: &AskedRecording, begun: Instant, enough: Option<Instant>) -> bool {
    match recording.answer() {
        Answer::Ended => false,
        Answer::Recording => enough.is_none_or(|since| since.elapsed() < LATE),
        Answer::None => begun.elapsed() < ANSWERED && enough.is_none_or(|since| since.elapsed() < INTERRUPTED),
    }
}

/// How many iterations each process that uses a device has made, at least.
fn made(recording: &ProgramRecording, asked: &Asked<'_>) -> u64 {
    let (report, _) = AuditReport::of(recording, "", asked.step());
    let using = report.processes.iter().filter(|process| !process.devices.is_empty());
    using.map(|process| process.steady.as_ref().map_or(0, |steady| steady.iterations)).min().unwrap_or(0)
}
