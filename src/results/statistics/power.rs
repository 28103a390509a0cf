//! How many runs does a verdict take, and which changes do so many runs find?
//!
//! # Method
//! All follows from how the runs of each row scatter within the two sets, on a logarithmic scale, as if they were normal.
//!
//! A row is known to be the same, or to be beyond the threshold, when half the width of its interval is the distance from the
//! threshold. The distance that chance adds is taken out before. To be named a change, its statistic also has to exceed what the
//! largest of all rows comes to by chance ([`chances_over_rows`](super::chances_over_rows)). Of one row that is what a
//! normal distance has beyond the margin, by the standard deviation that is found with it; of all rows it is the value that they exceed as often together as the error says. So a row that
//! scatters by less than the margin adds nothing, and runs that are too few to show the error find no change however large.
//!
//! # What it does not cover
//! Rows that depend on each other exceed a limit more seldom: it takes fewer runs then. A few runs show their scatter roughly,
//! so of a single row the number is rough, too; `tests/compare.rs` holds the middle of a hundred rows to what is the case.

use super::permutation::least_chance;
use super::ratio::logarithms;
use super::runs::{mean, t_quantile, variance};
use statrs::function::erf::erfc;

/// How the runs of a row scatter within two sets, and how far apart the sets are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scattered {
    /// The distance of the two means, without what chance adds.
    distance: f64,
    /// The standard deviation of a run.
    deviation: f64,
}

impl Scattered {
    /// From what a row came to in each run of one set or of two. `None` where a set has fewer than two runs, or a value that is
    /// not greater than 0.
    ///
    /// ```
    /// use syncscope_results::statistics::Scattered;
    ///
    /// assert!(Scattered::of(&[&[1.0, 1.01], &[1.2, 1.21]]).is_some());
    /// assert_eq!(Scattered::of(&[&[1.0], &[1.0, 2.0]]), None);
    /// ```
    pub fn of(sets: &[&[f64]]) -> Option<Self> {
        let sets: Vec<Vec<f64>> = sets.iter().map(|runs| logarithms(runs)).collect::<Option<_>>()?;
        let freedom = |set: &[f64]| set.len() as f64 - 1.0;
        let squares: f64 = sets.iter().map(|set| variance(set) * freedom(set)).sum();
        let squared = squares / sets.iter().map(|set| freedom(set)).sum::<f64>();
        let apart = match sets.as_slice() {
            [a, b] => (mean(b) - mean(a)).powi(2) - squared * (1.0 / a.len() as f64 + 1.0 / b.len() as f64),
            _ => 0.0,
        };
        Some(Self { distance: apart.max(0.0).sqrt(), deviation: squared.sqrt() })
    }

    /// The standard error of the distance of two sets of so many runs.
    fn error(&self, runs: usize) -> f64 {
        self.deviation * (2.0 / runs as f64).sqrt()
    }
}

/// What two sets of more or fewer runs would say of rows that scatter like these.
#[derive(Clone, Debug)]
pub struct Power {
    threshold: f64,
    /// The level of an interval.
    level: f64,
    /// The error over all rows together.
    error: f64,
    /// How the rows scatter, in order, and how many rows each of these stands for.
    deviations: Vec<(f64, f64)>,
}

impl Power {
    /// For rows of which a change of `threshold` matters, with intervals of `level` and an `error` over all of them.
    pub fn of(rows: &[Scattered], threshold: f64, level: f64, error: f64) -> Self {
        /// So many tell how all scatter.
        const MOST: usize = 50;
        let mut deviations: Vec<f64> = rows.iter().map(|row| row.deviation).collect();
        deviations.sort_by(f64::total_cmp);
        let part = deviations.len().div_ceil(MOST).max(1);
        let stands_for = |part: &[f64]| (part[part.len() / 2], part.len() as f64);
        Self { threshold, level, error, deviations: deviations.chunks(part).map(stands_for).collect() }
    }

    /// Of each row how many runs in each set it takes, in the middle, until it is known to lie within the threshold or outside.
    /// `None` where it takes more than a thousand.
    ///
    /// ```
    /// use syncscope_results::statistics::{Power, Scattered};
    ///
    /// let (a, b) = ([1.0, 1.1, 0.93, 1.05, 0.95], [1.16, 1.11, 1.18, 1.14, 1.2]);
    /// let row = Scattered::of(&[&a, &b]).unwrap();
    /// // Of a hundred such rows one has to stand out more than of itself.
    /// let runs = |rows: usize| Power::of(&vec![row; rows], 0.05, 0.95, 0.05).runs_to_decide(&[row]);
    /// assert_eq!((runs(1), runs(100)), (vec![Some(5)], vec![Some(6)]));
    /// ```
    pub fn runs_to_decide(&self, rows: &[Scattered]) -> Vec<Option<usize>> {
        const MOST: usize = 1_000;
        // By some 6 % more each time: no closer is it known.
        let sizes = std::iter::successors(Some(2), |runs| Some(runs + runs / 16 + 1)).take_while(|runs| *runs <= MOST);
        let mut needed = vec![None; rows.len()];
        for runs in sizes {
            if needed.iter().all(Option::is_some) {
                break;
            }
            let (half_width, limit) = (t_quantile(2.0 * runs as f64 - 2.0, self.level), self.limit(runs));
            for (needed, row) in needed.iter_mut().zip(rows).filter(|(needed, _)| needed.is_none()) {
                let beyond = row.distance - self.threshold.ln_1p();
                let is_known = beyond.abs() >= half_width * row.error(runs);
                let is_named = row.distance - self.margin() >= limit * row.error(runs);
                *needed = (is_known && (beyond < 0.0 || is_named)).then_some(runs);
            }
        }
        needed
    }

