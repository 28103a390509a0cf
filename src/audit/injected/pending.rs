//! How Python's main thread reads the stacks of a sample itself, at the place where it runs.
//!
//! # Method
//! The watcher leaves a sample here and posts a pending call of Python. The main thread makes that call at its next
//! check for such calls: behind a jump to the begin of a loop, or behind a call. It holds the interpreter's lock there. A
//! watcher that asked for the lock would have it where the thread lets go of it next, which is mostly at a later line: it
//! enters a call of the driver before it has to let go.
//!
//! At most one call is posted at a time: the interpreter has room for 32, which are the program's. The main thread waits for
//! nothing, and a call that comes after its sample was given up finds nothing to do.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::breaker::Breaker;
use crate::cupti::{self, Cupti};
use crate::python::{self, Python};
use crate::samples::{Lock, Sample};
use crate::{asks, is_recording, is_within, within};

#[derive(Clone, Copy)]
#[allow(clippy::large_enum_variant, reason = "there is one, and the main thread allocates little")]
enum State {
    /// No sample waits for the main thread, which took so long for the last one.
    Idle(Duration),
    /// A sample, and where the number of a thread lies in its state.
    Waits(Sample, Option<usize>),
    /// The main thread reads it.
    Reading,
}

static STATE: Mutex<State> = Mutex::new(State::Idle(Duration::ZERO));
/// Whether the interpreter has a call that was not made yet.
static IS_POSTED: AtomicBool = AtomicBool::new(false);

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Has the main thread read and write a sample; whether it can be asked now. One that computes without the lock is not: the
/// lock is free then, or another thread has it, whom the flag would slow down before 3.12.
pub(crate) fn post(python: &Python, sample: &Sample, lock: &Lock) -> bool {
    if matches!(lock.breaker, Breaker::Unknown)
        || !python.main_may_hold_lock()
        || !is_over()
        || IS_POSTED.swap(true, Ordering::AcqRel)
    {
        return false;
    }
    *state() = State::Waits(*sample, lock.place);
    let is_posted = python.post(made);
    if !is_posted {
        *state() = State::Idle(Duration::ZERO);
        IS_POSTED.store(false, Ordering::Release);
    } else if IS_POSTED.load(Ordering::Acquire) {
        lock.breaker.set();
    }
    is_posted
}

/// Whether no sample waits for the main thread.
pub(crate) fn is_over() -> bool {
    matches!(*state(), State::Idle(_))
}

/// How long the main thread took for the last sample.
pub(crate) fn took() -> Duration {
    match *state() {
        State::Idle(took) => took,
        _ => Duration::ZERO,
    }
}

/// Takes the sample back if it waits still, does something with it, and writes it.
pub(crate) fn take_back(then: impl FnOnce(&mut Sample)) {
    if let Some((mut sample, _)) = taken(State::Idle(Duration::ZERO)) {
        then(&mut sample);
        sample.write();
    }
}

/// The sample that waits, in place of which there is another state now.
fn taken(next: State) -> Option<(Sample, Option<usize>)> {
    let mut now = state();
    let State::Waits(sample, place) = *now else { return None };
    *now = next;
    Some((sample, place))
}

/// What the main thread calls. In a child of a fork it is of the parent, whose threads may have held what this takes.
unsafe extern "C" fn made(_: *mut c_void) -> c_int {
    if !is_recording() {
        return 0;
    }
    IS_POSTED.store(false, Ordering::Release);
    if let Some(python) = python::running().filter(|_| !is_within()) {
        // Safety: this is a posted call.
        within(|| unsafe { python.in_posted_call(|| read(python)) });
    }
    0
}

/// Reads and writes the sample that waits, with the interpreter's lock held.
fn read(python: &Python) {
    let begun = Instant::now();
    let Some((mut sample, place)) = taken(State::Reading) else { return };
    // Safety: the lock is held.
    unsafe { sample.read(python, place, cupti::get().map(Cupti::now)) };
    sample.write();
    *state() = State::Idle(begun.elapsed());
    asks::wake();
}
