//! The ratio of two values that were each measured in several runs.
//!
//! # Method
//! A run counts once, by its median, on a logarithmic scale, so that exchanging the two sets inverts ratio and interval. The
//! interval is Student's t: for runs that are pairs (two programs by turns) over the differences of the pairs; else Welch's
//! (see `chances`). `tests/compare.rs` measures how often it holds the true ratio.
//!
//! # What it does not cover
//! One run a side has no interval, and neither have runs that show no scatter. Runs of another day share what that day does to all of them.

use super::chances::Student;
use super::runs::standard_error;

/// The quotient of two values, with its interval.
///
/// ```
/// use syncscope_results::statistics::{Change, Ratio};
///
/// let ratio = Ratio::of_runs(&[2.0, 2.01, 1.99], &[1.0, 1.01, 0.99], 0.95).unwrap();
/// assert_eq!(ratio.change(0.05), Change::Above);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
#[non_exhaustive]
pub struct Ratio {
    /// The second value over the first.
    pub value: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
    /// The level of the interval: 0.99.
    pub level: f64,
    /// The logarithm, with what the tests of it need.
    #[serde(skip)]
    logarithm: Student,
}

/// Where an interval lies relative to 1 ± a threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// All of it is above 1 + threshold.
    Above,
    /// All of it is below 1 − threshold.
    Below,
    /// All of it is between the two.
    Within,
    /// It contains one of them.
    Unclear,
}

impl Ratio {
    /// The second over the first, from what each came to in its runs, which are no pairs.
    ///
    /// `None` where it has no meaning or no interval: a value that is not greater than 0, fewer than two runs of either, or
    /// runs of both that all came to the same.
    pub fn of_runs(b: &[f64], a: &[f64], level: f64) -> Option<Self> {
        let (b, a) = (logarithms(b)?, logarithms(a)?);
        Student::between(&b, &a).map(|logarithm| Self::around(logarithm, level))
    }

    /// The second over the first, from what both came to in runs that are pairs: of each the second, then the first.
    ///
    /// `None` as in [`of_runs`](Self::of_runs).
    pub fn of_pairs(pairs: &[(f64, f64)], level: f64) -> Option<Self> {
        let of = |side: fn(&(f64, f64)) -> f64| logarithms(&pairs.iter().map(side).collect::<Vec<f64>>());
        let (b, a) = (of(|(b, _)| *b)?, of(|(_, a)| *a)?);
        let ratios: Vec<f64> = pairs.iter().map(|(b, a)| b / a).collect();
        standard_error(&ratios)?;
        let differences: Vec<f64> = b.iter().zip(&a).map(|(b, a)| b - a).collect();
        Student::of(&differences).map(|logarithm| Self::around(logarithm, level))
    }

    fn around(logarithm: Student, level: f64) -> Self {
        let (centre, half_width) = (logarithm.centre, logarithm.half_width(level));
        let (low, high) = ((centre - half_width).exp(), (centre + half_width).exp());
        Self { value: centre.exp(), low, high, level, logarithm }
    }

    /// The chance of a ratio as far outside of 1 ± `threshold`, or further, were the true one inside: the test of a change
    /// with a margin (of non-inferiority, in the words of trials).
    pub fn chance(&self, threshold: f64) -> f64 {
        self.logarithm.chance_outside((1.0 - threshold).ln(), (1.0 + threshold).ln())
    }

    /// Where the interval lies relative to 1 ± `threshold`.
    pub fn change(&self, threshold: f64) -> Change {
        Change::of((self.low, self.high), threshold)
    }
}

impl Change {
    /// Where an interval of ratios lies relative to 1 ± `threshold`.
    pub fn of((low, high): (f64, f64), threshold: f64) -> Self {
        let (least, most) = (1.0 - threshold, 1.0 + threshold);
        if low > most {
            Self::Above
        } else if high < least {
            Self::Below
        } else if low >= least && high <= most {
            Self::Within
        } else {
            Self::Unclear
        }
    }
}

