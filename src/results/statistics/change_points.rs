//! When did a series of values change its level, and by how much?
//!
//! # Method
//! Values are taken as they come, one a run. After each the values since the last change (365 at most) are split in two
//! wherever they can be, and the two parts compared by the rank test of Mann and Whitney; where the least of these p-values
//! is below a limit, the level changed. Where it did is the split of least squares (J. Bai, *Least squares estimation of a
//! shift in linear processes*, J. Time Ser. Anal. 15, 1994) once ten more values are there, or as many as there are: ranks do
//! not see how far apart two levels are. The series begins anew there. This is the nonparametric
//! change-point model: D. M. Hawkins, Q. Deng, *A nonparametric change-point control chart*, Journal of Quality Technology
//! 42, 2010; G. J. Ross, D. K. Tasoulis, N. M. Adams, *Nonparametric monitoring of data streams for changes in location and
//! scale*, Technometrics 53, 2011. Ranks have the same distribution whatever the values have, so one limit is right for all.
//!
//! The p-value of a part of ten values or fewer is exact: the coefficients of a Gaussian binomial count the arrangements of
//! ranks (H. B. Mann, D. R. Whitney, Ann. Math. Stat. 18, 1947). For two longer parts it is the normal approximation, whose
//! tail is the heavier. Ties count half, and leave the test conservative.
//!
//! # False alarms
//! A test that is repeated with every new value raises more false alarms than its level says. So the limit was chosen by
//! simulation: of independent values without a change, at most one series in a hundred raises an alarm within 365 values,
//! or within the 365 after those. `examples/history_alarms.rs` measures that, and how soon a shift is found.
//!
//! Values of neighbouring days depend on each other: a machine is warm for a week. So an alarm has to stand when what each value
//! takes from the one before it is taken out (*prewhitening*: S. Yue, C. Y. Wang, *Applicability of prewhitening to eliminate the
//! influence of serial correlation on the Mann-Kendall test*, Water Resour. Res. 38, 2002). How much that is follows from the
//! distances of values one and two days apart, which a change of level hardly moves, and so much is added as few values leave
//! open. Where each value depends on the one before by 0.5, at most one series in twenty raises an alarm within a year.
//!
//! # Uncertainty
//! The interval of the place is a percentile bootstrap: values are drawn anew on either side of it, and the best split of the
//! drawn series is found (M. Hušková, C. Kirch, *Bootstrapping confidence intervals for the change-point of time series*,
//! J. Time Ser. Anal. 29, 2008). The change itself is a [`Ratio`].
//!
//! # What it does not cover
//! The interval of a change takes the values as independent. A gradual drift is shown as
//! one step or several. Behind few values no shift is large enough: five values after it can tell where 41 stood before, ten
//! where 14 did. The size of a shift does not bring that forward, for ranks do not see it.

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use statrs::function::erf::erfc;

use super::ratio::Ratio;
use crate::measure::{median, quantile};

/// The most values since the last change that are looked at.
const WINDOW: usize = 365;
/// Below this a p-value is an alarm. Chosen by simulation: see above.
const LIMIT: f64 = 1.5e-6;
/// Up to how many values in the smaller part its p-value is exact.
const EXACT: usize = 10;
/// The level of the intervals.
const LEVEL: f64 = 0.95;
const RESAMPLES: usize = 400;
/// The seed of the generator: the first 64 bits of the fraction of π.
const SEED: u64 = 0x243f_6a88_85a3_08d3;
/// How many values behind an alarm help to say where the change was: with the few that raised it, a neighbour may stand out
/// by chance.
const SETTLE: usize = 10;

/// A change of level.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[non_exhaustive]
pub struct ChangePoint {
    /// The place of the first value of the new level, from 0.
    pub at: usize,
    /// The earliest place that the 95 % interval has.
    pub earliest: usize,
    /// The latest place that the 95 % interval has.
    pub latest: usize,
    /// The place of the value with which it was found.
    pub found: usize,
    /// The median of the values before it, since the change before.
    pub before: f64,
    /// The median of the values from it on, up to the next change.
    pub after: f64,
    /// The new level by the old one with its 95 % interval, where all values are greater than 0.
    pub ratio: Option<Ratio>,
}

