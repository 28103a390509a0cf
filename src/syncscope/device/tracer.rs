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
//! The calls of other libraries are traced alike, by a source that sees them: they have the stack of their thread for a place.
//!
//! # Limits
//! A recording and its timeline take less than [`MAX_BYTES`](super::kept::MAX_BYTES), whatever the region does: some
//! 150,000 launches, or fewer with long names and many threads. Further calls and further work are counted as dropped.
//! Times between events reach from when the stream came to the first to when it passed the second: on an idle stream, they
//! hold the call itself.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;
use std::time::Instant;

use super::kept::{ByteBudget, ChunkedVec, text_bytes};
pub(crate) use super::kind::{Kind, SyncKind};
pub(crate) use super::traced::{ActivitySource, CallInfo, DeviceWork, Site, Stall, TraceSource, Traced, TracedCall};
use crate::device::lock;

/// A thread's entry in the tracer and in the log.
const THREAD_BYTES: usize = 4 * (size_of::<ThreadId>() + size_of::<Thread>());

/// What a stack takes until its line is looked up: that of a deep one.
const STACK_BYTES: usize = 8 << 10;

/// Why a recording knows no calls of other libraries that it would know otherwise.
pub(crate) const BEHIND_A_GATE: &str = "a closed gate holds a stream";

/// A device's tracer.
#[derive(Default)]
pub(crate) struct Tracer {
    recording: AtomicBool,
    streams: AtomicU32,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Whether the region is over: its calls are known.
    is_over: bool,
    /// Which recording this is: what began in an earlier one is not written into a later one.
    generation: u64,
    /// The last that was given to a call, in any recording.
    correlation: u64,
    calls: ChunkedVec<TracedCall>,
    /// For calls and threads.
    room: ByteBudget,
    work: ChunkedVec<DeviceWork>,
    room_for_work: ByteBudget,
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
    #[cfg(any(test, feature = "testing"))]
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
        self.is_on().then_some(()).and_then(|()| {
            let mut state = lock(&self.state);
            let generation = state.generation;
            state.thread()?.scopes.push((name, site));
            Some(Scope { tracer: self, generation })
        })
    }

    /// Opens a call; `None` where nobody records, or within another call.
    #[inline]
    pub(crate) fn call(&self, note: CallInfo, site: Site) -> Option<OpenCall<'_>> {
        if self.is_on() { self.open(note, site) } else { None }
    }

    #[cold]
    fn open(&self, note: CallInfo, site: Site) -> Option<OpenCall<'_>> {
        let (begun, source) = self.begin_call(note, site)?;
        if let Some(source) = &source {
            source.enter(begun.call.correlation);
        }
        let mut open = OpenCall { tracer: self, source, begun };
        open.begun.call.start = Instant::now();
        Some(open)
    }

    /// A call begins on this thread, which ends by [`end_call`](Self::end_call), with who is to be told of it; `None` within another
    /// call, and once the region is over.
    pub(crate) fn begin_call(
        &self,
        mut note: CallInfo,
        mut site: Site,
    ) -> Option<(BegunCall, Option<Arc<dyn ActivitySource>>)> {
        let mut state = lock(&self.state);
        if state.is_over {
            return None;
        }
        let correlation = state.correlation + 1;
        let Some(thread) = state.thread() else {
            state.dropped += 1;
            return None;
        };
        if thread.call.is_some() {
            return None;
        }
        if let Some(&(name, outer)) = thread.scopes.first() {
            site = outer;
            if note.barrier.is_some() {
                note = CallInfo { name, barrier: Some(SyncKind::Implicit), ..note };
            }
        }
        if !state.room.take(note.bytes_kept(site)) {
            state.dropped += 1;
            return None;
        }
        state.correlation = correlation;
        if let Some(thread) = state.thread() {
            thread.call = Some(correlation);
            #[cfg(any(test, feature = "testing"))]
            {
                thread.in_barrier = note.barrier.is_some();
            }
        }
        let call = TracedCall {
            note,
            site,
            stack: None,
            thread: std::thread::current().id(),
            correlation,
            start: Instant::now(),
            end: Instant::now(),
        };
        Some((BegunCall { generation: state.generation, call }, state.source.clone()))
    }

    /// A call is over. Its stack is kept where there is room.
    pub(crate) fn end_call(&self, begun: &BegunCall) {
        let mut state = lock(&self.state);
        if state.generation != begun.generation || state.is_over {
            return;
        }
        if let Some(thread) = state.thread() {
            thread.call = None;
            #[cfg(any(test, feature = "testing"))]
            {
                thread.in_barrier = false;
            }
        }
        let stack = begun.call.stack.clone().filter(|_| state.room.take(STACK_BYTES));
        state.calls.push(TracedCall { stack, ..begun.call.clone() });
    }

    /// The correlation of the call that is open on this thread.
    #[inline]
    pub(crate) fn correlation(&self) -> Option<u64> {
        if self.is_on() {
            lock(&self.state).threads.get(&std::thread::current().id()).and_then(|thread| thread.call)
        } else {
            None
        }
    }

    /// Keeps what a worker did for a call, unless another source reports it.
    pub(crate) fn worked(&self, work: DeviceWork) {
        let mut state = lock(&self.state);
        if !self.is_on() || work.correlation.is_none() || state.source.is_some() {
            return;
        }
        if state.room_for_work.take(DeviceWork::BYTES) { state.work.push(work) } else { state.dropped += 1 }
    }

    /// Whether a thread is in a call that waits.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn has_begun_a_barrier(&self) -> bool {
        lock(&self.state).threads.values().any(|thread| thread.in_barrier)
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
        lock(&self.state).source = source;
    }

    /// The region is over: calls that have not ended, and later ones, are no part of the recording. Those that have ended have
    /// enqueued their work.
    pub(crate) fn close(&self) {
        lock(&self.state).is_over = true;
    }

    /// Ends the recording, which was [closed](Self::close). The device has done the work of its calls.
    pub(crate) fn finish(&self) -> (Traced, ChunkedVec<TracedCall>, HashMap<ThreadId, String>) {
        let State { mut calls, work, dropped, threads, source, .. } = self.renew();
        let own = || Traced { work, ..Traced::default() };
        let mut traced = source.map_or_else(own, |source| source.finish(&mut calls));
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
        let mut state = lock(&self.state);
        let (generation, correlation) = (state.generation + 1, state.correlation);
        std::mem::replace(&mut state, State { generation, correlation, ..State::default() })
    }
}

