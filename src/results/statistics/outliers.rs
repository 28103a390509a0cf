//! Which of many machines differ from the rest?
//!
//! # Method
//! The generalized ESD procedure: the value furthest from the mean, in standard deviations, is taken out, and so on; the
//! outliers are those up to the last that was beyond its limit (B. Rosner, *Percentage points for a generalized ESD
//! many-outlier procedure*, Technometrics 25, 1983). Several outliers do not hide each other, as they do where only the first
//! is tested. Values are compared on a logarithmic scale, so that a share counts alike up and down.
//!
//! The level is that of a whole fleet: of machines that are alike, at most one fleet in twenty has a false alarm, over all
//! machines and rows together. So each row is tested at the level divided by the number of rows (Bonferroni), which holds
//! however rows depend on each other.
//!
//! The procedure takes values to scatter normally. Of longer tails it would name machines in nearly every fleet of equal ones.
//! So an outlier also has to be beyond what the [tail](Tail) of all rows of the model reaches at the same level: Student's
//! distribution whose degrees of freedom are the fewest that the likelihood of these values does not refute. A row's values are
//! counted from their median, by the distance that four in five of them do not exceed, and at least by the step of a clock so
//! coarse that most of them are equal. The machine that is furthest from the
//! others says nothing of the tail, and neither do the furthest hundredth of the values but for their number.
//!
//! `tests/fleet.rs` simulates forty machines and twenty rows: normal values, Student's of five degrees of freedom, Laplace's,
//! the steps of a clock and two modes raise a false alarm in at most one fleet of twenty. A machine that is slower by 5 % in
//! all rows, where the others scatter by 1 % normally, is found in nine of ten; where they scatter in one of the other ways, hardly
//! ever.
//!
//! # What it does not cover
//! Of few values the tail could be long. So in a fleet of forty machines and one row hardly any is named, and a machine that
//! is slower in one of many rows takes a larger distance. Two kinds of machines under one name are no outliers of either.
//! Fewer than fifteen machines are not judged. At most one machine in ten is named.

use statrs::distribution::{Continuous, ContinuousCDF, Normal, StudentsT};

use super::runs::{mean, t_quantile};
use crate::measure::{median, quantile};

/// The level at which a fleet has a false alarm.
pub const FLEET_LEVEL: f64 = 0.05;
/// The fewest machines that are judged.
pub const FEWEST: usize = 15;

/// A value that differs from the rest.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
#[non_exhaustive]
pub struct Outlier {
    /// The place of the value.
    pub place: usize,
    /// The value by the geometric mean of the others.
    pub ratio: f64,
}

/// What a row of a fleet comes to.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[non_exhaustive]
pub struct Outliers {
    /// The values that differ, the furthest first.
    pub found: Vec<Outlier>,
    /// The geometric mean of the others.
    pub centre: f64,
    /// How far the others scatter, as a share.
    pub spread: f64,
    /// The smallest shift that is found in four of five cases, as a share.
    pub smallest: f64,
}

/// How far values reach that do not differ from the rest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tail {
    /// The degrees of freedom of Student's distribution; none of values that are normal.
    freedom: Option<f64>,
}

/// The share of the values of a row whose distance is its scale, and the share whose distances tell the tail.
const INNER: f64 = 0.8;
const TOLD: f64 = 0.99;

impl Tail {
    /// That of values which are known to be normal.
    pub const NORMAL: Self = Self { freedom: None };

    /// That of the rows of one model: of each row the value of each machine, where it has one.
    pub fn of(rows: &[Vec<Option<f64>>]) -> Self {
        /// The logarithm of a quotient of likelihoods that refutes a tail: 97.7 % on one side.
        const REFUTED: f64 = 2.0;
        const FREEDOMS: [f64; 11] = [2.2, 2.5, 3.0, 4.0, 5.0, 7.0, 10.0, 15.0, 25.0, 50.0, 1000.0];
        let told = told(rows);
        let scores = FREEDOMS.map(|freedom| likelihood(&told, freedom));
        let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let place = scores.iter().position(|score| *score >= most - REFUTED);
        Self { freedom: Some(FREEDOMS[place.unwrap_or(0)]) }
    }

    /// How many scales a value is from the rest with a chance of `level`, on either side.
    fn limit(self, level: f64) -> f64 {
        self.freedom.map_or(0.0, |freedom| t_quantile(freedom, 1.0 - level) / t_quantile(freedom, INNER))
    }
}

