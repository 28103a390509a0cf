//! One thing that is sampled.

use std::fmt;

use super::clock::{DeviceClock, host_time};
use crate::device::Stream;
use crate::error::DeviceError;

type Prepare<'a> = Box<dyn FnMut() -> Result<(), DeviceError> + 'a>;
type Measure<'a> = Box<dyn FnMut() -> Result<f64, DeviceError> + 'a>;

/// A named closure that runs once a round and returns its own measured value.
pub struct Case<'a> {
    name: String,
    prepare: Option<Prepare<'a>>,
    measure: Measure<'a>,
    per: f64,
}

impl<'a> Case<'a> {
    /// A case whose closure measures by itself and returns the value: seconds, or what else the case is about.
    pub fn new(name: impl Into<String>, measure: impl FnMut() -> Result<f64, DeviceError> + 'a) -> Self {
        Self { name: name.into(), prepare: None, measure: Box::new(measure), per: 1.0 }
    }

    /// A case of which the host's clock is read: for how many seconds `region` holds the host.
    ///
    /// What the region returns is dropped outside of the time.
    pub fn host_timed<R>(name: impl Into<String>, mut region: impl FnMut() -> Result<R, DeviceError> + 'a) -> Self {
        Self::new(name, move || host_time(&mut region).map(|(_, seconds)| seconds))
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
        Ok(Self::new(name, move || clock.time(&mut region).map(|(_, seconds)| seconds)))
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

    /// With each measured value divided by `count`: the value of one turn of a loop of `count`.
    #[must_use]
    pub fn per(mut self, count: usize) -> Self {
        self.per = count as f64;
        self
    }

    /// The case's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn prepare(&mut self) -> Result<(), DeviceError> {
        self.prepare.as_mut().map_or(Ok(()), |prepare| prepare())
    }

    pub(crate) fn measure(&mut self) -> Result<f64, DeviceError> {
        (self.measure)().map(|value| value / self.per)
    }
}

impl fmt::Debug for Case<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Case({})", self.name)
    }
}
