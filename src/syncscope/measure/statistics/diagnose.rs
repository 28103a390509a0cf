//! Diagnostics of a sample set: shown beside the estimate, never a reason to drop a sample.
//!
//! # Method
//! Each test has a level. An effect can be significant and still too small to matter, so some tests also have a least
//! size: 5 % of the median, the threshold from which a comparison of runs calls a change relevant. Samples of several runs
//! are tested together; a trend is one within the runs, whose scores and variances are added.
//!
//! | diagnosis | condition |
//! |---|---|
//! | trend | Kendall's rank correlation of the samples with their order has \|z\| > 2.81 (1 in 200 without a trend; H. B. Mann, Econometrica 13, 1945; variance for ties as in M. G. Kendall, *Rank Correlation Methods*, 4th ed., 1975), and Sen's slope (P. K. Sen, J. Am. Stat. Assoc. 63, 1968) over all samples comes to 5 % of the median |
//! | two levels | Hartigan's dip is above the point that 1 in 20 sets of a uniform distribution reach (of all shapes with one mode the hardest to tell from two; bell shapes reach it far more rarely) and the medians on the two sides of the split with the least squares (W. D. Fisher, J. Am. Stat. Assoc. 53, 1958) that leaves a tenth of the samples, and two, on each side are 5 % apart: a few far samples would be split off, and the dip finds no mode that is so rare |
//! | outliers | more than 15 % of the samples, and at least two, lie further than three quartile distances (of fewer than 20 samples: five) from the quartiles: *far out* in J. W. Tukey, *Exploratory Data Analysis*, 1977 |
//! | few values | at most a third as many values as samples, whose least step is 1 % of the median or more; or one value |
//!
//! `tests/statistics.rs` measures false diagnoses, of samples from normal, lognormal and Student's t distributions (3
//! degrees of freedom, n from 10 to 100): each in at most 2 % of 2,000 trials.
//!
//! # What it does not cover
//! Fewer than ten samples are not tested. At n = 15 two modes are found where each has about half of the samples and they
//! are far apart; a rare mode looks like a tail. The trend compares every pair, so larger sets are thinned evenly to at
//! most 500 samples. A periodic oscillation is no trend.

use std::fmt;

use super::dip::dip;
use crate::measure::clock::Clock;
use crate::measure::estimate::quantile;
use crate::units::{Scale, Unit};

/// The share of the median from which a trend, or the distance of two modes, matters.
const MATTERS: f64 = 0.05;

/// The fewest samples that are tested.
const FEWEST: usize = 10;

/// A time is clear of its clock's floor from this many times the floor.
const CLEAR_OF_FLOOR: f64 = 10.0;

/// A finding about a sample set of times. Displays its cause and the remedy.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Diagnosis {
    /// The samples rise or fall in the order in which they were taken.
    Trend {
        /// Kendall's rank correlation with the order, tau-b: from −1 to 1.
        correlation: f64,
        /// The change from the first sample to the last, as a share of the median; infinite for a median of 0.
        change: f64,
    },
    /// The samples have two levels.
    TwoLevels {
        /// The median of the lower level, in seconds.
        low: f64,
        /// The median of the upper level, in seconds.
        high: f64,
        /// The share of the samples in the upper level.
        share: f64,
    },
    /// Many samples are extreme.
    Outliers {
        /// The number of extreme samples.
        far: usize,
        /// The number of samples.
        n: usize,
    },
    /// The samples take few values: the clock's step is coarse.
    FewValues {
        /// The number of different values.
        values: usize,
        /// The number of samples.
        n: usize,
        /// The least step between two values, in seconds; 0 where there is one value.
        step: f64,
    },
    /// The time is near the least that its clock can show.
    NearFloor {
        /// The clock that took the samples.
        clock: Clock,
        /// Their median, in seconds.
        median: f64,
        /// What the clock shows for no work, in seconds.
        floor: f64,
    },
}