/// The logarithms of two values or more, all greater than 0.
fn logarithms(values: &[f64]) -> Option<Vec<f64>> {
    let all = values.len() > 1 && values.iter().all(|value| *value > 0.0 && value.is_finite());
    all.then(|| values.iter().map(|value| value.ln()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twice_the_value_is_a_ratio_of_two_with_an_interval_around_it() {
        let ratio = Ratio::of_runs(&[2.0, 2.02, 1.98], &[1.0, 1.01, 0.99], 0.99).unwrap();
        assert!((ratio.value - 2.0).abs() < 1e-3 && ratio.low < 2.0 && ratio.high > 2.0, "{ratio:?}");
        let inverse = Ratio::of_runs(&[1.0, 1.01, 0.99], &[2.0, 2.02, 1.98], 0.99).unwrap();
        assert!((inverse.low * ratio.high - 1.0).abs() < 1e-12);
    }

    #[test]
    fn what_moves_both_of_a_pair_cancels() {
        let (b, a) = ([1.1001, 2.1999, 4.4], [1.0, 2.0, 4.0]);
        let pairs: Vec<(f64, f64)> = b.into_iter().zip(a).collect();
        let paired = Ratio::of_pairs(&pairs, 0.95).unwrap();
        assert!((paired.low - 1.1).abs() < 1e-3 && (paired.high - 1.1).abs() < 1e-3, "{paired:?}");
        let apart = Ratio::of_runs(&b, &a, 0.95).unwrap();
        assert!(apart.low < 0.5 && apart.high > 2.0, "{apart:?}");
        assert_eq!(Ratio::of_pairs(&pairs[..1], 0.95), None);
    }

    #[test]
    fn one_run_and_what_is_not_greater_than_zero_have_no_ratio() {
        assert_eq!(Ratio::of_runs(&[1.0], &[1.0, 1.0], 0.99), None);
        assert_eq!(Ratio::of_runs(&[0.0, 1.0], &[1.0, 1.0], 0.99), None);
        assert_eq!(Ratio::of_pairs(&[(1.0, -1.0), (2.0, 1.0)], 0.99), None);
        assert_eq!(Ratio::of_runs(&[], &[], 0.5), None);
    }

    #[test]
    fn runs_that_show_no_scatter_have_no_ratio() {
        assert_eq!(Ratio::of_runs(&[3.0, 3.0], &[2.0, 2.0], 0.99), None);
        assert!(Ratio::of_runs(&[3.0, 3.1], &[2.0, 2.0], 0.99).is_some(), "one side shows some");
        assert_eq!(Ratio::of_pairs(&[(0.1, 0.1), (0.3, 0.3)], 0.99), None);
        assert_eq!(Ratio::of_pairs(&[(1.1, 1.0), (2.2, 2.0), (4.4, 4.0)], 0.99), None);
    }

    #[test]
    fn the_chance_of_no_change_is_that_at_which_the_interval_meets_the_threshold() {
        let (b, a) = ([1.10, 1.12, 1.11], [1.0, 1.01, 0.99]);
        let chance = Ratio::of_runs(&b, &a, 0.99).unwrap().chance(0.05);
        let met = Ratio::of_runs(&b, &a, 1.0 - chance).unwrap();
        assert!((met.low - 1.05).abs() < 1e-9 && chance < 0.05, "{met:?}");
        assert_eq!(Ratio::of_runs(&b, &a, 0.99).unwrap().chance(0.2), 1.0);
    }

    #[test]
    fn a_change_is_claimed_only_where_the_whole_interval_says_so() {
        let some = Ratio::of_runs(&[1.0, 1.1], &[1.0, 1.1], 0.99).unwrap();
        let at = |low, high| Ratio { low, high, ..some }.change(0.05);
        assert_eq!(at(1.06, 1.2), Change::Above);
        assert_eq!(at(1.04, 1.2), Change::Unclear);
        assert_eq!(at(0.96, 1.04), Change::Within);
        assert_eq!(at(0.5, 0.94), Change::Below);
        assert_eq!(at(0.5, 2.0), Change::Unclear);
    }
}
