//! One thing that is sampled.

use std::fmt;

use std::time::Instant;

use super::clock::{DeviceClock, host_time};
use super::protocol::Clock;
use crate::device::Stream;
use crate::error::DeviceError;

type Prepare<'a> = Box<dyn FnMut() -> Result<(), DeviceError> + 'a>;
type Measure<'a> = Box<dyn FnMut() -> Result<f64, DeviceError> + 'a>;

/// A named closure that runs once a round and returns its own measured value.
pub struct Case<'a> {
    name: String,
    prepare: Option<Prepare<'a>>,
    measure: Measure<'a>,
    clock: Clock,
    iterations: usize,
}

/// The host's clock for a part of a case: what [`time`](Self::time) runs is timed, what is around it is not.
#[derive(Debug, Default)]
pub struct Stopwatch {
    seconds: Option<f64>,
}

impl Stopwatch {
    /// Runs `region` and adds to the time for how long it held the host. What it returns is handed out, so that dropping
    /// it is not in the time.
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
    /// A case whose closure observes a value and returns it: a count, a rate, a yes (1) or no (0).
    pub fn new(name: impl Into<String>, measure: impl FnMut() -> Result<f64, DeviceError> + 'a) -> Self {
        Self::by(Clock::Observed, name.into(), Box::new(measure))
    }

    fn by(clock: Clock, name: String, measure: Measure<'a>) -> Self {
        Self { name, prepare: None, measure, clock, iterations: 1 }
    }

    /// A case of which the host's clock is read: for how many seconds `region` holds the host.
    ///
    /// What the region returns is dropped outside of the time.
    pub fn host_timed<R>(name: impl Into<String>, mut region: impl FnMut() -> Result<R, DeviceError> + 'a) -> Self {
        Self::by(Clock::Host, name.into(), Box::new(move || host_time(&mut region).map(|(_, seconds)| seconds)))
    }

    /// A case of which a part is timed by the host's clock: what it runs by the [`Stopwatch`]. A sample in which it ran
    /// nothing by it is no number.
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

    /// A case that reads a clock by itself and returns seconds.
    pub fn timed_by(
        clock: Clock,
        name: impl Into<String>,
        measure: impl FnMut() -> Result<f64, DeviceError> + 'a,
    ) -> Self {
        Self::by(clock, name.into(), Box::new(measure))
    }

    /// A case that two events on `stream` time: how many seconds lie on the stream from the region's beginning to its
    /// end. The events are made here, once.
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

    /// With `prepare` run before each sample, warm-up included, outside of the measurement.
    ///
    /// A sampler that settles on a device does so after it: work that is to be pending when the measurement begins is
    /// enqueued by the case itself, before it starts its clock.
    #[must_use]
    pub fn prepared_by(mut self, prepare: impl FnMut() -> Result<(), DeviceError> + 'a) -> Self {
        self.prepare = Some(Box::new(prepare));
        self
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

    /// What takes its samples.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// By how many iterations each measured value is divided.
    pub fn iterations(&self) -> usize {
        self.iterations
    }

    pub(crate) fn prepare(&mut self) -> Result<(), DeviceError> {
        self.prepare.as_mut().map_or(Ok(()), |prepare| prepare())
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