impl Diagnosis {
    /// The finding in a word or two.
    pub fn name(&self) -> &'static str {
        self.words()[0]
    }

    /// What was found, with its figures.
    pub fn finding(&self) -> String {
        let time = |seconds: f64| Unit::Seconds.format(seconds, 3);
        match *self {
            Diagnosis::Trend { correlation, change } => {
                let direction = if correlation > 0.0 { "rise" } else { "fall" };
                let by = change.is_finite().then(|| format!(" by {} of the median", percent(change.abs())));
                format!("the samples {direction}{} from the first to the last", by.unwrap_or_default())
            }
            Diagnosis::TwoLevels { low, high, share } => {
                let (low, high, share) = (time(low), time(high), percent(share));
                format!("two levels, around {low} and {high} ({share} of the samples in the upper)")
            }
            Diagnosis::Outliers { far, n } => format!("{far} of {n} samples are extreme"),
            Diagnosis::FewValues { values: 1, n, .. } => format!("all {n} samples are equal"),
            Diagnosis::FewValues { values, n, step } => {
                format!("{values} values in {n} samples, {} apart or more", time(step))
            }
            Diagnosis::NearFloor { clock, median, floor } => {
                let of = match clock {
                    Clock::DeviceEvents | Clock::DeviceBatch => "two events with nothing in between",
                    Clock::Host | Clock::DeviceRecords | Clock::Observed => "the host's clock by itself",
                };
                format!("{} is less than {CLEAR_OF_FLOOR} times the {} of {of}", time(median), time(floor))
            }
        }
    }

    /// The possible cause, and what to do.
    pub fn remedy(&self) -> &'static str {
        self.words()[1]
    }

    /// Its name and its remedy.
    fn words(&self) -> [&'static str; 2] {
        match self {
            Diagnosis::Trend { .. } => [
                "trend",
                "the clock rate or the temperature was still changing. Add `warmup` rounds, and compare the telemetry",
            ],
            Diagnosis::TwoLevels { .. } => [
                "two levels",
                "a clock rate, a code path or the load of the machine changed during sampling. The median describes one \
                 level only. Look at the samples; lock the clock rates or take more samples",
            ],
            Diagnosis::Outliers { .. } => [
                "outliers",
                "something else ran on this machine. The median tolerates that, a total or a mean does not. Repeat the \
                 run on an idle machine",
            ],
            Diagnosis::FewValues { .. } => [
                "few values",
                "the clock's step is too coarse for the scatter to be seen. Put more work into one sample",
            ],
            Diagnosis::NearFloor { .. } => {
                ["near the clock's floor", "much of it may be measurement overhead. Time a loop and divide"]
            }
        }
    }
}

impl fmt::Display for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.finding(), self.remedy())
    }
}

fn percent(share: f64) -> String {
    Scale::PERCENT.significant(share, 2)
}

/// The findings about the samples of one or more runs, times in seconds in the order in which they were taken. None for
/// fewer than ten samples, or where one is not finite.
///
/// A trend is one within the runs; modes may be those of samples or of whole runs.
///
/// ```
/// use syncscope::measure::diagnose;
///
/// let rising: Vec<f64> = (0..40).map(|i| 1.0 + 0.1 * f64::from(i)).collect();
/// assert_eq!(diagnose(&[&rising])[0].name(), "trend");
/// ```
pub fn diagnose(runs: &[&[f64]]) -> Vec<Diagnosis> {
    let mut sorted = runs.concat();
    if sorted.len() < FEWEST || sorted.iter().any(|sample| !sample.is_finite()) {
        return Vec::new();
    }
    sorted.sort_unstable_by(f64::total_cmp);
    let few = few_values(&sorted);
    // The dip counts equal samples as modes.
    let modes = if distinct(&sorted) * 2 > sorted.len() { two_modes(&sorted) } else { None };
    [trend(runs, quantile(&sorted, 0.5)), modes, outliers(&sorted), few].into_iter().flatten().collect()
}

/// Whether a time with this median is less than ten times what its clock shows for no work.
///
/// The clock is read once for each sample: this does not apply to samples that are divided by the iterations of a loop.
pub fn near_floor(clock: Clock, median: f64, floor: f64) -> Option<Diagnosis> {
    let near = floor > 0.0 && median < CLEAR_OF_FLOOR * floor;
    near.then_some(Diagnosis::NearFloor { clock, median, floor })
}

