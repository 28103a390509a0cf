//! Whether a statement about sampled cases holds.
//!
//! # Method
//! The statement is evaluated on bootstrap resamples of the raw samples (B. Efron, *Bootstrap methods: another look at the
//! jackknife*, Ann. Stat. 7, 1979; seeded). Each set is drawn with replacement, sets of equal length by the same rounds, so
//! that interleaved cases stay paired. The statement sees the medians. It is *confirmed* where it holds in at least 97.5 %
//! of the resamples, *refuted* where it fails in as many, and otherwise *inconclusive*.
//!
//! # What it does not cover
//! As for an interval: another run, another machine, and samples that depend on each other.

use std::fmt;

use super::bootstrap::distribution;
use crate::measure::estimate::quantile;
use crate::measure::protocol::Protocol;
use crate::measure::samples::Samples;

/// Whether a claim holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// It holds: in this share of the resamples.
    Confirmed(f64),
    /// It does not hold: it is true in this share of the resamples only.
    Refuted(f64),
    /// The samples do not decide: it holds in this share of the resamples.
    Inconclusive(f64),
    /// It cannot be judged on this machine, and why.
    NotTestable(String),
}

impl Verdict {
    fn of_share(share: f64) -> Self {
        const CLEAR: f64 = 0.975;
        match share {
            share if share >= CLEAR => Verdict::Confirmed(share),
            share if share <= 1.0 - CLEAR => Verdict::Refuted(share),
            share => Verdict::Inconclusive(share),
        }
    }

    /// The verdict in a word or two.
    pub fn name(&self) -> &'static str {
        match self {
            Verdict::Confirmed(_) => "confirmed",
            Verdict::Refuted(_) => "refuted",
            Verdict::Inconclusive(_) => "inconclusive",
            Verdict::NotTestable(_) => "not testable here",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::NotTestable(reason) => write!(f, "{}: {reason}", self.name()),
            Verdict::Confirmed(_) | Verdict::Refuted(_) | Verdict::Inconclusive(_) => f.write_str(self.name()),
        }
    }
}

/// Whether `holds` is true of the medians of `sets`, which it is given in their order.
///
/// *Not testable* where a set has fewer than six samples.
///
/// ```
/// use syncscope::measure::{Samples, Verdict, judge};
///
/// let samples = |name, from: u32| Samples::new(name, (from..from + 20).map(f64::from).collect());
/// let (fast, slow) = (samples("fast", 0)?, samples("slow", 100)?);
/// assert_eq!(judge([&fast, &slow], |[fast, slow]| slow > 2.0 * fast), Verdict::Confirmed(1.0));
/// # Ok::<(), syncscope::error::MeasureError>(())
/// ```
///
/// ```
/// use syncscope::measure::{Samples, judge};
///
/// let fast = Samples::new("fast", vec![1.0; 20])?;
/// let slow = Samples::new("slow", vec![2.0; 20])?;
/// assert_eq!(judge([&fast, &slow], |[fast, slow]| fast < slow).name(), "confirmed");
/// # Ok::<(), syncscope::error::MeasureError>(())
/// ```
pub fn judge<const N: usize>(sets: [&Samples; N], mut holds: impl FnMut([f64; N]) -> bool) -> Verdict {
    if let Some(few) = sets.iter().find(|set| set.len() < Protocol::MINIMUM) {
        return Verdict::NotTestable(format!("the {} samples of `{}` are too few to judge by", few.len(), few.name()));
    }
    let truths = distribution(&sets.map(Samples::values), |resampled| {
        let medians = std::array::from_fn(|index| {
            let mut sorted = resampled[index].clone();
            sorted.sort_unstable_by(f64::total_cmp);
            quantile(&sorted, 0.5)
        });
        f64::from(holds(medians))
    });
    Verdict::of_share(truths.iter().sum::<f64>() / truths.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(name: &str, values: impl Iterator<Item = u32>) -> Samples {
        Samples::new(name, values.map(f64::from).collect()).unwrap()
    }

    #[test]
    fn a_clear_statement_is_decided_and_an_even_one_is_not() {
        // In an order that is no trend.
        let (low, high) =
            (samples("low", (0..31).map(|i| i * 7 % 31)), samples("high", (0..31).map(|i| 60 + i * 7 % 31)));
        assert_eq!(judge([&low, &high], |[low, high]| low < high), Verdict::Confirmed(1.0));
        assert_eq!(judge([&low, &high], |[low, high]| low > high), Verdict::Refuted(0.0));
        assert!(matches!(judge([&low], |[low]| low > 15.0), Verdict::Inconclusive(_)));
    }

    #[test]
    fn a_few_samples_judge_nothing() {
        let few = samples("read", 0..5);
        let Verdict::NotTestable(reason) = judge([&few], |_| true) else { panic!("judged") };
        assert!(reason.contains("5 samples of `read`"), "{reason}");
    }
}
