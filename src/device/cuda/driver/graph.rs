//! Captured work, ready to launch.

use std::sync::Arc;

use cudarc::driver::sys::{self, CUgraph, CUgraphExec, CUstream};

use super::Context;
use crate::device::engine::Result;

/// What was captured.
pub(super) struct Graph(CUgraph);

impl Graph {
    /// The graph of a handle, which ends with it.
    pub(super) fn of(raw: CUgraph) -> Self {
        Self(raw)
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // Safety: the handle is live and not used again; what was made ready of it does not need it.
        unsafe { sys::cuGraphDestroy(self.0) };
    }
}

/// An executable graph.
pub(crate) struct Executable {
    raw: CUgraphExec,
    context: Arc<Context>,
}

// Safety: the driver's handles are not bound to a thread.
unsafe impl Send for Executable {}
// Safety: as above; launches follow each other, as the guard of its one stream orders them.
unsafe impl Sync for Executable {}

impl Executable {
    /// Makes `graph` ready to launch; `stream` has nothing else to do.
    pub(super) fn instantiate(context: &Arc<Context>, graph: Graph, stream: CUstream) -> Result<Self> {
        let dead = std::mem::take(&mut context.given_up().graphs);
        for raw in dead {
            // Safety: the handle is live and not used again. One that runs is destroyed after that.
            unsafe { sys::cuGraphExecDestroy(raw) };
        }
        let mut raw = std::ptr::null_mut();
        // Safety: the graph is live; writes one handle, which is given up on drop.
        let status = unsafe { sys::cuGraphInstantiateWithFlags(&mut raw, graph.0, 0) };
        context.check("cuGraphInstantiate", status)?;
        let made = Self { raw, context: context.clone() };
        // So that the first launch costs what the others do.
        // Safety: both handles are live.
        context.check("cuGraphUpload", unsafe { sys::cuGraphUpload(raw, stream) }).map(|()| made)
    }

    #[inline]
    pub(super) fn raw(&self) -> CUgraphExec {
        self.raw
    }
}

impl Drop for Executable {
    fn drop(&mut self) {
        self.context.given_up().graphs.push(self.raw);
    }
}
