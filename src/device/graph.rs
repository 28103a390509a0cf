//! Graphs: work that is put together once and enqueued as one.

use std::fmt;
use std::panic::Location;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Stream;
use super::engine::{DeviceMemory, EngineGraph, Operation, Result};
use super::tracer::{Activity, CallInfo};
use crate::error::DeviceError;

/// The work of a stream, captured: to be enqueued again and again by one call. Cheap to clone.
///
/// It holds on to every tensor that its work reads or writes. Each launch computes from what those contain then; a
/// [`normal`](Stream::normal) within it draws the same numbers each time.
#[derive(Clone)]
pub struct Graph(Arc<Captured>);

struct Captured {
    stream: Stream,
    operations: usize,
    // Before the memory: nothing launches it any more when that is freed.
    raw: Arc<dyn EngineGraph>,
    _memory: Vec<Arc<dyn DeviceMemory>>,
}

/// What a stream has captured so far.
#[derive(Default)]
pub(super) struct Capture {
    on: AtomicBool,
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    operations: usize,
    memory: Vec<Arc<dyn DeviceMemory>>,
}

impl Capture {
    #[inline]
    pub(super) fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    /// An error while the stream's work is captured.
    #[inline]
    pub(super) fn forbids(&self, call: &'static str) -> Result<()> {
        if self.is_on() { Err(DeviceError::Capturing { call }) } else { Ok(()) }
    }

    /// Notes what a captured operation uses.
    #[cold]
    pub(super) fn take(&self, operation: &Operation<'_>) {
        let mut taken = self.lock();
        taken.operations += 1;
        for region in operation.regions() {
            if !taken.memory.iter().any(|known| Arc::ptr_eq(known, region.memory)) {
                taken.memory.push(Arc::clone(region.memory));
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A capture in progress; dropped without [`finish`](Self::finish), it is given up.
struct Capturing<'a> {
    stream: &'a Stream,
    begun: bool,
}

impl Capturing<'_> {
    fn finish(mut self) -> Result<Graph> {
        let stream = self.stream.clone();
        self.begun = false;
        let raw = stream.raw().end_capture()?;
        let Taken { operations, memory } = std::mem::take(&mut *stream.own.capture.lock());
        Ok(Graph(Arc::new(Captured { stream, operations, raw, _memory: memory })))
    }
}

impl Drop for Capturing<'_> {
    fn drop(&mut self) {
        if self.begun {
            // An error has nobody to tell.
            let _ = self.stream.raw().end_capture();
        }
        let capture = &self.stream.own.capture;
        *capture.lock() = Taken::default();
        capture.on.store(false, Ordering::Relaxed);
    }
}

/// Capturing work.
impl Stream {
    /// Captures what `work` enqueues on this stream, which then does not run, as a graph. Tensors made within are
    /// undefined until the graph has been launched.
    ///
    /// Use the stream from this thread alone meanwhile. Only operations can be captured: no transfer between host and
    /// device, no event, no gate, no barrier.
    ///
    /// ```
    /// use syncscope::prelude::*;
    ///
    /// let device = Device::open("cpu:0")?;
    /// let stream = device.stream()?;
    /// let x = stream.ones::<f32>([4])?;
    /// let (_, graph) = stream.capture(|| (0..10).try_for_each(|_| x.affine_in_place(2.0, 0.0)))?;
    /// graph.launch()?;
    /// assert_eq!(x.to_vec()?, [1024.0; 4]);
    /// # Ok::<(), DeviceError>(())
    /// ```
    ///
    /// # Errors
    /// [`DeviceError::Capturing`] within another capture of the stream, and from calls in `work` that cannot be
    /// captured; the error of `work`; what the engine says of the graph.
    pub fn capture<R>(&self, work: impl FnOnce() -> Result<R>) -> Result<(R, Graph)> {
        let capture = &self.own.capture;
        if capture.on.compare_exchange(false, true, Ordering::Relaxed, Ordering::Relaxed).is_err() {
            return Err(DeviceError::Capturing { call: "capture" });
        }
        let mut capturing = Capturing { stream: self, begun: false };
        self.raw().begin_capture()?;
        capturing.begun = true;
        let result = work()?;
        Ok((result, capturing.finish()?))
    }
}

impl Graph {
    /// Enqueues its work on the stream that it was captured on.
    ///
    /// # Errors
    /// [`DeviceError::Capturing`] while that stream's work is captured; a failure of work enqueued earlier.
    #[track_caller]
    pub fn launch(&self) -> Result<()> {
        let stream = &self.0.stream;
        stream.own.capture.forbids("Graph::launch")?;
        let note = CallInfo::enqueue("Graph::launch", Some(Activity::Kernel));
        stream.noted(note, Some(Location::caller()), || self.0.raw.launch())
    }

    /// The number of operations in it.
    pub fn len(&self) -> usize {
        self.0.operations
    }

    /// Whether there is no operation in it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The stream that it was captured on and runs on.
    pub fn stream(&self) -> &Stream {
        &self.0.stream
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Graph({} operations, {})", self.len(), self.0.stream.device().name())
    }
}
