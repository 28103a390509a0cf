//! Times of a device, by three stopwatches.
//!
//! | stopwatch | a time holds |
//! |---|---|
//! | events ([`DeviceClock::new`]) | from the start of the region to the end of its work: also the time in which the device waited for launches |
//! | behind a gate ([`DeviceClock::behind_gate`]) | the work of the region, all launched before the first of it ran, in a batch of calls; with each launch the device's own pause before the next |
//! | records ([`DeviceClock::by_records`]) | what the device's own records say, CUPTI's on CUDA: from the start of the first work to the end of the last, on whichever stream |
//!
//! # Method
//! Events: one is recorded before the region and one behind it; times between events of CUDA have a resolution of about 0.5 µs.
//! Behind a gate: the streams are held until the batch has been enqueued, as in NVIDIA's nvbench (its "blocking kernel"). A batch
//! has as many calls as take 500 µs, of which the events around it are 0.4 %; the time is divided by the number of calls. With
//! several streams the first begins the others by an event, and waits for them before the end.
//!
//! Cold: before each call the caches are filled with other data, twice the size of the last cache, outside of the time.
//! Otherwise they are hot: what a call leaves there the next finds.
//!
//! # What it does not cover
//! A short kernel takes longer behind a gate than by its record: the device begins each launch some time after the end of the one
//! before, about a microsecond. Records are of all that this process does on the device meanwhile: let no other thread use it.
//! To keep them slows the device: on an H200 a kernel that reads 512 MiB and writes 256 MiB takes 253 µs while CUPTI records, also in the
//! middle of a batch, and 239 µs without; one of an eighth takes 32.5 µs and 32.2 µs.
//!
//! Two stopwatches that disagree by more than their intervals measure two things, and their mean is neither.

use std::sync::Arc;
use std::time::Duration;

use super::blocking::hold_for;
use super::clock::Clock;
use super::optimised;
use crate::device::recording::Recording;
use crate::device::{Device, Event, Stream};
use crate::error::{CaseError, DeviceError};
use crate::tensor::Tensor;

/// How long what is launched behind a gate may take before the gate is opened for it.
const PATIENCE: Duration = Duration::from_secs(1);

/// Takes times of one device on one stream or several.
#[derive(Clone, Debug)]
pub struct DeviceClock {
    streams: Vec<Stream>,
    start: Event,
    end: Event,
    /// Of the streams but the first.
    joins: Vec<Event>,
    way: Clock,
    /// What fills the caches.
    flush: Option<Tensor<f32>>,
}

impl DeviceClock {
    /// A clock of `stream`, by events.
    ///
    /// # Errors
    /// Where the device gives no event.
    pub fn new(stream: &Stream) -> Result<Self, DeviceError> {
        Self::of(&[stream])
    }

    /// A clock of several streams of one device, by events: from the first work of any of them to the end of the last.
    ///
    /// # Errors
    /// Where the device gives no event; [`DeviceError::InvalidArgument`] without a stream; [`DeviceError::ForeignObject`] for
    /// streams of two devices.
    pub fn of(streams: &[&Stream]) -> Result<Self, DeviceError> {
        let Some(first) = streams.first() else {
            return Err(DeviceError::invalid("DeviceClock::of", "there is no stream to time"));
        };
        let device = first.device();
        if streams.iter().any(|stream| !Arc::ptr_eq(stream.device().engine(), device.engine())) {
            return Err(DeviceError::ForeignObject { what: "a stream", device: device.name().to_owned() });
        }
        Ok(Self {
            streams: streams.iter().map(|stream| (*stream).clone()).collect(),
            start: device.timing_event()?,
            end: device.timing_event()?,
            joins: streams.iter().skip(1).map(|_| device.event()).collect::<Result<_, _>>()?,
            way: Clock::DeviceEvents,
            flush: None,
        })
    }

    /// The same, by events around one call.
    #[must_use]
    pub fn by_events(self) -> Self {
        Self { way: Clock::DeviceEvents, ..self }
    }

    /// The same, in batches behind a closed gate.
    #[must_use]
    pub fn behind_gate(self) -> Self {
        Self { way: Clock::DeviceBatch, ..self }
    }

