//! The clerk: of an armed process, the thread on which CUPTI begins and ends a recording.
//!
//! CUPTI and the driver keep descriptors that they open there and use on all threads. They have to be in the program's table, and
//! the driver's have to be there: the watcher has a table of its own, in which CUPTI says that the driver is not in use.

use std::ffi::c_void;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::system;

type Task = Box<dyn FnOnce() -> bool + Send>;

enum Desk {
    Empty,
    Asked(Task),
    Busy,
    Done(bool),
}

static DESK: Mutex<Desk> = Mutex::new(Desk::Empty);
static CHANGED: Condvar = Condvar::new();

/// Starts it, with the caller's table of descriptors; whether it could be started.
pub(crate) fn start() -> bool {
    system::start(serve)
}

/// Has the clerk do something, and waits for what it says. The watcher alone asks.
pub(crate) fn ask(task: impl FnOnce() -> bool + Send + 'static) -> bool {
    *desk() = Desk::Asked(Box::new(task));
    CHANGED.notify_all();
    let mut now = desk();
    loop {
        if let Desk::Done(answer) = *now {
            *now = Desk::Empty;
            return answer;
        }
        now = CHANGED.wait(now).unwrap_or_else(PoisonError::into_inner);
    }
}

fn desk() -> MutexGuard<'static, Desk> {
    DESK.lock().unwrap_or_else(PoisonError::into_inner)
}

extern "C" fn serve(_: *mut c_void) -> *mut c_void {
    loop {
        let mut now = desk();
        while !matches!(*now, Desk::Asked(_)) {
            now = CHANGED.wait(now).unwrap_or_else(PoisonError::into_inner);
        }
        let Desk::Asked(task) = std::mem::replace(&mut *now, Desk::Busy) else { continue };
        drop(now);
        let answer = task();
        *desk() = Desk::Done(answer);
        CHANGED.notify_all();
    }
}
