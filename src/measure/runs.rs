//! What several runs of one case come to. A run is a process of its own.
//!
//! # Method
//! Two levels: samples within a run, runs on one machine on one day. A run has its own level (memory layout, thread
//! placement, the clock rates that it met), which none of its own samples shows: T. Mytkowicz, A. Diwan, M. Hauswirth,
//! P. F. Sweeney, *Producing wrong data without doing anything obviously wrong!*, ASPLOS 2009; T. Kalibera, R. Jones,
//! *Rigorous benchmarking in reasonable time*, ISMM 2013. So each run counts once, by its median. What is estimated is the
//! *expected median of a run*: the mean of the runs' medians, with Student's t interval over them (R − 1 degrees of
//! freedom). How the samples of one run depend on each other has no influence on its coverage: a median that scatters
//! more for that reason scatters more between the runs, too.
//!
//! `examples/coverage.rs` measures the coverage, also where its assumption fails.
//!
//! A statement about several rows is held against joint draws of their expected medians ([`RunDraws`]). The draws of one
//! row follow the t distribution above, and those of rows of the same runs share their random numbers, so that what moves
//! two rows of a run together cancels in their difference: for a linear statement, a share of 97.5 % of the draws is the
//! same as a t interval of the paired differences that excludes the limit.
//!
//! # What it does not cover
//! Runs are taken to be exchangeable. A drift over the runs, or a state of the machine that lasts longer than all of them,
//! is seen by none; another day or another board is another population. With three runs the factor of the interval is
//! 4.3 (with five 2.8), and a mode of the machine that one run in five meets is missed by three runs in half of all cases.

use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use rand_distr::{ChiSquared, Distribution, StandardNormal};
use statrs::distribution::{ContinuousCDF, FisherSnedecor, StudentsT};

use super::bootstrap::Bootstrap;
use super::estimate::{Estimate, Larger, Spread, median, quantile};

/// The level of the interval of an estimate.
const LEVEL: f64 = 0.95;

/// How much of the information on a normal scale is in the distance of the quartiles (D. C. Hoaglin, F. Mosteller, J. W.
/// Tukey, *Understanding Robust and Exploratory Data Analysis*, 1983, 12).
const QUARTILE_EFFICIENCY: f64 = 0.37;

/// The distance of the quartiles of a normal distribution in standard deviations.
const QUARTILE_DISTANCE: f64 = 1.349;

impl Estimate {
    /// The expected median of a run, from the samples of several; `None` where there are not two runs with samples each.
    pub fn of_runs(runs: &[&[f64]]) -> Option<Self> {
        if runs.len() < 2 || runs.iter().any(|samples| samples.is_empty()) {
            return None;
        }
        let mut sorted = runs.concat();
        sorted.sort_by(f64::total_cmp);
        let middles: Vec<f64> = runs.iter().map(|samples| median(samples.to_vec())).collect();
        let (centre, half_width) = t_interval(&middles, LEVEL);
        Some(Self {
            median: centre,
            low: centre - half_width,
            high: centre + half_width,
            lower_quartile: quantile(&sorted, 0.25),
            upper_quartile: quantile(&sorted, 0.75),
            n: sorted.len(),
            runs: runs.len(),
            coverage: LEVEL,
            spread: Some(Spread::of(runs, &middles)),
        })
    }
}

impl Spread {
    /// The two spreads are compared by an F test of their variances (5 %, two-sided); the one within runs has the degrees
    /// of freedom that its quartiles are worth.
    fn of(runs: &[&[f64]], middles: &[f64]) -> Self {
        let variances = runs.iter().map(|samples| (quartile_distance(samples) / QUARTILE_DISTANCE).powi(2));
        let count = runs.len() as f64;
        let within = variances.sum::<f64>() / count;
        let between = variance(middles);
        let freedom = runs.iter().map(|samples| samples.len() as f64 - 1.0).sum::<f64>() * QUARTILE_EFFICIENCY;
        let larger = match FisherSnedecor::new(count - 1.0, freedom) {
            _ if within == 0.0 && between == 0.0 => Larger::Unclear,
            Ok(_) if within == 0.0 => Larger::Between,
            Ok(distribution) => match distribution.cdf(between / within) {
                share if share > 0.975 => Larger::Between,
                share if share < 0.025 => Larger::Within,
                _ => Larger::Unclear,
            },
            Err(_) => Larger::Unclear,
        };
        Self { within: within.sqrt(), between: between.sqrt(), larger }
    }
}

/// The mean of values, of which there are at least two, and half the width of its t interval.
pub(crate) fn t_interval(values: &[f64], level: f64) -> (f64, f64) {
    let count = values.len() as f64;
    (mean(values), t_quantile(count - 1.0, level) * (variance(values) / count).sqrt())
}

/// How many standard errors the interval of `level` reaches to either side.
pub(crate) fn t_quantile(freedom: f64, level: f64) -> f64 {
    StudentsT::new(0.0, 1.0, freedom).map_or(f64::INFINITY, |t| t.inverse_cdf(0.5 + level / 2.0))
}

pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The variance of values, of which there are at least two, from their mean.
pub(crate) fn variance(values: &[f64]) -> f64 {
    let centre = mean(values);
    values.iter().map(|value| (value - centre).powi(2)).sum::<f64>() / (values.len() as f64 - 1.0)
}

fn quartile_distance(samples: &[f64]) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    quantile(&sorted, 0.75) - quantile(&sorted, 0.25)
}

/// Joint draws of the expected values of rows, each given by what it came to in its runs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RunDraws {
    draws: usize,
}

/// 4,000 draws.
impl Default for RunDraws {
    fn default() -> Self {
        Self { draws: 4_000 }
    }
}

impl RunDraws {
    /// What `statistic` gives of each draw; `rows` hold at least two runs each. Rows with the same number of runs are
    /// paired run by run.
    ///
    /// A draw of a row with the values v₁ … v_R is v̄ + √((R − 1) / χ²) · Σ gᵣ (vᵣ − v̄) / √(R (R − 1)), with normal g and a
    /// χ² of R − 1 degrees of freedom: the fiducial distribution of its mean (R. A. Fisher, *The fiducial argument in
    /// statistical inference*, Ann. Eugenics 6, 1935).
    pub(crate) fn distribution(&self, rows: &[&[f64]], mut statistic: impl FnMut(&[f64]) -> f64) -> Vec<f64> {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(Bootstrap::SEED);
        let mut counts: Vec<usize> = rows.iter().map(|row| row.len()).collect();
        counts.sort_unstable();
        counts.dedup();
        let mut drawn = vec![0.0; rows.len()];
        let draw = |_| {
            for &count in &counts {
                let weights = weights(count, &mut random);
                for (row, drawn) in rows.iter().zip(&mut drawn).filter(|(row, _)| row.len() == count) {
                    let centre = mean(row);
                    *drawn =
                        centre + row.iter().zip(&weights).map(|(value, weight)| weight * (value - centre)).sum::<f64>();
                }
            }
            statistic(&drawn)
        };
        (0..self.draws).map(draw).collect()
    }
}

fn weights(count: usize, random: &mut Xoshiro256PlusPlus) -> Vec<f64> {
    let runs = count as f64;
    let squares = ChiSquared::new(runs - 1.0).map_or(f64::NAN, |chi: ChiSquared<f64>| chi.sample(random));
    let scale = 1.0 / (squares * runs).sqrt();
    (0..count).map(|_| scale * Distribution::<f64>::sample(&StandardNormal, random)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(runs: &[&[f64]]) -> Estimate {
        Estimate::of_runs(runs).unwrap()
    }

    #[test]
    fn the_interval_is_the_one_worked_out_by_hand() {
        // Medians 1, 2, 3: mean 2, standard deviation 1, t of two degrees of freedom 4.3027.
        let estimate = of(&[&[0.0, 1.0, 9.0], &[2.0], &[3.0, 3.0]]);
        assert_eq!((estimate.median, estimate.runs, estimate.n), (2.0, 3, 6));
        assert!((estimate.high - (2.0 + 4.302_653 / 3.0_f64.sqrt())).abs() < 1e-5, "{estimate:?}");
        assert!(estimate.is_interval());
    }

    #[test]
    fn the_larger_spread_is_named_only_where_it_is_clear() {
        let run =
            |level: f64, width: f64| (0..20).map(|i| level + width * (f64::from(i * 7 % 20) / 19.0 - 0.5)).collect();
        let larger = |levels: &[f64], width| {
            let runs: Vec<Vec<f64>> = levels.iter().map(|level| run(*level, width)).collect();
            of(&runs.iter().map(Vec::as_slice).collect::<Vec<_>>()).spread.unwrap().larger
        };
        assert_eq!(larger(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.1), Larger::Between);
        assert_eq!(larger(&[1.00, 1.01, 1.0, 0.99, 1.0], 1.0), Larger::Within);
        assert_eq!(larger(&[1.0, 1.3, 0.8], 1.0), Larger::Unclear);
        assert_eq!(larger(&[1.0, 1.0], 0.0), Larger::Unclear);
    }

    #[test]
    fn the_draws_of_one_row_leave_as_much_outside_as_its_interval() {
        let row = [1.0, 2.0, 4.0, 1.5, 2.5];
        let (centre, half_width) = t_interval(&row, 0.95);
        let share = |edge: f64| {
            let above = RunDraws::default().distribution(&[&row], |drawn| f64::from(u8::from(drawn[0] > edge)));
            mean(&above)
        };
        assert!((share(centre + half_width) - 0.025).abs() < 0.01, "{}", share(centre + half_width));
        assert!((share(centre) - 0.5).abs() < 0.03);
    }

    #[test]
    fn what_moves_two_rows_together_cancels() {
        let (a, b) = ([1.0, 5.0, 3.0, 9.0], [1.1, 5.1, 3.1, 9.1]);
        let draws = RunDraws::default().distribution(&[&a, &b], |drawn| drawn[1] - drawn[0]);
        assert!(draws.iter().all(|difference| (difference - 0.1).abs() < 1e-9));
    }
}