    /// The same, by the device's own records, of all its streams. Each time makes a recording of the device, which takes some
    /// milliseconds. Where nobody keeps records (on CUDA without the feature `cupti`, or without CUPTI), a time is
    /// [`DeviceError::NotApplicable`].
    #[must_use]
    pub fn by_records(self) -> Self {
        Self { way: Clock::DeviceRecords, ..self }
    }

    /// The same, with cold caches.
    ///
    /// # Errors
    /// [`DeviceError::NotApplicable`] where the size of the device's caches is not known; no room for as much memory.
    pub fn cold(self) -> Result<Self, DeviceError> {
        let first = &self.streams[0];
        let Some(bytes) = first.device().properties().cache_bytes else {
            let why = "the size of its caches is not known";
            return Err(DeviceError::not_applicable("a cold cache", first.device().name(), why));
        };
        let elements = usize::try_from(bytes).unwrap_or(usize::MAX) / 2;
        let flush = Some(first.zeros([elements])?);
        Ok(Self { flush, ..self })
    }

    /// The same, with caches as the call before left them.
    #[must_use]
    pub(super) fn hot(self) -> Self {
        Self { flush: None, ..self }
    }

    /// The stream that begins.
    pub(super) fn stream(&self) -> &Stream {
        &self.streams[0]
    }

    /// How much work `region` enqueues, and why the device keeps no records of it.
    pub(super) fn count_works<E: From<DeviceError>>(
        &self,
        region: impl FnOnce() -> Result<(), E>,
    ) -> Result<(usize, Option<String>), E> {
        let recording = self.recording()?;
        let by_events = recording.by_events().map(str::to_owned);
        region()?;
        Ok((recording.finish()?.work.len(), by_events))
    }

    /// How it takes times.
    pub fn clock(&self) -> Clock {
        self.way
    }

    /// Runs `region` once and measures its seconds on the device, by events or by records: to time it behind a gate it is called
    /// again and again, by [`Case::on_device`](super::Case::on_device).
    ///
    /// Synchronization point: waits for the work that the region enqueued on the streams.
    ///
    /// # Errors
    /// The region's, and those of work enqueued on the streams.
    pub fn time<R, E: From<DeviceError>>(&mut self, region: impl FnOnce() -> Result<R, E>) -> Result<(R, f64), E> {
        optimised::say_if_not();
        self.fill_caches()?;
        if self.way == Clock::DeviceRecords {
            return self.recorded(region);
        }
        self.begin()?;
        let result = region()?;
        self.finish()?;
        Ok((result, self.elapsed()?))
    }

    /// The seconds of `calls` calls of the region in all, launched behind a closed gate: together, or one by one with cold caches.
    pub(super) fn time_batch<R, E: From<DeviceError>>(
        &self,
        calls: usize,
        region: &mut impl FnMut() -> Result<R, E>,
    ) -> Result<f64, E> {
        if self.flush.is_none() {
            return self.behind(calls, region);
        }
        (0..calls).try_fold(0.0, |seconds, _| Ok(seconds + self.behind(1, region)?))
    }

