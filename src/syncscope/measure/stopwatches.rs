//! One thing timed by every stopwatch that a device has.
//!
//! # Method
//! The device begins each launch some time after the end of the one before it. Behind a gate that pause is in the time of every
//! kernel, and in no record of one. It is measured in the same rounds: a kernel that reads and writes 4,096 numbers, timed behind a
//! gate less its record. The last row is the time behind the gate less as many pauses as the region launches kernels.
//!
//! # What it does not cover
//! Each kernel has a pause of its own. That of a large grid is longer, as its last writes take time that its record leaves out. On an
//! H200 it is 0.7 to 0.8 µs behind a kernel of one block, which so comes out up to 0.3 µs too short, and 1.0 to 1.1 µs behind one of
//! many blocks. Events that the region records or has a stream wait for, as `cudarc` does for its memory, take time behind a
//! gate, too, and have no record. Launches of other threads meanwhile are counted with the region's.

use std::cell::RefCell;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::case::Case;
use super::clock::Clock;
use super::device_clock::DeviceClock;
use super::peaks::Peaks;
use super::sampler::{Progress, Sampler};
use super::samples::Samples;
use crate::device::{Code, Device, Kernel, Launch, Stream, Telemetry, lock};
use crate::error::{CaseError, DeviceError, MeasureError};
use crate::measure::Estimate;
use crate::tensor::Tensor;
use crate::units::{Scale, Unit, counted};

/// The time of one thing on a device by events, behind a gate and by the device's records.
///
/// Where two of them disagree by more than their intervals they measure two things (see [`DeviceClock`]), which stand beside each
/// other: there is no mean of them.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Stopwatches {
    /// What each says of one call, in seconds.
    pub by: Vec<Reading>,
    /// The device's pause between two launches, in seconds, where that could be measured, and how often a call has it.
    pub pause: Option<(Estimate, usize)>,
    /// Why no device's records are among them.
    pub without_records: Option<String>,
    /// What the device's sensors said between the rounds, in order: its clocks, and whether they were held back. Empty where it has
    /// none, or the feature `sensors` is off.
    pub conditions: Vec<Telemetry>,
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
    peaks: Option<Peaks>,
}

/// How long after one look at the sensors the next may come: a look takes as long as many short samples.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

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
        let failed = |cause: CaseError| MeasureError::Case { case: "stopwatches".to_owned(), cause };
        let region = RefCell::new(region);
        let call = || (region.borrow_mut())().map(drop).map_err(Into::into);
        // Once, so that code is loaded and the number of its launches known.
        let (launches, without_records) = clock.count_works(call).map_err(failed)?;
        let mut clocks = vec![clock.clone().by_events(), clock.clone().behind_gate()];
        let mut short = None;
        if without_records.is_none() {
            clocks.push(clock.clone().by_records());
            short = Short::load(clock.stream()).map_err(|error| failed(error.into()))?;
        }
        let mut cases = Vec::new();
        for clock in &clocks {
            cases.push(
                Case::on_device(clock.clock().name(), clock.clone(), call).map_err(|error| failed(error.into()))?,
            );
        }
        for clock in clocks[1..].iter().filter(|_| short.is_some()) {
            let launch = || short.as_ref().map_or(Ok(()), Short::launch);
            let name = format!("pause, {}", clock.clock().name());
            cases.push(Case::on_device(name, clock.clone().hot(), launch).map_err(|error| failed(error.into()))?);
        }
        let conditions = Arc::new(Mutex::new(Vec::new()));
        let sampled = self.looking(clock.stream().device(), &conditions).sample(cases)?;
        let conditions = std::mem::take(&mut *lock(&conditions));
        let pause = match &sampled.sets[clocks.len()..] {
            [batch, record] => Some((batch.minus(record)?.estimate(), launches)),
            _ => None,
        };
        let read = clocks.iter().zip(sampled.calls).zip(sampled.sets);
        let by = read.map(|((clock, calls), samples)| Reading { clock: clock.clock(), calls, samples });
        Ok(Stopwatches { by: by.collect(), pause, without_records, conditions, work: Work::default() })
    }

    /// The same, which keeps what the sensors of `device` say after rounds that are kept.
    fn looking(&self, device: &Device, kept: &Arc<Mutex<Vec<Telemetry>>>) -> Self {
        let (device, kept, then, last) = (device.clone(), kept.clone(), self.observer(), Mutex::new(None::<Instant>));
        let look = move |progress: Progress| {
            let mut last = lock(&last);
            if !progress.warming_up && last.is_none_or(|last| last.elapsed() >= LOOK_AGAIN) {
                lock(&kept).extend(device.telemetry().ok().flatten());
                *last = Some(Instant::now());
            }
            if let Some(then) = &then {
                then(progress);
            }
        };
        self.clone().observed_by(Arc::new(look))
    }
}

/// A kernel that is over as soon as it has begun.
struct Short {
    kernel: Kernel,
    stream: Stream,
    x: Tensor<f32>,
    y: Tensor<f32>,
}

