//! The ratio of two sample sets that share no rounds, such as those of two runs.
//!
//! # Method
//! The quotient of the two medians. Its interval is the percentile interval of an unpaired bootstrap (both sets are
//! resampled separately: B. Efron, Ann. Stat. 7, 1979), seeded by a constant. A percentile interval is the same on a linear
//! and on a logarithmic scale, so that exchanging the two sets inverts it, except for resampling noise.
//!
//! There is an interval only where each set alone has enough samples for an interval of its median at that level:
//! `1 − 2^(1−n)` must reach the level, so 99 % needs eight samples. `tests/compare.rs` measures how often the interval
//! contains the true ratio.
//!
//! # What it does not cover
//! Another process, memory layout or boot moves a median by more than its samples scatter (T. Mytkowicz, A. Diwan,
//! M. Hauswirth, P. F. Sweeney, *Producing wrong data without doing anything obviously wrong!*, ASPLOS 2009). Two sample
//! sets do not show how far; use a threshold.

use super::bootstrap::Bootstrap;
use super::estimate::median;

/// The quotient of two medians, with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Ratio {
    /// The second median over the first.
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
    /// The median of `b` over that of `a`.
    ///
    /// `None` where it has no meaning or no interval: a median, also of a resample, that is not greater than 0; fewer
    /// samples than the level needs; a quotient that is not finite.
    pub fn of(b: &[f64], a: &[f64], level: f64) -> Option<Self> {
        if !enough(a.len().min(b.len()), level) {
            return None;
        }
        let quotient = |sets: &[Vec<f64>]| {
            let (over, under) = (median(sets[0].clone()), median(sets[1].clone()));
            if over > 0.0 && under > 0.0 { over / under } else { f64::NAN }
        };
        let value = quotient(&[b.to_vec(), a.to_vec()]);
        let (low, high) = Bootstrap::default().independently().interval(&[b, a], level, quotient)?;
        value.is_finite().then_some(Self { value, low, high, level })
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

/// Whether the range of `n` samples contains the true median at `level`.
fn enough(n: usize, level: f64) -> bool {
    let outside = 0.5_f64.powi(i32::try_from(n).unwrap_or(i32::MAX) - 1);
    n > 0 && 1.0 - outside >= level
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around(centre: f64, n: u32) -> Vec<f64> {
        (0..n).map(|i| centre * (1.0 + 0.01 * f64::from(i * 7 % n) / f64::from(n))).collect()
    }

    #[test]
    fn twice_the_value_is_a_ratio_of_two_with_an_interval_around_it() {
        let ratio = Ratio::of(&around(2.0, 20), &around(1.0, 20), 0.99).unwrap();
        assert!((ratio.value - 2.0).abs() < 1e-12 && ratio.low < 2.0 && ratio.high > 2.0, "{ratio:?}");
        assert!(ratio.high - ratio.low < 0.05);
    }

    #[test]
    fn eight_samples_are_the_fewest_for_99_percent() {
        assert_eq!(Ratio::of(&around(1.0, 7), &around(1.0, 30), 0.99), None);
        assert!(Ratio::of(&around(1.0, 8), &around(1.0, 8), 0.99).is_some());
        assert_eq!(Ratio::of(&[], &[], 0.5), None);
    }

    #[test]
    fn what_is_not_greater_than_zero_has_no_ratio() {
        assert_eq!(Ratio::of(&[0.0; 10], &[1.0; 10], 0.99), None);
        assert_eq!(Ratio::of(&[1.0; 10], &[-1.0; 10], 0.99), None);
        assert_eq!(Ratio::of(&[1e308; 10], &[1e-308; 10], 0.99), None);
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
