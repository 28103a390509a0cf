//! Two programs measured by turns: which of many rows differ, and which do not, whenever the measuring stops?
//!
//! # Method
//! A pair is a run of each program, in an order that is drawn for the pair. Were the two alike, their difference could as well
//! have the other sign, for all rows of the pair together. That holds because the order was drawn, whatever the rows'
//! distributions, however they depend on each other, and whatever the machine does meanwhile: a randomisation test (R. A.
//! Fisher, *The Design of Experiments*, 1935). [`chances_over_pairs`] takes the relabellings and the step-down procedure of
//! [`chances_over_rows`](super::chances_over_rows): those of a pair are two. The statistic is the mean of the differences beyond
//! the margin, by its standard error, where no distance counts more than three times the middle one.
//!
//! [`is_within`] says that two programs are the same: the test of signed ranks (F. Wilcoxon, *Individual comparisons by ranking
//! methods*, Biometrics Bull. 1, 1945) of the distances, without their signs, against the margin. A distance is no smaller than
//! the difference on either side, so it is a test of equivalence that takes both sides at once.
//!
//! # Any stop
//! The pairs are looked at several times, and the `k`th look has a share of 1 / k(k + 1) of the error. All shares together are
//! 1, however many looks there are (K. K. G. Lan, D. L. DeMets, *Discrete sequential boundaries for clinical trials*,
//! Biometrika 70, 1983, with the shares added as they are). What stops a row has to leave the later looks at others as they
//! are. A row that is the same stops by its distances alone, which no relabelling changes; one that differs is taken out, as
//! the step-down procedure does. So a row that stopped stays among the others with the pairs that it had.
//!
//! # What it does not cover
//! What one program does to the other's next run, as by a cache on a disk. The intervals are those of a single look. Where the
//! differences are not symmetric around their middle, [`is_within`] speaks of their pseudomedian.

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use statrs::function::erf::erfc;

use super::permutation::{MAX_RELABELLINGS, ROUNDING, SEED, step_down};
use super::ratio::Ratio;
use super::runs::{mean, standard_error, t_quantile};
use crate::measure::median;

/// How many pairs the first look takes: with fewer, chance alone does too often what the look would have to exceed.
pub const FIRST_LOOK: usize = 7;

/// How many pairs each look takes: each some 40 % more than the one before.
pub fn looks() -> impl Iterator<Item = usize> {
    std::iter::successors(Some(FIRST_LOOK), |pairs| Some(pairs + (2 * pairs).div_ceil(5)))
}

/// The order of the two in each pair: the places of the first and of the second, drawn with a fixed seed.
pub fn drawn_orders() -> impl Iterator<Item = [usize; 2]> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(SEED);
    std::iter::repeat_with(move || if rng.random() { [0, 1] } else { [1, 0] })
}

/// Which share of the error the `number`th look has.
///
/// ```
/// use syncscope_results::statistics::share_of_look;
///
/// assert_eq!([1, 2, 3].map(share_of_look), [1.0 / 2.0, 1.0 / 6.0, 1.0 / 12.0]);
/// ```
pub fn share_of_look(number: usize) -> f64 {
    1.0 / (number * (number + 1)) as f64
}

/// The differences of a row in each pair.
#[derive(Clone, Debug, PartialEq)]
pub struct RowByPair {
    /// The second less the first; `None` in a pair that lacks one.
    pub differences: Vec<Option<f64>>,
    /// The middle of the differences that does not matter.
    pub margin: f64,
}

/// The chance of each row's differences, were the two programs alike, with the error held over all rows.
///
/// ```
/// use syncscope_results::statistics::{RowByPair, chances_over_pairs};
///
/// let differences = [1.0, 1.1, 0.9, 1.0, 1.2, 0.8, 1.1].map(Some).to_vec();
/// // Two of the 128 relabellings show as much: the pairs as they are, and all of them exchanged.
/// assert_eq!(chances_over_pairs(&[RowByPair { differences, margin: 0.5 }], 7), [2.0 / 128.0]);
/// ```
pub fn chances_over_pairs(rows: &[RowByPair], pairs: usize) -> Vec<f64> {
    let relabellings = relabellings(pairs);
    let rows: Vec<Scaled> = rows.iter().map(Scaled::of).collect();
    step_down(rows.len(), relabellings.len(), |row, labels| rows[row].statistic(&relabellings[labels]))
}

/// The least chance that so many pairs can show.
pub fn least_chance_of_pairs(pairs: usize) -> f64 {
    0.5_f64.powf(pairs as f64 - 1.0).clamp(1.0 / MAX_RELABELLINGS as f64, 1.0)
}

/// Whether a pair is exchanged: none, then all ways, or some at random. To exchange all of them changes no statistic, so the
/// first pair stays as it is.
fn relabellings(pairs: usize) -> Vec<Vec<bool>> {
    let others = pairs.saturating_sub(1);
    if others < MAX_RELABELLINGS.ilog2() as usize + 1 {
        return (0..1_usize << others)
            .map(|ways| (0..pairs).map(|pair| (ways << 1) >> pair & 1 == 1).collect())
            .collect();
    }
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(SEED);
    let mut all = vec![vec![false; pairs]];
    all.resize_with(MAX_RELABELLINGS, || (0..pairs).map(|_| rng.random()).collect());
    all
}

