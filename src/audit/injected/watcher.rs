//! The watcher: the library's thread, beside the `clerk` of an armed process. It takes the stacks that calls ask for (`asks`),
//! takes samples on its own (`samples`), and opens the windows in which launches are watched (`launches`).
//!
//! # How often
//! The time between two samples is drawn evenly from 0 to twice a mean, so that no loop of the program can run in step with
//! them. The mean is such that the program loses one part of its time in [`SHARE`] by samples, and that they take one part in
//! [`OWN_SHARE`] of a processor: what one takes is measured as it goes on.
//!
//! # Safety of the program
//! The watcher waits for the interpreter's lock with no lock of its own in hand, and the program's
//! threads wait for the watcher nowhere but in `asks`, for a limited time. While the watcher waits for the main thread
//! (`pending`), it answers them. An interpreter that ends may end the watcher where it asks for the lock: it has no
//! destructors on its stack there.

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::cupti::{self, Cupti};
use crate::format::header;
use crate::launches::Windows;
use crate::python::{self, Object, Python};
use crate::samples::{HELD, Lock, Sample};
use crate::sampling::{SEED, SHARE, shuffled};
use crate::{armed, asks, clerk, file, operators, pending, system};

/// The mean time between two samples.
const SHORTEST: Duration = Duration::from_millis(4);
const LONGEST: Duration = Duration::from_millis(100);
/// What a sample takes before one was taken.
const EXPECTED: Cost = Cost { lost: Duration::from_micros(20), own: Duration::from_micros(80) };
/// How many times longer than those before a sample counts at most.
const MAX_GROWTH: u32 = 8;
/// Samples take at most one part in so many of one processor. Where a processor is free, the program loses nothing by that.
const OWN_SHARE: u32 = 50;
/// The main thread is not waited for any longer before the lock is asked for: it is in a long call, which may have let go of it.
const LONG_CALL: Duration = Duration::from_millis(10);
/// After this the main thread is not waited for at all.
const GIVEN_UP: Duration = Duration::from_millis(200);

static IS_THERE: AtomicBool = AtomicBool::new(false);
/// Whether the process ends.
static ENDS: Mutex<bool> = Mutex::new(false);

/// Starts it: it watches from now on, or when it is asked.
pub(crate) fn start() {
    let can_begin = !armed::is_armed() || clerk::start();
    IS_THERE.store(can_begin && system::start(watch), Ordering::Release);
}

/// Whether it was started.
pub(crate) fn is_there() -> bool {
    IS_THERE.load(Ordering::Acquire)
}

/// The process ends: from now on the watcher does not call CUPTI, whose destructors run next.
pub(crate) fn end() {
    *ENDS.lock().unwrap_or_else(PoisonError::into_inner) = true;
}

/// Has something done that uses CUPTI, unless the process ends.
fn with_end<R>(then: impl FnOnce() -> R) -> Option<R> {
    let ends = ENDS.lock().unwrap_or_else(PoisonError::into_inner);
    (!*ends).then(then)
}

/// Calls CUPTI for the watcher, unless the process ends.
pub(crate) fn with_cupti<R>(then: impl FnOnce(&Cupti) -> R) -> Option<R> {
    with_end(|| cupti::get().map(then))?
}

extern "C" fn watch(_: *mut c_void) -> *mut c_void {
    system::leave_descriptors();
    let mut watcher = Watcher::new();
    if !armed::is_armed() {
        file::set(header::FAULT, system::first_touch());
        loop {
            watcher.turn();
        }
    }
    let mut asks = armed::Asks::default();
    loop {
        watcher.record(&asks.next());
    }
}

/// How often it is looked at whether a recording without samples is over.
const LOOK: Duration = Duration::from_millis(20);

#[derive(Clone, Copy)]
struct Watcher {
    /// Its own state of Python.
    own: Object,
    /// What is known of the threads of Python.
    lock: Lock,
    windows: Windows,
    /// When the next sample is due.
    next: Instant,
    cost: Cost,
    random: u64,
}

/// What a sample takes, smoothed.
#[derive(Clone, Copy)]
struct Cost {
    /// For how long the program did not run, or could not have the interpreter's lock.
    lost: Duration,
    /// The watcher's own time on a processor.
    own: Duration,
}

impl Cost {
    fn then(self, next: Self) -> Self {
        // What takes long once, as the first sample does, is not what samples take.
        let smoothed = |before: Duration, expected: Duration, now: Duration| {
            (3 * before + now.min(before.max(expected) * MAX_GROWTH)) / 4
        };
        Self { lost: smoothed(self.lost, EXPECTED.lost, next.lost), own: smoothed(self.own, EXPECTED.own, next.own) }
    }

    /// The mean time between two samples.
    fn mean(self) -> Duration {
        (self.lost * SHARE as u32).max(self.own * OWN_SHARE).clamp(SHORTEST, LONGEST)
    }
}

impl Watcher {
    fn new() -> Self {
        let own = std::ptr::null_mut();
        let (lock, windows) = (Lock::new(), Windows::new());
        let mut watcher = Self { own, lock, windows, next: Instant::now(), cost: EXPECTED, random: SEED };
        watcher.plan();
        watcher
    }

