//! A sample: what each thread that feeds a device, and Python's main thread, is doing at one moment, and where.
//!
//! # Method
//! What the system says of the threads is read first, without any lock: reading a stack of Python changes what threads do. Then
//! the stacks of all are read at once, with the interpreter's lock held. Python's main thread reads them itself where it runs
//! (`pending`). Else the watcher takes the lock: where that takes long, another thread holds it, the one that ran most meanwhile.
//!
//! # Limits
//! The main thread's place is that of the instruction at whose end it looks for pending calls: each loop and each call has one,
//! an operator has none. Another thread that runs Python is at most the interpreter's switch interval further at the time of its
//! stack. Both times are written. Which thread holds the lock is known from Python 3.11 on.

use std::time::Duration;

use crate::breaker::Breaker;
use crate::feeders::{self, MAX_FEEDERS};
use crate::file::Fields;
use crate::format::{NONE, doing, tag};
use crate::python::{self, Object, Python};
use crate::threads::{self, Condition};
use crate::watcher;
use crate::{cupti::Cupti, system};

/// A wait for the lock that is shorter has no holder: handing it over takes as long.
pub(crate) const HELD: Duration = Duration::from_millis(1);
/// After a longer wait the stacks are no longer those of the sample.
const PATIENCE: Duration = Duration::from_millis(50);
/// The most threads of Python that may be found to hold the lock.
const MAX_THREADS: usize = 16;

#[derive(Clone, Copy)]
struct Thread {
    number: u32,
    /// Its state of Python when it made its last call, 0 where it had none.
    state: usize,
    /// Python's main thread, which makes no calls itself.
    is_beside: bool,
    stack: u32,
    condition: Condition,
}

