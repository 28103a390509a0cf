//! Events: marks in streams, with or without times between them, and with the failures that they cover.
//!
//! A recording covers the failures of the streams that came before it. Where one thread records an event while others record it
//! or wait for it, the driver alone knows which recording is the latest and which one a wait meets, and no call may be made with a
//! lock, as each may wait for room in a queue. So it is kept which recordings may be the latest, and each wait that is under way
//! answers for those and for every recording that begins meanwhile, which is added before its own call of the driver
//! ([`Recordings`]).

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
    /// Those that are over and of which each may be the latest: none was over when another began.
    over: Vec<Recording>,
    under_way: Vec<Recording>,
    /// The calls under way that meet one, by their numbers, with whose failures may be those of that one.
    meeting: Vec<(u64, Causes)>,
    /// Counts beginnings and ends.
    time: u64,
}

/// A recording, and whose failures are its own.
struct Recording {
    began: u64,
    ended: u64,
    causes: Causes,
}

impl Recordings {
    fn tick(&mut self) -> u64 {
        self.time += 1;
        self.time
    }

    /// A recording begins that covers `causes`: its number.
    fn begin_to_record(&mut self, causes: Causes) -> u64 {
        self.meeting.iter_mut().for_each(|(_, met)| met.merge(&causes));
        let began = self.tick();
        self.under_way.push(Recording { began, ended: u64::MAX, causes });
        began
    }

    /// A recording ends, and was made or not.
    fn end_recording(&mut self, number: u64, is_made: bool) {
        let ended = self.tick();
        let place = self.under_way.iter().position(|recording| recording.began == number);
        let recording = place.map(|place| self.under_way.swap_remove(place));
        if let Some(recording) = recording.filter(|_| is_made) {
            self.over.retain(|earlier| earlier.ended > number);
            self.over.push(Recording { ended, ..recording });
        }
    }

    /// A call begins that meets a recording: its number, or nothing where there is none to meet.
    fn begin_to_meet(&mut self) -> Option<u64> {
        if self.over.is_empty() {
            return None;
        }
        let mut causes = Causes::default();
        self.over.iter().chain(&self.under_way).for_each(|recording| causes.merge(&recording.causes));
        let number = self.tick();
        self.meeting.push((number, causes));
        Some(number)
    }

    /// The call is over: whose failures may be those of the recording that it met.
    fn end_meeting(&mut self, number: u64) -> Causes {
        let place = self.meeting.iter().position(|(at, _)| *at == number);
        place.map(|place| self.meeting.swap_remove(place).1).unwrap_or_default()
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
        lock(&self.recordings).end_recording(number, outcome.is_ok());
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
        let causes = lock(&self.recordings).end_meeting(number);
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
        lock(&self.recordings).over.is_empty() || self.handle.is_complete().unwrap_or(true)
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
        recordings.end_recording(number, true);
    }

    fn meet(recordings: &mut Recordings) -> Causes {
        let number = recordings.begin_to_meet().unwrap();
        recordings.end_meeting(number)
    }

    #[test]
    fn a_wait_answers_for_a_recording_that_is_under_way_when_it_begins() {
        let ([first, second], mut recordings) = (streams(), Recordings::default());
        record(&mut recordings, &first);
        recordings.begin_to_record(second.clone());
        let causes = meet(&mut recordings);
        assert!(causes.covers(&first) && causes.covers(&second));
    }

    #[test]
    fn a_wait_answers_for_each_recording_beside_it_however_many_follow() {
        let ([first, second], mut recordings) = (streams(), Recordings::default());
        record(&mut recordings, &Causes::default());
        let wait = recordings.begin_to_meet().unwrap();
        record(&mut recordings, &first);
        record(&mut recordings, &second);
        let causes = recordings.end_meeting(wait);
        assert!(causes.covers(&first) && causes.covers(&second));
    }

    #[test]
    fn of_two_recordings_beside_each_other_either_may_be_the_latest() {
        let ([first, second], mut recordings) = (streams(), Recordings::default());
        let number = recordings.begin_to_record(first.clone());
        record(&mut recordings, &second);
        assert!(meet(&mut recordings).covers(&first));
        recordings.end_recording(number, true);
        let causes = meet(&mut recordings);
        assert!(causes.covers(&first) && causes.covers(&second));
    }

    #[test]
    fn a_recording_replaces_one_that_was_over_whatever_is_beside_both() {
        let ([first, second], mut recordings) = (streams(), Recordings::default());
        let beside = recordings.begin_to_record(Causes::default());
        record(&mut recordings, &first);
        record(&mut recordings, &second);
        for is_over in [false, true] {
            let causes = meet(&mut recordings);
            assert!(causes.covers(&second) && !causes.covers(&first), "{is_over}");
            recordings.end_recording(beside, true);
        }
        assert_eq!(recordings.over.len(), 2);
    }

    #[test]
    fn a_recording_that_failed_replaces_none() {
        let ([first, second], mut recordings) = (streams(), Recordings::default());
        record(&mut recordings, &first);
        let number = recordings.begin_to_record(second.clone());
        recordings.end_recording(number, false);
        let causes = meet(&mut recordings);
        assert!(causes.covers(&first) && !causes.covers(&second));
    }
}