fn trend(runs: &[&[f64]], median: f64) -> Option<Diagnosis> {
    /// The two-sided point of the normal distribution for 1 in 200.
    const Z: f64 = 2.807;
    const MAX: usize = 500;
    let thinned =
        |samples: &&[f64]| -> Vec<f64> { samples.iter().copied().step_by(samples.len().div_ceil(MAX)).collect() };
    let runs: Vec<Vec<f64>> = runs.iter().filter(|samples| samples.len() > 1).map(thinned).collect();
    let pairs = || {
        let of =
            |x: &'_ Vec<f64>| (0..x.len()).flat_map(move |i| (i + 1..x.len()).map(move |j| (i, j))).collect::<Vec<_>>();
        runs.iter().flat_map(move |x| of(x).into_iter().map(move |(i, j)| (x[j] - x[i], (j - i) as f64)))
    };
    let score: f64 = pairs().map(|(difference, _)| if difference == 0.0 { 0.0 } else { difference.signum() }).sum();
    let weigh = |t: f64| t * (t - 1.0) * (2.0 * t + 5.0);
    let pairs_of = |t: f64| t * (t - 1.0) / 2.0;
    let (mut variance, mut all, mut untied) = (0.0, 0.0, 0.0);
    for x in &runs {
        let (n, ties) = (x.len() as f64, tied(x));
        variance += (weigh(n) - ties.iter().map(|t| weigh(*t)).sum::<f64>()) / 18.0;
        all += pairs_of(n);
        untied += pairs_of(n) - ties.iter().map(|t| pairs_of(*t)).sum::<f64>();
    }
    // Continuity correction: the score is an integer.
    let z = (score.abs() - 1.0).max(0.0) / variance.sqrt();
    let significant = z > Z;
    if !significant {
        return None;
    }
    let mut slopes: Vec<f64> = pairs().map(|(difference, apart)| difference / apart).collect();
    slopes.sort_unstable_by(f64::total_cmp);
    let longest = runs.iter().map(Vec::len).max().unwrap_or(1);
    let change = quantile(&slopes, 0.5) * (longest as f64 - 1.0) / median.abs();
    let matters = change.abs() >= MATTERS;
    matters.then(|| Diagnosis::Trend { correlation: score / (all * untied).sqrt(), change })
}

/// The number of samples of each value that occurs more than once.
fn tied(x: &[f64]) -> Vec<f64> {
    let mut sorted = x.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted.chunk_by(|a, b| a == b).map(|equal| equal.len() as f64).filter(|count| *count > 1.0).collect()
}

fn two_modes(sorted: &[f64]) -> Option<Diagnosis> {
    let n = sorted.len();
    if dip(sorted) <= critical_dip(n) {
        return None;
    }
    let split = split(sorted);
    let (low, high) = (quantile(&sorted[..split], 0.5), quantile(&sorted[split..], 0.5));
    let apart = (high - low) / quantile(sorted, 0.5).abs();
    let matters = apart >= MATTERS;
    matters.then(|| Diagnosis::TwoLevels { low, high, share: (n - split) as f64 / n as f64 })
}

/// The dip that one in twenty sets of `n` samples of a uniform distribution exceeds, at least ten samples.
///
/// `√n · dip` changes little with n; its 95 % points are from 100,000 to 400,000 sets each, with a line in between. At
/// n = 10 that is a dip of 0.140, at n = 50 of 0.070.
fn critical_dip(n: usize) -> f64 {
    const POINTS: [(f64, f64); 8] = [
        (10.0, 0.442),
        (15.0, 0.460),
        (20.0, 0.470),
        (30.0, 0.483),
        (50.0, 0.496),
        (100.0, 0.511),
        (200.0, 0.522),
        (1000.0, 0.534),
    ];
    let n = n as f64;
    let above = POINTS.iter().position(|(size, _)| *size >= n);
    let scaled = match above {
        None => POINTS[POINTS.len() - 1].1,
        Some(0) => POINTS[0].1,
        Some(place) => {
            let ((n0, c0), (n1, c1)) = (POINTS[place - 1], POINTS[place]);
            c0 + (c1 - c0) * (n - n0) / (n1 - n0)
        }
    };
    scaled / n.sqrt()
}

