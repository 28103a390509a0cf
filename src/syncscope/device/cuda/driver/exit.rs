//! The end of the process.
//!
//! The driver has handlers of its own there, and so have the vendor's libraries. They wait for the work of the device, of which a
//! gate that nobody opened any more would keep the process for good, and they take away what calls of other threads still use.
//! So [`leave`] comes before them: work can end, no thread enters the driver any more but the one that ends the process, and the
//! long calls that others have begun are over.
//!
//! Handlers run in the reverse order of their registration, and the libraries register more of them at any time. But what a thread
//! keeps for itself is dropped before all handlers, of the thread that ends the process: mostly the main one. So the handler is
//! registered once more by what the main thread keeps for this: then it is the first of all handlers, and what a program keeps for
//! its main thread can use the library until the last of it is dropped. Where another thread ends the process, the handler must
//! be a late one: see [`come_first`]. What is left open is such an end within a library's very first search or recording.

use std::cell::Cell;
use std::ffi::{OsStr, c_int};
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How long a call may take that another thread has begun, and how long one of some microseconds: its thread may have lost the
/// processor within it.
const LONG_CALLS: Duration = Duration::from_secs(2);
const CALLS: Duration = Duration::from_millis(20);

static IS_LEAVING: AtomicBool = AtomicBool::new(false);
static PREPARE: OnceLock<fn()> = OnceLock::new();
/// How many threads are in a long call.
static INSIDE: AtomicUsize = AtomicUsize::new(0);
/// How often the handler was registered: a process that searches plans without an end must not grow.
static REGISTERED: AtomicUsize = AtomicUsize::new(0);
const MAX_REGISTERED: usize = 1000;

thread_local! {
    /// Whether this thread ends the process.
    static ENDS: Cell<bool> = const { Cell::new(false) };
    /// How many of the long calls are this thread's.
    static OWN: Cell<usize> = const { Cell::new(0) };
    static LAST: Last = const { Last };
}

/// Dropped with what a thread keeps for itself.
struct Last;

impl Drop for Last {
    fn drop(&mut self) {
        if is_main() {
            // Safety: as in `come_first`.
            unsafe { atexit(leave) };
        }
    }
}

unsafe extern "C" {
    /// Of the C library, which `std` links.
    fn atexit(handler: extern "C" fn()) -> c_int;
}

/// Has `prepare` run when the process ends, before the handlers of the driver, which has been initialized.
pub(crate) fn prepare_by(prepare: fn()) {
    if PREPARE.set(prepare).is_ok() {
        come_first();
    }
}

/// Has [`leave`] come before all handlers that were registered so far: after a call in which a library may have registered some.
pub(crate) fn come_first() {
    if REGISTERED.fetch_add(1, Ordering::Relaxed) < MAX_REGISTERED {
        // Safety: the handler may run at any time, and again. Where it finds no room, the process ends as it would without.
        unsafe { atexit(leave) };
    }
}

/// This thread may be the one that ends the process.
pub(crate) fn note_thread() {
    // A thread that is ending has dropped what it kept.
    let _ = LAST.try_with(|_| ());
}

extern "C" fn leave() {
    if IS_LEAVING.swap(true, Ordering::SeqCst) {
        return;
    }
    ENDS.set(true);
    if let Some(prepare) = PREPARE.get() {
        // A panic must not leave a function of C's.
        let _ = std::panic::catch_unwind(*prepare);
    }
    let until = Instant::now() + LONG_CALLS;
    while INSIDE.load(Ordering::SeqCst) > 0 && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(CALLS);
}

/// Returns unless another thread is ending the process.
#[inline]
pub(super) fn stay_out() {
    if IS_LEAVING.load(Ordering::Relaxed) && !ENDS.get() {
        stay();
    }
}

#[cold]
fn stay() -> ! {
    // It is in none any more, whatever it was about to do: nobody waits for it.
    INSIDE.fetch_sub(OWN.take(), Ordering::SeqCst);
    loop {
        std::thread::park();
    }
}

/// A long call, which waits for the device or computes in a library: the process ends after it.
pub(crate) struct Inside(());

/// Enters a long call, unless another thread is ending the process.
pub(crate) fn enter() -> Inside {
    let inside = Inside(());
    INSIDE.fetch_add(1, Ordering::SeqCst);
    OWN.set(OWN.get() + 1);
    if IS_LEAVING.load(Ordering::SeqCst) && !ENDS.get() {
        stay();
    }
    inside
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.fetch_sub(1, Ordering::SeqCst);
        OWN.set(OWN.get() - 1);
    }
}

/// Whether this is the main thread: of Linux its number is that of the process. Elsewhere the handler alone is there.
fn is_main() -> bool {
    let thread = std::fs::read_link("/proc/thread-self").ok();
    let number = thread.as_deref().and_then(Path::file_name).and_then(OsStr::to_str).map(str::parse);
    number == Some(Ok(std::process::id()))
}
