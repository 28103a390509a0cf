//! Graphs by stream capture.
//!
//! In the relaxed mode, which forbids no other calls meanwhile: the first product of a shape still searches its plan, on
//! a stream of its own. Memory is allocated apart from the stream while it captures (see [`Queue::allocate`]): an
//! allocation in the graph would be the graph's.

use std::ptr;
use std::sync::Arc;

use cudarc::driver::sys::{self, CUgraphExec, CUstreamCaptureMode};

use super::operations;
use super::queue::Queue;
use crate::device::engine::{EngineGraph, Result};

/// An executable graph of the driver, destroyed on drop; one that runs, after that.
pub(super) struct CudaGraph {
    raw: CUgraphExec,
    queue: Arc<Queue>,
}

// Safety: the driver's handles are not bound to a thread; launches of one graph are ordered by its one stream.
unsafe impl Send for CudaGraph {}
// Safety: as above.
unsafe impl Sync for CudaGraph {}

/// From now on what is enqueued on `queue` is captured.
pub(super) fn begin(queue: &Queue) -> Result<()> {
    queue.begin()?;
    operations::prepare_scratch(queue)?;
    // Safety: the stream is live.
    let status =
        unsafe { sys::cuStreamBeginCapture_v2(queue.raw(), CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED) };
    queue.check("cuStreamBeginCapture", status)?;
    queue.set_capturing(true);
    Ok(())
}

/// Ends a capture and makes its graph ready to launch.
pub(super) fn end(queue: &Arc<Queue>) -> Result<Arc<dyn EngineGraph>> {
    queue.context.bind()?;
    let mut graph = ptr::null_mut();
    // Safety: writes one handle, which is destroyed below; null where the capture went wrong.
    let captured = queue.check("cuStreamEndCapture", unsafe { sys::cuStreamEndCapture(queue.raw(), &mut graph) });
    queue.set_capturing(false);
    captured?;
    let mut made = CudaGraph { raw: ptr::null_mut(), queue: Arc::clone(queue) };
    // Safety: the graph is live until it is destroyed here; writes one handle, which is destroyed on drop.
    let instantiated = unsafe {
        let status = sys::cuGraphInstantiateWithFlags(&mut made.raw, graph, 0);
        sys::cuGraphDestroy(graph);
        status
    };
    queue.check("cuGraphInstantiate", instantiated)?;
    // So that the first launch costs what the others do.
    // Safety: both handles are live.
    queue.check("cuGraphUpload", unsafe { sys::cuGraphUpload(made.raw, queue.raw()) })?;
    Ok(Arc::new(made))
}

impl EngineGraph for CudaGraph {
    fn launch(&self) -> Result<()> {
        self.queue.begin()?;
        // Safety: both handles are live; what the graph uses is kept by its owner.
        self.queue.check("cuGraphLaunch", unsafe { sys::cuGraphLaunch(self.raw, self.queue.raw()) })
    }
}

impl Drop for CudaGraph {
    /// Errors have nobody to tell.
    fn drop(&mut self) {
        if !self.raw.is_null() {
            let _ = self.queue.context.bind();
            // Safety: the handle is live and not used again.
            unsafe { sys::cuGraphExecDestroy(self.raw) };
        }
    }
}