    /// `region`, where it enqueues something on the streams that are timed, as far as that is known: times of nothing are those of
    /// the clock.
    pub(super) fn checked<'a, R>(
        &self,
        mut region: impl FnMut() -> Result<R, CaseError> + 'a,
    ) -> impl FnMut() -> Result<R, CaseError> + 'a {
        let streams = self.streams.clone();
        let enqueued = move || streams.iter().map(|stream| stream.raw().enqueued()).sum::<Option<u64>>();
        move || {
            let before = enqueued();
            let result = region()?;
            if before.is_some() && before == enqueued() {
                return Err(nothing().into());
            }
            Ok(result)
        }
    }

    /// What its events show where nothing is enqueued between them, in seconds: the median of a few.
    pub(super) fn of_nothing(&self) -> Result<f64, DeviceError> {
        const READINGS: usize = 9;
        let mut seconds = [0.0; READINGS];
        for reading in &mut seconds {
            self.begin()?;
            self.finish()?;
            *reading = self.elapsed()?;
        }
        seconds.sort_unstable_by(f64::total_cmp);
        Ok(seconds[READINGS / 2])
    }

    fn behind<R, E: From<DeviceError>>(
        &self,
        calls: usize,
        region: &mut impl FnMut() -> Result<R, E>,
    ) -> Result<f64, E> {
        let streams: Vec<&Stream> = self.streams.iter().collect();
        let device = streams[0].device();
        // The region's error is of a type of its own.
        let mut failed = None;
        let (_, was_opened) = hold_for(device, &streams, PATIENCE, |_| {
            self.fill_caches()?;
            self.begin()?;
            failed = (0..calls).find_map(|_| region().err());
            self.finish()
        })?;
        if let Some(failed) = failed {
            return Err(failed);
        }
        if was_opened {
            let reason =
                "the calls of the region wait for the device, or a stream's queue has no room for so many launches: \
                          time it by events"
                    .to_owned();
            return Err(DeviceError::call_failed(device.name(), "a region behind a closed gate", reason).into());
        }
        Ok(self.elapsed()?)
    }

    fn recorded<R, E: From<DeviceError>>(&self, region: impl FnOnce() -> Result<R, E>) -> Result<(R, f64), E> {
        let recording = self.recording()?;
        if let Some(why) = recording.by_events() {
            return Err(DeviceError::not_applicable("a time by the device's records", self.device().name(), why).into());
        }
        let result = region()?;
        let log = recording.finish()?;
        let ends = log.work.iter().map(|work| (work.start, work.end));
        let all = ends.reduce(|(start, end), (next, last)| (start.min(next), end.max(last)));
        match all {
            Some((start, end)) => Ok((result, (end - start).as_secs_f64())),
            None => {
                Err(DeviceError::EventNotReady { reason: "the device did nothing that its records tell of" }.into())
            }
        }
    }

    fn recording(&self) -> Result<Recording, DeviceError> {
        self.device().synchronize()?;
        Recording::begin(self.device().engine())
    }

    fn device(&self) -> &Device {
        self.streams[0].device()
    }

    fn fill_caches(&self) -> Result<(), DeviceError> {
        self.flush.iter().try_for_each(|flush| flush.affine_in_place(1.0, 0.0))
    }

    fn begin(&self) -> Result<(), DeviceError> {
        let (first, others) = self.split();
        first.record(&self.start)?;
        others.iter().try_for_each(|stream| stream.wait(&self.start))
    }

    fn finish(&self) -> Result<(), DeviceError> {
        let (first, others) = self.split();
        for (stream, join) in others.iter().zip(&self.joins) {
            stream.record(join)?;
            first.wait(join)?;
        }
        first.record(&self.end)
    }

    fn split(&self) -> (&Stream, &[Stream]) {
        (&self.streams[0], &self.streams[1..])
    }

    fn elapsed(&self) -> Result<f64, DeviceError> {
        self.end.synchronize()?;
        Ok(self.end.elapsed_since(&self.start)?.as_secs_f64())
    }
}

/// A region has no time.
pub(super) fn nothing() -> DeviceError {
    let reason = "the device did nothing: the region enqueues nothing on the streams that are timed";
    DeviceError::EventNotReady { reason }
}

/// What times a case on a device: a clock, or a stream, for a clock of it by events.
pub trait IntoDeviceClock {
    /// The clock.
    ///
    /// # Errors
    /// Where the device gives no event.
    fn into_clock(self) -> Result<DeviceClock, DeviceError>;
}

impl IntoDeviceClock for DeviceClock {
    fn into_clock(self) -> Result<DeviceClock, DeviceError> {
        Ok(self)
    }
}

impl IntoDeviceClock for &Stream {
    fn into_clock(self) -> Result<DeviceClock, DeviceError> {
        DeviceClock::new(self)
    }
}

