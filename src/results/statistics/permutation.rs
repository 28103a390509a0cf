//! Which of many rows differ between two sets of runs, whatever their distributions and however they depend on each other?
//!
//! # Method
//! Were the two sets alike, a run could as well belong to the other set. So whole runs are relabelled, all rows of a run
//! together, and each relabelling shows what chance alone can do: an exact permutation test (R. A. Fisher, *The Design of
//! Experiments*, 1935; B. Phipson, G. K. Smyth, *Permutation p-values should never be zero*, Stat. Appl. Genet. Mol. Biol. 9,
//! 2010). The statistic of a row is the distance of the two means, less the margin, by the standard error that the scatter
//! within the two sets gives. The chance of a row is the share of the relabellings in which the largest statistic of all rows
//! is as large as its own. The step-down procedure takes the rows with larger statistics out first (P. H. Westfall, S. S. Young,
//! *Resampling-Based Multiple Testing*, 1993). It holds the error over all rows together. The margin keeps rows that scatter by
//! less from hiding the others.
//!
//! Up to [`MAX_RELABELLINGS`] relabellings are all taken; of more, as many at random with a fixed seed.
//!
//! # What it does not cover
//! Runs are taken to be exchangeable. Where all runs of one set came before those of the other, a drift between them is a
//! difference of the sets. Two sets by turns share it.

use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::SliceRandom;

/// The most relabellings that are looked at.
pub const MAX_RELABELLINGS: usize = 2_000;
/// The seed of the generator: the first 64 bits of the fraction of π.
pub(super) const SEED: u64 = 0x243f_6a88_85a3_08d3;
/// Numbers that differ by less, as a share, differ by rounding alone.
pub(super) const ROUNDING: f64 = 1e-12;

/// What a row came to in each run: in those of the first set, then in those of the second.
#[derive(Clone, Debug, PartialEq)]
pub struct RowByRun {
    /// The values; `None` in a run that has none.
    pub values: Vec<Option<f64>>,
    /// The distance of two means that does not matter.
    pub margin: f64,
}

/// The chance of each row's distance, were the two sets alike, with the error held over all rows. The first `first` of `runs`
/// runs are the first set.
///
/// ```
/// use syncscope_results::statistics::{RowByRun, chances_over_rows};
///
/// let values = [1.0, 1.1, 0.9, 1.0, 2.0, 2.1, 1.9, 2.0].map(Some).to_vec();
/// // Two of the 70 relabellings show as much: the sets as they are, and exchanged.
/// assert_eq!(chances_over_rows(&[RowByRun { values, margin: 0.0 }], 4, 8), [2.0 / 70.0]);
/// ```
pub fn chances_over_rows(rows: &[RowByRun], first: usize, runs: usize) -> Vec<f64> {
    let relabellings = relabellings(first, runs);
    let rows: Vec<Centred> = rows.iter().map(Centred::of).collect();
    step_down(rows.len(), relabellings.len(), |row, labels| rows[row].statistic(&relabellings[labels]))
}

/// The chance of each of `rows` rows that its statistic is as large as in the first of the relabellings, with the error held
/// over all rows: the step-down procedure.
pub(super) fn step_down(rows: usize, relabellings: usize, statistic: impl Fn(usize, usize) -> f64) -> Vec<f64> {
    let seen: Vec<f64> = (0..rows).map(|row| statistic(row, 0)).collect();
    let mut order: Vec<usize> = (0..rows).collect();
    order.sort_by(|a, b| seen[*a].total_cmp(&seen[*b]));
    let mut chances = vec![1.0; rows];
    let mut largest = vec![f64::NEG_INFINITY; relabellings];
    for place in &order {
        let as_large = if seen[*place].is_finite() { seen[*place] - 1e-9 * seen[*place].abs() } else { seen[*place] };
        let mut count = 0;
        for (labels, largest) in largest.iter_mut().enumerate() {
            *largest = largest.max(statistic(*place, labels));
            count += usize::from(*largest >= as_large);
        }
        chances[*place] = count as f64 / relabellings as f64;
    }
    let mut before = 0.0_f64;
    for place in order.iter().rev() {
        before = before.max(chances[*place]);
        chances[*place] = before;
    }
    chances
}

