//! Batches: how many calls of a short function make a sample that the clock can take.
//!
//! # Method
//! A sample of one call includes a reading of the clock, and is known to a step of it: on the host tens of nanoseconds,
//! many times what a short function takes. So a sample is of so many calls, one after the other, that cost and step of the
//! clock together are at most 1 % of it, and is divided by their number. Both are measured first, the least of several
//! tries each. Then the number grows, by the times that it takes, until the shortest of three tries is long enough. What
//! the clock costs stays in the samples: nothing is subtracted.
//!
//! The inputs of a sample are all there before its first call, so that none is made within the time. Where they would take
//! longer than a tenth of a second, fewer calls make a sample: inputs of a megabyte would fill the memory otherwise.
//!
//! # What it does not cover
//! Where inputs limit the calls of a short function, clock and step are more than 1 % of a sample, and [`Rounds::calls`] says
//! how many calls that were. What the inputs of a tenth of a second take in memory is not limited.
//!
//! The calls of a batch follow each other at once: caches and branch predictors know the function, and calls may overlap
//! in the processor. Single calls have a scatter of their own, which is in no sample of a batch. Each call costs the loop
//! around it, too, a fraction of a nanosecond, and where results need to be dropped a place in memory to keep them.
//!
//! [`Rounds::calls`]: super::Rounds::calls

use std::hint::black_box;
use std::mem::needs_drop;

use super::clock::{Timer, mean_cost, step};
use super::device_clock::{DeviceClock, nothing};
use crate::error::CaseError;

/// The most of a sample that is the clock's: its cost and its step.
const SHARE: f64 = 0.01;
/// The least time of a sample behind a gate, in seconds: two events around work take 2 µs by themselves (an H200), and a stream's
/// queue has room for as many of the shortest kernels, a microsecond each.
const OF_DEVICE: f64 = 500e-6;
/// The most calls in a sample: of a function that takes no time at all.
const MOST: usize = 1 << 24;
/// The same behind a gate: where so many are not enough, they enqueue nothing.
const MOST_OF_DEVICE: usize = 1 << 16;
/// The longest that the inputs of a sample may take to make, in seconds.
const MAKING: f64 = 0.1;
/// The tries of which the shortest counts.
const TRIES: usize = 3;
/// The tries of the clock, and the readings of one of its cost.
const CLOCK_TRIES: usize = 16;
const READINGS: u32 = 100;
/// The longest call, in least times of a sample, of which one try is enough.
const LONG: f64 = 100.0;

/// The seconds of a batch.
#[derive(Clone, Copy)]
struct Seconds {
    /// To make the inputs of its calls.
    inputs: f64,
    /// Of its calls.
    calls: f64,
}

/// A function that is called in batches.
pub(super) struct Batch<'a> {
    /// What so many calls take.
    time: Box<dyn FnMut(usize) -> Result<Seconds, CaseError> + 'a>,
    /// The least time of a sample, in seconds.
    least: Box<dyn Fn() -> f64 + 'a>,
    /// How many calls make a sample, once that is known.
    calls: Option<usize>,
}

impl<'a> Batch<'a> {
    /// `region` is called on what `input` makes, outside of the time; what it returns is dropped outside of it.
    pub(super) fn new<T: Timer + 'a, I, R, E: Into<CaseError>>(
        timer: T,
        mut input: impl FnMut() -> I + 'a,
        mut region: impl FnMut(I) -> Result<R, E> + 'a,
    ) -> Self {
        let time = Box::new(move |calls| time(timer, calls, &mut input, &mut region).map_err(Into::into));
        Self { time, least: Box::new(move || least(timer)), calls: None }
    }

    /// `region` is called behind a closed gate.
    pub(super) fn of_device<R>(clock: DeviceClock, mut region: impl FnMut() -> Result<R, CaseError> + 'a) -> Self {
        let time = Box::new(move |calls| {
            if calls > MOST_OF_DEVICE {
                return Err(nothing().into());
            }
            let seconds = clock.time_batch(calls, &mut region)?;
            Ok(Seconds { inputs: 0.0, calls: seconds })
        });
        Self { time, least: Box::new(|| OF_DEVICE), calls: None }
    }

    /// How many calls make a sample; 1 until that is known.
    pub(super) fn calls(&self) -> usize {
        self.calls.unwrap_or(1)
    }

    /// States how many calls make a sample.
    pub(super) fn set_calls(&mut self, calls: usize) {
        self.calls = Some(calls.clamp(1, MOST));
    }

    /// Finds how many calls make a sample, where that is not known.
    pub(super) fn prepare(&mut self) -> Result<(), CaseError> {
        if self.calls.is_none() {
            self.calls = Some(enough(&mut self.time, (self.least)())?);
        }
        Ok(())
    }

    /// The seconds of one call, from a batch of them.
    pub(super) fn measure(&mut self) -> Result<f64, CaseError> {
        let calls = self.calls();
        (self.time)(calls).map(|seconds| seconds.calls / calls as f64)
    }
}

