//! A case: one operation that is sampled.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::batch::{self, Batch};
use super::clock::{Clock, Monotonic, host_time};
use super::device_clock::{DeviceClock, IntoDeviceClock};
use crate::device::Element;
use crate::error::{CaseError, DeviceError};
use crate::tensor::Tensor;

/// A named operation that is measured once a round.
///
/// | constructor | a sample |
/// |---|---|
/// | [`new`](Self::new), or `("name", || …)` | the seconds of a call on the host, from as many calls as the clock needs |
/// | [`with_input`](Self::with_input) | the same, of a function whose input is made anew for each call, outside of the time |
/// | [`single`](Self::single) | the seconds of one call, whatever the clock needs |
/// | [`within`](Self::within) | the seconds of a part of a call |
/// | [`on_device`](Self::on_device) | the seconds of what a call enqueues on a device |
/// | [`timed_by`](Self::timed_by), [`observed`](Self::observed) | what the call returns: seconds, or any other value |
///
/// A closure returns a `Result`, of which an error ends the sampling, or another [`Outcome`]. Errors are of any type that becomes a
/// `Box<dyn Error + Send + Sync>`, as every type of error that is `Send`, `Sync` and `'static` does, and `anyhow`'s, and a text.
/// A closure that ends with `Ok(…)` after a `?` has to say which: `Ok::<_, DeviceError>(…)`.
pub struct Case<'a> {
    name: String,
    measure: Measure<'a>,
    clock: Clock,
    iterations: usize,
    /// Of a case that two events time.
    events: Option<DeviceClock>,
    pub(super) event: Option<usize>,
    pub(super) is_elsewhere: bool,
}

enum Measure<'a> {
    Once(Box<dyn FnMut() -> Result<f64, CaseError> + 'a>),
    Batch(Batch<'a>),
}

/// What a timed closure returns: a `Result`, of which an error ends the sampling, or a value, which is kept from being optimised
/// away and dropped outside of the time.
#[diagnostic::on_unimplemented(
    message = "a timed closure returns a `Result`, `()`, a number, a text, a collection or a tensor, not `{Self}`",
    note = "end it with `std::hint::black_box(value);`, or wrap the value: `Ok::<_, DeviceError>(value)`"
)]
pub trait Outcome {
    /// What is kept to the end of the time.
    type Kept;

    /// The value.
    ///
    /// # Errors
    /// What it is in place of one.
    fn checked(self) -> Result<Self::Kept, CaseError>;
}

impl<T, E: Into<CaseError>> Outcome for Result<T, E> {
    type Kept = T;

    #[inline]
    fn checked(self) -> Result<T, CaseError> {
        self.map_err(Into::into)
    }
}

macro_rules! values {
    ($([$($generic:tt)*] $($type:ty),+;)+) => {
        $(values!(each [$($generic)*] $($type),+);)+
    };
    (each $generic:tt $($type:ty),+) => {
        $(values!(one $generic $type);)+
    };
    (one [$($generic:tt)*] $type:ty) => {
        impl<$($generic)*> Outcome for $type {
            type Kept = Self;

            #[inline]
            fn checked(self) -> Result<Self, CaseError> {
                Ok(self)
            }
        }
    };
}
values! {
    [] (), bool, char, i8, u8, i16, u16, i32, u32, i64, u64, i128, u128, isize, usize, f32, f64, half::f16, half::bf16;
    [] String, Duration, Instant, Ordering;
    [T: ?Sized] &T, Box<T>, Rc<T>, Arc<T>;
    [T] Option<T>, Vec<T>, VecDeque<T>, HashSet<T>, BTreeSet<T>;
    [T, const N: usize] [T; N];
    [A, B] HashMap<A, B>, BTreeMap<A, B>, (A, B);
    [A, B, C] (A, B, C);
    [T: Element] Tensor<T>;
}

/// What a case observes: a number, or yes (1) or no (0); or an error in its place.
pub trait Observation {
    /// The value.
    ///
    /// # Errors
    /// What kept the case from observing.
    fn value(self) -> Result<f64, CaseError>;
}

impl Observation for f64 {
    fn value(self) -> Result<f64, CaseError> {
        Ok(self)
    }
}

impl Observation for bool {
    fn value(self) -> Result<f64, CaseError> {
        Ok(f64::from(u8::from(self)))
    }
}

impl<T: Observation, E: Into<CaseError>> Observation for Result<T, E> {
    fn value(self) -> Result<f64, CaseError> {
        self.map_err(Into::into)?.value()
    }
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
    pub fn time<R, E>(&mut self, region: impl FnOnce() -> Result<R, E>) -> Result<R, E> {
        let start = Instant::now();
        let result = region();
        let seconds = start.elapsed().as_secs_f64();
        self.seconds = Some(self.seconds.unwrap_or(0.0) + seconds);
        result
    }
}