/// The least chance that so many runs in each set can show: of all relabellings the sets as they are, and exchanged.
///
/// ```
/// use syncscope_results::statistics::least_chance;
///
/// assert_eq!(least_chance([3, 3]), 0.1);
/// assert!(least_chance([4, 4]) < 0.03);
/// ```
pub fn least_chance([first, second]: [usize; 2]) -> f64 {
    let same = if first == second { 2.0 } else { 1.0 };
    (same / count(first, first + second)).clamp(1.0 / MAX_RELABELLINGS as f64, 1.0)
}

/// In how many ways `chosen` of `all` can be chosen.
fn count(chosen: usize, all: usize) -> f64 {
    (1..=chosen.min(all - chosen)).map(|place| (all + 1 - place) as f64 / place as f64).product::<f64>().round()
}

/// Which runs belong to the second set: as they do first, then in all other ways, or in some at random.
fn relabellings(first: usize, runs: usize) -> Vec<Vec<bool>> {
    let mut labels: Vec<bool> = (0..runs).map(|place| place >= first).collect();
    if count(first, runs) > MAX_RELABELLINGS as f64 {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(SEED);
        let mut all = vec![labels.clone()];
        all.resize_with(MAX_RELABELLINGS, || {
            labels.shuffle(&mut rng);
            labels.clone()
        });
        return all;
    }
    let mut all = Vec::new();
    choose(&mut Vec::with_capacity(runs), first, runs - first, &mut all);
    all
}

/// All orders of `first` and `second` labels behind those that are chosen; the ones with the first labels in front come first.
fn choose(chosen: &mut Vec<bool>, first: usize, second: usize, all: &mut Vec<Vec<bool>>) {
    if first + second == 0 {
        all.push(chosen.clone());
    }
    for (label, left) in [(false, [first.checked_sub(1), Some(second)]), (true, [Some(first), second.checked_sub(1)])] {
        if let [Some(first), Some(second)] = left {
            chosen.push(label);
            choose(chosen, first, second, all);
            chosen.pop();
        }
    }
}

/// A row, of which each value is the distance from their mean, by the largest of these.
struct Centred {
    values: Vec<Option<f64>>,
    margin: f64,
    /// How far two values are apart that differ by rounding alone.
    rounding: f64,
}

impl Centred {
    fn of(row: &RowByRun) -> Self {
        let known = || row.values.iter().flatten().copied();
        let centre = super::mean(&known().collect::<Vec<f64>>());
        let largest = known().fold(0.0_f64, |largest, value| largest.max(value.abs()));
        let scale = known().fold(0.0_f64, |largest, value| largest.max((value - centre).abs()));
        // Where all values are the same, or too large, none differs from another.
        let differ = scale > ROUNDING * largest && scale.is_finite();
        let values = row.values.iter().map(|value| value.filter(|_| differ).map(|value| (value - centre) / scale));
        Self { values: values.collect(), margin: row.margin / scale, rounding: ROUNDING * largest / scale }
    }