impl Thread {
    /// Its state, where it is still there and is no other thread's now.
    ///
    /// # Safety
    /// The caller holds the lock.
    unsafe fn state(&self, python: &Python, place: Option<usize>) -> Option<Object> {
        // Safety: the caller's promise.
        unsafe {
            let state = python.known(self.state as Object)?;
            let is_its_own = |place| python::number_at(state, place) == self.number;
            place.is_none_or(is_its_own).then_some(state)
        }
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Sample {
    asked: u64,
    /// When the stacks were read, if they were.
    had: Option<u64>,
    threads: [Option<Thread>; MAX_FEEDERS + 1],
    holder: (u32, u32),
    throttled: u64,
}

impl Sample {
    /// What the system says; `None` where there is no thread to look at.
    pub(crate) fn begin(python: Option<&Python>) -> Option<Self> {
        let begun = watcher::with_cupti(Cupti::now)?;
        let main = std::process::id();
        let mut threads = [None; MAX_FEEDERS + 1];
        let new = |number, state, is_beside| {
            let condition = Condition::default();
            Thread { number, state, is_beside, stack: NONE, condition }
        };
        let feeders = feeders::recent(begun).filter(|(thread, _)| system::ran(*thread).is_some());
        let feeders = feeders.map(|(number, state)| new(number, state, false));
        threads.iter_mut().zip(feeders).for_each(|(place, thread)| *place = Some(thread));
        if python.is_some() && threads.iter().flatten().all(|thread| thread.number != main) {
            threads[MAX_FEEDERS] = Some(new(main, 0, true));
        }
        if threads.iter().all(Option::is_none) {
            return None;
        }
        let lock = python.map_or(&(0..0), |python| &python.lock);
        let throttled = threads::throttled();
        threads.iter_mut().flatten().for_each(|thread| thread.condition = threads::condition(thread.number, lock));
        // Last: the stacks are asked for now.
        let asked = watcher::with_cupti(Cupti::now)?;
        Some(Self { asked, had: None, threads, holder: (NONE, NONE), throttled })
    }

    /// Whether Python's main thread ran.
    pub(crate) fn main_runs(&self) -> bool {
        let main = std::process::id();
        self.threads.iter().flatten().any(|thread| thread.number == main && thread.condition.doing == doing::RUNNING)
    }

    /// Reads the stacks and who held the lock, after the lock was waited for so long.
    ///
    /// # Safety
    /// The caller holds the interpreter's lock.
    pub(crate) unsafe fn read_after(&mut self, python: &Python, lock: &Lock, waited: Duration) {
        // Safety: the caller's promise.
        unsafe {
            if waited > HELD
                && let Some((holder, state)) = lock.holder(python)
            {
                self.holder = (holder, python.frames(state));
            }
            if waited <= PATIENCE {
                self.read(python, lock.place, watcher::with_cupti(Cupti::now));
            }
        }
    }

    /// Reads the stacks now. `place` is where the number of a thread lies in its state.
    ///
    /// # Safety
    /// The caller holds the interpreter's lock.
    pub(crate) unsafe fn read(&mut self, python: &Python, place: Option<usize>, now: Option<u64>) {
        self.had = now;
        // Safety: the caller's promise.
        unsafe {
            for thread in self.threads.iter_mut().flatten() {
                let state = if thread.is_beside { python.main_state() } else { thread.state(python, place) };
                thread.stack = match state {
                    None if thread.is_beside => NONE,
                    state => python.frames(state.unwrap_or(std::ptr::null_mut())),
                };
            }
        }
    }

    /// Writes a record for each thread. A main thread that is found to run no Python has none.
    pub(crate) fn write(&self) {
        let runs_no_python = |thread: &&Thread| thread.is_beside && self.had.is_some() && thread.stack == NONE;
        for thread in self.threads.iter().flatten().filter(|thread| !runs_no_python(thread)) {
            let had = self.had.filter(|_| thread.stack != NONE).unwrap_or(self.asked);
            let Condition { doing, ran, delayed, faults, system } = thread.condition;
            let fields = Fields::new().u64(self.asked).u64(had).u32(thread.number).u32(thread.stack);
            let fields = fields.u32(self.holder.0).u32(self.holder.1).u8s([doing, 0, 0, 0]).u32(0);
            let fields = fields.u64(ran).u64(delayed).u64(faults).u64(self.throttled).u64(system);
            fields.write(tag::SAMPLE, &[]);
        }
    }
}

/// What is known of the threads of Python, by the last time that the lock was held.
#[derive(Clone, Copy)]
pub(crate) struct Lock {
    /// Where the number of a thread lies in its state.
    pub(crate) place: Option<usize>,
    /// How the main thread is told that there is a call for it.
    pub(crate) breaker: Breaker,
    is_looked_for: bool,
    /// The numbers of threads, and for how long each had run before the lock was asked for.
    threads: [(u32, u64); MAX_THREADS],
    count: usize,
}

impl Lock {
    pub(crate) fn new() -> Self {
        Self { place: None, breaker: Breaker::Unknown, is_looked_for: false, threads: [(0, 0); MAX_THREADS], count: 0 }
    }

    /// Remembers for how long the threads ran, before the lock is asked for.
    pub(crate) fn before(&mut self) {
        let threads = &mut self.threads[..self.count];
        threads.iter_mut().for_each(|(thread, ran)| *ran = system::ran(*thread).unwrap_or(u64::MAX));
    }

    /// Looks at which threads of Python there are.
    ///
    /// # Safety
    /// The caller holds the lock; `own` is the state of this thread.
    pub(crate) unsafe fn learn(&mut self, python: &Python, own: Object) {
        // Safety: the caller's promise.
        unsafe {
            if !self.is_looked_for {
                (self.place, self.breaker) = (python.place_of_number(own), Breaker::find(python));
                self.is_looked_for = true;
            }
            let Some(place) = self.place else { return };
            let (own, main) = (system::thread(), std::process::id());
            let threads = python.states().map(|state| (python::number_at(state, place), state));
            self.count = 0;
            for (thread, state) in threads {
                if thread == main {
                    python::remember_main(state);
                }
                if thread != own && self.count < MAX_THREADS {
                    self.threads[self.count] = (thread, u64::MAX);
                    self.count += 1;
                }
            }
        }
    }

    /// The thread of Python that ran most since [`before`](Self::before), and its state.
    ///
    /// # Safety
    /// The caller holds the lock.
    unsafe fn holder(&self, python: &Python) -> Option<(u32, Object)> {
        let grew = |(thread, before): &(u32, u64)| (system::ran(*thread).unwrap_or(0).saturating_sub(*before), *thread);
        let (_, holder) = self.threads[..self.count].iter().map(grew).filter(|(ran, _)| *ran > 0).max()?;
        let place = self.place?;
        // Safety: the caller's promise.
        unsafe { python.states().find(|state| python::number_at(*state, place) == holder) }.map(|state| (holder, state))
    }
}
