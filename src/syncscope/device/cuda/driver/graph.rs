//! Captured work, ready to launch.
//!
//! The driver keeps an executable graph, whatever its size, and a stream in memory of its own, of which it takes more for some
//! forty of them at a time. To take more waits for all work of the device (seen on an H200 with driver 580: the 16th, the 59th
//! and the 102nd that were made in a process waited for a gate). So room is made before there is a gate, and counted.

use std::sync::{Arc, MutexGuard};

use cudarc::driver::sys::{self, CUgraph, CUgraphExec};

use super::{Capture, Context, PoolSpan, Stream, exit};
use crate::device::engine::Result;
use crate::device::lock;

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
    /// Makes `graph` ready to launch.
    pub(super) fn instantiate(context: &Arc<Context>, graph: &Graph) -> Result<Self> {
        let dead = std::mem::take(&mut context.given_up().graphs);
        let _inside = exit::enter();
        for raw in dead {
            // Safety: the handle is live and not used again. One that runs is destroyed after that.
            unsafe { sys::cuGraphExecDestroy(raw) };
        }
        let mut raw = std::ptr::null_mut();
        // Safety: the graph is live; writes one handle, which is given up on drop.
        let status = unsafe { sys::cuGraphInstantiateWithFlags(&mut raw, graph.0, 0) };
        context.check("cuGraphInstantiate", status)?;
        Ok(Self { raw, context: context.clone() })
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

impl Context {
    /// Sees to it that the driver has room for `count` more executable graphs, at least for half of them: so many are made ready
    /// at once, to fill `span`, and given up; the driver keeps what they took for others. May wait for all work of the device.
    pub(crate) fn reserve_graphs(self: &Arc<Self>, count: usize, span: PoolSpan) -> Result<()> {
        if *self.room() >= count / 2 {
            return Ok(());
        }
        let mut capture = Capture::begin(Stream::new(self)?)?;
        capture.onto().fill(span, 0)?;
        let graph = capture.graph()?;
        let mut room = self.room();
        drop((0..count).map(|_| Executable::instantiate(self, &graph)).collect::<Result<Vec<_>>>()?);
        *room = count;
        Ok(())
    }

    /// Counts one executable graph or stream more; whether there was room for it. What is destroyed may still run, and gives no
    /// room back.
    pub(crate) fn take_room(&self) -> bool {
        let mut room = self.room();
        let left = room.checked_sub(1);
        *room = left.unwrap_or(0);
        left.is_some()
    }

    fn room(&self) -> MutexGuard<'_, usize> {
        lock(&self.room)
    }
}