/// Runs `region` and measures the seconds on `stream` between its start and its end.
///
/// Creates two events for this one measurement. A [`DeviceClock`] keeps them.
///
/// # Errors
/// The region's, and those of the stream.
pub fn device_time<R, E: From<DeviceError>>(
    stream: &Stream,
    region: impl FnOnce() -> Result<R, E>,
) -> Result<(R, f64), E> {
    DeviceClock::new(stream)?.time(region)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::measure::{Case, Protocol, Sampler, Samples};

    const SPIN: Duration = Duration::from_millis(2);

    #[test]
    fn each_stopwatch_reads_the_time_of_work_on_two_streams() -> Result<(), CaseError> {
        let device = Device::open("cpu:0")?;
        let (a, b) = (device.stream()?, device.stream()?);
        let clock = DeviceClock::of(&[&a, &b])?;
        for clock in [clock.clone(), clock.clone().behind_gate(), clock.by_records()] {
            let spin = || b.spin(SPIN);
            let case = Case::on_device("spin", clock.clone(), spin)?;
            assert_eq!(case.clock(), clock.clock());
            let sampled = Sampler::new(Protocol::samples(3)).sample(vec![case])?;
            assert!(sampled.sets[0].values().iter().all(|seconds| *seconds >= SPIN.as_secs_f64()), "{clock:?}");
        }
        Ok(())
    }

    #[test]
    fn streams_of_two_openings_of_a_device_have_no_clock() -> Result<(), CaseError> {
        let (one, other) = (Device::open("cpu:0")?.stream()?, Device::open("cpu:0")?.stream()?);
        let refused = DeviceClock::of(&[&one, &other]).map(drop);
        assert!(matches!(refused, Err(DeviceError::ForeignObject { .. })), "{refused:?}");
        Ok(())
    }

    #[test]
    fn a_time_by_two_events_stands_beside_what_they_show_for_nothing() -> Result<(), CaseError> {
        let stream = Device::open("cpu:0")?.stream()?;
        let clock = DeviceClock::new(&stream)?;
        let floor = |clock| -> Result<Option<f64>, CaseError> {
            Ok(Case::on_device("spin", clock, || stream.spin(SPIN))?.floor())
        };
        assert!(floor(clock.clone())?.is_some_and(|seconds| seconds < SPIN.as_secs_f64()));
        assert_eq!(floor(clock.clone().by_records())?, None);
        let near = Samples::new("near", vec![2e-6; 9])?.taken_by(Clock::DeviceEvents, Some(1e-6));
        assert!(near.near_floor().is_some_and(|near| near.finding().contains("two events")));
        Ok(())
    }

    #[test]
    fn a_batch_has_as_many_calls_as_its_clock_needs() -> Result<(), CaseError> {
        let stream = Device::open("cpu:0")?.stream()?;
        let clock = DeviceClock::new(&stream)?.behind_gate();
        let short = Case::on_device("short", clock.clone(), || stream.spin(Duration::from_micros(5)))?;
        let long = Case::on_device("long", clock, || stream.spin(SPIN))?;
        let sampled = Sampler::new(Protocol::samples(3)).sample(vec![short, long])?;
        assert!(sampled.calls[0] > 1 && sampled.calls[1] == 1, "{:?}", sampled.calls);
        Ok(())
    }

    #[test]
    fn what_waits_for_the_device_behind_a_gate_is_told_to_take_another_stopwatch() -> Result<(), CaseError> {
        let stream = Device::open("cpu:0")?.stream()?;
        let clock = DeviceClock::new(&stream)?.behind_gate();
        let waits = clock.time_batch(1, &mut || stream.synchronize());
        assert!(waits.is_err_and(|error| error.to_string().contains("time it by events")));
        assert!(clock.cold().is_err_and(|error| matches!(error, DeviceError::NotApplicable { .. })));
        Ok(())
    }

    #[test]
    fn a_region_that_enqueues_nothing_is_an_error_by_each_stopwatch() -> Result<(), CaseError> {
        let device = Device::open("cpu:0")?;
        let (stream, other) = (device.stream()?, device.stream()?);
        let clock = DeviceClock::new(&stream)?;
        for clock in [clock.clone(), clock.clone().behind_gate(), clock.by_records()] {
            let said =
                |case| Sampler::new(Protocol::samples(3)).sample(vec![case]).err().map(|error| error.to_string());
            let nothing = said(Case::on_device("nothing", clock.clone(), || ())?);
            assert!(
                nothing.as_ref().is_some_and(|said| said.contains("the device did nothing")),
                "{clock:?}: {nothing:?}"
            );
            let waits = said(Case::on_device("waits", clock.clone().by_events(), || other.synchronize())?);
            assert!(waits.is_some_and(|said| said.contains("the device did nothing")), "{clock:?}");
        }
        Ok(())
    }

    #[test]
    fn a_region_that_fails_keeps_its_error_and_leaves_no_gate_closed() -> Result<(), CaseError> {
        let stream = Device::open("cpu:0")?.stream()?;
        let clock = DeviceClock::new(&stream)?.behind_gate();
        let failed = clock.time_batch(2, &mut || Err::<(), CaseError>("of its own".into()));
        assert_eq!(failed.map_err(|error| error.to_string()), Err("of its own".to_owned()));
        stream.synchronize()?;
        Ok(())
    }
}
