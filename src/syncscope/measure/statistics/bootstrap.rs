//! Resampling, for statistics whose scatter has no closed form.
//!
//! # Method
//! The nonparametric bootstrap (B. Efron, Ann. Stat. 7, 1979): draw as many samples as there are, with replacement, and
//! compute the statistic; repeat. Sets of the same length share the drawn indices, so that samples of one round stay
//! together. Sets of different lengths are drawn separately.
//!
//! The generator is always xoshiro256++, seeded by a constant, and everything runs in one thread: the same samples give
//! the same distribution on every machine and with every number of cores.
//!
//! # What it does not cover
//! A percentile interval of such a distribution is correct in the limit of many samples. For a median of few samples
//! it is inaccurate, so [`Estimate`](crate::measure::Estimate) does not use it.

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

/// The seed: the first 64 bits of the fraction of π, an arbitrary number that nobody picked for its results.
const SEED: u64 = 0x243f_6a88_85a3_08d3;
const RESAMPLES: usize = 2_000;

/// The statistic of 2,000 resamples of `sets`, in the order in which they were drawn: it is given them in the order of `sets`.
/// An empty set stays empty.
pub(super) fn distribution(sets: &[&[f64]], mut statistic: impl FnMut(&[Vec<f64>]) -> f64) -> Vec<f64> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(SEED);
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
    (0..RESAMPLES).map(draw).collect()
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
        let differences = distribution(&[&a, &b], |sets| mean(&sets[1]) - mean(&sets[0]));
        assert!(differences.iter().all(|d| (d - 100.0).abs() < 1e-9));
    }

    #[test]
    fn the_scatter_of_a_mean_is_its_standard_error() {
        let values: Vec<f64> = (0..100).map(f64::from).collect();
        let means = distribution(&[&values], |sets| mean(&sets[0]));
        let centre = mean(&means);
        let scatter = mean(&means.iter().map(|m| (m - centre).powi(2)).collect::<Vec<_>>()).sqrt();
        let expected = 28.866 / 10.0;
        assert!((centre - 49.5).abs() < 0.2 && (scatter / expected - 1.0).abs() < 0.05, "{centre} {scatter}");
    }

    #[test]
    fn the_same_samples_give_the_same_distribution() {
        let values = [1.0, 2.0, 4.0, 8.0];
        let drawn = || distribution(&[&values], |sets| mean(&sets[0]));
        assert_eq!(drawn(), drawn());
    }

    #[test]
    fn sets_of_different_lengths_are_drawn_separately() {
        let sizes = distribution(&[&[1.0; 4], &[2.0; 7], &[]], |sets| {
            (sets[0].len() * 100 + sets[1].len() * 10 + sets[2].len()) as f64
        });
        assert!(sizes.iter().all(|sizes| *sizes == 470.0));
    }
}