/// How many calls take `least` seconds or longer; fewer where the inputs of more would take too long.
fn enough(time: &mut dyn FnMut(usize) -> Result<Seconds, CaseError>, least: f64) -> Result<usize, CaseError> {
    let mut calls = 1;
    // The first call fills caches. It says how long a call takes where that is long.
    if time(1)?.calls >= LONG * least {
        return Ok(1);
    }
    loop {
        let mut shortest = time(calls)?;
        for _ in 1..TRIES {
            let next = time(calls)?;
            shortest.calls = shortest.calls.min(next.calls);
            shortest.inputs = shortest.inputs.min(next.inputs);
        }
        let so_many = |times: f64| (calls as f64 * times).ceil() as usize;
        let most = if shortest.inputs > 0.0 { so_many(MAKING / shortest.inputs).min(MOST) } else { MOST };
        if shortest.calls >= least || calls >= most {
            return Ok(calls);
        }
        // A fifth more than that needs, so that a faster call later is in time, too; and at most tenfold, because a short
        // time says little.
        let wanted = if shortest.calls > 0.0 { so_many(1.2 * least / shortest.calls) } else { MOST };
        calls = wanted.clamp(2 * calls, 10 * calls).min(most);
    }
}

/// What `calls` calls and their inputs take.
fn time<T: Timer, I, R, E>(
    timer: T,
    calls: usize,
    input: &mut impl FnMut() -> I,
    region: &mut impl FnMut(I) -> Result<R, E>,
) -> Result<Seconds, E> {
    let start = timer.now();
    let inputs: Vec<I> = (0..calls).map(|_| input()).collect();
    let making = timer.seconds_since(start);
    let seconds = |calls| Seconds { inputs: making, calls };
    if needs_drop::<R>() {
        let mut results = Vec::with_capacity(calls);
        let start = timer.now();
        for input in inputs {
            results.push(region(black_box(input))?);
        }
        let taken = timer.seconds_since(start);
        black_box(&results);
        return Ok(seconds(taken));
    }
    let start = timer.now();
    for input in inputs {
        black_box(region(black_box(input))?);
    }
    Ok(seconds(timer.seconds_since(start)))
}

/// The least of some tries.
fn shortest(of: impl Fn() -> f64) -> f64 {
    (0..CLOCK_TRIES).map(|_| of()).fold(f64::INFINITY, f64::min)
}

/// What a reading of this clock costs, in seconds.
pub(super) fn cost(timer: impl Timer) -> f64 {
    shortest(|| mean_cost(timer, READINGS))
}

