//! The tracer of a device: what its calls and its workers did, kept only while somebody records.
//!
//! # Method
//! Every call that enqueues or blocks opens a [`Call`] at its head, which is written when it returns. While nobody
//! records, that is one relaxed load. A *scope* names the calls within it: the barrier within `nonzero` is the barrier
//! of `nonzero`, at the place that called it. A call within a call of the same thread is part of that call.
//!
//! A call has a correlation, which the work that it enqueues carries too. Work is reported by whoever knows when it
//! ran: the workers of the CPU engine, a [`ActivitySource`] of the engine's own, or, where there is none, two events around
//! each call ([`Source`]).
//!
//! # Limits
//! At most [`CAPACITY`] calls and as much work are kept; what is more is counted as dropped. Times between events
//! reach from when the stream came to the first to when it passed the second: on an idle stream, they hold the call
//! itself.

mod recording;

use std::collections::HashMap;
use std::panic::Location;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::Instant;

use super::Device;
use super::engine::{EngineStream, Operation, Result};
pub(crate) use recording::Recording;
use recording::{EventPair, EventPairs};

/// How many calls, and how much work, a recording keeps.
const CAPACITY: usize = 1 << 18;

/// A place in the source that calls the library.
pub(crate) type Site = Option<&'static Location<'static>>;

/// What a barrier waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waits {
    Stream,
    Event,
    Device,
    /// What the operation that it is part of needs.
    Implicit,
}

/// What a call does to the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Returns at once.
    Enqueue,
    /// Comes back when work is done.
    Barrier(Waits),
    /// Is the program's own work, named by it.
    HostWork,
}

/// What a device does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Activity {
    Kernel,
    Copy,
    /// Holds the stream for an event or a gate.
    Wait,
}

impl Activity {
    pub(super) fn of(operation: &Operation<'_>) -> Self {
        if matches!(operation, Operation::Copy { .. }) { Self::Copy } else { Self::Kernel }
    }
}

/// What is known of a call when it begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallInfo {
    pub(crate) name: &'static str,
    pub(crate) action: Action,
    pub(crate) stream: Option<u32>,
    pub(crate) bytes: Option<u64>,
    /// The work that it enqueues.
    pub(crate) enqueues: Option<Activity>,
    /// The correlation of the call whose work an event barrier waits for.
    pub(crate) awaits: Option<u64>,
}

impl CallInfo {
    pub(crate) fn new(name: &'static str, action: Action) -> Self {
        Self { name, action, stream: None, bytes: None, enqueues: None, awaits: None }
    }

    pub(crate) fn enqueue(name: &'static str, work: Option<Activity>) -> Self {
        Self { enqueues: work, ..Self::new(name, Action::Enqueue) }
    }

    pub(crate) fn barrier(name: &'static str, waits: Waits) -> Self {
        Self::new(name, Action::Barrier(waits))
    }
}

/// A call of the library that enqueued or blocked.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) note: CallInfo,
    pub(crate) site: Site,
    pub(crate) thread: ThreadId,
    pub(crate) correlation: u64,
    pub(crate) start: Instant,
    pub(crate) end: Instant,
}

/// What a device did.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    pub(crate) name: String,
    pub(crate) doing: Activity,
    /// `None` where it is known by its correlation alone.
    pub(crate) stream: Option<u32>,
    pub(crate) correlation: Option<u64>,
    pub(crate) bytes: Option<u64>,
    pub(crate) start: Instant,
    pub(crate) end: Instant,
}

/// A stretch within a call in which the host waited for the device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stall {
    /// The call's.
    pub(crate) correlation: u64,
    pub(crate) start: Instant,
    pub(crate) end: Instant,
}

/// What a tracer saw.
#[derive(Debug, Default)]
pub(crate) struct Traced {
    pub(crate) work: Vec<Work>,
    pub(crate) stalls: Vec<Stall>,
    pub(crate) dropped: u64,
}

/// What a recording kept.
#[derive(Debug)]
pub(crate) struct Log {
    pub(crate) calls: Vec<Call>,
    pub(crate) work: Vec<Work>,
    pub(crate) stalls: Vec<Stall>,
    pub(crate) threads: HashMap<ThreadId, String>,
    pub(crate) dropped: u64,
    /// Who knew when the device worked.
    pub(crate) source: String,
    pub(crate) origin: Instant,
    /// When the recorded region was over.
    pub(crate) end: Instant,
}

/// An engine's own records of what its device did.
pub(crate) trait ActivitySource: Send + Sync {
    /// Work enqueued from now on by this thread is of the call `correlation`.
    fn enter(&self, correlation: u64);

    /// The call is over.
    fn leave(&self);

    /// Ends the records. The device is idle.
    fn finish(&self) -> Traced;
}

/// Who reports when work ran.
pub(crate) enum Source {
    /// The engine, to the tracer.
    Engine(String),
    /// A tracer, at the end.
    #[cfg_attr(not(feature = "cuda"), allow(dead_code, reason = "no other engine has one"))]
    Recorder(Arc<dyn ActivitySource>, String),
    /// Nobody, for this reason: events are put around each call.
    Events(String),
}

/// A device's tracer.
#[derive(Default)]
pub(crate) struct Tracer {
    recording: AtomicBool,
    streams: AtomicU32,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Which recording this is: what began in an earlier one is not written into a later one.
    generation: u64,
    correlation: u64,
    calls: Vec<Call>,
    work: Vec<Work>,
    dropped: u64,
    threads: HashMap<ThreadId, Thread>,
    activities: Option<Arc<dyn ActivitySource>>,
    pairs: Option<EventPairs>,
}