impl<'a> Case<'a> {
    /// A case timed by the host's clock: the seconds of one call, from as many calls a sample as the clock needs.
    ///
    /// The number follows from the clock's step and cost, which together are at most 1 % of a sample; a function of more than some
    /// microseconds is called once. Nothing is subtracted. Results are dropped outside of the time.
    ///
    /// ```
    /// use std::hint::black_box;
    /// use syncscope::measure::{Case, Protocol, Sampler};
    ///
    /// let (a, b) = (3_u64, 5_u64);
    /// let sum = Case::new("sum", || black_box(a) + black_box(b));
    /// let parse = Case::new("parse", || "42".parse::<u32>());
    /// let rounds = Sampler::new(Protocol::samples(3)).sample(vec![sum, parse])?;
    /// assert!(rounds.calls[0] > 1);
    /// # Ok::<(), syncscope::error::MeasureError>(())
    /// ```
    pub fn new<R: Outcome>(name: impl Into<String>, mut region: impl FnMut() -> R + 'a) -> Self {
        Self::with_input(name, || (), move |()| region())
    }

    /// As [`new`](Self::new), of a function that takes what `input` makes: anew for each call, outside of the time. The inputs of
    /// a sample are all made before its first call; where more would take longer than a tenth of a second, they are fewer, and
    /// the clock's part in a sample of a short function is larger.
    ///
    /// ```
    /// use syncscope::measure::{Case, Protocol, Sampler};
    ///
    /// let sort = Case::with_input("sort", || vec![3, 1, 2], |mut numbers| {
    ///     numbers.sort();
    ///     numbers
    /// });
    /// assert_eq!(Sampler::new(Protocol::samples(3)).sample(vec![sort])?.sets[0].len(), 3);
    /// # Ok::<(), syncscope::error::MeasureError>(())
    /// ```
    pub fn with_input<I, R: Outcome>(
        name: impl Into<String>,
        input: impl FnMut() -> I + 'a,
        mut region: impl FnMut(I) -> R + 'a,
    ) -> Self {
        let region = move |input| region(input).checked();
        Self::by(Clock::Host, name, Measure::Batch(Batch::new(Monotonic, input, region)))
    }

    /// A case timed by the host's clock: the seconds until `region` returns, of one call a sample, with a reading of the clock in
    /// it. For what one call changes for the next.
    pub fn single<R: Outcome>(name: impl Into<String>, mut region: impl FnMut() -> R + 'a) -> Self {
        Self::once(Clock::Host, name, move || host_time(|| region().checked()).map(|(_, seconds)| seconds))
    }

    /// A case of which the host's clock times a part: what it runs through the [`Stopwatch`]. A sample in which it ran
    /// nothing through it is not a number, which is an error.
    ///
    /// ```
    /// use syncscope::measure::{Case, Protocol, Sampler};
    ///
    /// let sort = Case::within("sort", |watch| {
    ///     let mut numbers: Vec<u32> = "3 1 2".split(' ').map(str::parse).collect::<Result<_, _>>()?;
    ///     watch.time(|| Ok::<_, std::num::ParseIntError>(numbers.sort()))
    /// });
    /// assert_eq!(Sampler::new(Protocol::samples(3)).sample(vec![sort])?.sets[0].len(), 3);
    /// # Ok::<(), syncscope::error::MeasureError>(())
    /// ```
    pub fn within<E: Into<CaseError>>(
        name: impl Into<String>,
        mut body: impl FnMut(&mut Stopwatch) -> Result<(), E> + 'a,
    ) -> Self {
        Self::once(Clock::Host, name, move || {
            let mut watch = Stopwatch::default();
            body(&mut watch).map_err(Into::into)?;
            Ok(watch.seconds.unwrap_or(f64::NAN))
        })
    }

    /// A case that reads the clock itself and returns seconds.
    pub fn timed_by<E: Into<CaseError>>(
        clock: Clock,
        name: impl Into<String>,
        mut measure: impl FnMut() -> Result<f64, E> + 'a,
    ) -> Self {
        Self::once(clock, name, move || measure().map_err(Into::into))
    }

