//! Events and gates: what streams and the host wait for.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::CpuDevice;
use crate::device::engine::{EngineEvent, EngineGate, Result, own};
use crate::device::lock;
use crate::error::DeviceError;

/// One recording of an event: reached once, at an instant, perhaps behind work that failed.
#[derive(Default)]
pub(super) struct Mark {
    reached: Mutex<Option<(Instant, Option<DeviceError>)>>,
    changed: Condvar,
}

impl Mark {
    /// Reaches the mark now; `failure` is that of the work before it. A mark that is reached stays as it is.
    pub(super) fn reach(&self, failure: Option<DeviceError>) {
        lock(&self.reached).get_or_insert_with(|| (Instant::now(), failure));
        self.changed.notify_all();
    }

    /// Blocks until the mark is reached; then the failure of the work before it.
    pub(super) fn wait(&self) -> Result<()> {
        let mut reached = lock(&self.reached);
        loop {
            match &*reached {
                Some((_, failure)) => return failure.clone().map_or(Ok(()), Err),
                None => reached = self.changed.wait(reached).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    /// When the mark was reached, if it was.
    fn instant(&self) -> Result<Option<Instant>> {
        match &*lock(&self.reached) {
            Some((_, Some(failure))) => Err(failure.clone()),
            Some((instant, None)) => Ok(Some(*instant)),
            None => Ok(None),
        }
    }
}

/// An event: the mark of its latest recording. A wait holds the mark that was the latest when it was enqueued.
pub(super) struct CpuEvent {
    device: Arc<CpuDevice>,
    timing: bool,
    latest: Mutex<Option<Arc<Mark>>>,
}

impl CpuEvent {
    pub(super) fn new(device: &Arc<CpuDevice>, timing: bool) -> Self {
        Self { device: device.clone(), timing, latest: Mutex::new(None) }
    }

    /// The event behind the interface, if it is one of this opened device.
    pub(super) fn of<'a>(event: &'a dyn EngineEvent, device: &Arc<CpuDevice>) -> Result<&'a Self> {
        own(event, |event: &Self| &event.device, (device, &device.name), "an event")
    }

    /// Makes a mark the latest, which `enqueue` puts into a stream's queue: nobody may wait for one that nothing reaches.
    pub(super) fn renew(&self, enqueue: impl FnOnce(Arc<Mark>) -> Result<()>) -> Result<()> {
        let (mark, mut latest) = (Arc::new(Mark::default()), lock(&self.latest));
        enqueue(mark.clone())?;
        *latest = Some(mark);
        Ok(())
    }

    /// The mark of the latest recording, if there was one.
    pub(super) fn latest(&self) -> Option<Arc<Mark>> {
        lock(&self.latest).clone()
    }

    fn reached_at(&self) -> Result<Instant> {
        if !self.timing {
            return Err(DeviceError::EventNotReady { reason: "one of them was made without timing" });
        }
        let mark = self.latest().ok_or(DeviceError::EventNotReady { reason: "one of them was never recorded" })?;
        mark.instant()?.ok_or(DeviceError::EventNotReady { reason: "the device has not reached both yet" })
    }
}

impl EngineEvent for CpuEvent {
    fn is_complete(&self) -> Result<bool> {
        self.device.check()?;
        self.latest().map_or(Ok(true), |mark| mark.instant().map(|instant| instant.is_some()))
    }

    fn synchronize(&self) -> Result<()> {
        self.device.check()?;
        self.latest().map_or(Ok(()), |mark| mark.wait())
    }

    fn elapsed_since(&self, start: &dyn EngineEvent) -> Result<Duration> {
        let start = Self::of(start, &self.device)?;
        self.device.check()?;
        Ok(self.reached_at()?.saturating_duration_since(start.reached_at()?))
    }

    fn is_over(&self) -> bool {
        self.latest().is_none_or(|mark| mark.instant() != Ok(None))
    }

    fn reached(&self) -> Result<Option<Instant>> {
        self.latest().map_or(Ok(None), |mark| mark.instant())
    }
}

/// A gate: closed until it is opened.
pub(super) struct CpuGate {
    device: Arc<CpuDevice>,
    mark: Arc<Mark>,
}

impl CpuGate {
    pub(super) fn new(device: &Arc<CpuDevice>) -> Self {
        Self { device: device.clone(), mark: Arc::default() }
    }

    /// The mark of the gate behind the interface, if it is one of this opened device.
    pub(super) fn mark_of(gate: &dyn EngineGate, device: &Arc<CpuDevice>) -> Result<Arc<Mark>> {
        own(gate, |gate: &Self| &gate.device, (device, &device.name), "a gate").map(|gate| gate.mark.clone())
    }
}

impl Drop for CpuGate {
    /// Nobody is left who could open it.
    fn drop(&mut self) {
        self.mark.reach(None);
    }
}

impl EngineGate for CpuGate {
    fn open(&self) {
        self.mark.reach(None);
    }
}