/// The least time of a sample by this clock, in seconds.
fn least(timer: impl Timer) -> f64 {
    (shortest(|| step(timer)) + cost(timer)) / SHARE
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::*;
    use crate::device::Device;
    use crate::error::DeviceError;

    /// A clock of the test's own: time passes where the test says so.
    #[derive(Clone, Copy)]
    struct Scripted<'a> {
        now: &'a Cell<f64>,
        step: f64,
        cost: f64,
    }

    impl Scripted<'_> {
        fn read(self) -> f64 {
            self.now.set(self.now.get() + self.cost);
            (self.now.get() / self.step).floor() * self.step
        }
    }

    impl Timer for Scripted<'_> {
        type Moment = f64;

        fn now(self) -> f64 {
            self.read()
        }

        fn seconds_since(self, moment: f64) -> f64 {
            self.read() - moment
        }
    }

    /// What a batch makes of a function of `seconds`, by a clock with this step and cost: a sample, and its calls.
    fn sampled(seconds: f64, step: f64, cost: f64) -> (f64, usize) {
        let now = Cell::new(0.0);
        let timer = Scripted { now: &now, step, cost };
        let region = |()| {
            now.set(now.get() + seconds);
            Ok::<_, DeviceError>(())
        };
        let mut batch = Batch::new(timer, || (), region);
        batch.prepare().unwrap();
        (batch.measure().unwrap(), batch.calls())
    }

    #[test]
    fn a_function_far_below_the_clock_reads_its_own_time_and_not_the_clocks() {
        for (step, cost) in [(1e-9, 25e-9), (100e-9, 30e-9), (15e-6, 1e-9), (1e-9, 140e-9)] {
            for seconds in [2e-9, 141e-9, 10e-6] {
                let (sample, calls) = sampled(seconds, step, cost);
                assert!((sample / seconds - 1.0).abs() <= 0.02, "{seconds} s reads {sample} s by {step} s, {cost} s");
                assert!(calls as f64 * seconds >= (step + cost) / SHARE * 0.98, "{calls}");
            }
        }
    }

    #[test]
    fn no_more_calls_are_made_than_the_clock_needs() {
        assert_eq!(sampled(1.0, 1e-9, 25e-9).1, 1);
        assert_eq!(sampled(10e-6, 1e-9, 25e-9).1, 1);
        let (_, calls) = sampled(2e-9, 1e-9, 24e-9);
        assert!((1250..=3000).contains(&calls), "{calls}");
    }

    #[test]
    fn a_function_that_takes_no_time_is_called_as_often_as_there_is_a_limit() {
        assert_eq!(enough(&mut |_| Ok(Seconds { inputs: 0.0, calls: 0.0 }), 1e-6).unwrap(), MOST);
    }

    #[test]
    fn inputs_that_take_long_to_make_are_not_made_by_the_thousand() {
        for (input, most) in [(1e-9, usize::MAX), (1e-3, 100), (0.3, 1)] {
            let now = Cell::new(0.0);
            let timer = Scripted { now: &now, step: 1e-9, cost: 25e-9 };
            let passes = |seconds: f64| now.set(now.get() + seconds);
            let region = |()| {
                passes(2e-9);
                Ok::<_, DeviceError>(())
            };
            let mut batch = Batch::new(timer, || passes(input), region);
            batch.prepare().unwrap();
            let wanted = (1250..=3000).contains(&batch.calls());
            assert!(if most == usize::MAX { wanted } else { batch.calls() == most }, "{input} s: {}", batch.calls());
        }
    }

    #[test]
    fn a_long_call_is_not_repeated_to_find_how_long_it_is() {
        let made = Cell::new(0);
        let now = Cell::new(0.0);
        let region = |()| {
            made.set(made.get() + 1);
            now.set(now.get() + 1.0);
            Ok::<_, DeviceError>(())
        };
        let mut batch = Batch::new(Scripted { now: &now, step: 1e-9, cost: 25e-9 }, || (), region);
        batch.prepare().unwrap();
        batch.prepare().unwrap();
        assert_eq!((made.get(), batch.calls()), (1, 1));
    }

    #[test]
    fn each_call_has_an_input_of_its_own_and_neither_that_nor_a_result_is_in_the_time() {
        struct Slow<'a>(&'a Cell<f64>);
        impl Drop for Slow<'_> {
            fn drop(&mut self) {
                self.0.set(self.0.get() + 1.0);
            }
        }
        let now = Cell::new(0.0);
        let (inputs, seen) = (Cell::new(0), Rc::new(Cell::new(0)));
        let input = || {
            now.set(now.get() + 1.0);
            inputs.set(inputs.get() + 1);
            inputs.get()
        };
        let last = Rc::clone(&seen);
        let region = |input| {
            assert_ne!(input, last.replace(input), "an input comes once");
            now.set(now.get() + 1e-6);
            Ok::<_, DeviceError>(Slow(&now))
        };
        let mut batch = Batch::new(Scripted { now: &now, step: 1e-9, cost: 25e-9 }, input, region);
        batch.set_calls(10);
        let sample = batch.measure().unwrap();
        assert!((sample / 1e-6 - 1.0).abs() < 0.02, "{sample}");
        assert_eq!((inputs.get(), seen.get()), (10, 10));
    }

    #[test]
    fn calls_that_enqueue_nothing_have_no_time_behind_a_gate() {
        let stream = Device::open("cpu:0").unwrap().stream().unwrap();
        // As of a stream on which others enqueue, too: nobody counts what they do.
        let clock = DeviceClock::new(&stream).unwrap().behind_gate();
        let refused = Batch::of_device(clock, || Ok(())).prepare().unwrap_err();
        assert!(refused.to_string().contains("the device did nothing"), "{refused}");
    }

    #[test]
    fn a_failure_ends_the_batch_with_the_functions_own_error() {
        #[derive(Debug, thiserror::Error, PartialEq)]
        #[error("the third")]
        struct Third;
        let calls = Cell::new(0);
        let region = |()| {
            calls.set(calls.get() + 1);
            if calls.get() == 3 { Err(Third) } else { Ok(()) }
        };
        let now = Cell::new(0.0);
        let mut batch = Batch::new(Scripted { now: &now, step: 1e-9, cost: 25e-9 }, || (), region);
        batch.set_calls(10);
        assert_eq!(batch.measure().unwrap_err().downcast_ref(), Some(&Third));
        assert_eq!(calls.get(), 3);
    }
}
