//! The signals that ask the program to end.

use std::path::Path;
use std::sync::Arc;
use std::thread;

use anyhow::Context;
use rustix::process::Signal;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;

use crate::files::read_text;

/// The most bytes of what the system says of a process.
const MAX_BYTES: usize = 64 << 10;

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
    let status = read_text(Path::new("/proc/self/status"), MAX_BYTES).unwrap_or_default();
    let ignored = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    ignored.is_some_and(|ignored| (ignored >> (signal - 1)) & 1 == 1)
}
