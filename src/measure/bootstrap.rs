//! Resampling, for statistics whose scatter has no closed form.
//!
//! # Method
//! The nonparametric bootstrap (B. Efron, Ann. Stat. 7, 1979): draw as many samples as there are, with replacement, and
//! compute the statistic; repeat. Sets of the same length share the drawn indices, so that samples of one round stay
//! together. Sets of different lengths are drawn separately. The medians of sets that share no rounds, such as those of two
//! runs, are drawn separately whatever their lengths.
//!
//! The generator is always xoshiro256++, seeded by a constant, and everything runs in one thread: the same samples give
//! the same distribution on every machine and with every number of cores.
//!
//! # What it does not cover
//! A percentile interval of a bootstrap distribution is correct in the limit of many samples. For a median of few samples
//! it is inaccurate, so [`Estimate`](super::Estimate) does not use it.

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use rand_distr::{Beta, Distribution};

use super::estimate::quantile;

/// Draws resamples of sample sets, paired by their rounds unless said otherwise.
#[derive(Clone, Debug, PartialEq)]
pub struct Bootstrap {
    resamples: usize,
}

/// 2,000 resamples.
impl Default for Bootstrap {
    fn default() -> Self {
        Self { resamples: 2_000 }
    }
}

impl Bootstrap {
    /// The seed: the first 64 bits of the fraction of π, an arbitrary number that nobody picked for its results.
    pub const SEED: u64 = 0x243f_6a88_85a3_08d3;

    /// With this many resamples instead of 2,000; at least 1.
    #[must_use]
    pub fn with_resamples(mut self, resamples: usize) -> Self {
        self.resamples = resamples.max(1);
        self
    }

    /// The statistic of every resample of `sets`, in the order in which they were drawn.
    ///
    /// `statistic` is given the resampled sets in the order of `sets`. An empty set stays empty.
    pub fn distribution(&self, sets: &[&[f64]], mut statistic: impl FnMut(&[Vec<f64>]) -> f64) -> Vec<f64> {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(Self::SEED);
        let together = drawn_together(sets);
        let mut resampled: Vec<Vec<f64>> = sets.iter().map(|set| Vec::with_capacity(set.len())).collect();
        let draw = |_| {
            resampled.iter_mut().for_each(Vec::clear);
            for places in &together {
                let length = places.first().map_or(0, |&place| sets[place].len());
                for _ in 0..length {
                    let index = rng.random_range(0..length as u64) as usize;
                    for &place in places {
                        resampled[place].push(sets[place][index]);
                    }
                }
            }
            statistic(&resampled)
        };
        (0..self.resamples).map(draw).collect()
    }

    /// The statistic of the medians of resamples of `sets`, each drawn separately, in the order in which they were drawn.
    ///
    /// A resample's median is one of the ordered samples, or the mean of two: their places are order statistics of
    /// uniform numbers, which follow a beta distribution (H. A. David and H. N. Nagaraja, *Order Statistics*, 2003, 2.1).
    /// So a median is drawn without its resample, and the work is that of sorting.
    pub fn distribution_of_medians(&self, sets: &[&[f64]], mut statistic: impl FnMut(&[f64]) -> f64) -> Vec<f64> {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(Self::SEED);
        let sets: Vec<Vec<f64>> = sets.iter().map(|set| sorted(set)).collect();
        let draw = |_| {
            let medians: Vec<f64> = sets.iter().map(|set| drawn_median(set, &mut rng)).collect();
            statistic(&medians)
        };
        (0..self.resamples).map(draw).collect()
    }

    /// The percentile interval of the statistic that holds `level` of its distribution, as (low, high).
    ///
    /// `None` where a resample has no finite statistic, such as a quotient by zero.
    pub fn interval(
        &self,
        sets: &[&[f64]],
        level: f64,
        statistic: impl FnMut(&[Vec<f64>]) -> f64,
    ) -> Option<(f64, f64)> {
        percentiles(self.distribution(sets, statistic), level)
    }

    /// As [`interval`](Self::interval), of a statistic of the medians of sets that share no rounds.
    pub fn interval_of_medians(
        &self,
        sets: &[&[f64]],
        level: f64,
        statistic: impl FnMut(&[f64]) -> f64,
    ) -> Option<(f64, f64)> {
        percentiles(self.distribution_of_medians(sets, statistic), level)
    }
}

/// The indices of the sets that share their drawn indices.
fn drawn_together(sets: &[&[f64]]) -> Vec<Vec<usize>> {
    let mut together: Vec<Vec<usize>> = Vec::new();
    for (place, set) in sets.iter().enumerate() {
        let like = together.iter_mut().find(|places| sets[places[0]].len() == set.len());
        match like {
            Some(places) => places.push(place),
            None => together.push(vec![place]),
        }
    }
    together
}