/// A row whose differences are by the largest of them. A distance of more than three times the middle one counts as that much,
/// so that one bad run does not hide what the others show. No relabelling changes a distance.
struct Scaled {
    differences: Vec<Option<f64>>,
    margin: f64,
}

impl Scaled {
    fn of(row: &RowByPair) -> Self {
        /// How many times the middle distance counts at most.
        const FARTHEST: f64 = 3.0;
        let distances: Vec<f64> = row.differences.iter().flatten().map(|value| value.abs()).collect();
        let largest = distances.iter().fold(0.0_f64, |largest, distance| largest.max(*distance));
        let middle = if distances.is_empty() { 0.0 } else { median(distances) };
        let scale = if middle > 0.0 { largest.min(FARTHEST * middle) } else { largest };
        let is_number = scale > 0.0 && scale.is_finite();
        let scaled = |value: f64| (value / scale).clamp(-1.0, 1.0);
        let differences = row.differences.iter().map(|value| value.filter(|_| is_number).map(scaled));
        Self { differences: differences.collect(), margin: row.margin / scale }
    }

    /// The distance of the mean from 0 beyond the margin, by its standard error.
    fn statistic(&self, exchanged: &[bool]) -> f64 {
        let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
        for (value, is_exchanged) in self.differences.iter().zip(exchanged) {
            if let Some(value) = value {
                count += 1.0;
                sum += if *is_exchanged { -value } else { *value };
                squares += value * value;
            }
        }
        if count < 2.0 {
            return f64::NEG_INFINITY;
        }
        let distance = (sum / count).abs() - self.margin;
        let variance = (squares - sum * sum / count) / (count - 1.0) / count;
        match variance > ROUNDING {
            true => distance / variance.sqrt(),
            false if distance > 1e-9 => f64::INFINITY,
            false => f64::NEG_INFINITY,
        }
    }
}

/// Whether differences are known to lie within `margin` of 0, with an `error` of this one statement.
///
/// ```
/// use syncscope_results::statistics::is_within;
///
/// let differences = [0.1, -0.2, 0.0, 0.1, -0.1, 0.3, -0.2];
/// assert!(is_within(&differences, 0.5, 0.025) && !is_within(&differences, 0.15, 0.025));
/// ```
pub fn is_within(differences: &[f64], margin: f64, error: f64) -> bool {
    let beyond: Vec<f64> = differences.iter().map(|value| value.abs() - margin).collect();
    let above = walsh(&beyond).filter(|mean| *mean >= 0.0).count();
    !differences.is_empty() && signed_ranks(differences.len())(above) <= error
}

impl Ratio {
    /// The second over the first, from the differences of the logarithms in runs by turns: the middle of the means of any two of
    /// them, and as interval two of these in order. `None` of fewer than two.
    pub fn of_turns(differences: &[f64], level: f64) -> Option<Self> {
        if differences.len() < 2 {
            return None;
        }
        let mut means: Vec<f64> = walsh(differences).collect();
        means.sort_by(f64::total_cmp);
        let below = signed_ranks(differences.len());
        let reached = |place: usize| 1.0 - 2.0 * below(place);
        let left_out = (0..means.len() / 2).take_while(|place| reached(*place) >= level).last().unwrap_or(0);
        let [low, high] = [means[left_out], means[means.len() - 1 - left_out]].map(f64::exp);
        Some(Self { value: median(means).exp(), low, high, level: reached(left_out) })
    }
}

/// The means of any two differences, and each by itself.
fn walsh(differences: &[f64]) -> impl Iterator<Item = f64> {
    let behind = |(place, one): (usize, &f64)| {
        let one = *one;
        differences[place..].iter().map(move |other| one.midpoint(*other))
    };
    differences.iter().enumerate().flat_map(behind)
}

/// The chance that at most so many means of any two of `pairs` differences are above 0, were these symmetric around it.
fn signed_ranks(pairs: usize) -> impl Fn(usize) -> f64 {
    /// Up to how many pairs the sets of ranks are counted.
    const EXACT: usize = 60;
    let mut up_to = Vec::new();
    if pairs <= EXACT {
        up_to = vec![0.0_f64; pairs * (pairs + 1) / 2 + 1];
        up_to[0] = 0.5_f64.powf(pairs as f64);
        for rank in 1..=pairs {
            (rank..up_to.len()).rev().for_each(|sum| up_to[sum] += up_to[sum - rank]);
        }
        (1..up_to.len()).for_each(|sum| up_to[sum] += up_to[sum - 1]);
    }
    move |above| match up_to.get(above) {
        Some(chance) => *chance,
        None if !up_to.is_empty() => 1.0,
        None => {
            let all = pairs as f64 * (pairs as f64 + 1.0);
            let scale = (all * (2.0 * pairs as f64 + 1.0) / 24.0).sqrt();
            0.5 * erfc((all / 4.0 - 0.5 - above as f64) / scale / std::f64::consts::SQRT_2)
        }
    }
}

