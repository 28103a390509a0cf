//! The tracer of a device: what its calls and its workers did, kept only while somebody records.
//!
//! # Method
//! Every call that enqueues or blocks opens a [`TracedCall`] at its head, which is written when it returns. While nobody
//! records, that is one relaxed load. A *scope* names the calls within it: the wait within `nonzero` is the wait
//! of `nonzero`, at the place that called it. A call within a call of the same thread is part of that call.
//!
//! A call has a correlation, which the work that it enqueues carries too, and which no other call of the device has, also
//! in other recordings. Work is reported by whoever knows when it ran: the workers of the CPU engine, or an
//! [`ActivitySource`] ([`TraceSource`]). Work without a call of the recording is not of the recording.
//!
//! # Limits
//! At most [`CAPACITY`] calls and as much work are kept, in less than 128 MiB whatever the region does; further calls are
//! counted as dropped, and their work is not recorded. Times between events
//! reach from when the stream came to the first to when it passed the second: on an idle stream, they hold the call
//! itself.

use std::any::Any;
use std::collections::HashMap;
use std::panic::Location;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::Instant;

pub(crate) use super::kind::{Kind, SyncKind};

/// How many calls, and how much work, a recording keeps.
pub(crate) const CAPACITY: usize = 1 << 18;

/// A place in the source that calls the library.
pub(crate) type Site = Option<&'static Location<'static>>;

/// What is known of a call when it begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallInfo {
    pub(crate) name: &'static str,
    /// Enqueue, synchronize, or the host's own work.
    pub(crate) kind: Kind,
    /// What a call that synchronizes waits for.
    pub(crate) barrier: Option<SyncKind>,
    pub(crate) stream: Option<u32>,
    pub(crate) bytes: Option<u64>,
    /// The work that it enqueues.
    pub(crate) enqueues: Option<Kind>,
    /// The correlation of the call whose work a wait for an event waits for.
    pub(crate) awaits: Option<u64>,
    /// Whether the host may stand in it while its own copy runs.
    pub(crate) may_wait: bool,
}

impl CallInfo {
    pub(crate) fn new(name: &'static str, kind: Kind) -> Self {
        Self { name, kind, barrier: None, stream: None, bytes: None, enqueues: None, awaits: None, may_wait: false }
    }

    pub(crate) fn enqueue(name: &'static str, work: Option<Kind>) -> Self {
        Self { enqueues: work, ..Self::new(name, Kind::Enqueue) }
    }

    pub(crate) fn barrier(name: &'static str, barrier: SyncKind) -> Self {
        Self { barrier: Some(barrier), ..Self::new(name, Kind::Synchronize) }
    }
}

/// A call of the library that enqueued or blocked.
#[derive(Clone, Debug)]
pub(crate) struct TracedCall {
    pub(crate) note: CallInfo,
    pub(crate) site: Site,
    pub(crate) thread: ThreadId,
    pub(crate) correlation: u64,
    pub(crate) start: Instant,
    pub(crate) end: Instant,
}

/// What a device did.
#[derive(Clone, Debug)]
pub(crate) struct DeviceWork {
    pub(crate) name: String,
    pub(crate) kind: Kind,
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
    pub(crate) work: Vec<DeviceWork>,
    pub(crate) stalls: Vec<Stall>,
    pub(crate) dropped: u64,
}

/// Who records what a device did, beside the engine.
pub(crate) trait ActivitySource: Send + Sync + Any {
    /// Work enqueued from now on by this thread is of the call `correlation`.
    fn enter(&self, correlation: u64);

    /// The call is over.
    fn leave(&self);

    /// Ends the records. The device is idle.
    fn finish(&self) -> Traced;

    /// Ends the records, which are of no use. Work may be pending, and nothing may wait for it.
    fn abandon(&self);
}

/// Who reports when work ran.
pub(crate) enum TraceSource {
    /// The engine, to the tracer.
    Engine(String),
    /// A recorder, at the end.
    #[cfg_attr(not(feature = "cuda"), allow(dead_code, reason = "no other engine has one"))]
    Recorder(Arc<dyn ActivitySource>, String),
    /// Nobody, for this reason: events are put around each call.
    #[cfg_attr(not(feature = "cuda"), allow(dead_code, reason = "the CPU engine reports"))]
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
    /// The last that was given to a call, in any recording.
    correlation: u64,
    calls: Vec<TracedCall>,
    /// How many calls have begun.
    begun: usize,
    work: Vec<DeviceWork>,
    dropped: u64,
    threads: HashMap<ThreadId, Thread>,
    source: Option<Arc<dyn ActivitySource>>,
}

