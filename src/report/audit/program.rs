//! A program that is run to be audited: its signals and its end are its own.
//!
//! A signal that a process sends to this one is passed on. The terminal sends Ctrl-C and Ctrl-\ to the program itself, which
//! shares its group of processes with this one, and they are not passed twice. What a signal does to the program is the
//! program's business; this one goes on until the program has ended, and then ends as it did.
//!
//! # Limits
//! Real-time signals, and those of a fault, end this process as they would any. A signal that a process sends to the whole
//! group reaches the program twice. As `std` begins processes, no signal is blocked in the program, and a closed pipe ends it.

use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use rustix::fs::{StatVfsMountFlags, statvfs};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use signal_hook::consts::{
    SIGABRT, SIGALRM, SIGHUP, SIGINT, SIGIO, SIGPIPE, SIGPROF, SIGQUIT, SIGSYS, SIGTERM, SIGTRAP, SIGUSR1, SIGUSR2,
    SIGVTALRM, SIGXCPU, SIGXFSZ,
};
use signal_hook::flag::register_conditional_default;
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithRawSiginfo;
use signal_hook::low_level::emulate_default_handler;

use super::super::UsageError;
use super::super::interrupt::{THREAD, is_ignored};
use super::super::naming::invocation;
use crate::files::Scratch;
use syncscope_audit::{self as audit, FOLDER, LIBRARY, ProgramRecording};

/// The signals that end a process which does not listen for them, but for faults.
const ENDING: [i32; 16] = [
    SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGIO, SIGXCPU, SIGXFSZ, SIGPIPE,
    SIGABRT, SIGTRAP, SIGSYS,
];
/// The same, of Linux alone: the fault of a coprocessor, and of the power.
#[cfg(target_os = "linux")]
const OF_LINUX: [i32; 2] = [Signal::STKFLT.as_raw(), Signal::POWER.as_raw()];
#[cfg(not(target_os = "linux"))]
const OF_LINUX: [i32; 0] = [];

/// Runs a command with the library in it, and reads what it left.
pub(super) fn run(command: &[OsString], stacks: &str) -> anyhow::Result<(ProgramRecording, ExitStatus)> {
    let (folder, mut command) = prepared(command)?;
    command.env("SYNCSCOPE_AUDIT_STACKS", stacks);
    let status = attend(command, |_| ())?;
    let recording = audit::read_records(folder.path())?;
    Ok((recording, status))
}

/// Runs a command with the library in it, which records when it is asked to.
pub(super) fn run_armed(command: &[OsString]) -> anyhow::Result<ExitStatus> {
    let (_folder, mut command) = prepared(command)?;
    command.env("SYNCSCOPE_AUDIT_ARMED", "1");
    attend(command, |process| note!("armed: `{} audit now {process}` records it", invocation()))
}

/// A command with the library in it, and the folder in which that lies.
fn prepared(command: &[OsString]) -> anyhow::Result<(Scratch, Command)> {
    if LIBRARY.is_empty() {
        return Err(
            UsageError("programs are audited on Linux only; `--from FILE` reads a trace anywhere".to_owned()).into()
        );
    }
    if std::env::var_os("CUDA_INJECTION64_PATH").is_some() {
        let message = "CUDA_INJECTION64_PATH is set: another tool is put into the program; unset it";
        return Err(UsageError(message.to_owned()).into());
    }
    let folder = Scratch::new().context("cannot make a folder for the records")?;
    if statvfs(folder.path()).is_ok_and(|place| place.f_flag.contains(StatVfsMountFlags::NOEXEC)) {
        let place = std::env::temp_dir();
        let message = "no code is run from the file system of this folder for temporary files (it is mounted `noexec`), so the \
                       driver cannot load the library that records: name another folder in TMPDIR";
        return Err(UsageError(format!("{}: {message}", place.display())).into());
    }
    let library = folder.path().join("libsyncscope_audit.so");
    fs::write(&library, LIBRARY).context("cannot write the library that records")?;
    let (program, rest) = command.split_first().context("there is no command")?;
    let mut command = Command::new(program);
    command.args(rest).env("CUDA_INJECTION64_PATH", &library).env(FOLDER, folder.path());
    // Ranges that the program names, for budgets; another tool may take them instead.
    if std::env::var_os("NVTX_INJECTION64_PATH").is_none() {
        command.env("NVTX_INJECTION64_PATH", &library);
    }
    Ok((folder, command))
}

/// Runs a command to its end and passes signals on. After it, signals end this process again. `begun` is told its number.
fn attend(mut command: Command, begun: impl FnOnce(u32)) -> anyhow::Result<ExitStatus> {
    // The program takes over which signals are ignored, and those alone: what is listened for ends it as ever.
    let (ignored, heard): (Vec<i32>, Vec<i32>) =
        ENDING.into_iter().chain(OF_LINUX).partition(|signal| is_ignored(*signal));
    let over = Arc::new(AtomicBool::new(false));
    for signal in &heard {
        // One that the crate does not know is passed on, and ignored after the program's end.
        let _ = register_conditional_default(*signal, Arc::clone(&over));
    }
    let mut signals = SignalsInfo::<WithRawSiginfo>::new(&heard).context("cannot listen for signals")?;
    let mut child = command.spawn().map_err(|error| {
        let name = command.get_program().to_string_lossy();
        let why = match error.kind() {
            ErrorKind::NotFound => "there is no such program".to_owned(),
            _ => error.to_string(),
        };
        UsageError(format!("cannot start `{name}`: {why}"))
    })?;
    begun(child.id());
    let handle = signals.handle();
    // What cannot be listened for stays ignored.
    ignored.iter().for_each(|signal| _ = handle.add_signal(*signal));
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).context("the program has no number")?;
    let forward = move || {
        for info in signals.forever() {
            let signal = Signal::from_named_raw(info.si_signo).filter(|_| is_passed_on(info.si_signo, info.si_code));
            if let Some(signal) = signal {
                // It may have ended.
                let _ = kill_process(pid, signal);
            }
        }
    };
    let forward = std::thread::Builder::new().spawn(forward).inspect_err(|_| drop(child.kill())).context(THREAD)?;
    // Its number stays its own until no signal is passed on any more.
    let ended = || waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
    rustix::io::retry_on_intr(ended).context("cannot wait for the program")?;
    handle.close();
    // A thread that panicked has nothing more to pass on.
    let _ = forward.join();
    let status = child.wait().context("cannot wait for the program")?;
    over.store(true, Ordering::Relaxed);
    Ok(status)
}

/// Whether a signal is the program's, by its code: where a process sent it, or where the terminal has gone or a timer that was
/// set before this program began has run out. What else the system sends is about this process, or reaches the program, too.
fn is_passed_on(signal: i32, code: i32) -> bool {
    let is_of_a_process = code <= 0;
    is_of_a_process || [SIGHUP, SIGALRM, SIGVTALRM, SIGPROF].contains(&signal)
}

/// Ends as the program did: with its code, or by its signal.
pub(super) fn leave(status: ExitStatus) -> ! {
    if let Some(signal) = status.signal() {
        alert!("the program was ended by signal {signal}");
        // The program's core is written, if any; this one's is of no use.
        #[cfg(target_os = "linux")]
        let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
        // Returns where the crate does not know the signal, which shells tell by the code below.
        let _ = emulate_default_handler(signal);
    }
    std::process::exit(status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(1))
}
