//! The signals that ask the program to end.

use std::path::Path;
use std::thread;

use anyhow::Context;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::files::read_text;

/// The most bytes of what the system says of a process.
const MOST_BYTES: usize = 64 << 10;

/// Calls `act` at each signal, in a thread of its own. Where the program was begun by `nohup`, a terminal that goes away
/// asks nothing of it.
pub(super) fn listen(mut act: impl FnMut() + Send + 'static) -> anyhow::Result<()> {
    let heard = [Some(SIGINT), Some(SIGTERM), (!is_ignored(SIGHUP)).then_some(SIGHUP)];
    let mut signals = Signals::new(heard.into_iter().flatten()).context("cannot listen for signals")?;
    thread::spawn(move || signals.forever().for_each(|_| act()));
    Ok(())
}

/// Whether the program was told to ignore a signal when it began, as far as the system says so.
fn is_ignored(signal: i32) -> bool {
    let status = read_text(Path::new("/proc/self/status"), MOST_BYTES).unwrap_or_default();
    let ignored = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    ignored.is_some_and(|ignored| (ignored >> (signal - 1)) & 1 == 1)
}