    /// The distance of the two means beyond the margin, by its standard error.
    fn statistic(&self, labels: &[bool]) -> f64 {
        let (mut counts, mut sums, mut squares) = ([0.0; 2], [0.0; 2], 0.0);
        for (value, is_second) in self.values.iter().zip(labels) {
            if let Some(value) = value {
                counts[usize::from(*is_second)] += 1.0;
                sums[usize::from(*is_second)] += value;
                squares += value * value;
            }
        }
        let (all, freedom) = (counts[0] * counts[1], counts[0] + counts[1] - 2.0);
        if all == 0.0 || freedom < 1.0 {
            return f64::NEG_INFINITY;
        }
        let means = [sums[0] / counts[0], sums[1] / counts[1]];
        let within = squares - means[0] * sums[0] - means[1] * sums[1];
        let distance = (means[1] - means[0]).abs() - self.margin;
        let variance = within / freedom * (counts[0] + counts[1]) / all;
        // The squares themselves are rounded.
        match variance > self.rounding.powi(2).max(1e-15) {
            true => distance / variance.sqrt(),
            false if distance > self.rounding => f64::INFINITY,
            false => f64::NEG_INFINITY,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::RngExt;

    fn row(values: &[f64]) -> RowByRun {
        RowByRun { values: values.iter().copied().map(Some).collect(), margin: 0.0 }
    }

    #[test]
    fn all_ways_are_taken_once_and_the_sets_as_they_are_come_first() {
        let all = relabellings(2, 5);
        assert_eq!((all.len(), &all[0]), (10, &vec![false, false, true, true, true]));
        assert!(all.iter().enumerate().all(|(place, labels)| !all[..place].contains(labels)));
        assert!(all.iter().all(|labels| labels.iter().filter(|second| **second).count() == 3));
        assert_eq!(relabellings(20, 40).len(), MAX_RELABELLINGS);
    }

    #[test]
    fn the_least_chance_is_that_of_sets_wholly_apart() {
        for [first, second] in [[2, 2], [3, 3], [3, 4], [5, 5], [2, 7]] {
            let values: Vec<f64> = (0..first + second)
                .map(|place| if place < first { 0.01 * place as f64 } else { 9.0 + 0.02 * place as f64 })
                .collect();
            let chance = chances_over_rows(&[row(&values)], first, first + second)[0];
            assert!((chance - least_chance([first, second])).abs() < 1e-12, "{first} + {second}: {chance}");
        }
    }

    #[test]
    fn of_rows_that_depend_on_each_other_wholly_the_chance_is_that_of_one() {
        let one = row(&[1.0, 1.4, 1.2, 1.1, 1.3, 1.5, 1.6, 1.35]);
        let alone = chances_over_rows(std::slice::from_ref(&one), 4, 8)[0];
        assert_eq!(chances_over_rows(&vec![one; 50], 4, 8), vec![alone; 50]);
        assert!(alone > 0.05 && alone < 0.5, "{alone}");
    }

    #[test]
    fn a_row_is_judged_without_those_that_stand_out_more() {
        let far = row(&[1.0, 1.1, 0.9, 1.05, 9.0, 9.1, 8.9, 9.05]);
        let near = row(&[1.0, 1.4, 1.2, 1.1, 1.3, 1.5, 1.6, 1.35]);
        let alone = chances_over_rows(std::slice::from_ref(&near), 4, 8)[0];
        assert_eq!(chances_over_rows(&[near, far], 4, 8), [alone, 2.0 / 70.0]);
    }

    #[test]
    fn equal_values_missing_values_and_extremes_show_nothing() {
        let rows = [
            row(&[0.3, 0.1 + 0.2, 0.3, 0.3]),
            row(&[f64::MAX, f64::MIN, f64::MAX, f64::MIN]),
            RowByRun { values: vec![None; 4], margin: 0.0 },
            RowByRun { values: vec![Some(1.0), Some(2.0), None, None], margin: 0.0 },
        ];
        assert_eq!(chances_over_rows(&rows, 2, 4), [1.0; 4]);
        assert!(chances_over_rows(&[], 0, 0).is_empty());
    }

    #[test]
    fn less_than_the_margin_is_no_difference() {
        let moved = |by: f64, margin: f64| {
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
            let mut values: Vec<f64> = (0..10).map(|_| rng.random::<f64>()).collect();
            values[5..].iter_mut().for_each(|value| *value += by);
            chances_over_rows(&[RowByRun { margin, ..row(&values) }], 5, 10)[0]
        };
        assert!(moved(5.0, 1.0) < 0.01 && moved(5.0, 0.0) < 0.01);
        assert!(moved(0.0, 0.0) > 0.05);
    }
}
