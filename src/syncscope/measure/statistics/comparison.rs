//! Whether two cases differ, and by how much.

use std::fmt;

use crate::error::MeasureError;
use crate::measure::Estimate;
use crate::measure::samples::Samples;
use crate::present::clean;
use crate::units::{Scale, Unit};

/// Two cases that were sampled in the same rounds, and their paired difference.
///
/// The difference is the median over the rounds of the second sample minus the first, so that what affects both (a clock
/// rate, a temperature) cancels. Where the cases do not differ, about 5 % of comparisons claim a difference.
///
/// ```
/// use syncscope::measure::{Comparison, Samples};
///
/// let case = |name: &str, less: f64| Samples::new(name, (0..30).map(|i| 2.0 + 0.01 * f64::from(i) - less).collect());
/// let comparison = Comparison::new(case("before", 0.0)?, case("after", 1.0)?)?;
/// assert!(comparison.is_distinguishable());
/// assert!((comparison.difference.median + 1.0).abs() < 1e-9);
/// # Ok::<(), syncscope::error::MeasureError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Comparison {
    /// The first case, in the unit of its samples.
    pub a: Estimate,
    /// The second case.
    pub b: Estimate,
    /// The second minus the first, round by round.
    pub difference: Estimate,
    samples: (Samples, Samples),
}

impl Comparison {
    /// The comparison of two cases from the samples of the same rounds.
    ///
    /// # Errors
    /// [`MeasureError::Unpaired`] where the numbers of samples differ.
    pub fn new(a: Samples, b: Samples) -> Result<Self, MeasureError> {
        let difference = b.minus(&a)?.estimate();
        Ok(Self { a: a.estimate(), b: b.estimate(), difference, samples: (a, b) })
    }

    /// The raw samples of the first and of the second case.
    pub fn samples(&self) -> (&Samples, &Samples) {
        (&self.samples.0, &self.samples.1)
    }

    /// Whether the 95 % interval of the difference excludes zero. Never with fewer than six samples.
    pub fn is_distinguishable(&self) -> bool {
        self.difference.excludes_zero()
    }

    /// The median difference as a share of the first case's median: 0.5 where the second takes 50 % longer.
    /// `None` where that median is 0.
    pub fn relative(&self) -> Option<f64> {
        let share = self.difference.median / self.a.median;
        share.is_finite().then_some(share)
    }

    /// The comparison in `unit`, on one line.
    ///
    /// A difference whose interval contains zero is written as not distinguishable from 0, with its interval alone.
    pub fn format(&self, unit: Unit) -> String {
        let [of, other] = [&self.samples.0, &self.samples.1].map(|samples| clean::line(samples.name()));
        let names = format!("{other} − {of}");
        let n = self.difference.n;
        if !self.difference.is_interval() {
            return format!("{names}: not distinguishable from 0 (n = {n} is too few for a 95 % interval)");
        }
        if !self.is_distinguishable() {
            let interval = self.difference.format_interval(unit);
            return format!("{names}: not distinguishable from 0 (interval {interval}, n = {n})");
        }
        let relative = self.relative().map(|share| {
            // Of two medians one of which is much larger, the difference does not tell the smaller.
            let times = if share <= -0.5 { self.a.median / self.b.median } else { 1.0 + share };
            format!(", {}", relation(share, times, &of, &other))
        });
        format!("{names}: {}{}", self.difference.format(unit), relative.unwrap_or_default())
    }
}

/// Writes the comparison of two times, or of two values that no clock took.
impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.format(self.samples.0.unit()))
    }
}

/// How much longer than `of` the other case takes; where one takes twice as long as the other or longer, how many times as long.
fn relation(share: f64, times: f64, of: &str, other: &str) -> String {
    if share >= 1.0 || share <= -0.5 && times >= 2.0 && times.is_finite() {
        let (longer, shorter) = if share > 0.0 { (other, of) } else { (of, other) };
        return format!("{longer} = {} {shorter}", Scale::TIMES.significant(times, 3));
    }
    let sign = if share < 0.0 { "−" } else { "+" };
    let decimals = if share.abs() < 0.1 { 1 } else { 0 };
    format!("{sign}{} of {of}", Scale::PERCENT.fixed(share.abs(), decimals))
}

#[cfg(test)]
mod tests {
    use rand::rngs::Xoshiro256PlusPlus;
    use rand::{RngExt, SeedableRng};

    use super::*;

    fn compared(a: impl Fn(u32) -> f64, b: impl Fn(u32) -> f64, n: u32) -> Comparison {
        let samples = |name, value: &dyn Fn(u32) -> f64| Samples::new(name, (0..n).map(value).collect()).unwrap();
        Comparison::new(samples("async", &a), samples("forced", &b)).unwrap()
    }

    /// A value between 0 and 1, always the same for an `i` and without order among them.
    fn noise(i: u32) -> f64 {
        Xoshiro256PlusPlus::seed_from_u64(u64::from(i)).random()
    }

    #[test]
    fn noise_common_to_a_round_is_not_in_the_difference() {
        let comparison =
            compared(|i| 10e-6 + 50e-6 * noise(i), |i| 13e-6 + 50e-6 * noise(i) + 0.1e-6 * noise(i + 99), 40);
        assert!(comparison.is_distinguishable());
        assert!((comparison.difference.median - 3.05e-6).abs() < 0.05e-6);
        assert!(comparison.a.high > comparison.b.low, "the medians alone would not tell them apart");
    }

    #[test]
    fn a_difference_whose_interval_holds_zero_is_not_written_as_a_number() {
        let comparison = compared(|i| 1e-6 * noise(i), |i| 1e-6 * noise(i + 1_000), 30);
        assert!(!comparison.is_distinguishable());
        let text = comparison.to_string();
        assert!(text.starts_with("forced − async: not distinguishable from 0 (interval −"), "{text}");
        assert!(text.ends_with("ns, n = 30)"), "{text}");
    }

    #[test]
    fn a_difference_is_written_with_its_interval_and_its_share() {
        let text = compared(|_| 10e-6, |i| 14e-6 + 1e-6 * noise(i), 30).to_string();
        assert!(text.starts_with("forced − async: 4.") && text.contains("µs ("), "{text}");
        assert!(text.contains("n = 30), +4") && text.ends_with("% of async"), "{text}");
    }

    #[test]
    fn a_case_that_takes_many_times_as_long_is_written_as_a_factor() {
        let text = compared(|i| 1.0 + 0.001 * noise(i), |i| 337.0 + 0.1 * noise(i), 30).to_string();
        assert!(text.ends_with("n = 30), forced = 337 × async"), "{text}");
    }

    #[test]
    fn a_case_that_takes_a_small_part_is_written_as_a_factor_of_the_other() {
        let text = compared(|i| 397.0 + 0.1 * noise(i), |i| 1.0 + 0.001 * noise(i), 30).to_string();
        assert!(text.ends_with("n = 30), async = 397 × forced"), "{text}");
        let nothing = compared(|i| 1.0 + 0.001 * noise(i), |_| 0.0, 30).to_string();
        assert!(nothing.ends_with("−100 % of async"), "{nothing}");
    }

    #[test]
    fn fewer_than_six_samples_are_never_distinguishable() {
        let comparison = compared(|_| 1.0, |_| 2.0, 5);
        assert!(!comparison.is_distinguishable());
        assert!(comparison.to_string().contains("too few"));
    }

    #[test]
    fn a_share_of_zero_is_none_rather_than_infinite() {
        let comparison = compared(|_| 0.0, |_| 1.0, 10);
        assert_eq!(comparison.relative(), None);
    }
}
