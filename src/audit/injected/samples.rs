//! A sample: what each thread that feeds a device, and Python's main thread, is doing at one moment, and where.
//!
//! # Method
//! What the system says of the threads is read first, without any lock: reading a stack of Python changes what threads do. Then
//! the interpreter's lock is taken once for the stacks of all. Where that takes long, another thread holds the lock: it is the
//! one that ran most meanwhile.
//!
//! # Limits
//! A thread that runs Python is at most the interpreter's switch interval further at the time of its stack: both times are
//! written. Which thread holds the lock is known from Python 3.11 on.

use std::time::Duration;

use crate::feeders::{self, MAX_FEEDERS};
use crate::file::Fields;
use crate::format::{NONE, tag};
use crate::python::{self, Object, Python};
use crate::threads::{self, Condition};
use crate::watcher;
use crate::{cupti::Cupti, system};

/// A wait for the lock that is shorter has no holder: handing it over takes as long.
const HELD: Duration = Duration::from_millis(1);
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
    pub(crate) fn begin(asked: u64, python: Option<&Python>) -> Option<Self> {
        let main = std::process::id();
        let mut threads = [None; MAX_FEEDERS + 1];
        let new = |number, state, is_beside| {
            let condition = Condition::default();
            Thread { number, state, is_beside, stack: NONE, condition }
        };
        let feeders = feeders::recent(asked).filter(|(thread, _)| system::ran(*thread).is_some());
        let feeders = feeders.map(|(number, state)| new(number, state, false));
        threads.iter_mut().zip(feeders).for_each(|(place, thread)| *place = Some(thread));
        if python.is_some() && threads.iter().flatten().all(|thread| thread.number != main) {
            threads[MAX_FEEDERS] = Some(new(main, 0, true));
        }
        if threads.iter().all(Option::is_none) {
            return None;
        }
        let lock = python.map_or(&(0..0), |python| &python.lock);
        threads.iter_mut().flatten().for_each(|thread| thread.condition = threads::condition(thread.number, lock));
        Some(Self { asked, had: None, threads, holder: (NONE, NONE), throttled: threads::throttled() })
    }

    /// Reads the stacks, after the lock was waited for so long.
    ///
    /// # Safety
    /// The caller holds the interpreter's lock.
    pub(crate) unsafe fn read(&mut self, python: &Python, lock: &Lock, waited: Duration) {
        // Safety: the caller's promise.
        unsafe {
            if waited > HELD
                && let Some((holder, state)) = lock.holder(python)
            {
                self.holder = (holder, python.frames(state));
            }
            if waited > PATIENCE {
                return;
            }
            self.had = watcher::with_cupti(Cupti::now);
            for thread in self.threads.iter_mut().flatten() {
                let state = if thread.is_beside { python.main_state() } else { lock.state(python, thread) };
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
            let Condition { doing, ran, delayed, faults } = thread.condition;
            let fields = Fields::new().u64(self.asked).u64(had).u32(thread.number).u32(thread.stack);
            let fields = fields.u32(self.holder.0).u32(self.holder.1).u8s([doing, 0, 0, 0]).u32(0);
            fields.u64(ran).u64(delayed).u64(faults).u64(self.throttled).write(tag::SAMPLE, &[]);
        }
    }
}

/// What is known of the threads of Python, by the last time that the lock was held.
#[derive(Clone, Copy)]
pub(crate) struct Lock {
    /// Where the number of a thread lies in its state, and whether that was looked for.
    place: Option<usize>,
    is_looked_for: bool,
    /// The numbers of threads, and for how long each had run before the lock was asked for.
    threads: [(u32, u64); MAX_THREADS],
    count: usize,
}

impl Lock {
    pub(crate) fn new() -> Self {
        Self { place: None, is_looked_for: false, threads: [(0, 0); MAX_THREADS], count: 0 }
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
                (self.place, self.is_looked_for) = (python.place_of_number(own), true);
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

    /// The state of a thread, where it is still there and is no other thread's now.
    ///
    /// # Safety
    /// The caller holds the lock.
    unsafe fn state(&self, python: &Python, thread: &Thread) -> Option<Object> {
        // Safety: the caller's promise.
        unsafe {
            let state = python.known(thread.state as Object)?;
            let is_its_own = |place| python::number_at(state, place) == thread.number;
            self.place.is_none_or(is_its_own).then_some(state)
        }
    }
}
