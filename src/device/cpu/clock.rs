//! Events and gates: what streams and the host wait for.

use std::any::Any;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::device::engine::{EngineEvent, EngineGate, Result};
use crate::error::DeviceError;

/// One recording of an event: reached once, at an instant.
#[derive(Default)]
pub(super) struct Mark {
    reached: Mutex<Option<Instant>>,
    changed: Condvar,
}

impl Mark {
    /// Reaches the mark now.
    pub(super) fn reach(&self) {
        *lock(&self.reached) = Some(Instant::now());
        self.changed.notify_all();
    }

    /// Blocks until the mark is reached.
    pub(super) fn wait(&self) -> Instant {
        let mut reached = lock(&self.reached);
        loop {
            match *reached {
                Some(instant) => return instant,
                None => reached = self.changed.wait(reached).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    fn instant(&self) -> Option<Instant> {
        *lock(&self.reached)
    }
}

/// An event: the mark of its latest recording. A wait holds the mark that was the latest when it was enqueued.
pub(super) struct CpuEvent {
    timing: bool,
    latest: Mutex<Option<Arc<Mark>>>,
}

impl CpuEvent {
    pub(super) fn new(timing: bool) -> Self {
        Self { timing, latest: Mutex::new(None) }
    }

    /// Makes `mark` the latest, once it stands in its stream's queue: nobody may wait for one that nothing reaches.
    pub(super) fn renew(&self, mark: Arc<Mark>) {
        *lock(&self.latest) = Some(mark);
    }

    /// The mark of the latest recording, if there was one.
    pub(super) fn latest(&self) -> Option<Arc<Mark>> {
        lock(&self.latest).clone()
    }

    fn reached_at(&self) -> Result<Instant> {
        if !self.timing {
            return Err(DeviceError::EventNotReady { reason: "an event was made without timing" });
        }
        let mark = self.latest().ok_or(DeviceError::EventNotReady { reason: "an event was never recorded" })?;
        mark.instant().ok_or(DeviceError::EventNotReady { reason: "an event has not been reached" })
    }
}

impl EngineEvent for CpuEvent {
    fn is_complete(&self) -> Result<bool> {
        Ok(self.latest().is_none_or(|mark| mark.instant().is_some()))
    }

    fn synchronize(&self) -> Result<()> {
        if let Some(mark) = self.latest() {
            mark.wait();
        }
        Ok(())
    }

    fn elapsed_since(&self, start: &dyn EngineEvent) -> Result<Duration> {
        let start = (start as &dyn Any).downcast_ref::<CpuEvent>().ok_or_else(|| DeviceError::ForeignObject {
            what: "the start event",
            device: "the CPU engine".to_owned(),
        })?;
        Ok(self.reached_at()?.saturating_duration_since(start.reached_at()?))
    }
}

/// A gate: closed until it is opened.
#[derive(Default)]
pub(super) struct CpuGate {
    mark: Arc<Mark>,
}

impl CpuGate {
    pub(super) fn mark(&self) -> Arc<Mark> {
        Arc::clone(&self.mark)
    }
}

impl Drop for CpuGate {
    /// Nobody is left who could open it.
    fn drop(&mut self) {
        self.mark.reach();
    }
}

impl EngineGate for CpuGate {
    fn open(&self) {
        self.mark.reach();
    }
}

/// What is guarded here is replaced whole: a panic elsewhere leaves nothing half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
