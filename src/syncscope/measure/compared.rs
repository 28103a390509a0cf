//! One case timed, and any number of cases compared.

use std::fmt;
use std::ops::Deref;

use super::case::Case;
use super::sampler::Sampler;
use super::samples::Samples;
use super::statistics::Comparison;
use crate::error::MeasureError;
use crate::measure::Estimate;
use crate::present::clean;
use crate::units::counted;

/// Cases of one sampling: a tuple of up to eight cases, or of names and closures; an array or a `Vec` of either.
#[diagnostic::on_unimplemented(
    message = "cases are a tuple of two to eight, each a `Case` or a name and a closure; an array or a `Vec` of any number",
    note = "more than eight closures: `vec![Case::new(\"name\", || …), …]`"
)]
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

/// Writes the time of a call, and where it is not far from what the clock shows for no work, that.
impl fmt::Display for Timed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, unit) = (clean::line(self.samples.name()), self.samples.unit());
        write!(f, "{name}: {}", self.estimate().format(unit))?;
        if self.calls > 1 {
            write!(f, ", {} a sample", counted(self.calls, "call"))?;
        }
        self.samples.near_floor().map_or(Ok(()), |near| write!(f, "; {}", near.finding()))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Protocol;

    #[test]
    fn what_no_clock_took_is_written_without_seconds() {
        let sampler = Sampler::new(Protocol::samples(6));
        let count = |name, value: f64| Case::observed(name, move || value);
        let counted = sampler.time(count("count", 42.0)).unwrap().to_string();
        assert!(counted.starts_with("count: 42") && !counted.contains('s'), "{counted}");
        let compared = sampler.compare([count("few", 1.0), count("more", 3.0)]).unwrap().to_string();
        assert!(compared.starts_with("more − few: 2") && compared.ends_with("more = 3.00 × few"), "{compared}");
    }

    #[test]
    fn a_time_that_is_not_far_from_the_clocks_own_says_so_and_a_batch_does_not() {
        let sampler = Sampler::new(Protocol::samples(20));
        let single = sampler.time(Case::single("empty", || ())).unwrap().to_string();
        assert!(single.contains("; ") && single.contains("of the host's clock by itself"), "{single}");
        let long = sampler.time(Case::single("long", || std::thread::sleep(std::time::Duration::from_millis(1))));
        assert!(!long.unwrap().to_string().contains("by itself"));
        let batch = sampler.time(("batch", || ())).unwrap().to_string();
        assert!(!batch.contains("by itself"), "{batch}");
    }

    #[test]
    fn a_name_ends_no_line_of_a_terminal_and_begins_no_command_of_it() {
        let timed = Sampler::new(Protocol::samples(3)).time(("a\n\u{1b}[2Jb", || ())).unwrap().to_string();
        assert!(!timed.contains(['\n', '\u{1b}']), "{timed:?}");
    }
}
