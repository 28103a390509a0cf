//! Ctrl-C: the first asks the run to end after the current sample, and ends the program where that takes too long; the
//! second ends it as soon as what was measured is written, the third at once. And the other signals that ask for the end.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;
// Ends the process as it is: a library that is told of the end may wait for its device, and with it for a closed gate.
use signal_hook::low_level::exit;

use super::{End, output};
use crate::files::read_text;

/// How long a sample may take to end after the first signal.
const GRACE: Duration = Duration::from_millis(1500);

/// What signals ask of a run, and what the run says of itself.
#[derive(Clone, Default)]
pub(super) struct Interrupt {
    /// Set by the first signal.
    pub(super) flag: Arc<AtomicBool>,
    ended: Arc<AtomicBool>,
}

impl Interrupt {
    /// Listens for signals. `rescue` writes what was measured where the run cannot, because a sample goes on, and
    /// says whether it did.
    pub(super) fn listen(by: AskedBy, rescue: impl Fn() -> bool + Send + Sync + 'static) -> anyhow::Result<Self> {
        let interrupt = Self::default();
        let (told, count, rescue) = (interrupt.clone(), AtomicU32::new(0), Arc::new(rescue));
        let handler = move || {
            let wait = match count.fetch_add(1, Ordering::Relaxed) {
                0 => {
                    told.flag.store(true, Ordering::Relaxed);
                    output::error("\n");
                    alert!("ending after the current sample; what was measured is kept (again to quit at once)");
                    GRACE
                }
                1 => Duration::ZERO,
                _ => exit(End::Interrupted as i32),
            };
            let (told, rescue) = (told.clone(), Arc::clone(&rescue));
            let end = Arc::new(move || {
                thread::sleep(wait);
                let goes_on = !told.ended.load(Ordering::Relaxed);
                if goes_on && rescue() || wait.is_zero() {
                    exit(End::Interrupted as i32);
                }
            });
            // Beside the handler, which hears the next signal; where there is no thread for it, it hears that later.
            let beside = Arc::clone(&end);
            if thread::Builder::new().spawn(move || beside()).is_err() {
                end();
            }
        };
        listen(by, handler)?;
        Ok(interrupt)
    }

    /// The run has ended: the first signal needs nothing more.
    pub(super) fn ended(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}

/// Passes signals on to the process that measures, which ends as [`Interrupt`] says. The third ends this one at once.
#[derive(Clone, Default)]
pub(super) struct Forward(Arc<Mutex<Passed>>);

/// How many signals came, and to which process they go.
#[derive(Default)]
struct Passed {
    count: u32,
    child: Option<Pid>,
}

impl Forward {
    /// Listens for signals.
    pub(super) fn listen() -> anyhow::Result<Self> {
        let forward = Self::default();
        let told = forward.clone();
        let handler = move || {
            let mut passed = told.passed();
            passed.count += 1;
            if passed.count > 2 {
                exit(End::Interrupted as i32);
            }
            passed.on(1);
        };
        listen(AskedBy::User, handler)?;
        Ok(forward)
    }

    /// Whether a signal came, here or to a process that ended by it.
    pub(super) fn is_interrupted(&self) -> bool {
        self.passed().count > 0
    }

    /// Waits for the end of a process that measures, and hears each line of its standard output, where that is a pipe. Where
    /// its standard input is one, that ends with this process.
    pub(super) fn attend(&self, mut child: Child, mut heard: impl FnMut(&str)) -> anyhow::Result<ExitStatus> {
        let _held = child.stdin.take();
        let mut passed = self.passed();
        passed.child = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        // What came before it was there to be told.
        passed.on(passed.count);
        drop(passed);
        // One that cannot be read is as one that ended.
        let lines = child.stdout.take().into_iter().flat_map(|stdout| BufReader::new(stdout).lines());
        lines.map_while(Result::ok).for_each(|line| heard(&line));
        let status = child.wait().context("cannot wait for the process of the run");
        let mut passed = self.passed();
        passed.child = None;
        let is_told = status.as_ref().is_ok_and(|status| status.code() == Some(End::Interrupted as i32));
        passed.count = passed.count.max(is_told.into());
        status
    }

    fn passed(&self) -> MutexGuard<'_, Passed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Passed {
    fn on(&self, times: u32) {
        // A process that has ended needs no signal.
        let tell = |child| (0..times).for_each(|_| _ = kill_process(child, HANDED_ON));
        self.child.into_iter().for_each(tell);
    }
}

/// The signal by which a process of this program is told to end by the one that started it, whatever the user has both
/// ignore.
pub(super) const HANDED_ON: Signal = Signal::TERM;

/// Who asks a process to end.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum AskedBy {
    /// The user. A signal that was ignored when the program began, as by `nohup` or a shell's `trap '' INT`, asks nothing.
    User,
    /// The process of this program that started it, too.
    Parent,
}

/// Calls `act` at each signal that asks for the end, in a thread of its own.
pub(super) fn listen(by: AskedBy, mut act: impl FnMut() + Send + 'static) -> anyhow::Result<()> {
    let is_heard = |signal: &i32| !is_ignored(*signal) || by == AskedBy::Parent && *signal == HANDED_ON.as_raw();
    let heard = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(is_heard);
    let mut signals = Signals::new(heard).context("cannot listen for signals")?;
    let listener = move || signals.forever().for_each(|_| act());
    thread::Builder::new().spawn(listener).context(THREAD)?;
    Ok(())
}

/// Why a command ends that takes a thread of its own and gets none.
pub(super) const THREAD: &str = "cannot start a thread (`ulimit -u` says how many there may be)";

/// Handles the signals whose usual effect, or one that whoever started the program chose, ends or confuses it: a write that a
/// limit on files (`ulimit -f`) ends is an error then, and how a process ended is known also where nobody was to be told of it.
pub(super) fn settle() {
    for signal in [SIGXFSZ].into_iter().chain(is_ignored(SIGCHLD).then_some(SIGCHLD)) {
        // Without a handler the effect is what it was.
        let _ = signal_hook::flag::register(signal, Arc::default());
    }
}

/// Whether the program was told to ignore a signal when it began, as far as the system says so.
pub(super) fn is_ignored(signal: i32) -> bool {
    let status = read_text(Path::new("/proc/self/status"), 64 << 10).unwrap_or_default();
    let ignored = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    ignored.is_some_and(|ignored| (ignored >> (signal - 1)) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_process_that_was_told_to_end_tells_it_once() {
        let told = |count| {
            let forward = Forward::default();
            forward.passed().count = count;
            let mut ends = Command::new("sh");
            ends.args(["-c", "trap '' TERM; exit 130"]).stdout(Stdio::piped());
            forward.attend(ends.spawn().unwrap(), |_| ()).unwrap();
            forward.passed().count
        };
        assert_eq!([0, 1].map(told), [1, 1]);
    }
}
