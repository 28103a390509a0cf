//! A case: one operation that is sampled.

use std::fmt;
use std::time::Instant;

use super::clock::{Clock, DeviceClock, host_time};
use crate::device::Stream;
use crate::error::DeviceError;

type Measure<'a> = Box<dyn FnMut() -> Result<f64, DeviceError> + 'a>;

/// A named closure that runs once a round and returns its own measured value.
pub struct Case<'a> {
    name: String,
    measure: Measure<'a>,
    clock: Clock,
    iterations: usize,
}

/// The host's clock for a part of a case: only what [`time`](Self::time) runs is timed.
#[derive(Debug, Default)]
pub struct Stopwatch {
    seconds: Option<f64>,
}

impl Stopwatch {
    /// Runs `region` and adds the time until it returns. The caller gets its result, so the time does not include dropping
    /// it.
    ///
    /// # Errors
    /// The region's.
    pub fn time<R>(&mut self, region: impl FnOnce() -> Result<R, DeviceError>) -> Result<R, DeviceError> {
        let start = Instant::now();
        let result = region();
        let seconds = start.elapsed().as_secs_f64();
        self.seconds = Some(self.seconds.unwrap_or(0.0) + seconds);
        result
    }
}

impl<'a> Case<'a> {
    /// A case whose closure returns an observed value: a count, a rate, yes (1) or no (0).
    pub fn new(name: impl Into<String>, measure: impl FnMut() -> Result<f64, DeviceError> + 'a) -> Self {
        Self::by(Clock::Observed, name.into(), Box::new(measure))
    }

    fn by(clock: Clock, name: String, measure: Measure<'a>) -> Self {
        Self { name, measure, clock, iterations: 1 }
    }

    /// A case timed by the host's clock: the seconds until `region` returns.
    ///
    /// The region's result is dropped outside of the measurement.
    pub fn host_timed<R>(name: impl Into<String>, mut region: impl FnMut() -> Result<R, DeviceError> + 'a) -> Self {
        Self::by(Clock::Host, name.into(), Box::new(move || host_time(&mut region).map(|(_, seconds)| seconds)))
    }

    /// A case of which the host's clock times a part: what it runs through the [`Stopwatch`]. A sample in which it ran
    /// nothing through it is not a number, which is an error.
    pub fn host_timed_within(
        name: impl Into<String>,
        mut body: impl FnMut(&mut Stopwatch) -> Result<(), DeviceError> + 'a,
    ) -> Self {
        let measure = move || {
            let mut watch = Stopwatch::default();
            body(&mut watch).map(|()| watch.seconds.unwrap_or(f64::NAN))
        };
        Self::by(Clock::Host, name.into(), Box::new(measure))
    }

    /// A case that reads the clock itself and returns seconds.
    pub fn timed_by(
        clock: Clock,
        name: impl Into<String>,
        measure: impl FnMut() -> Result<f64, DeviceError> + 'a,
    ) -> Self {
        Self::by(clock, name.into(), Box::new(measure))
    }

    /// A case timed by two events on `stream`: the seconds on the stream from the region's start to its end. The events are
    /// created here, once.
    ///
    /// # Errors
    /// Where the device gives no event.
    pub fn device_timed<R>(
        name: impl Into<String>,
        stream: &Stream,
        mut region: impl FnMut() -> Result<R, DeviceError> + 'a,
    ) -> Result<Self, DeviceError> {
        let mut clock = DeviceClock::new(stream)?;
        let measure = Box::new(move || clock.time(&mut region).map(|(_, seconds)| seconds));
        Ok(Self::by(Clock::DeviceEvents, name.into(), measure))
    }

    /// With each measured value divided by `count`: the value of one iteration of a loop of `count`.
    #[must_use]
    pub fn per(mut self, count: usize) -> Self {
        self.iterations = count;
        self
    }

    /// The case's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The clock that takes its samples.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// The number of iterations by which each measured value is divided.
    pub fn iterations(&self) -> usize {
        self.iterations
    }

    pub(crate) fn measure(&mut self) -> Result<f64, DeviceError> {
        (self.measure)().map(|value| value / self.iterations as f64)
    }
}

impl fmt::Debug for Case<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Case({})", self.name)
    }
}
