//! How a thread that has let go of the interpreter's lock has its stack taken by the watcher. It waits for that up to 15 ms
//! ([`be_patient`]), and goes on without a stack where it is not enough.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::watcher;

/// How long a call waits for its stack, in milliseconds. A thread that runs Python lets go of the lock within 5 ms when it is
/// asked.
static PATIENCE: AtomicU64 = AtomicU64::new(15);
/// After so many stacks in a row that were not taken in time, this many are not asked for.
const FAILURES: u32 = 3;
const PAUSE: u32 = 64;
static IN_A_ROW: AtomicU32 = AtomicU32::new(0);

/// What the watcher is asked for.
#[derive(Clone, Copy, PartialEq)]
enum State {
    Idle,
    /// The frames of the thread with this state of Python.
    Asked(usize, u64),
    /// The watcher reads them.
    Reading(u64),
    Answered(u64, Option<u32>),
}

static STATE: Mutex<State> = Mutex::new(State::Idle);
static CHANGED: Condvar = Condvar::new();

/// Has calls wait for their stacks up to so many milliseconds.
pub(crate) fn be_patient(milliseconds: u64) {
    PATIENCE.store(milliseconds, Ordering::Relaxed);
}

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until something has changed, or it is time.
fn wait(now: MutexGuard<'static, State>, until: Instant) -> MutexGuard<'static, State> {
    let left = until.saturating_duration_since(Instant::now());
    CHANGED.wait_timeout(now, left).unwrap_or_else(PoisonError::into_inner).0
}

/// Has the watcher take the stack of this thread, which has this state of Python.
pub(crate) fn ask(own: usize) -> Option<u32> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    static SKIPPED: AtomicU32 = AtomicU32::new(0);
    if IN_A_ROW.load(Ordering::Relaxed) >= FAILURES && SKIPPED.fetch_add(1, Ordering::Relaxed) % PAUSE != PAUSE - 1 {
        return None;
    }
    if !watcher::is_there() {
        return None;
    }
    let deadline = Instant::now() + Duration::from_millis(PATIENCE.load(Ordering::Relaxed));
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let mut now = state();
    while *now != State::Idle {
        if Instant::now() >= deadline {
            return None;
        }
        now = wait(now, deadline);
    }
    *now = State::Asked(own, number);
    CHANGED.notify_all();
    let answer = loop {
        match *now {
            State::Answered(answered, stack) if answered == number => break stack,
            _ if Instant::now() >= deadline => break None,
            _ => now = wait(now, deadline),
        }
    };
    // What the watcher still reads is of no use: it sees that it was not waited for.
    *now = State::Idle;
    CHANGED.notify_all();
    match answer {
        Some(_) => IN_A_ROW.store(0, Ordering::Relaxed),
        None => _ = IN_A_ROW.fetch_add(1, Ordering::Relaxed),
    }
    answer
}

/// Waits until a stack is asked for, at most up to this time, or until `is_over` after a [`wake`]; whether one is.
pub(crate) fn are_there(until: Instant, is_over: impl Fn() -> bool) -> bool {
    let mut now = state();
    loop {
        match *now {
            State::Asked(..) => return true,
            _ if is_over() || Instant::now() >= until => return false,
            _ => now = wait(now, until),
        }
    }
}

/// Has the watcher look at whether it has waited long enough.
pub(crate) fn wake() {
    let _now = state();
    CHANGED.notify_all();
}

/// Answers the thread that asks, if one still does: `read` is given its state of Python.
pub(crate) fn answer(read: impl FnOnce(usize) -> Option<u32>) {
    let Some((thread, number)) = taken() else { return };
    let stack = read(thread);
    let mut now = state();
    if *now == State::Reading(number) {
        *now = State::Answered(number, stack);
        CHANGED.notify_all();
    }
}

fn taken() -> Option<(usize, u64)> {
    let mut now = state();
    let State::Asked(thread, number) = *now else { return None };
    *now = State::Reading(number);
    Some((thread, number))
}
