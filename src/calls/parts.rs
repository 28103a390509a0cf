//! The parts of a wait: enqueueing, what is left of the work, and the call.
//!
//! # Method
//! A thread enqueues work of a known length on the stream of the call, whose last action writes the time of the device's own
//! clock, and then makes the call. When all is over, that time is told on the host's clock. What is left of the work is the
//! time from the beginning of the call to the end of the work.
//!
//! # Limits
//! As those of [`waiting`](super::waiting): the comparison of the clocks leaves a bound. Where the call begins after the end of
//! the work, the rest of the work is below 0: for so long it has been over. Where the call does not wait, the rest of the work
//! is longer than the call.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use super::catalogue::Call;
use super::clock::seconds;
use super::waiting::{Manner, Waiting};
use super::{CallUnderTest, Result, WaitMode};
use syncscope::device::Device;

/// A wait by its parts, in seconds of the host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parts {
    /// From before the work is enqueued until the call begins.
    pub enqueue: f64,
    /// From the beginning of the call to the end of the work.
    pub residual: f64,
    /// From before the work is enqueued until the call has returned.
    pub total: f64,
}

/// A call whose wait is taken apart.
pub struct CallInParts {
    // Ended before the call's rig, whose streams it uses.
    waiting: Box<dyn Waiting>,
    call: RefCell<CallUnderTest>,
    /// How the thread waits: by spinning, where there is a choice.
    mode: Option<WaitMode>,
}

impl CallInParts {
    /// Makes the call some times, so that whatever it loads is loaded.
    pub fn new(device: &Device, call: &Call) -> Result<Self> {
        let mut call = CallUnderTest::new(device, call)?;
        call.rehearse()?;
        let mode = WaitMode::of(device.properties().engine)[0];
        Ok(Self { waiting: call.rig.waiting()?, call: RefCell::new(call), mode })
    }

    /// Seconds of the call with nothing pending.
    pub fn alone(&self) -> Result<f64> {
        self.call.borrow_mut().time(None, self.mode)
    }

    /// Makes the call behind work of this length.
    pub fn behind(&self, length: Duration) -> Result<Parts> {
        let call = &mut *self.call.borrow_mut();
        if let Some(mode) = self.mode {
            call.rig.wait_by(mode)?;
        }
        let prepared = call.steps.prepare().and_then(|()| self.waiting.prepare());
        let outcome = prepared.and_then(|()| made_behind(call, &*self.waiting, length));
        let [begun, called, returned] = call.end(outcome)?;
        let ended = self.waiting.ended()?.at;
        Ok(Parts { enqueue: seconds(begun, called), residual: seconds(called, ended), total: seconds(begun, returned) })
    }
}

/// When enqueueing the work began, when the call began, and when it had returned.
fn made_behind(call: &mut CallUnderTest, waiting: &dyn Waiting, length: Duration) -> Result<[Instant; 3]> {
    let begun = Instant::now();
    waiting.begin(Manner::Query, length)?;
    call.steps.enqueue()?;
    let called = Instant::now();
    call.steps.call()?;
    Ok([begun, called, Instant::now()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Family;
    use crate::catalogue::calls;

    #[test]
    fn the_parts_of_a_wait_lie_within_it_and_hold_the_work() {
        const LENGTH: Duration = Duration::from_millis(20);
        let device = Device::open("cpu:0").unwrap();
        let tried = |name: &str| {
            let call = calls("cpu", Family::Wait, &[]).into_iter().find(|call| call.name == name).unwrap();
            let call = CallInParts::new(&device, &call).unwrap();
            assert!(call.alone().unwrap() >= 0.0, "{name}");
            call.behind(LENGTH).unwrap()
        };
        for name in ["Device::synchronize", "Stream::synchronize", "Event::synchronize"] {
            let parts = tried(name);
            // The work begins after the clock was first read.
            assert!(parts.total >= LENGTH.as_secs_f64(), "{name}: {parts:?}");
            assert!(parts.enqueue > 0.0 && parts.enqueue < parts.total, "{name}: {parts:?}");
            assert!(parts.enqueue + parts.residual >= LENGTH.as_secs_f64(), "{name}: {parts:?}");
        }
        // A call that does not wait is over before the work is.
        let query = tried("Stream::is_complete");
        assert!(query.enqueue + query.residual > query.total, "{query:?}");
    }
}
