//! The processor on which the host's thread measures.
//!
//! A thread that the system moves between processors meets other caches and other clocks: what it measures changes from run
//! to run by more than samples within a run show. So the thread that takes samples stays on one processor, where there are
//! enough of them for everything else, until it is told to `stay_on` another. A thread or a process inherits the processors of
//! the thread that starts it: what a measurement starts is started [`elsewhere`], so that it does not compete with the thread
//! that it is measured from: not on its processor, nor on one that shares a core with it, where enough others are left.
//!
//! Limits: only on Linux, and only with the feature `pinned`. What a library starts by itself (a thread of the
//! driver) stays with the thread that made it do so.

#[cfg_attr(not(all(feature = "pinned", target_os = "linux")), path = "unpinned.rs")]
mod pinned;

use std::thread::{Builder, Scope, ScopedJoinHandle};

use crate::error::DeviceError;
pub(crate) use pinned::{choices, kept_on, stay_on};
pub use pinned::{elsewhere, kept, measuring};

/// Starts a thread that a measurement needs beside itself, [`elsewhere`].
///
/// # Errors
/// The system starts none.
pub fn beside<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>, DeviceError> {
    elsewhere(|| Builder::new().spawn_scoped(scope, work)).map_err(|error| no_thread("the host", &error))
}

/// That the system starts no thread, which `device` needs.
pub(crate) fn no_thread(device: &str, error: &std::io::Error) -> DeviceError {
    DeviceError::call_failed(device, "thread::spawn", error.to_string())
}

/// How many threads can run at once in this process, whatever the calling thread is kept on. It is asked once: the answer
/// takes the system some microseconds.
///
/// ```
/// assert!(syncscope::affinity::processors() >= 1);
/// ```
pub fn processors() -> usize {
    static PROCESSORS: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    *PROCESSORS.get_or_init(|| elsewhere(|| std::thread::available_parallelism().map_or(1, usize::from)))
}