impl State {
    /// What is open on this thread; nothing where there is no room for one more thread.
    fn thread(&mut self) -> Option<&mut Thread> {
        let current = std::thread::current();
        match self.threads.entry(current.id()) {
            Entry::Occupied(known) => Some(known.into_mut()),
            Entry::Vacant(place) => {
                let name = current.name().map_or_else(|| unnamed(current.id()), str::to_owned);
                // In the tracer, in the log and as a track.
                let taken = self.room.take(THREAD_BYTES + 3 * text_bytes(name.len()));
                taken.then(|| place.insert(Thread { name, ..Thread::default() }))
            }
        }
    }
}

/// A named stretch of a thread's calls.
pub(crate) struct Scope<'a> {
    tracer: &'a Tracer,
    generation: u64,
}

impl Drop for Scope<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.tracer.state);
        if state.generation == self.generation
            && let Some(thread) = state.thread()
        {
            thread.scopes.pop();
        }
    }
}

/// A call that has begun.
pub(crate) struct BegunCall {
    generation: u64,
    pub(crate) call: TracedCall,
}

/// A call that has begun; written when dropped.
pub(crate) struct OpenCall<'a> {
    tracer: &'a Tracer,
    /// Where it was entered, and is left whatever has become of the recording.
    source: Option<Arc<dyn ActivitySource>>,
    begun: BegunCall,
}

impl OpenCall<'_> {
    /// The correlation that its work carries.
    pub(crate) fn correlation(&self) -> u64 {
        self.begun.call.correlation
    }

    /// What is known of it.
    pub(crate) fn info(&self) -> CallInfo {
        self.begun.call.note
    }

    /// What reports its work.
    pub(crate) fn source(&self) -> Option<&Arc<dyn ActivitySource>> {
        self.source.as_ref()
    }
}

impl Drop for OpenCall<'_> {
    fn drop(&mut self) {
        self.begun.call.end = Instant::now();
        if let Some(source) = self.source.take() {
            source.leave();
        }
        self.tracer.end_call(&self.begun);
    }
}

/// What a thread without a name is called, as that of a notebook's cells: `thread 1`.
pub(crate) fn unnamed(thread: ThreadId) -> String {
    format!("{thread:?}").replace("ThreadId(", "thread ").replace(')', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many calls were entered and not left.
    #[derive(Default)]
    struct Entered(Mutex<Vec<u64>>);

    impl ActivitySource for Entered {
        fn enter(&self, correlation: u64) {
            self.0.lock().unwrap().push(correlation);
        }

        fn leave(&self) {
            self.0.lock().unwrap().pop();
        }

        fn finish(&self, _: &mut ChunkedVec<TracedCall>) -> Traced {
            Traced::default()
        }

        fn abandon(&self) {}
    }

    fn note() -> CallInfo {
        CallInfo::enqueue("fill", Some(Kind::Kernel))
    }

    #[test]
    fn a_call_that_outlives_its_recording_is_in_no_other_recording() {
        let (tracer, source) = (Tracer::default(), Arc::new(Entered::default()));
        assert!(tracer.begin());
        tracer.report(Some(source.clone()));
        let (first, entered) = (tracer.call(note(), None).unwrap(), source.0.lock().unwrap().len());
        tracer.end();
        assert!(tracer.begin());
        tracer.report(Some(source.clone()));
        drop(tracer.call(note(), None).unwrap());
        drop(first);
        assert_eq!((entered, source.0.lock().unwrap().len()), (1, 0));
        assert_eq!(tracer.finish().1.len(), 1);
    }

    #[test]
    fn calls_that_have_not_ended_when_the_region_does_are_not_of_it() {
        let tracer = Tracer::default();
        assert!(tracer.begin());
        drop(tracer.call(note(), None));
        let under_way = tracer.call(note(), None);
        tracer.close();
        drop(under_way);
        assert!(tracer.call(note(), None).is_none());
        assert_eq!(tracer.finish().1.len(), 1);
        tracer.end();
        assert!(tracer.begin() && tracer.call(note(), None).is_some(), "the next recording has its own");
    }

    #[test]
    fn calls_of_more_threads_than_there_is_room_for_are_counted() {
        let tracer = Tracer::default();
        assert!(tracer.begin());
        let name = "n".repeat(10 << 20);
        let call = || drop(tracer.call(note(), None));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                std::thread::Builder::new().name(name.clone()).spawn_scoped(scope, call).unwrap().join().unwrap();
            }
        });
        let (traced, calls, threads) = tracer.finish();
        assert_eq!((calls.len() as u64 + traced.dropped, calls.len()), (4, threads.len()));
        assert!(traced.dropped > 0);
        tracer.end();
    }
}