    /// Records for the time that is asked for.
    fn record(&mut self, ask: &armed::Ask) {
        let begun = Instant::now();
        let (folder, stacks) = (ask.folder.clone(), ask.stacks.clone());
        let is_recording = with_end(|| clerk::ask(move || crate::record(&folder, &stacks)));
        file::set(header::BEGIN, begun.elapsed().as_nanos() as u64);
        if is_recording == Some(true) {
            file::set(header::FAULT, system::first_touch());
            (self.windows, self.cost) = (Windows::new(), EXPECTED);
            self.plan();
            while !ask.is_over() {
                match ask.stacks.as_str() {
                    "none" => std::thread::sleep(LOOK),
                    _ => self.turn(),
                }
            }
            with_end(|| clerk::ask(crate::silence));
            self.answer_rest();
            with_end(|| clerk::ask(crate::stop));
        } else {
            // Why not is in the file, where that could be made.
            file::end();
        }
        with_end(file::close);
        ask.end();
    }

    /// Answers the calls that still wait for their stacks: CUPTI is not left while one does.
    fn answer_rest(&mut self) {
        let until = Instant::now() + cupti::PATIENCE;
        while Cupti::is_inside() && Instant::now() < until {
            if asks::are_there(Instant::now() + LOOK, || false) {
                self.visit(|_, _, _| ());
            }
        }
    }

    fn turn(&mut self) {
        let begun = own_time();
        let is_asked = asks::are_there(self.next.min(self.windows.next()), || false);
        self.windows.turn();
        if !is_asked {
            operators::look_up(operators::SOME);
        }
        if Instant::now() >= self.next {
            self.sample(begun);
            self.plan();
        } else if is_asked {
            self.visit(|_, _, _| ());
        }
    }

    /// Draws the time of the next sample.
    fn plan(&mut self) {
        self.random = shuffled(self.random);
        self.next = Instant::now() + Duration::from_nanos(self.random % (2 * self.cost.mean().as_nanos() as u64));
    }

    /// Takes a sample, and learns what that costs, by how long this thread had run before it waited for this sample.
    fn sample(&mut self, begun: Duration) {
        let python = python::running();
        let Some(sample) = Sample::begin(python) else { return };
        let lost = match python.filter(|python| python.has_lock && sample.main_runs()) {
            Some(python) if pending::post(python, &sample, &self.lock) => self.wait_for_main(),
            _ => self.read(sample),
        };
        self.cost = self.cost.then(Cost { lost, own: own_time().saturating_sub(begun) });
    }

    /// Reads a sample with the lock. Returns how long that was held: to wait for it costs nothing.
    fn read(&mut self, mut sample: Sample) -> Duration {
        self.lock.before();
        // Safety: the lock is held.
        let held = self.visit(|python, lock, waited| unsafe { sample.read_after(python, lock, waited) });
        sample.write();
        held
    }

    /// Waits until the main thread has read a sample, for a limited time. Returns how long that took it.
    ///
    /// In a long call it does not come to that. Where the call has let go of the lock, the lock is had at once, and the
    /// stacks are read here. Else they are not: when the lock is had at last, the call may have ended, and the main thread
    /// reads them.
    fn wait_for_main(&mut self) -> Duration {
        let begun = Instant::now();
        self.attend(begun + LONG_CALL);
        if !pending::is_over() {
            let held = self.visit(|python, lock, waited| {
                if waited <= HELD {
                    // Safety: the lock is held.
                    pending::take_back(|sample| unsafe { sample.read(python, lock.place, with_cupti(Cupti::now)) });
                }
            });
            self.attend(begun + GIVEN_UP);
            pending::take_back(|_| ());
            return held + pending::took();
        }
        pending::took()
    }

    /// Answers whoever asks for a stack until no sample waits for the main thread, at most up to this time.
    fn attend(&mut self, until: Instant) {
        while !pending::is_over() && Instant::now() < until {
            let is_asked = asks::are_there(until.min(self.windows.next()), pending::is_over);
            self.windows.turn();
            if is_asked {
                self.visit(|_, _, _| ());
            }
        }
    }

    /// Takes the interpreter's lock, answers whoever asks for a stack, and has `then` done, which is told how long the lock was
    /// waited for. Returns how long it was held.
    fn visit(&mut self, then: impl FnOnce(&Python, &Lock, Duration)) -> Duration {
        let Some(python) = python::running().filter(|python| python.has_lock) else {
            asks::answer(|_| None);
            return Duration::ZERO;
        };
        let lock = &mut self.lock;
        let begun = Instant::now();
        python.with_lock(&mut self.own, |own| {
            let had = Instant::now();
            answer(python);
            then(python, lock, had - begun);
            // Safety: the lock is held.
            unsafe { lock.learn(python, own) };
            had.elapsed()
        })
    }
}

/// How long this thread has run.
fn own_time() -> Duration {
    Duration::from_nanos(system::ran(system::thread()).unwrap_or(0))
}

/// Answers whoever asks for a stack, with the interpreter's lock held.
fn answer(python: &Python) {
    // Safety: the lock is held, and the thread waits or cannot run Python: its state is there.
    asks::answer(|thread| unsafe { python.frames_of_main(thread as Object) });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_long_sample_does_not_set_the_pace_and_many_do() {
        let of = |own| Cost { lost: Duration::ZERO, own: Duration::from_micros(own) };
        let once = EXPECTED.then(of(50_000));
        assert!(once.mean() < Duration::from_millis(15), "{:?}", once.mean());
        let often = (0..12).fold(EXPECTED, |cost, _| cost.then(of(50_000)));
        assert_eq!(often.mean(), LONGEST);
        // One after which nothing is lost for long learns again.
        let idle = (0..200).fold(EXPECTED, |cost, _| cost.then(of(0)));
        assert_eq!((0..12).fold(idle, |cost, _| cost.then(of(50_000))).mean(), LONGEST);
    }
}
