//! Graphs: work that is put together once and enqueued as one.

use std::fmt;
use std::panic::Location;
use std::sync::Arc;

use super::Stream;
use super::engine::{Captured, EngineGraph, Result};
use super::tracer::{CallInfo, Kind};
use crate::units::counted;

/// The work of a stream, captured: to be enqueued again and again by one call. Cheap to clone.
///
/// It holds on to every tensor that its work reads or writes. Each launch computes from what those contain then; a
/// [`normal`](Stream::normal) within it gives the same numbers each time.
#[derive(Clone)]
pub struct Graph(Arc<Inner>);

struct Inner {
    stream: Stream,
    // Before what it uses: nothing launches it any more when that is freed.
    raw: Arc<dyn EngineGraph>,
    captured: Captured,
}

/// A capture in progress; dropped without [`finish`](Self::finish), it is given up.
struct Capturing<'a>(&'a Stream);

impl Capturing<'_> {
    fn finish(self) -> Result<Graph> {
        let stream = self.0;
        // The capture ends here, also where that fails: there is nothing left to give up.
        std::mem::forget(self);
        let (raw, captured) = stream.raw().end_capture()?;
        Ok(Graph(Arc::new(Inner { stream: stream.clone(), raw, captured })))
    }
}

impl Drop for Capturing<'_> {
    fn drop(&mut self) {
        self.0.raw().give_up_capture();
    }
}

/// Capturing work.
impl Stream {
    /// Captures what `work` enqueues on this stream, which then does not run, as a graph. Tensors made within are
    /// undefined until the graph has been launched.
    ///
    /// Only operations can be captured: no transfer between host and device, no event, no gate, no synchronization of the
    /// stream. Operations that other threads enqueue on the stream meanwhile are captured, too.
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
    /// [`Capturing`](crate::error::DeviceError::Capturing) within another capture of the stream, and from calls in `work` that cannot be
    /// captured; the error of `work`; no room for what is captured; what the engine says of the graph; a
    /// [gate](crate::device::Gate) is closed and no stream is at hand for the capture.
    pub fn capture<R>(&self, work: impl FnOnce() -> Result<R>) -> Result<(R, Graph)> {
        self.raw().begin_capture()?;
        let capturing = Capturing(self);
        let result = work()?;
        Ok((result, capturing.finish()?))
    }
}

impl Graph {
    /// Enqueues its work on the stream that it was captured on.
    ///
    /// # Errors
    /// [`Capturing`](crate::error::DeviceError::Capturing) while that stream's work is captured; a failure of work enqueued
    /// earlier; no room for more work.
    #[track_caller]
    pub fn launch(&self) -> Result<()> {
        let stream = &self.0.stream;
        let note = CallInfo::enqueue("Graph::launch", Some(Kind::Kernel));
        stream.noted(note, Some(Location::caller()), || self.0.raw.launch())
    }

    /// The number of operations in it.
    pub fn len(&self) -> usize {
        self.0.captured.operations
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
        write!(f, "Graph({}, {})", counted(self.len(), "operation"), self.0.stream.device().name())
    }
}
