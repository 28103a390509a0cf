//! The end of the process.
//!
//! The driver has handlers of its own there, and so have the vendor's libraries. They wait for the work of the device, of which a
//! gate that nobody opened any more would keep the process for good, and they take away what calls of other threads still use.
//! What is run here comes before them: handlers run in the reverse order of their registration, so that it is registered again
//! behind each library that is loaded. From then on a thread that enters the driver stays where it is; the one that ends the
//! process goes on.

use std::cell::Cell;
use std::ffi::c_int;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use super::libraries::Library;

/// How long calls that other threads have begun are given to return, once nothing is pending.
const CALLS: Duration = Duration::from_millis(5);

static IS_LEAVING: AtomicBool = AtomicBool::new(false);
static PREPARE: OnceLock<fn()> = OnceLock::new();
/// Behind which libraries the handler is registered, a bit each.
static BEHIND: AtomicU32 = AtomicU32::new(0);

thread_local! {
    /// Whether this thread ends the process.
    static ENDS: Cell<bool> = const { Cell::new(false) };
}

unsafe extern "C" {
    /// Of the C library, which `std` links.
    fn atexit(handler: extern "C" fn()) -> c_int;
}

/// Has `prepare` run when the process ends, before the handlers of the driver, which has been initialized.
pub(crate) fn prepare_by(prepare: fn()) {
    PREPARE.get_or_init(|| prepare);
    come_before(Library::Driver);
}

/// Has it run before the handlers of a library, too, which has been loaded after the driver.
pub(crate) fn come_before(library: Library) {
    let bit = 1 << library as u32;
    if BEHIND.fetch_or(bit, Ordering::SeqCst) & bit == 0 {
        // Safety: the handler may run at any time, more than once. Where it finds no room, the process ends as it would without.
        unsafe { atexit(leave) };
    }
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
    std::thread::sleep(CALLS);
}

/// Returns unless another thread is ending the process.
#[inline]
pub(super) fn stay_out() {
    if IS_LEAVING.load(Ordering::Relaxed) {
        stay();
    }
}

#[cold]
fn stay() {
    while !ENDS.get() {
        std::thread::park();
    }
}