/// What is open on a thread.
#[derive(Default)]
struct Thread {
    name: String,
    scopes: Vec<(&'static str, Site)>,
    call: Option<u64>,
    /// Whether the open call is a barrier: what tests wait for, to be sure that a barrier has begun.
    #[cfg(test)]
    in_barrier: bool,
}

impl Tracer {
    /// Whether somebody records.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.recording.load(Ordering::Relaxed)
    }

    /// The number of a new stream.
    pub(crate) fn next_stream(&self) -> u32 {
        self.streams.fetch_add(1, Ordering::Relaxed)
    }

    /// Names the calls of this thread until the scope is dropped, unless a scope around it does.
    #[inline]
    pub(crate) fn scope(&self, name: &'static str, site: Site) -> Option<Scope<'_>> {
        self.is_on().then(|| {
            let mut state = self.lock();
            let generation = state.generation;
            state.thread().scopes.push((name, site));
            Scope { tracer: self, generation }
        })
    }

    /// Opens a call; `None` where nobody records, or within another call.
    #[inline]
    pub(crate) fn call(&self, note: CallInfo, site: Site) -> Option<OpenCall<'_>> {
        if self.is_on() { self.open(note, site) } else { None }
    }

    #[cold]
    fn open(&self, mut note: CallInfo, mut site: Site) -> Option<OpenCall<'_>> {
        let mut state = self.lock();
        let correlation = state.correlation + 1;
        let thread = state.thread();
        if thread.call.is_some() {
            return None;
        }
        thread.call = Some(correlation);
        if let Some(&(name, outer)) = thread.scopes.first() {
            site = outer;
            if matches!(note.action, Action::Barrier(_)) {
                note = CallInfo { name, action: Action::Barrier(Waits::Implicit), ..note };
            }
        }
        #[cfg(test)]
        {
            state.thread().in_barrier = matches!(note.action, Action::Barrier(_));
        }
        state.correlation = correlation;
        if let Some(source) = &state.activities {
            source.enter(correlation);
        }
        let call = Call {
            note,
            site,
            thread: std::thread::current().id(),
            correlation,
            start: Instant::now(),
            end: Instant::now(),
        };
        Some(OpenCall { tracer: self, generation: state.generation, call })
    }

    /// The correlation of the call that is open on this thread.
    #[inline]
    pub(crate) fn correlation(&self) -> Option<u64> {
        if self.is_on() { self.lock().thread().call } else { None }
    }

    /// Keeps what a worker did.
    pub(crate) fn worked(&self, work: Work) {
        let mut state = self.lock();
        if !self.is_on() {
            return;
        }
        if state.work.len() < CAPACITY { state.work.push(work) } else { state.dropped += 1 }
    }

    /// Whether a thread is in a barrier.
    #[cfg(test)]
    pub(crate) fn has_begun_a_barrier(&self) -> bool {
        self.lock().threads.values().any(|thread| thread.in_barrier)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn thread(&mut self) -> &mut Thread {
        let current = std::thread::current();
        self.threads.entry(current.id()).or_insert_with(|| Thread {
            name: current.name().map_or_else(|| unnamed(current.id()), str::to_owned),
            ..Thread::default()
        })
    }
}

/// A named stretch of a thread's calls.
pub(crate) struct Scope<'a> {
    tracer: &'a Tracer,
    generation: u64,
}

impl Drop for Scope<'_> {
    fn drop(&mut self) {
        let mut state = self.tracer.lock();
        if state.generation == self.generation {
            state.thread().scopes.pop();
        }
    }
}

/// A call that has begun; written when dropped.
pub(crate) struct OpenCall<'a> {
    tracer: &'a Tracer,
    generation: u64,
    call: Call,
}

impl OpenCall<'_> {
    /// The correlation that its work carries.
    pub(crate) fn correlation(&self) -> u64 {
        self.call.correlation
    }

    /// Runs what it enqueues, between two events where those are the source of times.
    pub(super) fn run<R>(
        &self,
        stream: &Arc<dyn EngineStream>,
        device: &Device,
        run: impl FnOnce() -> Result<R>,
    ) -> Result<R> {
        let wanted = self.call.note.enqueues.filter(|_| self.tracer.lock().pairs.is_some());
        let Some(doing) = wanted else { return run() };
        let (start, end) = (device.engine().create_event(true)?, device.engine().create_event(true)?);
        stream.record(&*start)?;
        let result = run()?;
        stream.record(&*end)?;
        let CallInfo { name, stream, bytes, .. } = self.call.note;
        let bracket = EventPair { name, doing, stream, bytes, correlation: self.call.correlation };
        let mut state = self.tracer.lock();
        if let (true, Some(pairs)) = (state.generation == self.generation, &mut state.pairs) {
            pairs.pairs.push((bracket, (start, end)));
        }
        Ok(result)
    }
}

impl Drop for OpenCall<'_> {
    fn drop(&mut self) {
        self.call.end = Instant::now();
        let mut state = self.tracer.lock();
        if state.generation != self.generation {
            return;
        }
        state.thread().call = None;
        #[cfg(test)]
        {
            state.thread().in_barrier = false;
        }
        if let Some(source) = &state.activities {
            source.leave();
        }
        if state.calls.len() < CAPACITY { state.calls.push(self.call.clone()) } else { state.dropped += 1 }
    }
}

/// What a thread without a name is called, as that of a notebook's cells: `thread 1`.
pub(crate) fn unnamed(thread: ThreadId) -> String {
    format!("{thread:?}").replace("ThreadId(", "thread ").replace(')', "")
}
