//! A stream of a CUDA device: the calls of the interface, each to the driver with as little as possible between.

pub(crate) mod event;
pub(crate) mod fault;
pub(crate) mod gate;
pub(crate) mod graph;
pub(crate) mod inner;
pub(crate) mod operations;

use std::any::Any;
use std::mem::MaybeUninit;
use std::sync::Arc;

use cudarc::driver::sys::{self, CUresult};

use crate::device::DType;
use crate::device::cuda::context::Context;
use crate::device::cuda::memory::device::CudaMemory;
use crate::device::cuda::memory::pinned::SLOT_BYTES;
use crate::device::cuda::memory::transfers;
use crate::device::cuda::stream::event::CudaEvent;
use crate::device::cuda::stream::gate::CudaGate;
use crate::device::cuda::stream::inner::StreamInner;
use crate::device::engine::{
    DeviceMemory, EngineEvent, EngineGate, EngineGraph, EngineStream, HostKind, HostMemory, Operation, Region, Result,
    Transfer,
};
use crate::error::DeviceError;

/// A stream of a CUDA device.
pub(crate) struct CudaStream {
    queue: Arc<StreamInner>,
}

impl CudaStream {
    pub(crate) fn new(context: Arc<Context>) -> Result<Self> {
        context.bind()?;
        Ok(Self { queue: context.queue()? })
    }

    /// The stream behind the interface, if it is one of the device of `context`.
    pub(crate) fn of<'a>(stream: &'a dyn EngineStream, context: &Context) -> Result<&'a Self> {
        let stream: &dyn Any = stream;
        match stream.downcast_ref::<Self>() {
            Some(stream) if stream.queue.context.primary.is_same(&context.primary) => Ok(stream),
            _ => Err(DeviceError::ForeignObject { what: "stream", device: context.primary.name().to_owned() }),
        }
    }

    pub(crate) fn queue(&self) -> &Arc<StreamInner> {
        &self.queue
    }
}

impl EngineStream for CudaStream {
    fn allocate(&self, dtype: DType, len: usize) -> Result<Arc<dyn DeviceMemory>> {
        self.queue.begin()?;
        Ok(Arc::new(CudaMemory::new(self.queue.clone(), dtype, len)?))
    }

    fn allocate_host_scalar(&self, dtype: DType) -> Result<Arc<dyn DeviceMemory>> {
        self.queue.begin()?;
        Ok(Arc::new(CudaMemory::host_scalar(self.queue.clone(), dtype)?))
    }

    fn enqueue(&self, operation: &Operation<'_>) -> Result<()> {
        self.queue.begin()?;
        operations::enqueue(&self.queue, operation)
    }

    fn enqueue_upload(&self, source: &dyn HostMemory, target: Region<'_>) -> Result<()> {
        self.queue.begin()?;
        transfers::enqueue_upload(&self.queue, source, target)
    }

    fn enqueue_download(&self, source: Region<'_>, target: &dyn HostMemory) -> Result<()> {
        self.queue.begin()?;
        transfers::enqueue_download(&self.queue, source, target)
    }

    fn upload(&self, source: &[u8], target: Region<'_>) -> Result<()> {
        self.queue.begin()?;
        transfers::upload(&self.queue, source, target)
    }

    fn download(&self, source: Region<'_>, target: &mut [MaybeUninit<u8>]) -> Result<()> {
        self.queue.begin()?;
        transfers::download(&self.queue, source, target)
    }

    /// A copy into pageable memory returns when it is over (*API synchronization behavior* of the driver's manual).
    fn waits(&self, transfer: Transfer) -> bool {
        match transfer {
            Transfer::Borrowed { bytes } => bytes > SLOT_BYTES,
            Transfer::ToHost(kind) => kind == HostKind::Pageable,
        }
    }

    fn record(&self, event: &dyn EngineEvent) -> Result<()> {
        self.queue.begin()?;
        CudaEvent::of(event, &self.queue.context)?.record(&self.queue)
    }

    fn wait_event(&self, event: &dyn EngineEvent) -> Result<()> {
        self.queue.begin()?;
        let event = CudaEvent::of(event, &self.queue.context)?;
        // Safety: both handles are live and of one context. An event never recorded holds nothing.
        let status = unsafe { sys::cuStreamWaitEvent(self.queue.raw(), event.raw(), 0) };
        self.queue.check("cuStreamWaitEvent", status)
    }

    fn wait_gate(&self, gate: &dyn EngineGate) -> Result<()> {
        self.queue.begin()?;
        CudaGate::enqueue_wait(gate, &self.queue)
    }

    fn begin_capture(&self) -> Result<()> {
        graph::begin(&self.queue)
    }

    fn end_capture(&self) -> Result<Arc<dyn EngineGraph>> {
        graph::end(&self.queue)
    }

    fn is_complete(&self) -> Result<bool> {
        self.queue.begin()?;
        // Safety: the stream is live.
        match unsafe { sys::cuStreamQuery(self.queue.raw()) } {
            CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            status => {
                self.queue.check("cuStreamQuery", status)?;
                self.queue.check_fault().map(|()| true)
            }
        }
    }

    fn synchronize(&self) -> Result<()> {
        // Not `begin`: a failed stream is waited for too, so that nothing runs on after the error.
        self.queue.context.bind()?;
        self.queue.synchronize()
    }
}
