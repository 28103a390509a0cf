//! Clocks: how long the host was held, and how long the device took.
//!
//! * [`host_time`] reads the host's monotonic clock before and after a region: the time for which the host's thread was
//!   held. Work that the region enqueued and did not wait for is not in it.
//! * A [`DeviceClock`] records an event on a stream before and after a region: the time between the two on the device.
//!
//! # What they do not cover
//! * Host times hold whatever the operating system does with the thread. Two clock readings are in every sample:
//!   [`timer_cost`] says what one costs. Nothing is subtracted.
//! * Device times hold the gaps in which the stream waited for the host: on an idle stream the first event completes
//!   before the region's first work has been enqueued. Where the device's time alone is meant, enqueue enough, or hold
//!   the stream with a gate while enqueueing. CUDA gives the time between events to about 0.5 µs.
//! * Work of the region on other streams is not in a device time.

use std::hint::black_box;
use std::time::Instant;

use crate::device::{Event, Stream};
use crate::error::DeviceError;

/// Runs `region` and says for how many seconds it held the host.
///
/// The result is handed out, so that dropping it is not in the time.
///
/// # Errors
/// The region's.
pub fn host_time<R>(region: impl FnOnce() -> Result<R, DeviceError>) -> Result<(R, f64), DeviceError> {
    let start = Instant::now();
    let result = region();
    let seconds = start.elapsed().as_secs_f64();
    Ok((result?, seconds))
}

/// Runs `region` and says how many seconds lay on `stream` between its beginning and its end.
///
/// Makes two events for the one time. A [`DeviceClock`] keeps them.
///
/// # Errors
/// The region's, and those of the stream.
pub fn device_time<R>(
    stream: &Stream,
    region: impl FnOnce() -> Result<R, DeviceError>,
) -> Result<(R, f64), DeviceError> {
    DeviceClock::new(stream)?.time(region)
}

/// Takes times on one stream, with two events of its own that it records again and again.
#[derive(Debug)]
pub struct DeviceClock {
    stream: Stream,
    start: Event,
    end: Event,
}

impl DeviceClock {
    /// A clock of `stream`.
    ///
    /// # Errors
    /// Where the device gives no event.
    pub fn new(stream: &Stream) -> Result<Self, DeviceError> {
        let device = stream.device();
        Ok(Self { stream: stream.clone(), start: device.timing_event()?, end: device.timing_event()? })
    }

    /// Runs `region` and says how many seconds lay on the stream between its beginning and its end.
    ///
    /// Barrier: waits until the stream has done what the region enqueued on it.
    ///
    /// # Errors
    /// The region's, and those of work enqueued on the stream.
    pub fn time<R>(&mut self, region: impl FnOnce() -> Result<R, DeviceError>) -> Result<(R, f64), DeviceError> {
        self.stream.record(&self.start)?;
        let result = region()?;
        self.stream.record(&self.end)?;
        self.end.synchronize()?;
        Ok((result, self.end.elapsed_since(&self.start)?.as_secs_f64()))
    }
}

/// `count` steps of the host's clock, in seconds: each the first difference from zero between one reading and later
/// ones. The smallest is the finest step that was seen; it holds the cost of a reading where that is greater.
pub fn timer_resolution(count: usize) -> Vec<f64> {
    let step = |_| {
        let start = Instant::now();
        loop {
            let step = start.elapsed();
            if !step.is_zero() {
                return step.as_secs_f64();
            }
        }
    };
    (0..count).map(step).collect()
}

/// `count` samples of what one reading of the host's clock costs, in seconds: each the mean of 1,000 readings.
pub fn timer_cost(count: usize) -> Vec<f64> {
    const READINGS: u32 = 1_000;
    let cost = |_| {
        let start = Instant::now();
        for _ in 0..READINGS {
            black_box(Instant::now());
        }
        start.elapsed().as_secs_f64() / f64::from(READINGS)
    };
    (0..count).map(cost).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_time_hands_out_the_result_and_is_never_negative() {
        let (result, seconds) = host_time(|| Ok(7)).unwrap();
        assert_eq!(result, 7);
        assert!(seconds >= 0.0 && seconds.is_finite());
    }

    #[test]
    fn a_failing_region_has_no_time() {
        let failed = host_time::<()>(|| Err(DeviceError::EventNotReady { reason: "scripted" }));
        assert!(failed.is_err());
    }

    #[test]
    fn every_step_of_the_timer_is_greater_than_zero() {
        let steps = timer_resolution(50);
        assert!(steps.len() == 50 && steps.iter().all(|step| *step > 0.0));
        assert_eq!(timer_cost(3).len(), 3);
    }
}
