//! The ratio of two values that were each measured in several runs.
//!
//! # Method
//! A run counts once, by its median, on a logarithmic scale, so that exchanging the two sets inverts ratio and interval.
//!
//! Of runs that are no pairs the ratio is the middle of the quotients of each run of one set by each of the other, and its
//! interval lies between two of these quotients in order, which the rank test of Mann and Whitney gives (J. L. Hodges, E. L.
//! Lehmann, *Estimates of location based on rank tests*, Ann. Math. Stat. 34, 1963). Its level holds whatever the distribution,
//! where the two sets differ by a factor; ties raise it. Few runs reach no high level: three a side 90 %, four 97 %. Then the
//! interval holds all quotients, and [`Ratio::level`] says what it reaches.
//!
//! Of runs that are pairs (two programs by turns) the interval is Student's t over the differences of the pairs.
//!
//! # What it does not cover
//! One run a side has no interval, and neither have pairs that show no scatter. Runs of another day share what that day does to
//! all of them. Where the second set has another distribution, and not the first by a factor, the ratio is that of the middle
//! of its quotients.

use super::chances::Student;
use super::change_points::arrangements;
use super::runs::standard_error;
use crate::measure::median;

/// The quotient of two values, with its interval.
///
/// ```
/// use syncscope_results::statistics::{Change, Ratio};
///
/// let ratio = Ratio::of_runs(&[2.0, 2.01, 1.99], &[1.0, 1.01, 0.99], 0.95).unwrap();
/// assert_eq!((ratio.change(0.05), ratio.level), (Change::Above, 0.9));
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
    /// The level of the interval: 0.95, or less where so few runs reach no more.
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
    /// `None` where it has no meaning or no interval: a value that is not greater than 0, or fewer than two runs of either.
    pub fn of_runs(b: &[f64], a: &[f64], level: f64) -> Option<Self> {
        let (b, a) = (logarithms(b)?, logarithms(a)?);
        let mut quotients: Vec<f64> = b.iter().flat_map(|b| a.iter().map(move |a| b - a)).collect();
        quotients.sort_by(f64::total_cmp);
        let (left_out, level) = left_out(a.len(), b.len(), level);
        let [low, high] = [quotients[left_out], quotients[quotients.len() - 1 - left_out]].map(f64::exp);
        Some(Self { value: median(quotients).exp(), low, high, level })
    }

    /// The second over the first, from what both came to in runs that are pairs: of each the second, then the first.
    ///
    /// `None` as in [`of_runs`](Self::of_runs), and for pairs that all came to the same.
    pub fn of_pairs(pairs: &[(f64, f64)], level: f64) -> Option<Self> {
        let of = |side: fn(&(f64, f64)) -> f64| logarithms(&pairs.iter().map(side).collect::<Vec<f64>>());
        let (b, a) = (of(|(b, _)| *b)?, of(|(_, a)| *a)?);
        let ratios: Vec<f64> = pairs.iter().map(|(b, a)| b / a).collect();
        standard_error(&ratios)?;
        let differences: Vec<f64> = b.iter().zip(&a).map(|(b, a)| b - a).collect();
        let logarithm = Student::of(&differences)?;
        let [low, high] = [-1.0, 1.0].map(|side| (logarithm.centre + side * logarithm.half_width(level)).exp());
        Some(Self { value: logarithm.centre.exp(), low, high, level })
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

/// How many quotients lie outside of the interval at either end, and the level that it then has.
fn left_out(first: usize, second: usize, level: f64) -> (usize, f64) {
    let below = arrangements(first, second);
    // The interval between the quotients of these places misses where as few pairs, or fewer, are in the other order.
    let reached = |place: usize| 1.0 - 2.0 * below(place);
    let place = (0..first * second / 2).take_while(|place| reached(*place) >= level).last().unwrap_or(0);
    (place, reached(place))
}

/// The logarithms of two values or more, all greater than 0.
pub(super) fn logarithms(values: &[f64]) -> Option<Vec<f64>> {
    let all = values.len() > 1 && values.iter().all(|value| *value > 0.0 && value.is_finite());
    all.then(|| values.iter().map(|value| value.ln()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twice_the_value_is_a_ratio_of_two_with_an_interval_around_it() {
        let ratio = Ratio::of_runs(&[2.0, 2.02, 1.98], &[1.0, 1.01, 0.99], 0.95).unwrap();
        assert!((ratio.value - 2.0).abs() < 1e-3 && ratio.low < 2.0 && ratio.high > 2.0, "{ratio:?}");
        assert!((ratio.low - 1.98 / 1.01).abs() < 1e-12 && ratio.level == 0.9, "all quotients: {ratio:?}");
        let inverse = Ratio::of_runs(&[1.0, 1.01, 0.99], &[2.0, 2.02, 1.98], 0.95).unwrap();
        assert!((inverse.low * ratio.high - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_places_of_the_interval_are_those_of_the_tables() {
        // The critical values of Mann and Whitney at 5 %, two-sided.
        for (first, second, critical) in [(4, 4, 0), (5, 5, 2), (5, 8, 6), (10, 10, 23), (20, 20, 127)] {
            assert_eq!(left_out(first, second, 0.95).0, critical, "{first} and {second}");
        }
        assert!((left_out(2, 2, 0.95).1 - (1.0 - 2.0 / 6.0)).abs() < 1e-12);
    }

    #[test]
    fn one_bad_run_in_five_moves_neither_ratio_nor_interval_far() {
        let a = [1.0, 1.01, 0.99, 1.005, 0.995];
        let ratio = Ratio::of_runs(&[1.2, 1.21, 1.19, 9.0, 1.2], &a, 0.95).unwrap();
        assert!((ratio.value - 1.2).abs() < 0.02 && ratio.low > 1.17, "{ratio:?}");
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
    fn pairs_that_show_no_scatter_have_no_ratio() {
        assert_eq!(Ratio::of_pairs(&[(0.1, 0.1), (0.3, 0.3)], 0.99), None);
        assert_eq!(Ratio::of_pairs(&[(1.1, 1.0), (2.2, 2.0), (4.4, 4.0)], 0.99), None);
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
