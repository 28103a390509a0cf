//! The ratio of two values that were each measured in several runs.
//!
//! # Method
//! A run counts once, by its median, on a logarithmic scale, so that exchanging the two sets inverts ratio and interval. The
//! interval is Student's t: for runs that are pairs (two programs by turns) over the differences of the pairs; else Welch's,
//! whose degrees of freedom come from both scatters (B. L. Welch, *The generalization of 'Student's' problem when several
//! different population variances are involved*, Biometrika 34, 1947). `tests/compare.rs` measures how often it holds the
//! true ratio.
//!
//! # What it does not cover
//! One run a side has no interval, and neither have runs that show no scatter. Runs of another day share what that day does to all of them.

use super::runs::{mean, standard_error, t_half_width, t_quantile};

/// The quotient of two values, with its interval.
///
/// ```
/// use syncscope::measure::{Change, Ratio};
///
/// let ratio = Ratio::of_runs(&[2.0, 2.01, 1.99], &[1.0, 1.01, 0.99], 0.95).unwrap();
/// assert_eq!(ratio.change(0.05), Change::Above);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
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
        let scatter = [&b, &a].map(|values| standard_error(values));
        if scatter == [None, None] {
            return None;
        }
        let [of_b, of_a] = scatter.map(|error| error.unwrap_or(0.0).powi(2));
        let error = of_b + of_a;
        let freedom = |of: f64, count: usize| of.powi(2) / (count as f64 - 1.0);
        let freedom = error.powi(2) / (freedom(of_b, b.len()) + freedom(of_a, a.len()));
        Some(Self::around(mean(&b) - mean(&a), t_quantile(freedom, level) * error.sqrt(), level))
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
        Some(Self::around(mean(&differences), t_half_width(&differences, level)?, level))
    }

    fn around(centre: f64, half_width: f64, level: f64) -> Self {
        Self { value: centre.exp(), low: (centre - half_width).exp(), high: (centre + half_width).exp(), level }
    }

    /// Where the interval lies relative to 1 ± `threshold`.
    pub fn change(&self, threshold: f64) -> Change {
        let (least, most) = (1.0 - threshold, 1.0 + threshold);
        if self.low > most {
            Change::Above
        } else if self.high < least {
            Change::Below
        } else if self.low >= least && self.high <= most {
            Change::Within
        } else {
            Change::Unclear
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
    fn a_change_is_claimed_only_where_the_whole_interval_says_so() {
        let at = |low, high| Ratio { value: 1.0, low, high, level: 0.99 }.change(0.05);
        assert_eq!(at(1.06, 1.2), Change::Above);
        assert_eq!(at(1.04, 1.2), Change::Unclear);
        assert_eq!(at(0.96, 1.04), Change::Within);
        assert_eq!(at(0.5, 0.94), Change::Below);
        assert_eq!(at(0.5, 2.0), Change::Unclear);
    }
}