/// Where two classes of ascending values, of a tenth of them at least, have the least sum of squares within: the number of values
/// in the lower.
fn split(sorted: &[f64]) -> usize {
    let n = sorted.len() as f64;
    let total: f64 = sorted.iter().sum();
    let fewest = sorted.len().div_ceil(10).max(2);
    let mut lower = 0.0;
    let mut best = (f64::NEG_INFINITY, fewest);
    for (place, value) in sorted[..sorted.len() - fewest].iter().enumerate() {
        lower += value;
        let count = (place + 1) as f64;
        let between = (lower / count - (total - lower) / (n - count)).powi(2) * count * (n - count);
        if place + 1 >= fewest && between > best.0 {
            best = (between, place + 1);
        }
    }
    best.1
}

fn outliers(sorted: &[f64]) -> Option<Diagnosis> {
    let n = sorted.len();
    // The quartiles of fewer samples are too uncertain for less: heavy tails would pass for outliers.
    let far = if n < 20 { 5.0 } else { 3.0 };
    let (lower, upper) = (quantile(sorted, 0.25), quantile(sorted, 0.75));
    let reach = far * (upper - lower);
    let far = sorted.iter().filter(|value| **value < lower - reach || **value > upper + reach).count();
    (far >= 2 && far * 20 > n * 3).then_some(Diagnosis::Outliers { far, n })
}

fn distinct(sorted: &[f64]) -> usize {
    sorted.chunk_by(|a, b| a == b).count()
}

fn few_values(sorted: &[f64]) -> Option<Diagnosis> {
    const COARSE: f64 = 0.01;
    let (values, n) = (distinct(sorted), sorted.len());
    let steps = sorted.windows(2).map(|pair| pair[1] - pair[0]).filter(|step| *step > 0.0);
    let step = steps.fold(f64::INFINITY, f64::min);
    if values == 1 {
        return Some(Diagnosis::FewValues { values, n, step: 0.0 });
    }
    let coarse = step >= COARSE * quantile(sorted, 0.5).abs();
    (values * 3 <= n && coarse).then_some(Diagnosis::FewValues { values, n, step })
}

#[cfg(test)]
mod tests {
    use rand::rngs::Xoshiro256PlusPlus;
    use rand::{RngExt, SeedableRng};

    use super::*;

    fn noise(seed: u64, n: usize) -> Vec<f64> {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        (0..n).map(|_| rng.random::<f64>()).collect()
    }

