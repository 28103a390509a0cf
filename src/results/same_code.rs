//! What the method makes of a difference that is none: rows in which the same code was sampled twice, under two names.
//!
//! The ratio of such a row is 1 but for noise, so a 95 % interval that leaves 1 out is a miss of the method, not a finding.
//! By chance alone 5 % do. How many of a number of comparisons that may be is a quantile of the binomial distribution; it
//! takes the comparisons as independent, which those of one run are only nearly.

use statrs::distribution::{Binomial, DiscreteCDF};

use super::run::Results;
use crate::measure::Samples;

/// The share of intervals that may leave the truth out.
const ERROR: f64 = 0.05;

/// How many intervals there are, and how many of them leave 1 out.
///
/// ```
/// use syncscope_results::Comparisons;
///
/// // An interval of 95 % leaves the truth out in one of twenty cases: 5 of 20 are more than chance explains, 4 are not.
/// let found = Comparisons { made: 20, missed: 5 };
/// assert_eq!(found.most_by_chance(), 4);
/// assert!(found.missed > found.most_by_chance());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Comparisons {
    /// The intervals.
    pub made: usize,
    /// Those that leave 1 out.
    pub missed: usize,
}

impl Comparisons {
    /// The most misses that chance explains in 99 % of cases.
    pub fn most_by_chance(&self) -> usize {
        Binomial::new(ERROR, self.made as u64).map_or(0, |misses| misses.inverse_cdf(0.99) as usize)
    }

    fn add(&mut self, interval: Option<(f64, f64)>) {
        if let Some((low, high)) = interval {
            self.made += 1;
            self.missed += usize::from(low > 1.0 || high < 1.0);
        }
    }
}

/// The comparisons of the same code with itself in a results file, over all chapters and systems.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SameCode {
    /// By the interval between runs, which is the one that is published.
    pub between_runs: Comparisons,
    /// By the interval of the samples of each single run.
    pub within_runs: Comparisons,
}

impl SameCode {
    /// Those of files together: what one file may owe to chance, all of them do not.
    pub fn of(files: &[Results]) -> Self {
        let mut found = Self::default();
        let systems = files.iter().flat_map(|results| results.systems().into_iter().map(move |own| (results, own)));
        for (results, system) in systems {
            let lookup = results.lookup_of(system);
            for (spec, metric) in lookup.metrics() {
                let Some(metric) = metric.ok().filter(|_| spec.is_same_code()) else { continue };
                let between = metric.estimate().ok().filter(|estimate| estimate.runs > 1 && estimate.is_interval());
                found.between_runs.add(between.map(|estimate| (estimate.low, estimate.high)));
                for samples in &metric.runs {
                    let samples = Samples::new(&*spec.id, samples.to_vec()).ok().map(|samples| samples.estimate());
                    let within = samples.filter(|estimate| estimate.is_interval());
                    found.within_runs.add(within.map(|estimate| (estimate.low, estimate.high)));
                }
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chance_explains_as_many_misses_as_a_table_of_the_binomial_distribution_says() {
        let most = |made| Comparisons { made, missed: 0 }.most_by_chance();
        // Of 20 with a share of 0.05: P(≤ 3) = 0.984, P(≤ 4) = 0.997.
        assert_eq!((most(0), most(1), most(20), most(200)), (0, 1, 4, 18));
    }

    #[test]
    fn an_interval_that_holds_1_is_no_miss_and_one_that_ends_there_is_none_either() {
        let mut found = Comparisons::default();
        for interval in [Some((0.9, 1.1)), Some((1.0, 1.1)), Some((0.8, 0.9)), Some((1.01, 1.02)), None] {
            found.add(interval);
        }
        assert_eq!(found, Comparisons { made: 4, missed: 2 });
    }
}