/// The changes of level of a series, in its order. A later value takes none of them away; the next ten may move its place.
pub fn change_points(values: &[f64]) -> Vec<ChangePoint> {
    let mut found: Vec<[usize; 2]> = Vec::new();
    let (mut splits, mut start) = (Splits::default(), 0);
    for (place, value) in values.iter().enumerate() {
        if splits.values.len() == WINDOW {
            splits.remove_first();
            start += 1;
        }
        splits.push(*value);
        if splits.is_alarm() && Splits::of(&independent(&splits.values)).is_alarm() {
            let settled = &values[start..values.len().min(place + 1 + SETTLE)];
            start += best_split(settled).min(place - start);
            found.push([start, place]);
            splits = Splits::of(&values[start..=place]);
        }
    }
    let place = |number: usize| found.get(number).map_or(values.len(), |[at, _]| *at);
    (0..found.len())
        .map(|number| {
            let begin = number.checked_sub(1).map_or(0, place);
            ChangePoint::of(values, [begin, place(number), place(number + 1)], found[number][1])
        })
        .collect()
}

impl ChangePoint {
    fn of(values: &[f64], [begin, at, end]: [usize; 3], found: usize) -> Self {
        let begin = begin.max(at.saturating_sub(WINDOW));
        let (before, after) = (&values[begin..at], &values[at..end]);
        let [earliest, latest] = interval(before, after).map(|place| begin + place);
        Self {
            at,
            earliest: earliest.min(at),
            latest: latest.max(at),
            found,
            before: median(before.to_vec()),
            after: median(after.to_vec()),
            ratio: Ratio::of_runs(after, before, LEVEL),
        }
    }
}

/// A window of values and, for each split, the number of pairs whose second value is the larger.
#[derive(Default)]
struct Splits {
    values: Vec<f64>,
    /// Behind the value of the same place; ties count half. The last is of no split.
    larger: Vec<f64>,
}

impl Splits {
    fn of(values: &[f64]) -> Self {
        let mut splits = Self::default();
        values.iter().for_each(|value| splits.push(*value));
        splits
    }

    fn push(&mut self, value: f64) {
        let mut smaller = 0.0;
        for (own, pairs) in self.values.iter().zip(&mut self.larger) {
            smaller += above(value, *own);
            *pairs += smaller;
        }
        self.values.push(value);
        self.larger.push(0.0);
    }

    fn remove_first(&mut self) {
        let (first, mut pairs) = (self.values.remove(0), 0.0);
        self.larger.remove(0);
        for (own, larger) in self.values.iter().zip(&mut self.larger).rev() {
            *larger -= pairs;
            pairs += above(*own, first);
        }
    }

    /// Whether the p-value of a split is below the limit.
    fn is_alarm(&self) -> bool {
        let p = |split: usize| p_value(self.larger[split - 1], split, self.values.len() - split);
        (1..self.values.len()).any(|split| p(split) < LIMIT)
    }
}

/// The values without what each takes from the one before it.
fn independent(values: &[f64]) -> Vec<f64> {
    let dependence = dependence(values);
    let before = values.first().into_iter().chain(values);
    values.iter().zip(before).map(|(value, before)| value - dependence * before).collect()
}

/// How much of its distance from the level a value hands on to the next, at most: from the squared distances of values one and
/// two days apart. A change of level moves three of these, which are moved in. What few values leave open is added.
fn dependence(values: &[f64]) -> f64 {
    /// More cannot be told from a change of level.
    const MOST: f64 = 0.9;
    const FAR: f64 = 5.0;
    let apart = |days: usize| -> Vec<f64> {
        let pairs = values.iter().zip(values.iter().skip(days));
        pairs.map(|(a, b)| (a - b).abs()).collect()
    };
    let far = FAR * median(apart(1));
    let [one, two] = [1, 2].map(|days| {
        let squares: Vec<f64> = apart(days).into_iter().map(|distance| distance.min(far).powi(2)).collect();
        super::mean(&squares)
    });
    let quotient = two / one;
    let open = 1.0 / (values.len() as f64).sqrt();
    if quotient.is_finite() { (quotient - 1.0 + open).clamp(0.0, MOST) } else { 0.0 }
}

