//! In the place of `pinned`, where the system or the build keeps no thread on a processor.

/// The processor that [`kept`] keeps a thread on, where it keeps one; asked of a thread that is not kept yet.
pub fn measuring() -> Option<usize> {
    None
}

/// The processor that the calling thread is kept on.
pub(crate) fn kept_on() -> Option<usize> {
    None
}

/// The processors that the calling thread may [`stay_on`], the likeliest first; none where it is not kept on one.
pub(crate) fn choices() -> Vec<usize> {
    Vec::new()
}

/// Keeps the calling thread on this one of its [`choices`]; where the system refuses, it stays where it is.
pub(crate) fn stay_on(_: usize) {}

/// Keeps the calling thread on one processor while it works, where the process may use four or more.
pub fn kept<R>(work: impl FnOnce() -> R) -> R {
    work()
}

/// Starts threads or processes that may run on the other processors of the process, also from a thread that is kept on one.
pub fn elsewhere<R>(start: impl FnOnce() -> R) -> R {
    start()
}
