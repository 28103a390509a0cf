//! One thing timed by every stopwatch that a device has.

use std::cell::RefCell;
use std::fmt;

use super::case::Case;
use super::clock::Clock;
use super::device_clock::DeviceClock;
use super::sampler::Sampler;
use super::samples::Samples;
use crate::error::{CaseError, MeasureError};
use crate::measure::Estimate;
use crate::units::Unit;

/// The time of one thing on a device by events, behind a gate and by the device's records.
///
/// Where two of them disagree by more than their intervals they measure two things (see [`DeviceClock`]), which stand beside each
/// other: there is no mean of them.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Stopwatches {
    /// What each says of one call, in seconds.
    pub by: Vec<Reading>,
    /// What one call moves and computes, if that was stated.
    work: Work,
}

/// What one stopwatch says.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Reading {
    /// Which.
    pub clock: Clock,
    /// How many calls a sample timed together.
    pub calls: usize,
    /// The seconds of a call.
    pub samples: Samples,
}

/// What one call does.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Work {
    bytes: f64,
    operations: f64,
}

impl Sampler {
    /// Times what `region` enqueues by each stopwatch of the streams of `clock`, in alternation, with caches as that has them.
    ///
    /// ```
    /// use std::time::Duration;
    /// use syncscope::prelude::*;
    ///
    /// let stream = Device::open("cpu:0")?.stream()?;
    /// let clock = DeviceClock::new(&stream)?;
    /// let read = Sampler::new(Protocol::samples(5)).stopwatches(&clock, || stream.spin(Duration::from_micros(50)))?;
    /// assert!(read.by.iter().all(|reading| reading.samples.estimate().median >= 50e-6));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`sample`](Self::sample).
    pub fn stopwatches<R, E: Into<CaseError>>(
        &self,
        clock: &DeviceClock,
        region: impl FnMut() -> Result<R, E>,
    ) -> Result<Stopwatches, MeasureError> {
        let region = RefCell::new(region);
        let clocks = [clock.clone().by_events(), clock.clone().behind_gate(), clock.clone().by_records()];
        let case = |clock: DeviceClock| {
            let name = clock.clock().name();
            let call = || (region.borrow_mut())().map_err(Into::into);
            Case::device_timed::<R, CaseError>(name, clock, call)
                .map_err(|cause| MeasureError::Case { case: name.to_owned(), cause: cause.into() })
        };
        let sampled = self.sample(clocks.clone().into_iter().map(case).collect::<Result<_, _>>()?)?;
        let read = clocks.iter().zip(sampled.calls).zip(sampled.sets);
        let by = read.map(|((clock, calls), samples)| Reading { clock: clock.clock(), calls, samples });
        Ok(Stopwatches { by: by.collect(), work: Work::default() })
    }
}

impl Stopwatches {
    /// States how many bytes one call reads and writes.
    #[must_use]
    pub fn moving(mut self, bytes: f64) -> Self {
        self.work.bytes = bytes;
        self
    }

    /// States how many floating-point operations one call makes.
    #[must_use]
    pub fn computing(mut self, operations: f64) -> Self {
        self.work.operations = operations;
        self
    }

    /// What a stopwatch says, as an estimate of the seconds of a call.
    pub fn of(&self, clock: Clock) -> Option<Estimate> {
        self.by.iter().find(|reading| reading.clock == clock).map(|reading| reading.samples.estimate())
    }

    /// The pairs of stopwatches whose intervals do not meet.
    pub fn disagreements(&self) -> Vec<(Clock, Clock)> {
        let all: Vec<(Clock, Estimate)> = self.by.iter().map(|reading| (reading.clock, reading.samples.estimate())).collect();
        let pairs = all.iter().enumerate().flat_map(|(place, one)| all[place + 1..].iter().map(move |other| (one, other)));
        let apart = |(_, a): &(Clock, Estimate), (_, b): &(Clock, Estimate)| a.low > b.high || b.low > a.high;
        pairs.filter(|(one, other)| apart(one, other)).map(|(one, other)| (one.0, other.0)).collect()
    }
}

impl fmt::Display for Stopwatches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for reading in &self.by {
            let estimate = reading.samples.estimate();
            let batch = if reading.calls > 1 { format!(", {} calls a sample", reading.calls) } else { String::new() };
            write!(f, "{}: {}{batch}", reading.clock.name(), estimate.format(Unit::Seconds))?;
            for (work, unit) in [(self.work.bytes, Unit::BytesPerSecond), (self.work.operations, Unit::FlopsPerSecond)] {
                if work > 0.0 && estimate.median > 0.0 {
                    write!(f, ", {}", unit.format(work / estimate.median, 3))?;
                }
            }
            writeln!(f)?;
        }
        for (one, other) in self.disagreements() {
            writeln!(f, "{} and {} disagree by more than their intervals", one.name(), other.name())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stopwatches_whose_intervals_meet_agree_and_others_stand_apart() {
        let reading = |clock, seconds: f64| {
            let values = (0..20).map(|i| seconds * (1.0 + 1e-3 * f64::from(i % 5))).collect();
            Reading { clock, calls: 1, samples: Samples::new(clock.name(), values).unwrap() }
        };
        let by = vec![
            reading(Clock::DeviceEvents, 5e-6),
            reading(Clock::DeviceBatch, 2e-6),
            reading(Clock::DeviceRecords, 2.001e-6),
        ];
        let read = Stopwatches { by, work: Work::default() }.moving(2e6);
        let apart = [(Clock::DeviceEvents, Clock::DeviceBatch), (Clock::DeviceEvents, Clock::DeviceRecords)];
        assert_eq!(read.disagreements(), apart);
        let said = read.to_string();
        assert!(said.contains("1.00 TB/s") || said.contains("998 GB/s"), "{said}");
        assert!(said.contains("disagree by more than their intervals"), "{said}");
    }
}