/// How many pairs it takes, in the middle, until a row is known to lie within `threshold` of 0 or beyond it, by the
/// differences that there are. The error of the look is shared with `rows` rows where it is to be a change. `None` where it
/// takes more than a thousand, or where no number of pairs does.
///
/// Further pairs are taken to scatter as those that there are. Of a change the statistic of [`chances_over_pairs`] is foretold, and
/// the chance of one as large in a relabelling, whose means scatter around 0: both as if they were normal.
pub fn pairs_to_decide(differences: &[f64], threshold: f64, error: f64, rows: usize) -> Option<usize> {
    const MOST: usize = 1_000;
    let distances: Vec<f64> = differences.iter().map(|value| value.abs()).collect();
    let (moved, apart) = (mean(differences).abs(), mean(&distances));
    let scatter = |values: &[f64]| standard_error(values).map(|error| error * (values.len() as f64).sqrt());
    let (of_moved, of_apart) = (scatter(differences)?, scatter(&distances).unwrap_or(0.0));
    let is_enough = |look: usize, pairs: usize| {
        let (count, error_now) = (pairs as f64, error * share_of_look(look));
        let reach = |scatter: f64, level: f64| t_quantile(count - 1.0, level) * scatter / count.sqrt();
        let is_same = apart + reach(of_apart, 1.0 - 2.0 * error_now) <= threshold;
        let relabelled = of_moved.hypot(moved);
        let statistic = ((moved - threshold) / of_moved + threshold / relabelled) * count.sqrt();
        let chance = erfc(statistic / std::f64::consts::SQRT_2) * rows as f64;
        let changes =
            moved - reach(of_moved, 1.0 - error) >= threshold && chance.max(least_chance_of_pairs(pairs)) <= error_now;
        (is_same || changes) && pairs > differences.len()
    };
    let mut looks = (1..).zip(looks()).take_while(|(_, pairs)| *pairs <= MOST);
    looks.find(|(look, pairs)| is_enough(*look, *pairs)).map(|(_, pairs)| pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_looks_have_no_more_than_the_whole_error_together() {
        assert_eq!(looks().take(6).collect::<Vec<_>>(), [7, 10, 14, 20, 28, 40]);
        let all: f64 = (1..10_000).map(share_of_look).sum();
        assert!(all < 1.0 && all > 0.999, "{all}");
    }

    #[test]
    fn each_way_to_exchange_pairs_is_taken_once_and_none_comes_first() {
        let all = relabellings(4);
        assert_eq!((all.len(), &all[0]), (8, &vec![false; 4]));
        assert!(all.iter().enumerate().all(|(place, ways)| !ways[0] && !all[..place].contains(ways)));
        assert_eq!((relabellings(11).len(), relabellings(12).len()), (1024, MAX_RELABELLINGS));
        assert_eq!(relabellings(0).len(), 1);
    }

    #[test]
    fn the_places_of_signed_ranks_are_those_of_the_tables() {
        // The critical values of Wilcoxon at 2.5 %, one-sided.
        for (pairs, critical) in [(6, 0), (7, 2), (8, 3), (10, 8), (20, 52), (30, 137)] {
            let below = signed_ranks(pairs);
            assert!(below(critical) <= 0.025 && below(critical + 1) > 0.025, "{pairs}");
        }
        // Where they are no more counted, the tail goes on.
        let [counted, taken] = [(60, 700), (61, 725)].map(|(pairs, above)| signed_ranks(pairs)(above));
        assert!((counted - taken).abs() < 0.01 * counted + 0.005, "{counted} and {taken}");
    }

    #[test]
    fn what_is_beyond_the_margin_in_all_pairs_is_a_change_and_what_is_within_is_none() {
        let chance = |differences: &[f64], margin| {
            let differences = differences.iter().copied().map(Some).collect();
            chances_over_pairs(&[RowByPair { differences, margin }], 8)[0]
        };
        let moved = [0.2, 0.21, 0.19, 0.2, 0.2, 0.22, 0.18, 0.2];
        assert_eq!(chance(&moved, 0.05), least_chance_of_pairs(8));
        assert!(chance(&moved, 0.3) > 0.05);
        assert_eq!([chance(&[0.0; 8], 0.0), chance(&[f64::MAX; 8], 0.0)], [1.0, least_chance_of_pairs(8)]);
        assert!(is_within(&[0.0; 7], 0.05, 0.025) && !is_within(&[0.0; 5], 0.05, 0.025));
        assert!(!is_within(&moved, 0.2, 0.025) && !is_within(&[], 0.2, 0.025));
    }

    #[test]
    fn the_interval_of_turns_holds_the_middle_of_their_quotients() {
        let ratio = Ratio::of_turns(&[0.1, 0.11, 0.09, 0.1, 0.12, 0.08, 0.1, 3.0], 0.95).unwrap();
        assert!((ratio.value.ln() - 0.1).abs() < 0.02 && ratio.low > 1.09 && ratio.level >= 0.95, "{ratio:?}");
        assert_eq!(Ratio::of_turns(&[0.1], 0.95), None);
    }
}