/// The first place behind the split of least squares. Values far from the middle are moved in, so that none decides alone.
fn best_split(values: &[f64]) -> usize {
    const FAR: f64 = 8.0;
    let middle = median(values.to_vec());
    let distance = median(values.iter().map(|value| (value - middle).abs()).collect());
    let near = |value: &f64| {
        if distance > 0.0 { (value - middle).clamp(-FAR * distance, FAR * distance) } else { value - middle }
    };
    let near: Vec<f64> = values.iter().map(near).collect();
    let (all, count) = (near.iter().sum::<f64>(), near.len() as f64);
    let (mut first, mut best, mut most) = (0.0, 1, f64::NEG_INFINITY);
    for (split, value) in (1..near.len()).zip(&near) {
        first += value;
        let share = split as f64 / count;
        // What the squares lose by the split.
        let lost = (first - share * all).powi(2) / (share * (1.0 - share));
        if lost > most {
            (best, most) = (split, lost);
        }
    }
    best
}

/// 1 where `a` is larger than `b`, one half where they are equal.
fn above(a: f64, b: f64) -> f64 {
    f64::from(u8::from(a > b)) + 0.5 * f64::from(u8::from(a == b))
}

/// The two-sided p-value of a number of pairs; 1 where a part is too short for an alarm.
fn p_value(pairs: f64, first: usize, second: usize) -> f64 {
    let (few, many) = (first.min(second), first.max(second));
    let all = (first * second) as f64;
    let extreme = pairs.min(all - pairs);
    // Far from an alarm, where nearly all splits are.
    if extreme > all * 0.42 {
        return 1.0;
    }
    if few > EXACT {
        return (2.0 * normal_tail(first, second, extreme)).min(1.0);
    }
    let arrangements: f64 = (1..=few).map(|place| (many + place) as f64 / place as f64).product();
    if 2.0 / arrangements >= LIMIT || extreme > all * 0.2 {
        return 1.0;
    }
    (2.0 * pairs_in_order(few, many, extreme.ceil() as usize).iter().sum::<f64>() / arrangements).min(1.0)
}

/// The share of the orders of `first` and `second` values of which at most so many pairs have the larger value second.
pub(super) fn arrangements(first: usize, second: usize) -> impl Fn(usize) -> f64 {
    let (few, many) = (first.min(second), first.max(second));
    let mut up_to = if few > EXACT { Vec::new() } else { pairs_in_order(few, many, few * many) };
    (1..up_to.len()).for_each(|most| up_to[most] += up_to[most - 1]);
    move |most| match up_to.last() {
        Some(all) => up_to[most] / all,
        None => normal_tail(few, many, most as f64),
    }
}

/// The normal approximation of the same, up to the middle.
fn normal_tail(first: usize, second: usize, pairs: f64) -> f64 {
    let all = (first * second) as f64;
    let scale = (all * (first + second + 1) as f64 / 12.0).sqrt();
    0.5 * erfc((all / 2.0 - pairs - 0.5).max(0.0) / scale / std::f64::consts::SQRT_2)
}

/// In how many orders of `few` and `many` values 0, 1, …, `most` pairs have the larger value second: the coefficients of the
/// Gaussian binomial up to that power.
fn pairs_in_order(few: usize, many: usize, most: usize) -> Vec<f64> {
    let mut counts = vec![0.0; most + 1];
    counts[0] = 1.0;
    for part in 1..=few {
        for power in part..=most {
            counts[power] += counts[power - part];
        }
        for power in (many + part..=most).rev() {
            counts[power] -= counts[power - many - part];
        }
    }
    counts
}

