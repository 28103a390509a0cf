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
//! # What it does not cover
//! Values of machines that are alike are taken to scatter normally on a logarithmic scale. Where they have longer tails,
//! there are more false alarms; two kinds of machines under one name are no outliers of either. Fewer than fifteen machines
//! are not judged. At most one machine in ten is named.

use statrs::distribution::{ContinuousCDF, Normal};

use super::runs::t_quantile;

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

/// The outliers among values of one row, where `rows` are tested in all. `None` with too few values, or with one that is not
/// greater than 0.
pub fn outliers(values: &[f64], rows: usize) -> Option<Outliers> {
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
    let found = taken.iter().map(|(place, value)| Outlier { place: *place, ratio: (value - mean).exp() }).collect();
    let smallest = (deviation * (limit(rest.len(), level) + POWER)).exp() - 1.0;
    Some(Outliers { found, centre: mean.exp(), spread: deviation, smallest })
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
        let found = outliers(&rosner.map(f64::exp), 1).unwrap().found;
        let mut places: Vec<usize> = found.iter().map(|outlier| outlier.place).collect();
        places.sort_unstable();
        assert_eq!(places, [51, 52, 53]);
    }

    #[test]
    fn equal_values_and_few_values_have_none() {
        assert!(outliers(&[2.0; 30], 10).unwrap().found.is_empty());
        assert!(outliers(&[2.0; 14], 10).is_none());
        assert!(outliers(&[0.0; 30], 10).is_none());
    }
}