    /// The change that so many runs in each set find in four of five cases in the middle one of the rows, as a share; `None`
    /// without rows, and where so few runs find none.
    pub fn smallest_change(&self, runs: usize) -> Option<f64> {
        /// The 80 % point of the normal distribution.
        const FOUND: f64 = 0.841_621;
        let half = self.deviations.iter().map(|(_, rows)| rows).sum::<f64>() / 2.0;
        let mut below = 0.0;
        let (deviation, _) = self.deviations.iter().find(|(_, rows)| {
            below += rows;
            below >= half
        })?;
        let error = Scattered { distance: 0.0, deviation: *deviation }.error(runs);
        let change = (self.margin() + (self.limit(runs) + FOUND) * error).exp_m1();
        change.is_finite().then_some(change)
    }

    /// The distance that a change exceeds.
    fn margin(&self) -> f64 {
        -(-self.threshold).ln_1p()
    }

    /// By how many standard errors the distance of two sets of so many runs exceeds the margin in any of the rows in as many cases
    /// as the error says.
    fn limit(&self, runs: usize) -> f64 {
        let least = least_chance([runs, runs]);
        // The chances are multiples of the least one.
        let error = (self.error / least).floor() * least;
        if error == 0.0 {
            return f64::INFINITY;
        }
        let spreads = spreads(2.0 * runs as f64 - 2.0);
        let chance = |limit: f64| -> f64 {
            let beyond = |(deviation, rows): &(f64, f64)| {
                let margin = self.margin() / Scattered { distance: 0.0, deviation: *deviation }.error(runs);
                let of =
                    |(spread, share): &(f64, f64)| share * erfc((limit * spread + margin) / std::f64::consts::SQRT_2);
                if *deviation > 0.0 { rows * spreads.iter().map(of).sum::<f64>() } else { 0.0 }
            };
            self.deviations.iter().map(beyond).sum()
        };
        let (mut low, mut high) = (0.0, 1.0);
        while chance(high) > error {
            (low, high) = (high, 2.0 * high);
        }
        for _ in 0..12 {
            let middle = f64::midpoint(low, high);
            if chance(middle) > error { low = middle } else { high = middle }
        }
        high
    }
}

/// How large a standard deviation is found of so many degrees of freedom, by the true one, and how likely each is.
fn spreads(freedom: f64) -> Vec<(f64, f64)> {
    let step = 0.25 / (2.0 * freedom).sqrt();
    let near = (-40..=24).map(|place| 1.0 + step * f64::from(place)).filter(|spread| *spread > 0.0);
    let density = |spread: f64| ((freedom - 1.0) * spread.ln() - freedom * (spread * spread - 1.0) / 2.0).exp();
    let all: f64 = near.clone().map(density).sum();
    near.map(|spread| (spread, density(spread) / all)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(distance: f64, deviation: f64) -> Scattered {
        Scattered { distance, deviation }
    }

    #[test]
    fn without_a_margin_the_limit_of_one_row_is_students() {
        let one = Power::of(&[row(0.0, 0.1)], 0.0, 0.95, 0.05);
        assert!((one.limit(40) - t_quantile(78.0, 0.95)).abs() < 0.01);
        let ten = Power::of(&[row(0.0, 0.1); 10], 0.0, 0.95, 0.05);
        assert!((ten.limit(40) - t_quantile(78.0, 0.995)).abs() < 0.01);
    }

    #[test]
    fn rows_that_scatter_by_less_than_the_margin_hide_no_other_one() {
        let quiet = Power::of(&[row(0.0, 0.001); 600], 0.05, 0.95, 0.05);
        assert!(quiet.limit(5) < 0.01);
        let change = quiet.smallest_change(5).unwrap();
        assert!((0.05..0.055).contains(&change), "{change}");
        assert!(Power::of(&[row(0.0, 0.05); 600], 0.05, 0.95, 0.05).limit(5) > 3.0);
    }

    #[test]
    fn three_runs_find_no_change_and_more_runs_find_smaller_ones() {
        let power = Power::of(&[row(0.0, 0.02); 100], 0.05, 0.95, 0.05);
        assert_eq!(power.smallest_change(3), None);
        let found = [4, 5, 10, 100].map(|runs| power.smallest_change(runs).unwrap());
        assert!(found.is_sorted_by(|a, b| a > b) && found[3] < 0.065, "{found:?}");
        assert_eq!(power.runs_to_decide(&[row(0.5, 0.001), row(0.0, 0.001)]), [Some(4), Some(2)]);
        assert_eq!(Power::of(&[], 0.05, 0.95, 0.05).smallest_change(5), None);
    }
}
