//! Events: marks in streams, with or without times between them, and with the failures before them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::fault::Recorded;
use super::guard::StreamGuard;
use crate::device::cuda::driver::Event;
use crate::device::cuda::opened::Opened;
use crate::device::engine::{EngineEvent, Result, own};
use crate::device::lock;
use crate::error::DeviceError;

/// An event of a CUDA device.
pub(crate) struct CudaEvent {
    handle: Event,
    device: Arc<Opened>,
    /// Never locked over a call of the driver. Where threads record the event beside each other, it may be any of theirs.
    latest: Mutex<Option<Recorded>>,
}

impl CudaEvent {
    pub(crate) fn new(device: &Arc<Opened>, timing: bool) -> Result<Self> {
        device.check()?;
        let handle = device.gpu.event(timing)?;
        Ok(Self { handle, device: device.clone(), latest: Mutex::default() })
    }

    /// The event behind the interface, if it is one of this opened device.
    pub(crate) fn of<'a>(event: &'a dyn EngineEvent, device: &Arc<Opened>) -> Result<&'a Self> {
        own(event, |event: &Self| &event.device, (device, device.name()), "an event")
    }

    /// Enqueues a recording.
    pub(crate) fn record(&self, guard: &StreamGuard<'_>) -> Result<()> {
        guard.record(&self.handle)?;
        *lock(&self.latest) = Some(guard.recorded());
        Ok(())
    }

    /// Enqueues a wait for the latest recording; there is nothing to wait for before the first.
    pub(crate) fn enqueue_wait(&self, guard: &StreamGuard<'_>) -> Result<()> {
        if self.latest().is_some() { guard.wait(&self.handle) } else { Ok(()) }
    }

    /// The latest recording; none before the first: the handle may have had another owner, who recorded it.
    fn latest(&self) -> Option<Recorded> {
        lock(&self.latest).clone()
    }
}

impl EngineEvent for CudaEvent {
    fn is_complete(&self) -> Result<bool> {
        self.device.check()?;
        let Some(latest) = self.latest() else { return Ok(true) };
        if self.handle.is_complete()? { latest.check(self.device.name()).map(|()| true) } else { Ok(false) }
    }

    fn synchronize(&self) -> Result<()> {
        self.device.check()?;
        // The recording that is waited for is not the latest any more where another thread records the event meanwhile.
        let Some(latest) = self.latest() else { return Ok(()) };
        self.handle.synchronize()?;
        latest.check(self.device.name())
    }

    fn is_over(&self) -> bool {
        self.latest().is_none() || self.handle.is_complete().unwrap_or(true)
    }

    fn elapsed_since(&self, start: &dyn EngineEvent) -> Result<Duration> {
        let start = Self::of(start, &self.device)?;
        self.device.check()?;
        let not_ready = |reason| Err(DeviceError::EventNotReady { reason });
        if !(self.handle.has_timing() && start.handle.has_timing()) {
            return not_ready("one of them was made without timing");
        }
        let (Some(begin), Some(end)) = (start.latest(), self.latest()) else {
            return not_ready("one of them was never recorded");
        };
        match self.handle.elapsed_since(&start.handle)? {
            Some(time) => [begin, end].iter().try_for_each(|event| event.check(self.device.name())).map(|()| time),
            None => not_ready("the device has not reached both yet"),
        }
    }
}
