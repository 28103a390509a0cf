//! The watcher: the library's one thread. It takes the stacks that calls ask for (`asks`), takes samples on its own (`samples`),
//! and opens the windows in which launches are watched (`launches`).
//!
//! # How often
//! The time between two samples is drawn evenly from 0 to twice a mean, so that no loop of the program can run in step with
//! them. The mean is such that samples take one part of the time in [`SHARE`]: what one takes is measured as it goes on.
//!
//! # Safety of the program
//! The watcher waits for the interpreter's lock with no lock of its own in hand, and the program's threads wait for the watcher
//! nowhere but in `asks`, for a limited time. An interpreter that ends may end the watcher where it asks for the lock: it has no
//! destructors on its stack there.

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::cupti::{self, Cupti};
use crate::format::header;
use crate::launches::Windows;
use crate::python::{self, Object, Python};
use crate::samples::{Lock, Sample};
use crate::sampling::{SEED, SHARE, shuffled};
use crate::{asks, file, system};

/// The mean time between two samples, and what a sample takes before one was taken.
const SHORTEST: Duration = Duration::from_millis(4);
const LONGEST: Duration = Duration::from_millis(100);
const EXPECTED: Duration = Duration::from_micros(50);

static IS_THERE: AtomicBool = AtomicBool::new(false);
/// Whether the process ends.
static ENDS: Mutex<bool> = Mutex::new(false);

/// Starts it.
pub(crate) fn start() {
    IS_THERE.store(system::start(watch), Ordering::Release);
}

/// Whether it was started.
pub(crate) fn is_there() -> bool {
    IS_THERE.load(Ordering::Acquire)
}

/// The process ends: from now on the watcher does not call CUPTI, whose destructors run next.
pub(crate) fn end() {
    *ENDS.lock().unwrap_or_else(PoisonError::into_inner) = true;
}

/// Calls CUPTI for the watcher, unless the process ends.
pub(crate) fn with_cupti<R>(then: impl FnOnce(&Cupti) -> R) -> Option<R> {
    let ends = ENDS.lock().unwrap_or_else(PoisonError::into_inner);
    cupti::get().filter(|_| !*ends).map(then)
}

extern "C" fn watch(_: *mut c_void) -> *mut c_void {
    system::leave_descriptors();
    file::set(header::FAULT, system::first_touch());
    let mut watcher = Watcher::new();
    loop {
        watcher.turn();
    }
}

#[derive(Clone, Copy)]
struct Watcher {
    /// Its own state of Python.
    own: Object,
    /// What is known of the threads of Python.
    lock: Lock,
    windows: Windows,
    /// When the next sample is due.
    next: Instant,
    cost: Duration,
    random: u64,
}

impl Watcher {
    fn new() -> Self {
        let own = std::ptr::null_mut();
        let (lock, windows) = (Lock::new(), Windows::new());
        let mut watcher = Self { own, lock, windows, next: Instant::now(), cost: EXPECTED, random: SEED };
        watcher.plan();
        watcher
    }

    fn turn(&mut self) {
        let is_asked = asks::are_there(self.next.min(self.windows.next()));
        self.windows.turn();
        if Instant::now() >= self.next {
            self.sample();
            self.plan();
        } else if is_asked {
            self.visit(None);
        }
    }

    /// Draws the time of the next sample.
    fn plan(&mut self) {
        self.random = shuffled(self.random);
        let mean = (self.cost * SHARE as u32).clamp(SHORTEST, LONGEST);
        self.next = Instant::now() + Duration::from_nanos(self.random % (2 * mean.as_nanos() as u64));
    }

    /// Takes a sample, and learns what that costs: this thread's own time, or for how long it held the lock. To wait for the
    /// lock costs nothing.
    fn sample(&mut self) {
        let ran = || Duration::from_nanos(system::ran(system::thread()).unwrap_or(0));
        let begun = ran();
        let Some(asked) = with_cupti(Cupti::now) else { return };
        let Some(mut sample) = Sample::begin(asked, python::running()) else { return };
        let held = self.visit(Some(&mut sample));
        sample.write();
        self.cost = (3 * self.cost + held.max(ran().saturating_sub(begun))) / 4;
    }

    /// Takes the interpreter's lock, answers whoever asks for a stack, and reads the stacks of a sample. Returns how long it held
    /// the lock.
    fn visit(&mut self, mut sample: Option<&mut Sample>) -> Duration {
        let Some(python) = python::running().filter(|python| python.has_lock) else {
            asks::answer(|_| None);
            return Duration::ZERO;
        };
        let lock = &mut self.lock;
        if sample.is_some() {
            lock.before();
        }
        let begun = Instant::now();
        python.with_lock(&mut self.own, |own| {
            let had = Instant::now();
            answer(python);
            // Safety: the lock is held.
            unsafe {
                if let Some(sample) = &mut sample {
                    sample.read(python, lock, had - begun);
                }
                lock.learn(python, own);
            }
            had.elapsed()
        })
    }
}

/// Answers whoever asks for a stack, with the interpreter's lock held.
fn answer(python: &Python) {
    // Safety: the lock is held, and the thread waits or cannot run Python: its state is there.
    asks::answer(|thread| unsafe { python.frames_of_main(thread as Object) });
}