fn percentiles(distribution: Vec<f64>, level: f64) -> Option<(f64, f64)> {
    if distribution.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let distribution = sorted(&distribution);
    let tail = (1.0 - level) / 2.0;
    Some((quantile(&distribution, tail), quantile(&distribution, 1.0 - tail)))
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values
}

/// The median of a resample of the ordered samples; not a number where there are none.
fn drawn_median(sorted: &[f64], rng: &mut Xoshiro256PlusPlus) -> f64 {
    let n = sorted.len();
    let at = |share: f64| sorted.get(((share * n as f64) as usize).min(n.saturating_sub(1))).copied();
    // The lower of the two in the middle, or the one.
    let below = n.div_ceil(2);
    let above = n - below;
    let Ok(lower) = Beta::new(below as f64, (above + 1) as f64).map(|share| share.sample(rng)) else { return f64::NAN };
    if n % 2 == 1 {
        return at(lower).unwrap_or(f64::NAN);
    }
    // The least of the numbers above it.
    let upper = 1.0 - (1.0 - lower) * rng.random::<f64>().powf(1.0 / above as f64);
    at(lower).zip(at(upper)).map_or(f64::NAN, |(lower, upper)| (lower + upper) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(values: &[f64]) -> f64 {
        values.iter().sum::<f64>() / values.len() as f64
    }

    #[test]
    fn sets_of_one_length_keep_their_pairs() {
        let a: Vec<f64> = (0..20).map(f64::from).collect();
        let b: Vec<f64> = a.iter().map(|v| v + 100.0).collect();
        let differences = Bootstrap::default().distribution(&[&a, &b], |sets| mean(&sets[1]) - mean(&sets[0]));
        assert!(differences.iter().all(|d| (d - 100.0).abs() < 1e-9));
    }

    #[test]
    fn medians_are_drawn_as_those_of_whole_resamples_are() {
        let median = |set: &Vec<f64>| {
            let set = sorted(set);
            (set[(set.len() - 1) / 2] + set[set.len() / 2]) / 2.0
        };
        for n in [1, 2, 7, 20, 101] {
            let values: Vec<f64> = (0..n).map(|i| f64::from(i * i)).collect();
            let bootstrap = Bootstrap::default().with_resamples(20_000);
            let whole = sorted(&bootstrap.distribution(&[&values], |sets| median(&sets[0])));
            let drawn = sorted(&bootstrap.distribution_of_medians(&[&values], |medians| medians[0]));
            // The distance of Kolmogorov and Smirnov; 1.95 √(2 / 20,000) is passed by one in a thousand.
            let share = |set: &[f64], value: f64| set.partition_point(|v| *v <= value) as f64 / 20_000.0;
            let distance = whole.iter().map(|v| (share(&whole, *v) - share(&drawn, *v)).abs()).fold(0.0, f64::max);
            assert!(distance < 0.0195, "{n}: {distance}");
        }
        assert!(Bootstrap::default().distribution_of_medians(&[&[]], |m| m[0]).iter().all(|m| m.is_nan()));
    }

    #[test]
    fn the_scatter_of_a_mean_is_its_standard_error() {
        let values: Vec<f64> = (0..100).map(f64::from).collect();
        let means = Bootstrap::default().with_resamples(4_000).distribution(&[&values], |sets| mean(&sets[0]));
        let centre = mean(&means);
        let scatter = mean(&means.iter().map(|m| (m - centre).powi(2)).collect::<Vec<_>>()).sqrt();
        let expected = 28.866 / 10.0;
        assert!((centre - 49.5).abs() < 0.2 && (scatter / expected - 1.0).abs() < 0.05, "{centre} {scatter}");
    }

    #[test]
    fn the_same_samples_give_the_same_distribution() {
        let values = [1.0, 2.0, 4.0, 8.0];
        let distribution = || Bootstrap::default().distribution(&[&values], |sets| mean(&sets[0]));
        assert_eq!(distribution(), distribution());
    }

    #[test]
    fn sets_of_different_lengths_are_drawn_separately() {
        let sizes = Bootstrap::default().with_resamples(3).distribution(&[&[1.0; 4], &[2.0; 7], &[]], |sets| {
            (sets[0].len() * 100 + sets[1].len() * 10 + sets[2].len()) as f64
        });
        assert_eq!(sizes, [470.0; 3]);
    }

    #[test]
    fn a_statistic_that_is_not_finite_has_no_interval() {
        assert_eq!(Bootstrap::default().interval(&[&[0.0, 1.0]], 0.95, |sets| 1.0 / mean(&sets[0])), None);
    }
}
