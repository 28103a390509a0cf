//! Graphs by stream capture.
//!
//! In the relaxed mode, which forbids no other calls meanwhile: the first product of a shape still searches its plan, on
//! a stream of its own. Memory is allocated apart from the stream while it captures (see [`StreamInner::allocate`]): an
//! allocation in the graph would be the graph's.

use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::sys::{self, CUgraphExec, CUstream, CUstreamCaptureMode};

use crate::device::cuda::driver::primary::Primary;
use crate::device::cuda::stream::inner::StreamInner;
use crate::device::cuda::stream::operations;
use crate::device::engine::{EngineGraph, Result};

/// An executable graph of the driver, destroyed on drop; one that runs, after that. The context is current at each call.
pub(crate) struct GraphHandle(CUgraphExec);

// Safety: the driver's handles are not bound to a thread. Not `Sync`: launches of one graph must follow each other.
unsafe impl Send for GraphHandle {}

impl GraphHandle {
    /// From now on what is enqueued on `stream` is captured.
    pub(crate) fn begin_capture(primary: &Primary, stream: CUstream) -> Result<()> {
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        // Safety: the stream is live.
        primary.check("cuStreamBeginCapture", unsafe { sys::cuStreamBeginCapture_v2(stream, mode) })
    }

    /// Ends the capture on `stream` and makes its graph ready to launch there.
    pub(crate) fn end_capture(primary: &Primary, stream: CUstream) -> Result<Self> {
        let mut graph = ptr::null_mut();
        // Safety: writes one handle, which is destroyed below; null where the capture went wrong.
        primary.check("cuStreamEndCapture", unsafe { sys::cuStreamEndCapture(stream, &mut graph) })?;
        let mut made = Self(ptr::null_mut());
        // Safety: the graph is live until it is destroyed here; writes one handle, which is destroyed on drop.
        let instantiated = unsafe {
            let status = sys::cuGraphInstantiateWithFlags(&mut made.0, graph, 0);
            sys::cuGraphDestroy(graph);
            status
        };
        primary.check("cuGraphInstantiate", instantiated)?;
        // So that the first launch costs what the others do.
        // Safety: both handles are live.
        primary.check("cuGraphUpload", unsafe { sys::cuGraphUpload(made.0, stream) }).map(|()| made)
    }

    /// Enqueues the graph on `queue`.
    #[inline]
    pub(crate) fn launch(&self, queue: &StreamInner) -> Result<()> {
        // Safety: both handles are live; what the graph uses is kept by its owner.
        queue.check("cuGraphLaunch", unsafe { sys::cuGraphLaunch(self.0, queue.raw()) })
    }
}

impl Drop for GraphHandle {
    /// A drop cannot return an error.
    fn drop(&mut self) {
        if !self.0.is_null() {
            // Safety: the handle is live and not used again.
            unsafe { sys::cuGraphExecDestroy(self.0) };
        }
    }
}

/// Operations of a stream.
struct CudaGraph {
    // Before the queue, which keeps the context. Two threads must not launch one graph at once.
    handle: Mutex<GraphHandle>,
    queue: Arc<StreamInner>,
}

/// From now on what is enqueued on `queue` is captured.
pub(crate) fn begin(queue: &StreamInner) -> Result<()> {
    queue.begin()?;
    operations::prepare_scratch(queue)?;
    queue.capture(|| GraphHandle::begin_capture(&queue.context.primary, queue.raw()))
}

/// Ends a capture.
pub(crate) fn end(queue: &Arc<StreamInner>) -> Result<Arc<dyn EngineGraph>> {
    queue.context.bind()?;
    let made = GraphHandle::end_capture(&queue.context.primary, queue.raw());
    queue.capture_ended();
    Ok(Arc::new(CudaGraph { handle: Mutex::new(made?), queue: Arc::clone(queue) }))
}

impl EngineGraph for CudaGraph {
    fn launch(&self) -> Result<()> {
        self.queue.begin()?;
        self.handle.lock().unwrap_or_else(PoisonError::into_inner).launch(&self.queue)
    }
}

impl Drop for CudaGraph {
    /// The handle's own drop follows and needs the context current.
    fn drop(&mut self) {
        let _ = self.queue.context.bind();
    }
}