/// What is open on a thread.
#[derive(Default)]
struct Thread {
    name: String,
    scopes: Vec<(&'static str, Site)>,
    call: Option<u64>,
    /// Whether the open call waits: what tests wait for, to be sure that a wait has begun.
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
        let (correlation, full) = (state.correlation + 1, state.begun >= CAPACITY);
        let thread = state.thread();
        if thread.call.is_some() {
            return None;
        }
        if full {
            state.dropped += 1;
            return None;
        }
        thread.call = Some(correlation);
        if let Some(&(name, outer)) = thread.scopes.first() {
            site = outer;
            if note.barrier.is_some() {
                note = CallInfo { name, barrier: Some(SyncKind::Implicit), ..note };
            }
        }
        #[cfg(test)]
        {
            state.thread().in_barrier = note.barrier.is_some();
        }
        state.correlation = correlation;
        state.begun += 1;
        if let Some(source) = &state.source {
            source.enter(correlation);
        }
        let call = TracedCall {
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
        if self.is_on() {
            self.lock().threads.get(&std::thread::current().id()).and_then(|thread| thread.call)
        } else {
            None
        }
    }

    /// Keeps what a worker did for a call.
    pub(crate) fn worked(&self, work: DeviceWork) {
        let mut state = self.lock();
        if !self.is_on() || work.correlation.is_none() {
            return;
        }
        if state.work.len() < CAPACITY { state.work.push(work) } else { state.dropped += 1 }
    }

    /// Whether a thread is in a call that waits.
    #[cfg(test)]
    pub(crate) fn has_begun_a_barrier(&self) -> bool {
        self.lock().threads.values().any(|thread| thread.in_barrier)
    }

    /// Begins a recording, whose source is set by [`report`](Self::report); `false` while another is in progress.
    pub(crate) fn begin(&self) -> bool {
        if self.recording.compare_exchange(false, true, Ordering::SeqCst, Ordering::SeqCst).is_err() {
            return false;
        }
        self.renew();
        true
    }

    /// From now on `source` reports work.
    pub(crate) fn report(&self, source: Option<Arc<dyn ActivitySource>>) {
        let old = self.renew();
        debug_assert!(old.source.is_none(), "one source a recording");
        self.lock().source = source;
    }

    /// What reports work, in the recording that is in progress.
    pub(crate) fn source(&self) -> Option<Arc<dyn ActivitySource>> {
        self.lock().source.clone()
    }

    /// Ends the recording. The device is idle.
    pub(crate) fn finish(&self) -> (Traced, Vec<TracedCall>, HashMap<ThreadId, String>) {
        let State { calls, work, dropped, threads, source, .. } = self.renew();
        let mut traced = source.map(|source| source.finish()).unwrap_or_default();
        traced.work.extend(work);
        traced.dropped += dropped;
        (traced, calls, threads.into_iter().map(|(id, thread)| (id, thread.name)).collect())
    }

    /// Turns recording off; what was recorded and not [finished](Self::finish) is forgotten.
    pub(crate) fn end(&self) {
        if let Some(source) = self.renew().source {
            source.abandon();
        }
        self.recording.store(false, Ordering::SeqCst);
    }

    /// Begins a new generation and gives what the old one kept. Correlations go on.
    fn renew(&self) -> State {
        let mut state = self.lock();
        let (generation, correlation) = (state.generation + 1, state.correlation);
        std::mem::replace(&mut state, State { generation, correlation, ..State::default() })
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
    call: TracedCall,
}

impl OpenCall<'_> {
    /// The correlation that its work carries.
    pub(crate) fn correlation(&self) -> u64 {
        self.call.correlation
    }

    /// What is known of it.
    pub(crate) fn info(&self) -> CallInfo {
        self.call.note
    }

    /// The tracer that it is written to.
    pub(crate) fn tracer(&self) -> &Tracer {
        self.tracer
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
        if let Some(source) = &state.source {
            source.leave();
        }
        state.calls.push(self.call.clone());
    }
}

/// What a thread without a name is called, as that of a notebook's cells: `thread 1`.
pub(crate) fn unnamed(thread: ThreadId) -> String {
    format!("{thread:?}").replace("ThreadId(", "thread ").replace(')', "")
}
