//! Events: marks in streams, with or without times between them, and with the failures that they cover.
//!
//! A recording covers the failures of the streams that came before it. Where one thread records an event while another waits for
//! it, the driver alone knows which recording the wait meets, and neither call may be made with a lock, as each may wait for room
//! in a queue. So each call that is under way has a list of the streams whose failures it may have to answer for: it begins with
//! what is known then, and every recording that begins meanwhile is added before its own call of the driver ([`Recordings`]).

use std::any::Any;
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
    /// Locked after the guard of a stream, and never over a call of the driver.
    recordings: Mutex<Recordings>,
}

/// What is known of the recordings of an event.
#[derive(Default)]
struct Recordings {
    /// Whose failures are those of the latest one that is over, and of those beside it; nothing before the first.
    latest: Option<Causes>,
    under_way: Vec<Call>,
    /// How many calls have begun.
    begun: u64,
}

/// A call of the driver that makes a recording, or meets one.
struct Call {
    number: u64,
    records: bool,
    /// Whose failures may be those of the recording that it makes or meets.
    causes: Causes,
}

impl Recordings {
    /// A recording begins that covers `causes`: the number of its call.
    fn begin_to_record(&mut self, mut causes: Causes) -> u64 {
        self.under_way.iter_mut().for_each(|other| other.causes.merge(&causes));
        self.add_under_way(&mut causes);
        self.begin(true, causes)
    }

    /// A call begins that meets a recording: its number, or nothing where there is none to meet.
    fn begin_to_meet(&mut self) -> Option<u64> {
        let mut causes = self.latest.clone()?;
        self.add_under_way(&mut causes);
        Some(self.begin(false, causes))
    }

    fn add_under_way(&self, causes: &mut Causes) {
        self.under_way.iter().filter(|other| other.records).for_each(|other| causes.merge(&other.causes));
    }

    fn begin(&mut self, records: bool, causes: Causes) -> u64 {
        self.begun += 1;
        self.under_way.push(Call { number: self.begun, records, causes });
        self.begun
    }

    /// A call is over: whose failures may be those of the recording that it made or met.
    fn end(&mut self, number: u64) -> Causes {
        let place = self.under_way.iter().position(|call| call.number == number);
        place.map(|place| self.under_way.swap_remove(place).causes).unwrap_or_default()
    }
}

impl CudaEvent {
    pub(crate) fn new(device: &Arc<Opened>, timing: bool) -> Result<Self> {
        device.check()?;
        let handle = device.gpu.event(timing)?;
        Ok(Self { handle, device: device.clone(), recordings: Mutex::default() })
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
        let number = lock(&self.recordings).begin_to_record(guard.causes());
        let outcome = guard.record(&self.handle);
        let mut recordings = lock(&self.recordings);
        let causes = recordings.end(number);
        if outcome.is_ok() {
            recordings.latest = Some(causes);
        }
        outcome
    }

    /// Enqueues a wait for the latest recording; there is nothing to wait for before the first.
    pub(crate) fn enqueue_wait(&self, guard: &mut StreamGuard<'_>) -> Result<()> {
        if let Some(((), causes)) = self.meet(|| guard.wait(&self.handle))? {
            guard.answer_for(&causes);
        }
        Ok(())
    }

    /// What a call of the driver says of the recording that it meets, and whose failures may be that one's; nothing before the
    /// first recording: the handle may have had another owner, who recorded it.
    fn meet<R>(&self, call: impl FnOnce() -> Result<R>) -> Result<Option<(R, Causes)>> {
        let Some(number) = lock(&self.recordings).begin_to_meet() else { return Ok(None) };
        let outcome = call();
        let causes = lock(&self.recordings).end(number);
        outcome.map(|told| Some((told, causes)))
    }
}

impl EngineEvent for CudaEvent {
    fn is_complete(&self) -> Result<bool> {
        self.device.check()?;
        match self.meet(|| self.handle.is_complete())? {
            Some((true, causes)) => causes.check(self.device.name()).map(|()| true),
            Some((false, _)) => Ok(false),
            None => Ok(true),
        }
    }

    fn synchronize(&self) -> Result<()> {
        self.device.check()?;
        match self.meet(|| self.handle.synchronize())? {
            Some(((), causes)) => causes.check(self.device.name()),
            None => Ok(()),
        }
    }

    fn is_over(&self) -> bool {
        lock(&self.recordings).latest.is_none() || self.handle.is_complete().unwrap_or(true)
    }

    fn elapsed_since(&self, start: &dyn EngineEvent) -> Result<Duration> {
        let start = Self::of(start, &self.device)?;
        self.device.check()?;
        let not_ready = |reason| Err(DeviceError::EventNotReady { reason });
        if !(self.handle.has_timing() && start.handle.has_timing()) {
            return not_ready("one of them was made without timing");
        }
        let met = start.meet(|| self.meet(|| self.handle.elapsed_since(&start.handle)))?;
        let Some((Some((time, own)), of_start)) = met else {
            return not_ready("one of them was never recorded");
        };
        match time {
            Some(time) => [of_start, own].iter().try_for_each(|causes| causes.check(self.device.name())).map(|()| time),
            None => not_ready("the device has not reached both yet"),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::device::cuda::stream::fault::Fault;

    /// Two streams that can fail.
    fn streams() -> [Causes; 2] {
        [(), ()].map(|()| {
            let mut causes = Causes::default();
            causes.add(&Arc::new(Fault::of_test()), 1);
            causes
        })
    }

    fn record(recordings: &mut Recordings, causes: &Causes) {
        let number = recordings.begin_to_record(causes.clone());
        let causes = recordings.end(number);
        recordings.latest = Some(causes);
    }

    #[test]
    fn a_wait_answers_for_a_recording_that_is_under_way_when_it_begins() {
        let ([first, second], mut recordings) = (streams(), Recordings::default());
        record(&mut recordings, &first);
        recordings.begin_to_record(second.clone());
        let wait = recordings.begin_to_meet().unwrap();
        let causes = recordings.end(wait);
        assert!(causes.covers(&first) && causes.covers(&second));
    }

    #[test]
    fn a_wait_answers_for_each_recording_beside_it_however_many_follow() {
        let ([first, second], mut recordings) = (streams(), Recordings::default());
        record(&mut recordings, &Causes::default());
        let wait = recordings.begin_to_meet().unwrap();
        record(&mut recordings, &first);
        record(&mut recordings, &second);
        let causes = recordings.end(wait);
        assert!(causes.covers(&first) && causes.covers(&second));
    }

    #[test]
    fn of_two_recordings_beside_each_other_either_may_be_the_latest() {
        let ([first, second], mut recordings) = (streams(), Recordings::default());
        let number = recordings.begin_to_record(first.clone());
        record(&mut recordings, &second);
        assert!(recordings.latest.as_ref().unwrap().covers(&first));
        recordings.latest = Some(recordings.end(number));
        assert!(recordings.latest.as_ref().unwrap().covers(&second));
    }

    #[test]
    fn a_recording_replaces_one_that_was_over() {
        let ([first, second], mut recordings) = (streams(), Recordings::default());
        record(&mut recordings, &first);
        record(&mut recordings, &second);
        let latest = recordings.latest.unwrap();
        assert!(latest.covers(&second) && !latest.covers(&first));
    }
}
