//! Graphs: captured work of a stream.
//!
//! Allocations and their clearing are not captured: they are enqueued on the stream itself, which runs them before the
//! first launch.

use std::sync::Arc;

use super::guard::StreamInner;
use crate::device::cuda::driver::Executable;
use crate::device::engine::{EngineGraph, Result};

/// Operations of a stream.
pub(crate) struct CudaGraph {
    stream: Arc<StreamInner>,
    graph: Executable,
}

impl CudaGraph {
    pub(super) fn new(stream: Arc<StreamInner>, graph: Executable) -> Self {
        Self { stream, graph }
    }
}

impl EngineGraph for CudaGraph {
    fn launch(&self) -> Result<()> {
        self.stream.enter_uncaptured("Graph::launch")?.launch_graph(&self.graph)
    }
}
