//! The host's clock, and the names of all clocks.
//!
//! [`host_time`] reads the host's monotonic clock before and after a region: the time until the region returns. Work that
//! the region enqueued without waiting for it is not included.
//!
//! # What it does not cover
//! * Host times include whatever the operating system does with the thread, and two clock readings: [`timer_cost`]
//!   measures the cost of one. Nothing is subtracted.

use std::hint::black_box;
use std::time::Instant;

use super::optimised;

/// The clock that takes a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Clock {
    /// The host's monotonic clock.
    Host,
    /// Two events on a stream of the device.
    DeviceEvents,
    /// Two events around a batch of calls that were enqueued behind a closed gate.
    DeviceBatch,
    /// The device's own records of its work.
    DeviceRecords,
    /// No clock: an observed value that is not a time.
    Observed,
}

impl Clock {
    /// What it is called in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Host => "host clock",
            Self::DeviceEvents => "device events",
            Self::DeviceBatch => "device events behind a gate",
            Self::DeviceRecords => "device records",
            Self::Observed => "observed",
        }
    }
}

/// Runs `region` and measures the seconds until it returns.
///
/// The caller gets the result, so the time does not include dropping it.
///
/// ```
/// use syncscope::measure::host_time;
///
/// let (value, seconds) = host_time(|| "42".parse::<u32>())?;
/// assert!(value == 42 && seconds >= 0.0);
/// # Ok::<(), std::num::ParseIntError>(())
/// ```
///
/// # Errors
/// The region's.
pub fn host_time<R, E>(region: impl FnOnce() -> Result<R, E>) -> Result<(R, f64), E> {
    optimised::say_if_not();
    let start = Instant::now();
    let result = region();
    let seconds = start.elapsed().as_secs_f64();
    Ok((result?, seconds))
}

/// The host's clock, or a scripted one.
pub(super) trait Timer: Copy {
    /// A moment by this clock.
    type Moment: Copy;

    /// Reads the clock.
    fn now(self) -> Self::Moment;

    /// The seconds that have passed.
    fn seconds_since(self, moment: Self::Moment) -> f64;
}

/// The host's monotonic clock.
#[derive(Clone, Copy)]
pub(super) struct Monotonic;

impl Timer for Monotonic {
    type Moment = Instant;

    fn now(self) -> Instant {
        Instant::now()
    }

    fn seconds_since(self, moment: Instant) -> f64 {
        moment.elapsed().as_secs_f64()
    }
}

/// A step of a clock, in seconds: from a reading to the first that differs from it.
pub(super) fn step(timer: impl Timer) -> f64 {
    let start = timer.now();
    loop {
        let step = timer.seconds_since(start);
        if step > 0.0 {
            return step;
        }
    }
}

/// The mean cost of a reading of a clock, in seconds.
pub(super) fn mean_cost(timer: impl Timer, readings: u32) -> f64 {
    let start = timer.now();
    for _ in 0..readings {
        black_box(timer.now());
    }
    timer.seconds_since(start) / f64::from(readings)
}

/// `count` steps of the host's clock, in seconds: each is the first nonzero difference between one reading and later ones.
/// The smallest is the finest step seen; where a reading costs more than that, it is the cost of the reading.
pub fn timer_resolution(count: usize) -> Vec<f64> {
    (0..count).map(|_| step(Monotonic)).collect()
}

/// `count` samples of the cost of one reading of the host's clock, in seconds: each is the mean of 1,000 readings.
///
/// ```
/// use syncscope::measure::timer_cost;
///
/// assert_eq!(timer_cost(3).len(), 3);
/// ```
pub fn timer_cost(count: usize) -> Vec<f64> {
    (0..count).map(|_| mean_cost(Monotonic, 1_000)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::DeviceError;

    #[test]
    fn a_host_time_returns_the_result_and_is_never_negative() {
        let (result, seconds) = host_time(|| Ok::<_, DeviceError>(7)).unwrap();
        assert_eq!(result, 7);
        assert!(seconds >= 0.0 && seconds.is_finite());
    }

    #[test]
    fn a_failing_region_has_no_time() {
        let failed = host_time(|| Err::<(), _>(DeviceError::EventNotReady { reason: "scripted" }));
        assert!(failed.is_err());
    }

    #[test]
    fn every_step_of_the_timer_is_greater_than_zero() {
        let steps = timer_resolution(50);
        assert!(steps.len() == 50 && steps.iter().all(|step| *step > 0.0));
        assert_eq!(timer_cost(3).len(), 3);
    }
}
