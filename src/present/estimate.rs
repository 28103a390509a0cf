//! A median with its interval, and how the two are written. `syncscope::measure` computes them from samples, and says by
//! which method.

use std::fmt;

use crate::units::Unit;

/// The least coverage that counts as 95 %.
pub const LEAST_COVERAGE: f64 = 0.945;

/// How far values scatter on the two levels, as standard deviations in the unit of the samples.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Spread {
    /// Of the samples of a run about its median, from the distance of their quartiles.
    pub within: f64,
    /// Of the medians of the runs.
    pub between: f64,
    /// Which of the two is larger.
    pub larger: Larger,
}

/// Which of two spreads is larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
pub enum Larger {
    /// That within a run.
    Within,
    /// That between runs.
    Between,
    /// There are too few runs to tell.
    Unclear,
}

/// The median of samples, with an interval and the quartiles, in the unit of the samples.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Estimate {
    /// The median: of an even number of samples, the mean of the two in the middle.
    pub median: f64,
    /// The lower end of the interval of the median: always one of the samples.
    pub low: f64,
    /// The upper end of the interval of the median: always one of the samples.
    pub high: f64,
    /// A quarter of the samples is below it (linear between samples, as numpy's default).
    pub lower_quartile: f64,
    /// A quarter of the samples is above it (linear between samples, as numpy's default).
    pub upper_quartile: f64,
    /// The number of samples.
    pub n: usize,
    /// The number of runs that they are of. Of several the median is the expected median of a run, and the interval holds
    /// between runs; of one it is that run's alone.
    pub runs: usize,
    /// How far the samples scatter within a run and the runs among each other, where there are several.
    pub spread: Option<Spread>,
    /// The probability that an interval of these ranks contains the true median, for a distribution without ties: near
    /// 0.95 from six samples on. Below twelve samples the choice of the side can add up to 0.03.
    ///
    /// Fewer samples give no 95 % interval. `low` and `high` are then the least and the greatest sample, and this is the
    /// coverage of that range: 0.9375 for five samples, 0.5 for two, 0 for one. Of several runs that all came to the same
    /// value it is 0, since they show no scatter.
    pub coverage: f64,
}

impl Estimate {
    /// Whether `low` and `high` are a 95 % interval, which needs six samples.
    pub fn is_interval(&self) -> bool {
        self.coverage >= LEAST_COVERAGE
    }

    /// Whether zero lies outside of a 95 % interval.
    pub fn excludes_zero(&self) -> bool {
        self.is_interval() && (self.low > 0.0 || self.high < 0.0)
    }

    /// Half the width of the interval as a share of the median; infinite for a median of 0 with an interval around it.
    pub fn relative_error(&self) -> f64 {
        let half_width = (self.high - self.low) / 2.0;
        if half_width == 0.0 { 0.0 } else { half_width / self.median.abs() }
    }

    /// The estimate multiplied by `factor`, for an extrapolation or another unit.
    #[must_use]
    pub fn scaled(&self, factor: f64) -> Self {
        let ordered = |a: f64, b: f64| if factor < 0.0 { (b * factor, a * factor) } else { (a * factor, b * factor) };
        let (low, high) = ordered(self.low, self.high);
        let (lower_quartile, upper_quartile) = ordered(self.lower_quartile, self.upper_quartile);
        let wider = |spread: Spread| {
            let (within, between) = (spread.within * factor.abs(), spread.between * factor.abs());
            Spread { within, between, ..spread }
        };
        let spread = self.spread.map(wider);
        Self { median: self.median * factor, low, high, lower_quartile, upper_quartile, spread, ..*self }
    }

    /// The estimate in `unit`, as in `14.40 µs (14.10 … 14.90, n = 50)`: one prefix for all three, and as many
    /// decimals as the interval supports.
    ///
    /// Where there are too few samples for an interval, the brackets contain their range, and the text says so.
    pub fn format(&self, unit: Unit) -> String {
        let (scale, decimals) = unit.scale_of(self.median, (self.low, self.high));
        let kind = if self.is_interval() { "" } else { ", range" };
        let [low, high] = [self.low, self.high].map(|end| scale.number(end, decimals));
        format!("{} ({low} … {high}, n = {}{kind})", scale.fixed(self.median, decimals), self.n)
    }

    /// The interval alone, as in `−0.20 … 0.30 µs`.
    pub fn format_interval(&self, unit: Unit) -> String {
        let (scale, decimals) = unit.scale_of(self.median, (self.low, self.high));
        scale.interval((self.low, self.high), decimals)
    }
}

/// Writes the estimate in seconds.
impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.format(Unit::Seconds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_shows_one_unit_and_enough_decimals_for_its_interval() {
        let shown = |median, low, high| Estimate {
            runs: 1,
            spread: None,
            median,
            low,
            high,
            lower_quartile: low,
            upper_quartile: high,
            n: 50,
            coverage: 0.9511,
        };
        assert_eq!(shown(14.4e-6, 14.1e-6, 14.9e-6).to_string(), "14.40 µs (14.10 … 14.90, n = 50)");
        assert_eq!(shown(14.4012e-6, 14.4001e-6, 14.4023e-6).to_string(), "14.401 µs (14.400 … 14.402, n = 50)");
        assert_eq!(shown(-1e-9, -1.2e-6, 1.3e-6).to_string(), "0.00 µs (−1.20 … 1.30, n = 50)");
        assert_eq!(shown(0.0, 0.0, 0.0).to_string(), "0 s (0 … 0, n = 50)");
        assert_eq!(shown(0.5, 0.4, 0.6).format(Unit::Ratio), "0.500 (0.400 … 0.600, n = 50)");
        assert_eq!(shown(55.2e9, 54e9, 56e9).format_interval(Unit::BytesPerSecond), "54.0 … 56.0 GB/s");
        let few = Estimate { n: 2, coverage: 0.5, ..shown(1.5, 1.0, 2.0) };
        assert_eq!(few.to_string(), "1.50 s (1.00 … 2.00, n = 2, range)");
    }
}