/// The distances of all rows in their scales, in order, without the machine that is furthest from the others.
fn told(rows: &[Vec<Option<f64>>]) -> Vec<f64> {
    /// As many say enough.
    const MOST: usize = 20_000;
    /// Beyond this a distance says no more of its machine.
    const FAR: f64 = 5.0;
    let distances: Vec<Vec<Option<f64>>> = rows.iter().filter_map(|row| in_scales(row)).collect();
    let machines = distances.iter().map(Vec::len).max().unwrap_or(0);
    let of = |machine: usize| distances.iter().filter_map(move |row| *row.get(machine)?);
    let mean_of = |machine: &usize| mean(&of(*machine).map(|distance| distance.min(FAR)).collect::<Vec<f64>>());
    let furthest = (0..machines).filter(|machine| of(*machine).next().is_some());
    let furthest = furthest.max_by(|a, b| mean_of(a).total_cmp(&mean_of(b)));
    let mut told: Vec<f64> = (0..machines).filter(|machine| Some(*machine) != furthest).flat_map(of).collect();
    told.sort_by(f64::total_cmp);
    let step = told.len().div_ceil(MOST).max(1);
    told.into_iter().step_by(step).collect()
}

/// How far the values of a row are from their median, in scales; `None` without a scale.
fn in_scales(row: &[Option<f64>]) -> Option<Vec<Option<f64>>> {
    let logarithms: Vec<Option<f64>> = row.iter().map(|value| value.map(f64::ln)).collect();
    let known: Vec<f64> = logarithms.iter().flatten().copied().collect();
    if known.len() < FEWEST || !known.iter().all(|value| value.is_finite()) {
        return None;
    }
    let (middle, scale) = middle_and_scale(&known);
    (scale > 0.0).then(|| logarithms.iter().map(|value| value.map(|value| (value - middle).abs() / scale)).collect())
}

/// The median, and the distance from it that four in five values do not exceed.
fn middle_and_scale(logarithms: &[f64]) -> (f64, f64) {
    let middle = median(logarithms.to_vec());
    let mut distances: Vec<f64> = logarithms.iter().map(|value| (value - middle).abs()).collect();
    distances.sort_by(f64::total_cmp);
    (middle, quantile(&distances, INNER))
}

/// The logarithm of the likelihood of distances in order, of which the furthest are known by their number alone.
fn likelihood(told: &[f64], freedom: f64) -> f64 {
    let scale = t_quantile(freedom, INNER);
    let Ok(t) = StudentsT::new(0.0, 1.0, freedom) else { return f64::NEG_INFINITY };
    let inner = &told[..(told.len() as f64 * TOLD) as usize];
    let Some(furthest) = inner.last() else { return 0.0 };
    let of_inner: f64 = inner.iter().map(|distance| t.ln_pdf(distance * scale) + scale.ln()).sum();
    of_inner + (told.len() - inner.len()) as f64 * t.sf(furthest * scale).ln()
}

/// The outliers among values of one row, where `rows` are tested in all and values reach as far as `tail` says. `None` with too
/// few values, or with one that is not greater than 0.
pub fn outliers(values: &[f64], rows: usize, tail: Tail) -> Option<Outliers> {
    if values.len() < FEWEST || rows == 0 || !values.iter().all(|value| *value > 0.0 && value.is_finite()) {
        return None;
    }
    let level = FLEET_LEVEL / rows as f64;
    let mut sorted: Vec<(usize, f64)> = values.iter().map(|value| value.ln()).enumerate().collect();
    sorted.sort_by(|a, b| a.1.total_cmp(&b.1));
    // The furthest from the mean is at one of the ends.
    let mut rest = sorted.as_slice();
    let (mut taken, mut kept) = (Vec::new(), (rest, 0));
    for _ in 0..values.len() / 10 {
        let (mean, deviation) = scatter(rest);
        let [first, .., last] = rest else { break };
        let distances = [mean - first.1, last.1 - mean];
        let limit = limit(rest.len(), level) * deviation;
        if distances[0] > distances[1] {
            taken.push(*first);
            rest = &rest[1..];
        } else {
            taken.push(*last);
            rest = &rest[..rest.len() - 1];
        }
        if distances[0].max(distances[1]) > limit {
            kept = (rest, taken.len());
        }
    }
    let (rest, beyond) = kept;
    taken.truncate(beyond);
    let (mean, deviation) = scatter(rest);
    let (middle, scale) = middle_and_scale(&sorted.iter().map(|(_, value)| *value).collect::<Vec<f64>>());
    let reach = tail.limit(level / values.len() as f64) * scale.max(step(&sorted));
    let beyond = taken.iter().filter(|(_, value)| (value - middle).abs() > reach);
    let found = beyond.map(|(place, value)| Outlier { place: *place, ratio: (value - mean).exp() }).collect();
    let smallest = ((deviation * limit(rest.len(), level)).max(reach) + deviation * POWER).exp() - 1.0;
    Some(Outliers { found, centre: mean.exp(), spread: deviation, smallest })
}