/// The interval of the place of a change, as places in the two parts one behind the other.
fn interval(before: &[f64], after: &[f64]) -> [usize; 2] {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(SEED);
    let mut places: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            let mut drawn = Vec::with_capacity(before.len() + after.len());
            for part in [before, after] {
                drawn.extend(part.iter().map(|_| part[rng.random_range(0..part.len())]));
            }
            best_split(&drawn) as f64
        })
        .collect();
    places.sort_by(f64::total_cmp);
    let end = |share: f64| quantile(&places, share);
    [end((1.0 - LEVEL) / 2.0).floor() as usize, end(0.5 + LEVEL / 2.0).ceil() as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values without a change: the fractions of multiples of the golden ratio, in an order that repeats nothing.
    fn noise(count: usize, seed: u64) -> Vec<f64> {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        (0..count).map(|_| rng.random::<f64>()).collect()
    }

    #[test]
    fn the_exact_tail_is_the_one_of_all_arrangements() {
        // Every choice of three places among eight.
        let mut counts = [0.0; 16];
        for bits in (0_u32..256).filter(|bits| bits.count_ones() == 3) {
            let pairs =
                (0..8).filter(|place| bits >> place & 1 == 1).map(|place| (!bits & ((1 << place) - 1)).count_ones());
            counts[pairs.sum::<u32>() as usize] += 1.0;
        }
        for most in 0..=15 {
            assert_eq!(pairs_in_order(3, 5, most).iter().sum::<f64>(), counts[..=most].iter().sum::<f64>(), "{most}");
        }
    }

    #[test]
    fn a_window_that_slides_counts_the_pairs_of_a_new_one() {
        let values = noise(60, 1);
        let mut slid = Splits::of(&values[..40]);
        for value in &values[40..] {
            slid.remove_first();
            slid.push(*value);
        }
        assert_eq!(slid.larger, Splits::of(&values[20..]).larger);
    }

    #[test]
    fn a_step_is_found_where_it_is_with_its_size() {
        let mut values: Vec<f64> = noise(90, 2).iter().map(|noise| 1.0 + 0.01 * noise).collect();
        values[60..].iter_mut().for_each(|value| *value *= 1.05);
        let changes = change_points(&values);
        assert_eq!(changes.len(), 1, "{changes:?}");
        let change = &changes[0];
        assert_eq!((change.at, change.earliest, change.latest), (60, 60, 60));
        assert!(change.found < 66, "{change:?}");
        let ratio = change.ratio.unwrap();
        assert!(ratio.low < 1.05 && ratio.high > 1.05 && ratio.high - ratio.low < 0.01, "{ratio:?}");
    }

    #[test]
    fn a_small_step_has_an_interval_of_its_place_and_there_and_back_are_two_changes() {
        let mut values = noise(300, 3);
        values[100..200].iter_mut().for_each(|value| *value += 0.4);
        let changes = change_points(&values);
        assert_eq!(changes.len(), 2, "{changes:?}");
        for (change, place) in changes.iter().zip([100, 200]) {
            assert!(
                change.earliest <= place && place <= change.latest && change.latest > change.earliest,
                "{change:?}"
            );
        }
    }

    #[test]
    fn what_was_found_stays_found_whatever_comes_later() {
        let mut values = noise(200, 4);
        values[50..].iter_mut().for_each(|value| *value += 0.7);
        let found =
            |count: usize| change_points(&values[..count]).iter().map(|change| change.found).collect::<Vec<_>>();
        let first = change_points(&values)[0].found;
        assert!(found(first).is_empty());
        assert!((first + 1..=200).all(|count| found(count).starts_with(&[first])));
        let place = |count: usize| change_points(&values[..count])[0].at;
        assert!((first + 11..=200).all(|count| place(count) == place(200)));
    }

    #[test]
    fn equal_values_and_few_values_have_no_change() {
        assert!(change_points(&[1.0; 400]).is_empty() && change_points(&[]).is_empty());
        let few: Vec<f64> = (0..15).map(|place| if place < 11 { 1.0 } else { 2.0 } + 1e-3 * f64::from(place)).collect();
        assert!(change_points(&few).is_empty());
    }
}
