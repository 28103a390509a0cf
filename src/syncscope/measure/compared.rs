//! One case timed, and any number of cases compared.

use std::fmt;
use std::ops::Deref;

use super::case::Case;
use super::sampler::Sampler;
use super::samples::Samples;
use super::statistics::Comparison;
use crate::error::MeasureError;
use crate::measure::Estimate;
use crate::units::{Unit, counted};

/// Cases of one sampling: a tuple of cases, or of names and closures; an array or a `Vec` of either.
pub trait Cases<'a> {
    /// The cases, in their order.
    fn into_cases(self) -> Vec<Case<'a>>;
}

impl<'a, C: Into<Case<'a>>> Cases<'a> for Vec<C> {
    fn into_cases(self) -> Vec<Case<'a>> {
        self.into_iter().map(Into::into).collect()
    }
}

impl<'a, C: Into<Case<'a>>, const N: usize> Cases<'a> for [C; N] {
    fn into_cases(self) -> Vec<Case<'a>> {
        self.map(Into::into).into()
    }
}

macro_rules! tuples {
    ($($($name:ident)+;)+) => {
        $(impl<'a, $($name: Into<Case<'a>>),+> Cases<'a> for ($($name,)+) {
            #[allow(non_snake_case)]
            fn into_cases(self) -> Vec<Case<'a>> {
                let ($($name,)+) = self;
                vec![$($name.into()),+]
            }
        })+
    };
}
tuples! { A B; A B C; A B C D; A B C D E; A B C D E F; A B C D E F G; A B C D E F G H; }

/// What one case takes.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Timed {
    /// The samples, each of one call.
    pub samples: Samples,
    /// How many calls a sample timed together.
    pub calls: usize,
}

impl Timed {
    /// The median and its interval, in seconds where a clock took it.
    pub fn estimate(&self) -> Estimate {
        self.samples.estimate()
    }
}

/// Writes the time of a call.
impl fmt::Display for Timed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.samples.name(), self.estimate().format(Unit::Seconds))?;
        if self.calls > 1 { write!(f, ", {} a sample", counted(self.calls, "call")) } else { Ok(()) }
    }
}

/// Cases that were sampled in the same rounds: each but the first compared with the first, in their order.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared(Vec<Comparison>);

impl Deref for Compared {
    type Target = [Comparison];

    fn deref(&self) -> &[Comparison] {
        &self.0
    }
}

/// Writes a comparison of times a line.
impl fmt::Display for Compared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.0.iter().map(Comparison::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl Sampler {
    /// Samples one case.
    ///
    /// ```
    /// use syncscope::measure::{Protocol, Sampler};
    ///
    /// let parsed = Sampler::new(Protocol::samples(10)).time(("parse", || "42".parse::<u32>()))?;
    /// assert!(parsed.estimate().median > 0.0);
    /// println!("{parsed}");
    /// # Ok::<(), syncscope::error::MeasureError>(())
    /// ```
    ///
    /// # Errors
    /// As [`sample`](Self::sample).
    pub fn time<'a>(&self, case: impl Into<Case<'a>>) -> Result<Timed, MeasureError> {
        let mut sampled = self.sample(vec![case.into()])?;
        match (sampled.sets.pop(), sampled.calls.pop()) {
            (Some(samples), Some(calls)) => Ok(Timed { samples, calls }),
            _ => Err(MeasureError::Plan("there is no case to time".to_owned())),
        }
    }

    /// Samples two cases or more, interleaved, and estimates the paired difference of each to the first.
    ///
    /// Where a case enqueues work without waiting for it, [synchronize](Self::sync_between) the device in between:
    /// otherwise the other cases may wait for it. Cases that are to be compared do equal work and wait for all of it:
    /// otherwise a launch is compared with what it launched.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use syncscope::device::Device;
    /// use syncscope::measure::Sampler;
    ///
    /// let device = Device::best()?;
    /// let stream = device.stream()?;
    /// let work = || stream.spin(Duration::from_micros(100));
    ///
    /// let cost = Sampler::default().sync_between(&device).compare((
    ///     ("one wait", || { work()?; work()?; device.synchronize() }),
    ///     ("two waits", || { work()?; device.synchronize()?; work()?; device.synchronize() }),
    /// ))?;
    /// println!("{cost}"); // the median difference, its interval, and its share of `one wait`
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`sample`](Self::sample); [`MeasureError::Plan`] for one case alone.
    pub fn compare<'a>(&self, cases: impl Cases<'a>) -> Result<Compared, MeasureError> {
        let sampled = self.sample(cases)?;
        match sampled.sets.as_slice() {
            [first, others @ ..] if !others.is_empty() => {
                let compared = others.iter().map(|other| Comparison::new(first.clone(), other.clone()));
                compared.collect::<Result<_, _>>().map(Compared)
            }
            _ => Err(MeasureError::Plan("a comparison takes two cases or more".to_owned())),
        }
    }
}
