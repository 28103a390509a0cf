//! `report audit now`: records a program that runs armed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag::register;
use syncscope_audit::{self as audit, ArmedProcess, AuditReport, ProgramRecording};

use super::super::naming::invocation;
use super::super::run::{count, duration};
use super::super::{End, UsageError};
use super::{Asked, Shown, Stacks};
use crate::files::Scratch;
use crate::present::units::counted;

/// Record a program that runs armed, and say where it waits
#[derive(Args)]
pub(super) struct Arguments {
    /// The number of the process; those that it started are recorded, too
    pid: u32,
    /// For how long: 5s, 1m. With --iterations, for how long at most
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    length: Option<Duration>,
    /// Until each process has made so many iterations that are alike
    #[arg(long, value_name = "COUNT", value_parser = count::<u64>)]
    iterations: Option<u64>,
    /// Of which calls the stack is taken; else of a sample, and of all where a baseline or a budget needs the places of all
    #[arg(long, value_name = "WHICH")]
    stacks: Option<Stacks>,
    #[command(flatten)]
    shown: Shown,
}

/// For how long it is recorded where that is not stated, and at most where iterations are.
const USUAL: Duration = Duration::from_secs(5);
const LONGEST: Duration = Duration::from_secs(60);
/// How often it is looked at, and how often iterations are counted.
const LOOK: Duration = Duration::from_millis(50);
const COUNTED: Duration = Duration::from_millis(500);
/// How much longer a process may take to begin and to end its records.
const LATE: Duration = Duration::from_secs(60);

pub(super) fn now(arguments: &Arguments) -> anyhow::Result<End> {
    let asked = Asked::of(&arguments.shown, arguments.stacks, &[])?;
    let processes = armed(arguments.pid)?;
    let recording = record(arguments, &asked, &processes)?;
    asked.say(&recording, &format!("process {}", arguments.pid), true)
}

fn armed(pid: u32) -> Result<Vec<ArmedProcess>, UsageError> {
    let (processes, is_begun) = ArmedProcess::of(pid);
    match (processes.is_empty(), is_begun) {
        (false, _) => Ok(processes),
        (true, true) => Err(UsageError(format!("process {pid} is to be armed, and has not begun to use CUDA"))),
        (true, false) => Err(UsageError(format!(
            "no process {pid} of yours is armed: begin it by `{} audit --armed -- COMMAND`",
            invocation()
        ))),
    }
}

/// Has them record until the time is over, or this process is asked to end, and reads what they left.
fn record(arguments: &Arguments, asked: &Asked<'_>, processes: &[ArmedProcess]) -> anyhow::Result<ProgramRecording> {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        register(signal, Arc::clone(&interrupted)).context("cannot listen for signals")?;
    }
    let folder = Scratch::new().context("cannot make a folder for the records")?;
    let usual = if arguments.iterations.is_some() { LONGEST } else { USUAL };
    let length = arguments.length.unwrap_or(usual);
    for process in processes {
        let number = process.number;
        process
            .ask(folder.path(), &asked.stacks.name(), length)
            .with_context(|| format!("cannot ask process {number}"))?;
    }
    let begun = Instant::now();
    let (mut counted_at, mut is_stopped) = (begun, false);
    while !processes.iter().all(|process| process.is_over(folder.path())) {
        sleep(LOOK);
        if begun.elapsed() > length + LATE {
            let late = processes.iter().filter(|process| !process.is_over(folder.path())).count();
            alert!("warning: {} did not end in time what was asked", counted(late as u64, "process"));
            break;
        }
        let mut is_enough = interrupted.load(Ordering::Relaxed);
        if let Some(iterations) = arguments.iterations.filter(|_| counted_at.elapsed() >= COUNTED) {
            is_enough |= have_made(iterations, &audit::read_records(folder.path())?, asked);
            counted_at = Instant::now();
        }
        if is_enough && !is_stopped {
            is_stopped = true;
            for process in processes {
                process.stop().with_context(|| format!("cannot stop process {}", process.number))?;
            }
        }
    }
    Ok(audit::read_records(folder.path())?)
}

/// Whether all processes that use a device have made so many iterations.
fn have_made(iterations: u64, recording: &ProgramRecording, asked: &Asked<'_>) -> bool {
    let (report, _) = AuditReport::of(recording, "", asked.step());
    let made = |process: &audit::ProcessReport| process.steady.as_ref().map_or(0, |steady| steady.iterations);
    let mut using = report.processes.iter().filter(|process| !process.devices.is_empty()).peekable();
    using.peek().is_some() && using.all(|process| made(process) >= iterations)
}
