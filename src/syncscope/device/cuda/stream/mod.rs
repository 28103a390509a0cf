//! A stream of a CUDA device: the calls of the interface, each to the guard with as little as possible between.
//!
//! | file | holds |
//! |---|---|
//! | `guard` | a stream and the one way to enqueue on it |
//! | `operations` | from an operation to its launches |
//! | `event`, `gate` | marks, holds |
//! | `fault` | what kernels report, and whose failure it is |
//! | `limbo` | what was given up while it may still be used |

pub(crate) mod event;
pub(crate) mod fault;
pub(crate) mod gate;
pub(crate) mod guard;
pub(crate) mod limbo;
pub(crate) mod operations;

use std::any::Any;
use std::sync::Arc;

use event::CudaEvent;
use gate::CudaGate;
use guard::StreamInner;

use super::driver::{Executable, Foreign};
use super::loaded::CudaKernel;
use super::memory::device::CudaMemory;
use super::memory::pinned::SLOT_BYTES;
use super::memory::transfers;
use super::opened::Opened;
use crate::device::DType;
use crate::device::code::{Argument, Launch};
use crate::device::engine::{
    Captured, DeviceMemory, EngineEvent, EngineGate, EngineGraph, EngineKernel, EngineStream, HostKind, HostMemory,
    Result, Transfer, own,
};
use crate::device::operation::{Operation, Region};

/// A stream of a CUDA device.
pub(crate) struct CudaStream {
    inner: Arc<StreamInner>,
}

impl CudaStream {
    pub(super) fn new(device: &Arc<Opened>) -> Result<Self> {
        Ok(Self { inner: StreamInner::new(device)? })
    }

    /// A stream of another library.
    pub(super) fn wrap(device: &Arc<Opened>, stream: Foreign) -> Result<Self> {
        Ok(Self { inner: StreamInner::wrap(device, stream)? })
    }

    /// What stands behind the interface.
    pub(super) fn inner(&self) -> &Arc<StreamInner> {
        &self.inner
    }

    /// The stream behind the interface, if it is one of this opened device.
    pub(super) fn of<'a>(stream: &'a dyn EngineStream, device: &Arc<Opened>) -> Result<&'a Arc<StreamInner>> {
        own(stream, |stream: &Self| &stream.inner.device, (device, device.name()), "a stream")
            .map(|stream| &stream.inner)
    }
}

/// Operations of a stream. Allocations and their clearing are not captured: they are enqueued on the stream itself, which runs
/// them before the first launch.
struct CudaGraph {
    stream: Arc<StreamInner>,
    graph: Executable,
}

impl EngineGraph for CudaGraph {
    fn launch(&self) -> Result<()> {
        self.stream.enter_uncaptured("Graph::launch")?.launch_graph(&self.graph)
    }
}

impl Drop for CudaStream {
    fn drop(&mut self) {
        self.inner.close();
    }
}

impl EngineStream for CudaStream {
    fn allocate(&self, dtype: DType, len: usize) -> Result<Arc<dyn DeviceMemory>> {
        Ok(Arc::new(CudaMemory::new(self.inner.clone(), dtype, len)?))
    }

    #[inline]
    fn enqueue(&self, operations: &[Operation<'_>]) -> Result<()> {
        let mut guard = match operations.iter().find(|operation| operation.is_never_captured()) {
            Some(operation) => self.inner.enter_uncaptured(operation.name())?,
            None => self.inner.enter()?,
        };
        let outcome = operations::enqueue(&mut guard, operations);
        operations.iter().for_each(|operation| guard.keep(operation, &outcome));
        guard.count_more(operations.len().saturating_sub(1));
        outcome
    }

    fn launch(&self, kernel: &dyn EngineKernel, launch: &Launch, arguments: &[Argument<'_>]) -> Result<()> {
        CudaKernel::launch(&self.inner, kernel, launch, arguments)
    }

    fn enqueue_upload(&self, source: &dyn HostMemory, target: Region<'_>, done: &dyn EngineEvent) -> Result<()> {
        transfers::enqueue_upload(&self.inner, source, target, CudaEvent::of(done, &self.inner.device)?)
    }

    fn enqueue_download(&self, source: Region<'_>, target: &dyn HostMemory, done: &dyn EngineEvent) -> Result<()> {
        transfers::enqueue_download(&self.inner, source, target, CudaEvent::of(done, &self.inner.device)?)
    }

    fn upload(&self, source: &[u8], target: Region<'_>) -> Result<()> {
        transfers::upload(&self.inner, source, target)
    }

    fn download(&self, source: Region<'_>, target: &mut [u8]) -> Result<()> {
        transfers::download(&self.inner, source, target)
    }

    fn download_all(&self, source: Region<'_>) -> Result<Box<dyn Any>> {
        transfers::download_all(&self.inner, source)
    }

    /// A copy into pageable memory returns when it is over (*API synchronization behavior* of the driver's manual).
    fn waits(&self, transfer: Transfer) -> bool {
        match transfer {
            Transfer::Borrowed { bytes } => bytes > SLOT_BYTES,
            Transfer::ToHost(kind) => kind == HostKind::Pageable,
            Transfer::FromHost(_) => false,
        }
    }

    /// The driver stages pageable memory: it copies a small buffer aside and returns, and stands in the call for a large one.
    fn may_wait(&self, transfer: Transfer) -> bool {
        transfer == Transfer::FromHost(HostKind::Pageable)
    }

    fn record(&self, event: &dyn EngineEvent) -> Result<()> {
        let event = CudaEvent::of(event, &self.inner.device)?;
        event.record(&self.inner.enter_uncaptured("record")?)
    }

    fn wait_event(&self, event: &dyn EngineEvent) -> Result<()> {
        let event = CudaEvent::of(event, &self.inner.device)?;
        event.enqueue_wait(&self.inner.enter_uncaptured("wait")?)
    }

    fn wait_gate(&self, gate: &dyn EngineGate) -> Result<()> {
        let gate = CudaGate::of(gate, &self.inner.device)?;
        gate.enqueue_wait(&self.inner.enter_uncaptured("wait_gate")?)
    }

    fn begin_capture(&self) -> Result<()> {
        self.inner.enter_uncaptured("capture")?.begin_capture()
    }

    fn end_capture(&self) -> Result<(Arc<dyn EngineGraph>, Captured)> {
        let ended = self.inner.enter().and_then(|mut guard| guard.end_capture());
        // Of a device that is lost.
        let (graph, captured) = ended.inspect_err(|_| self.inner.give_up_capture())?;
        Ok((Arc::new(CudaGraph { stream: self.inner.clone(), graph }), captured))
    }

    fn give_up_capture(&self) {
        self.inner.give_up_capture();
    }

    fn enqueued(&self) -> Option<u64> {
        self.inner.enqueued()
    }

    fn is_capturing(&self) -> bool {
        self.inner.is_capturing()
    }

    fn is_complete(&self) -> Result<bool> {
        self.inner.is_complete()
    }

    fn synchronize(&self) -> Result<()> {
        if self.inner.is_capturing() {
            self.inner.check_uncaptured("synchronize")?;
        }
        // Not by the guard: a failed stream is waited for too, so that nothing runs on after the error.
        self.inner.synchronize()
    }
}