    /// A case whose closure returns an observed value: a count, a rate, yes or no.
    ///
    /// ```
    /// use syncscope::measure::{Case, Protocol, Sampler};
    ///
    /// let words = Case::observed("words", || "one word and another".split(' ').count() as f64);
    /// let rounds = Sampler::new(Protocol::samples(3)).sample(vec![words])?;
    /// assert_eq!(rounds.sets[0].values(), [4.0; 3]);
    /// # Ok::<(), syncscope::error::MeasureError>(())
    /// ```
    pub fn observed<O: Observation>(name: impl Into<String>, mut measure: impl FnMut() -> O + 'a) -> Self {
        Self::once(Clock::Observed, name, move || measure().value())
    }

    fn once(clock: Clock, name: impl Into<String>, measure: impl FnMut() -> Result<f64, CaseError> + 'a) -> Self {
        Self::by(clock, name, Measure::Once(Box::new(measure)))
    }

    fn by(clock: Clock, name: impl Into<String>, measure: Measure<'a>) -> Self {
        Self { name: name.into(), measure, clock, iterations: 1, events: None, event: None, is_elsewhere: false }
    }

    /// A case whose work another processor does than that of the thread that measures, as a process that it starts. How slowed
    /// the thread's own processor is beside it says nothing of it, and is not kept.
    #[doc(hidden)]
    #[must_use]
    pub fn elsewhere(self) -> Self {
        Self { is_elsewhere: true, ..self }
    }

    /// A case whose samples are parts of one event of each round, as a wait that the first of its cases makes: those with
    /// the same number. How slow the host was beside one of them it was beside all.
    #[doc(hidden)]
    #[must_use]
    pub fn of_event(self, event: usize) -> Self {
        Self { event: Some(event), ..self }
    }

    /// A case timed on a device, of whatever the region enqueues there: by a [`DeviceClock`](super::DeviceClock), or by two events on
    /// a `&stream`. A region that enqueues nothing on the clock's streams is an error. On a stream of another library, and on one that
    /// was lent, nobody counts what others enqueue: there two events show for nothing what they always do, which
    /// [findings](super::Samples::near_floor) say of the samples.
    ///
    /// # Errors
    /// Where the device gives no event.
    pub fn on_device<R: Outcome>(
        name: impl Into<String>,
        clock: impl IntoDeviceClock,
        mut region: impl FnMut() -> R + 'a,
    ) -> Result<Self, DeviceError> {
        let mut clock = clock.into_clock()?;
        let mut region = clock.checked(move || region().checked());
        let way = clock.clock();
        Ok(match way {
            Clock::DeviceBatch => Self::by(way, name, Measure::Batch(Batch::of_device(clock, region))),
            _ => {
                let events = (way == Clock::DeviceEvents).then(|| clock.clone());
                Self { events, ..Self::once(way, name, move || clock.time(&mut region).map(|(_, seconds)| seconds)) }
            }
        })
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

    /// The number of calls that a sample times together; 1 where it is one, or not known yet.
    pub(crate) fn calls(&self) -> usize {
        match &self.measure {
            Measure::Once(_) => 1,
            Measure::Batch(batch) => batch.calls(),
        }
    }

    /// What its clock shows for no work, in seconds, where that is known and each sample is one reading: of a batch it is little.
    /// Of two events it is measured, once their work is over.
    pub(crate) fn floor(&self) -> Option<f64> {
        if self.calls() > 1 || self.iterations > 1 {
            return None;
        }
        match &self.events {
            Some(clock) => clock.of_nothing().ok(),
            None => (self.clock == Clock::Host).then(|| batch::cost(Monotonic)),
        }
    }

    /// With so many calls in a sample, as another run of the same case found them: of a batch.
    #[must_use]
    pub fn with_calls(mut self, calls: usize) -> Self {
        if let Measure::Batch(batch) = &mut self.measure {
            batch.set_calls(calls);
        }
        self
    }

    /// Finds how many calls a sample times together.
    pub(crate) fn prepare(&mut self) -> Result<(), CaseError> {
        match &mut self.measure {
            Measure::Once(_) => Ok(()),
            Measure::Batch(batch) => batch.prepare(),
        }
    }

    /// Takes one sample.
    ///
    /// # Errors
    /// That of the case.
    pub fn measure(&mut self) -> Result<f64, CaseError> {
        let value = match &mut self.measure {
            Measure::Once(measure) => measure()?,
            Measure::Batch(batch) => batch.measure()?,
        };
        Ok(value / self.iterations as f64)
    }
}

/// A name and a region that the host's clock times, as in [`new`](Case::new).
impl<'a, N: Into<String>, F: FnMut() -> R + 'a, R: Outcome> From<(N, F)> for Case<'a> {
    fn from((name, region): (N, F)) -> Self {
        Case::new(name, region)
    }
}

impl fmt::Debug for Case<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Case({})", self.name)
    }
}
