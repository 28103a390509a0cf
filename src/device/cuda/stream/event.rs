//! Events: marks in streams, with or without times between them.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cudarc::driver::sys::{self, CUevent, CUresult};

use crate::device::cuda::context::Context;
use crate::device::cuda::driver::handles::EventHandle;
use crate::device::cuda::stream::inner::StreamInner;
use crate::device::engine::{EngineEvent, Result};
use crate::error::DeviceError;

/// An event of a CUDA device.
pub(crate) struct CudaEvent {
    // Before the context: it is destroyed first.
    handle: EventHandle,
    context: Arc<Context>,
    timing: bool,
    recorded: AtomicBool,
}

impl CudaEvent {
    pub(crate) fn new(context: Arc<Context>, timing: bool) -> Result<Self> {
        context.bind()?;
        let handle = EventHandle::new(&context.primary, timing)?;
        Ok(Self { handle, context, timing, recorded: AtomicBool::new(false) })
    }

    /// The event behind the interface, if it is one of the device of `context`.
    pub(crate) fn of<'a>(event: &'a dyn EngineEvent, context: &Arc<Context>) -> Result<&'a Self> {
        let event: &dyn Any = event;
        match event.downcast_ref::<Self>() {
            Some(event) if Arc::ptr_eq(&event.context, context) => Ok(event),
            _ => Err(DeviceError::ForeignObject { what: "event", device: context.primary.name().to_owned() }),
        }
    }

    pub(crate) fn raw(&self) -> CUevent {
        self.handle.raw()
    }

    /// Enqueues a recording on `queue`.
    pub(crate) fn record(&self, queue: &StreamInner) -> Result<()> {
        // Safety: both handles are live and of one context.
        queue.check("cuEventRecord", unsafe { sys::cuEventRecord(self.raw(), queue.raw()) })?;
        self.recorded.store(true, Ordering::Release);
        Ok(())
    }
}

impl Drop for CudaEvent {
    /// The handle's own drop follows and needs the context current.
    fn drop(&mut self) {
        let _ = self.context.bind();
    }
}

impl EngineEvent for CudaEvent {
    fn is_complete(&self) -> Result<bool> {
        self.context.bind()?;
        // Safety: the event is live.
        match unsafe { sys::cuEventQuery(self.raw()) } {
            CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            status => self.context.check("cuEventQuery", status).map(|()| true),
        }
    }

    fn synchronize(&self) -> Result<()> {
        self.context.bind()?;
        // Safety: the event is live.
        self.context.check("cuEventSynchronize", unsafe { sys::cuEventSynchronize(self.raw()) })
    }

    fn elapsed_since(&self, start: &dyn EngineEvent) -> Result<Duration> {
        let start = Self::of(start, &self.context)?;
        let not_ready = |reason| Err(DeviceError::EventNotReady { reason });
        if !(self.timing && start.timing) {
            return not_ready("one of them was made without timing");
        }
        if !(self.recorded.load(Ordering::Acquire) && start.recorded.load(Ordering::Acquire)) {
            return not_ready("one of them was never recorded");
        }
        self.context.bind()?;
        match self.context.primary.elapsed_time(start.raw(), self.raw()) {
            (_, CUresult::CUDA_ERROR_NOT_READY) => not_ready("the device has not reached both yet"),
            (milliseconds, status) => {
                self.context.check("cuEventElapsedTime", status)?;
                // An end before its start gives a negative time, which a duration cannot hold.
                Ok(Duration::from_secs_f64(f64::from(milliseconds).max(0.0) / 1e3))
            }
        }
    }
}
