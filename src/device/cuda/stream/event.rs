//! Events: marks in streams, with or without times between them, and with the failures that they cover.

use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::fault::Causes;
use super::guard::StreamGuard;
use crate::device::cuda::driver::Event;
use crate::device::cuda::gpu::{Opened, lock};
use crate::device::engine::{EngineEvent, Result};
use crate::error::DeviceError;

/// An event of a CUDA device.
pub(crate) struct CudaEvent {
    handle: Event,
    device: Arc<Opened>,
    /// How many recordings there were.
    recordings: AtomicU64,
    /// Locked after the guard of a stream, and never over a call of the driver, which may wait for room in its queue.
    recorded: Mutex<Option<Recorded>>,
}

/// What is known of the latest recording.
struct Recorded {
    /// Whose failures are its own.
    causes: Causes,
    /// How many recordings had begun when it was noted.
    begun: u64,
}

impl CudaEvent {
    pub(crate) fn new(device: &Arc<Opened>, timing: bool) -> Result<Self> {
        device.check()?;
        let handle = device.gpu.event(timing)?;
        Ok(Self { handle, device: device.clone(), recordings: AtomicU64::new(0), recorded: Mutex::default() })
    }

    /// The event behind the interface, if it is one of this opened device.
    pub(crate) fn of<'a>(event: &'a dyn EngineEvent, device: &Arc<Opened>) -> Result<&'a Self> {
        let event: &dyn Any = event;
        match event.downcast_ref::<Self>() {
            Some(event) if Arc::ptr_eq(&event.device, device) => Ok(event),
            _ => Err(DeviceError::ForeignObject { what: "an event", device: device.name().to_owned() }),
        }
    }

    /// Enqueues a recording.
    pub(crate) fn record(&self, guard: &StreamGuard<'_>) -> Result<()> {
        let own = self.recordings.fetch_add(1, Ordering::SeqCst) + 1;
        guard.record(&self.handle)?;
        let mut causes = guard.causes();
        let mut recorded = lock(&self.recorded);
        // Of two that were under way at once, on two streams, only the driver knows which it has: the causes of both.
        if let Some(other) = recorded.as_ref().filter(|other| other.begun >= own) {
            causes.merge(&other.causes, self.device.name());
        }
        *recorded = Some(Recorded { causes, begun: self.recordings.load(Ordering::SeqCst) });
        Ok(())
    }

    /// Enqueues a wait for the latest recording; there is nothing to wait for before the first.
    pub(crate) fn enqueue_wait(&self, guard: &mut StreamGuard<'_>) -> Result<()> {
        let causes = lock(&self.recorded).as_ref().map(|recorded| recorded.causes.clone());
        causes.map_or(Ok(()), |causes| guard.wait(&self.handle, &causes))
    }

    /// The handle may have had another owner, who recorded it.
    fn is_recorded(&self) -> bool {
        lock(&self.recorded).is_some()
    }

    /// The failure of the work before the latest recording.
    fn check(&self) -> Result<()> {
        lock(&self.recorded).as_ref().map_or(Ok(()), |recorded| recorded.causes.check(self.device.name()))
    }
}

impl EngineEvent for CudaEvent {
    fn is_complete(&self) -> Result<bool> {
        self.device.check()?;
        if self.is_recorded() && !self.handle.is_complete()? {
            return Ok(false);
        }
        self.check().map(|()| true)
    }

    fn synchronize(&self) -> Result<()> {
        self.device.check()?;
        if self.is_recorded() {
            self.handle.synchronize()?;
        }
        self.check()
    }

    fn is_over(&self) -> bool {
        !self.is_recorded() || self.handle.is_complete().unwrap_or(true)
    }

    fn elapsed_since(&self, start: &dyn EngineEvent) -> Result<Duration> {
        let start = Self::of(start, &self.device)?;
        let not_ready = |reason| Err(DeviceError::EventNotReady { reason });
        if !(self.handle.has_timing() && start.handle.has_timing()) {
            return not_ready("one of them was made without timing");
        }
        if !(self.is_recorded() && start.is_recorded()) {
            return not_ready("one of them was never recorded");
        }
        self.device.check()?;
        match self.handle.elapsed_since(&start.handle)? {
            Some(time) => start.check().and_then(|()| self.check()).map(|()| time),
            None => not_ready("the device has not reached both yet"),
        }
    }
}