    fn names(samples: &[f64]) -> Vec<&'static str> {
        diagnose(&[samples]).iter().map(Diagnosis::name).collect()
    }

    #[test]
    fn samples_that_rise_by_a_fifth_have_a_trend_and_the_same_ones_shuffled_have_none() {
        let rising: Vec<f64> =
            noise(1, 30).iter().zip(0..).map(|(e, i)| 1.0 + 0.02 * e + 0.2 / 29.0 * f64::from(i)).collect();
        let found = diagnose(&[&rising]);
        assert!(
            matches!(found[..], [Diagnosis::Trend { correlation, change }] if correlation > 0.8 && (change - 0.18).abs() < 0.04),
            "{found:?}"
        );
        let shuffled: Vec<f64> = (0..30).map(|i| rising[i * 7 % 30]).collect();
        assert!(names(&shuffled).is_empty());
        let slight: Vec<f64> = rising.iter().map(|x| x + 100.0).collect();
        assert!(names(&slight).is_empty(), "a trend of less than a percent does not matter");
    }

    #[test]
    fn a_clock_of_two_speeds_has_two_modes_and_their_places() {
        let two: Vec<f64> =
            noise(2, 30).iter().zip(0..).map(|(e, i)| if i * 7 % 30 < 12 { 1.3 } else { 1.0 } + 0.03 * e).collect();
        let found = diagnose(&[&two]);
        assert!(
            matches!(found[..], [Diagnosis::TwoLevels { low, high, share }] if (low - 1.015).abs() < 0.02 && (high - 1.315).abs() < 0.02 && share == 0.4),
            "{found:?}"
        );
    }

    #[test]
    fn a_far_sample_is_no_mode_beside_two() {
        let with = |upper: f64| {
            let two = noise(2, 30).into_iter().zip(0..);
            let mut two: Vec<f64> =
                two.map(|(e, i)| if i * 7 % 30 < 12 { upper } else { 1.0 } + 0.1 * (upper - 1.0) * e).collect();
            two[4] = 9.0;
            diagnose(&[&two])
        };
        let found = with(1.3);
        assert!(matches!(found[..], [Diagnosis::TwoLevels { high, .. }] if (high - 1.315).abs() < 0.02), "{found:?}");
        assert!(with(1.03).is_empty(), "two levels 3 % apart do not matter, whatever lies far from both");
    }

    #[test]
    fn a_fifth_of_the_samples_being_extreme_is_reported_and_one_is_not() {
        let mut samples: Vec<f64> = noise(3, 30).iter().map(|e| 1.0 + 0.02 * e).collect();
        samples[7] = 2.0;
        assert!(names(&samples).is_empty());
        for (place, value) in [(2, 2.5), (11, 3.5), (18, 4.5), (22, 1.7), (27, 6.0)] {
            samples[place] = value;
        }
        assert_eq!(names(&samples), ["outliers"]);
        let mut ten: Vec<f64> = noise(8, 10).iter().map(|e| 1.0 + 0.02 * e).collect();
        ten[3] = 1.5;
        assert!(names(&ten).is_empty(), "one of ten may be chance");
        ten[7] = 2.0;
        assert_eq!(names(&ten), ["outliers"]);
    }

    #[test]
    fn a_coarse_clock_is_reported_and_fine_steps_are_not() {
        let steps: Vec<f64> = noise(4, 30).iter().map(|e| 1e-6 + 32e-9 * (4.0 * e).floor()).collect();
        assert_eq!(names(&steps), ["few values"]);
        let beside_much: Vec<f64> = steps.iter().map(|x| x + 1.0).collect();
        assert!(names(&beside_much).is_empty());
        assert_eq!(diagnose(&[&[5e-6; 12]]), [Diagnosis::FewValues { values: 1, n: 12, step: 0.0 }]);
    }

    #[test]
    fn a_time_within_ten_times_of_the_floor_is_near_it() {
        assert!(near_floor(Clock::Host, 150e-9, 20e-9).is_some());
        assert_eq!(near_floor(Clock::Host, 250e-9, 20e-9), None);
        assert_eq!(near_floor(Clock::DeviceEvents, 0.0, 0.0), None);
    }

    #[test]
    fn of_several_runs_a_trend_is_one_within_them() {
        let run = |level: f64, slope: f64| (0..10).map(|i| level + slope * f64::from(i)).collect::<Vec<f64>>();
        let [a, b, c] = [run(1.0, 0.01), run(1.2, 0.01), run(0.9, 0.01)];
        let is_trend =
            |found: &Diagnosis| matches!(found, Diagnosis::Trend { change, .. } if (change - 0.09).abs() < 0.02);
        assert!(diagnose(&[&a, &b, &c]).iter().any(is_trend));
        // From run to run they rise, in a run they do not.
        let level = |level: f64, seed| noise(seed, 10).iter().map(|e| level + 0.01 * e).collect::<Vec<f64>>();
        let [a, b, c] = [level(1.0, 5), level(1.2, 6), level(1.4, 7)];
        assert!(!diagnose(&[&a, &b, &c]).iter().any(|found| matches!(found, Diagnosis::Trend { .. })));
    }

    #[test]
    fn few_samples_and_no_numbers_are_not_tested() {
        assert!(names(&[1.0; 9]).is_empty());
        assert!(names(&[f64::NAN; 20]).is_empty());
        assert!(names(&[1e308, -1e308].repeat(10)).iter().all(|name| *name != "trend"));
    }

    #[test]
    fn every_diagnosis_gives_a_cause_and_a_remedy() {
        let all = [
            Diagnosis::Trend { correlation: 0.5, change: -0.123 },
            Diagnosis::TwoLevels { low: 1e-6, high: 2e-6, share: 0.25 },
            Diagnosis::Outliers { far: 5, n: 20 },
            Diagnosis::FewValues { values: 3, n: 30, step: 32e-9 },
            Diagnosis::NearFloor { clock: Clock::DeviceEvents, median: 5e-6, floor: 2e-6 },
        ];
        for diagnosis in all {
            let text = diagnosis.to_string();
            assert!(text.contains(':') && text.contains(". "), "{text}");
        }
    }
}