impl Short {
    const SOURCE: &str = "extern \"C\" __global__ void brief(float a, const float* x, float* y, unsigned n) {
        unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) y[i] += a * x[i];
    }";
    const ELEMENTS: u32 = 4096;

    /// Nothing on a device that runs no code of one's own.
    fn load(stream: &Stream) -> Result<Option<Self>, DeviceError> {
        match stream.device().load(&Code::cuda("brief.cu", Self::SOURCE)) {
            Err(DeviceError::NotApplicable { .. }) => Ok(None),
            module => {
                let kernel = module?.kernel("brief")?;
                let zeros = || stream.zeros([Self::ELEMENTS as usize]);
                Ok(Some(Self { kernel, stream: stream.clone(), x: zeros()?, y: zeros()? }))
            }
        }
    }

    fn launch(&self) -> Result<(), DeviceError> {
        let launch = Launch::over(Self::ELEMENTS as usize, 256);
        self.kernel.launch(&self.stream, launch, (0.5_f32, &self.x, &self.y, Self::ELEMENTS))
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

    /// States the device's peak rates, of which the rates of a call are then a share.
    #[must_use]
    pub fn against(mut self, peaks: Peaks) -> Self {
        self.work.peaks = Some(peaks);
        self
    }

    /// What a stopwatch says, as an estimate of the seconds of a call.
    pub fn of(&self, clock: Clock) -> Option<Estimate> {
        self.by.iter().find(|reading| reading.clock == clock).map(|reading| reading.samples.estimate())
    }

    /// The seconds of a call behind the gate, less the device's pauses between its launches.
    pub fn without_pauses(&self) -> Option<f64> {
        let (pause, launches) = self.pause?;
        Some(self.of(Clock::DeviceBatch)?.median - pause.median * launches as f64)
    }

    /// The pairs of stopwatches whose intervals do not meet.
    pub fn disagreements(&self) -> Vec<(Clock, Clock)> {
        let all: Vec<(Clock, Estimate)> =
            self.by.iter().map(|reading| (reading.clock, reading.samples.estimate())).collect();
        let pairs =
            all.iter().enumerate().flat_map(|(place, one)| all[place + 1..].iter().map(move |other| (one, other)));
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
            let Work { bytes, operations, peaks } = self.work;
            for (work, unit, peak) in [
                (bytes, Unit::BytesPerSecond, peaks.map(|peaks| peaks.bytes_per_second)),
                (operations, Unit::FlopsPerSecond, peaks.map(|peaks| peaks.flops_per_second)),
            ] {
                if work > 0.0 && estimate.median > 0.0 {
                    let rate = work / estimate.median;
                    write!(f, ", {}", unit.format(rate, 3))?;
                    if let Some(peak) = peak {
                        write!(f, " ({} of the peak measured)", Scale::PERCENT.fixed(rate / peak, 1))?;
                    }
                }
            }
            writeln!(f)?;
        }
        if let Some(why) = &self.without_records {
            writeln!(f, "{}: not measured: {why}", Clock::DeviceRecords.name())?;
        }
        if let (Some((pause, launches)), Some(seconds)) = (self.pause, self.without_pauses()) {
            let (seconds, pause) = (Unit::Seconds.format(seconds, 3), pause.format(Unit::Seconds));
            writeln!(f, "behind the gate, less {launches} × the device's pause between launches ({pause}): {seconds}")?;
        }
        write_conditions(f, &self.conditions)?;
        for (one, other) in self.disagreements() {
            writeln!(f, "{} and {} disagree by more than their intervals", one.name(), other.name())?;
        }
        Ok(())
    }
}

/// The clock of the multiprocessors, and how often it was held back, and why.
fn write_conditions(f: &mut fmt::Formatter<'_>, conditions: &[Telemetry]) -> fmt::Result {
    let clocks = || conditions.iter().filter_map(|sensors| sensors.sm_clock_mhz);
    if let (Some(least), Some(most)) = (clocks().min(), clocks().max()) {
        let held: Vec<&Telemetry> = conditions.iter().filter(|sensors| !sensors.throttle_reasons.is_empty()).collect();
        let mut reasons: Vec<&str> = held.iter().flat_map(|one| &one.throttle_reasons).map(String::as_str).collect();
        reasons.sort_unstable();
        reasons.dedup();
        let range = if least == most { least.to_string() } else { format!("{least} to {most}") };
        let looks = counted(conditions.len(), "look");
        write!(f, "clock of the multiprocessors: {range} MHz in {looks} at the sensors")?;
        match held.len() {
            0 => writeln!(f, ", never held back")?,
            often => writeln!(f, ", held back in {often}: {}", reasons.join(", "))?,
        }
    }
    Ok(())
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
        let pause = Samples::new("pause", vec![0.9e-6; 9]).unwrap().estimate();
        let at = |mhz, why: &[&str]| Telemetry {
            sm_clock_mhz: Some(mhz),
            throttle_reasons: why.iter().map(|why| (*why).to_owned()).collect(),
            ..Telemetry::default()
        };
        let conditions = vec![at(1980, &[]), at(1755, &["SW power cap"])];
        let peaks = Peaks { bytes_per_second: 4e12, flops_per_second: 1e12 };
        let pause = Some((pause, 1));
        let read = Stopwatches { by, pause, without_records: None, conditions, work: Work::default() };
        let read = read.moving(2e6).against(peaks);
        assert!(read.without_pauses().is_some_and(|seconds| (seconds - 1.104e-6).abs() < 3e-9));
        let apart = [(Clock::DeviceEvents, Clock::DeviceBatch), (Clock::DeviceEvents, Clock::DeviceRecords)];
        assert_eq!(read.disagreements(), apart);
        let said = read.to_string();
        assert!(said.contains("1.00 TB/s") || said.contains("998 GB/s"), "{said}");
        assert!(said.contains("25.0 % of the peak measured"), "{said}");
        assert!(said.contains("1755 to 1980 MHz in 2 looks at the sensors, held back in 1: SW power cap"), "{said}");
        assert!(said.contains("disagree by more than their intervals"), "{said}");
        let without = Stopwatches { without_records: Some("there is no CUPTI".to_owned()), pause: None, ..read };
        assert!(without.to_string().contains("\ndevice records: not measured: there is no CUPTI\n"), "{without}");
    }
}
