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
//! # What it does not cover
//! Runs are taken to be exchangeable. A drift over the runs, or a state of the machine that lasts longer than all of them,
//! is seen by none; another day or another board is another population. With three runs the factor of the interval is
//! 4.3 (with five 2.8), and a mode of the machine that one run in five meets is missed by three runs in half of all cases.
//!
//! One run has no such interval. Nor have runs that all came to the same value: that is a clock whose step is longer than
//! the scatter, and no proof that there is none.

use statrs::distribution::{ContinuousCDF, FisherSnedecor, StudentsT};

use crate::measure::{Estimate, Larger, Spread, median, quantile};

/// The level of the interval of an estimate.
pub const LEVEL: f64 = 0.95;

/// How much of the information on a normal scale is in the distance of the quartiles (D. C. Hoaglin, F. Mosteller, J. W.
/// Tukey, *Understanding Robust and Exploratory Data Analysis*, 1983, 12).
const QUARTILE_EFFICIENCY: f64 = 0.37;

/// The distance of the quartiles of a normal distribution in standard deviations.
const QUARTILE_DISTANCE: f64 = 1.349;

/// The expected median of a run, from the samples of several; `None` where there are not two runs with samples each.
///
/// ```
/// use syncscope_results::statistics::estimate_of_runs;
///
/// let estimate = estimate_of_runs(&[&[1.0, 2.0, 3.0], &[3.0, 4.0, 5.0]]).unwrap();
/// assert_eq!((estimate.median, estimate.runs), (3.0, 2));
/// assert!(estimate_of_runs(&[&[1.0]]).is_none(), "one run says nothing of another");
/// ```
pub fn estimate_of_runs(runs: &[&[f64]]) -> Option<Estimate> {
    if runs.len() < 2 || runs.iter().any(|samples| samples.is_empty()) {
        return None;
    }
    let mut sorted = runs.concat();
    sorted.sort_by(f64::total_cmp);
    let middles: Vec<f64> = runs.iter().map(|samples| median(samples.to_vec())).collect();
    let half_width = t_half_width(&middles, LEVEL);
    let (centre, reach) = (mean(&middles), half_width.unwrap_or(0.0));
    Some(Estimate {
        median: centre,
        low: centre - reach,
        high: centre + reach,
        lower_quartile: quantile(&sorted, 0.25),
        upper_quartile: quantile(&sorted, 0.75),
        n: sorted.len(),
        runs: runs.len(),
        coverage: if half_width.is_some() { LEVEL } else { 0.0 },
        spread: spread_of(runs, &middles),
    })
}

/// The two spreads are compared by an F test of their variances (5 %, two-sided); the one within runs has the degrees
/// of freedom that its quartiles are worth. `None` where no run has two samples: there is none within.
fn spread_of(runs: &[&[f64]], middles: &[f64]) -> Option<Spread> {
    /// A quotient of variances whose share is 1, and whose multiples are numbers.
    const MOST: f64 = 1e100;
    let several = runs.iter().filter(|samples| samples.len() > 1);
    let variances: Vec<f64> = several.map(|samples| (quartile_distance(samples) / QUARTILE_DISTANCE).powi(2)).collect();
    if variances.is_empty() {
        return None;
    }
    let (count, within) = (runs.len() as f64, mean(&variances));
    let between = standard_error(middles).map_or(0.0, |_| variance(middles));
    let freedom = runs.iter().map(|samples| samples.len() as f64 - 1.0).sum::<f64>() * QUARTILE_EFFICIENCY;
    let larger = match FisherSnedecor::new(count - 1.0, freedom) {
        _ if within == 0.0 && between == 0.0 => Larger::Unclear,
        Ok(_) if within == 0.0 => Larger::Between,
        // Of samples that are no numbers, or too large for their squares.
        Ok(_) if (between / within).is_nan() => Larger::Unclear,
        Ok(distribution) => match distribution.cdf((between / within).min(MOST)) {
            share if share > 0.975 => Larger::Between,
            share if share < 0.025 => Larger::Within,
            _ => Larger::Unclear,
        },
        Err(_) => Larger::Unclear,
    };
    Some(Spread { within: within.sqrt(), between: between.sqrt(), larger })
}

/// The standard error of the mean of what each run came to. `None` where the values show no scatter: of one run, and of
/// several that came to the same, but for rounding.
pub(super) fn standard_error(values: &[f64]) -> Option<f64> {
    const ROUNDING: f64 = 1e-12;
    let first = *values.first()?;
    let is_same = |value: &f64| (value - first).abs() <= ROUNDING * first.abs();
    (!values.iter().all(is_same)).then(|| (variance(values) / values.len() as f64).sqrt())
}

/// Half the width of the t interval of the mean of what each run came to, where the values show their scatter.
pub(super) fn t_half_width(values: &[f64], level: f64) -> Option<f64> {
    Some(t_quantile(values.len() as f64 - 1.0, level) * standard_error(values)?)
}

/// How many standard errors the interval of `level` reaches to either side.
pub(super) fn t_quantile(freedom: f64, level: f64) -> f64 {
    StudentsT::new(0.0, 1.0, freedom).map_or(f64::INFINITY, |t| t.inverse_cdf(0.5 + level / 2.0))
}

/// The mean of values.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The variance of values, of which there are at least two, from their mean.
pub(super) fn variance(values: &[f64]) -> f64 {
    let centre = mean(values);
    values.iter().map(|value| (value - centre).powi(2)).sum::<f64>() / (values.len() as f64 - 1.0)
}

fn quartile_distance(samples: &[f64]) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    quantile(&sorted, 0.75) - quantile(&sorted, 0.25)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(runs: &[&[f64]]) -> Estimate {
        estimate_of_runs(runs).unwrap()
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
    fn runs_of_one_sample_each_tell_nothing_of_a_spread_within() {
        assert_eq!(of(&[&[1.0], &[2.0], &[3.0]]).spread, None);
        let within = of(&[&[1.0], &[2.0, 4.0, 6.0], &[3.0]]).spread.unwrap().within;
        assert!((within - 2.0 / QUARTILE_DISTANCE).abs() < 1e-12, "{within}");
    }

    #[test]
    fn runs_that_came_to_the_same_value_have_no_interval() {
        let estimate = of(&[&[1e-5; 4], &[1e-5; 4], &[1e-5; 4]]);
        assert!((estimate.median - 1e-5).abs() < 1e-18 && !estimate.is_interval() && !estimate.excludes_zero());
        assert_eq!(standard_error(&[0.3, 0.1 + 0.2, 0.3]), None, "they differ by rounding alone");
        assert_eq!(standard_error(&[2.0]), None);
        assert_eq!(standard_error(&[1.0, 3.0]), Some(1.0));
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
}