/// The smallest distance of two values, in order, that differ by more than rounding: of a coarse clock, its step. Without any, 0.
fn step(sorted: &[(usize, f64)]) -> f64 {
    const ROUNDING: f64 = 1e-9;
    let gaps = sorted.windows(2).map(|pair| pair[1].1 - pair[0].1).filter(|gap| *gap > ROUNDING);
    gaps.reduce(f64::min).unwrap_or(0.0)
}

/// The smallest shift, as a share, that is found with a power of 80 % in a fleet of so many machines and rows that scatter
/// by `spread`.
pub fn smallest_shift(spread: f64, machines: usize, rows: usize) -> f64 {
    (spread * (limit(machines, FLEET_LEVEL / rows as f64) + POWER)).exp() - 1.0
}

/// The 80 % point of the normal distribution: by how many standard deviations a shift has to be beyond the limit.
const POWER: f64 = 0.841_621;

/// Rosner's limit for the furthest of `count` values, in standard deviations.
fn limit(count: usize, level: f64) -> f64 {
    let n = count as f64;
    let t = match count {
        0..100 => t_quantile(n - 2.0, 1.0 - level / n),
        // The expansion about the normal quantile (R. A. Fisher, E. A. Cornish, Technometrics 2, 1960): with so many degrees
        // of freedom it is exact to the third digit and takes no search.
        _ => {
            let (z, freedom) = (-Normal::standard().inverse_cdf(level / (2.0 * n)), n - 2.0);
            let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * freedom.powi(2));
            z + (z.powi(3) + z) / (4.0 * freedom) + second
        }
    };
    (n - 1.0) * t / ((n - 2.0 + t * t) * n).sqrt()
}

fn scatter(values: &[(usize, f64)]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().map(|(_, value)| value).sum::<f64>() / count;
    let squares = values.iter().map(|(_, value)| (value - mean).powi(2)).sum::<f64>();
    (mean, (squares / (count - 1.0)).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rosners_own_example_has_three_outliers() {
        // Rosner 1983, table 1: at 5 % the values 6.01, 5.42 and 5.34, which hide each other from a test of one.
        let rosner = [
            -0.25, 0.68, 0.94, 1.15, 1.20, 1.26, 1.26, 1.34, 1.38, 1.43, 1.49, 1.49, 1.55, 1.56, 1.58, 1.65, 1.69,
            1.70, 1.76, 1.77, 1.81, 1.91, 1.94, 1.96, 1.99, 2.06, 2.09, 2.10, 2.14, 2.15, 2.23, 2.24, 2.26, 2.35, 2.37,
            2.40, 2.47, 2.54, 2.62, 2.64, 2.90, 2.92, 2.92, 2.93, 3.21, 3.26, 3.30, 3.59, 3.68, 4.30, 4.64, 5.34, 5.42,
            6.01,
        ];
        let found = outliers(&rosner.map(f64::exp), 1, Tail::NORMAL).unwrap().found;
        let mut places: Vec<usize> = found.iter().map(|outlier| outlier.place).collect();
        places.sort_unstable();
        assert_eq!(places, [51, 52, 53]);
    }

    #[test]
    fn equal_values_and_few_values_have_none() {
        assert!(outliers(&[2.0; 30], 10, Tail::NORMAL).unwrap().found.is_empty());
        assert!(outliers(&[2.0; 14], 10, Tail::NORMAL).is_none());
        assert!(outliers(&[0.0; 30], 10, Tail::NORMAL).is_none());
        // Of a clock that most values do not tell apart, one step is no difference, and four are one.
        let known: Vec<Vec<Option<f64>>> =
            vec![(1..=200).map(|place| Some(1.0 + 1e-3 * f64::from(place % 9))).collect(); 9];
        let named = |steps: f64| {
            let mut values = [1.0; 40];
            (values[3], values[4], values[5]) = (1.02, 1.02 * 1.02, 1.02_f64.powf(steps));
            outliers(&values, 1, Tail::of(&known)).unwrap().found.len()
        };
        assert_eq!((named(1.0), named(20.0)), (0, 1));
    }
}
