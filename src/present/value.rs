//! A value and how it is written.
//!
//! A measured value has as many decimals as its interval supports
//! ([`Scale::decimals_of_interval`]). A published value keeps the digits that its document printed. A difference whose
//! interval contains 0 is not written as a number, only as its interval: neither its size nor its sign is known. Nor is one of
//! too few samples for an interval.

use crate::Estimate;
use crate::units::{Scale, Unit};

/// As many samples as an interval needs, or a difference of them to be told from 0.
const LEAST_SAMPLES: usize = 6;

/// A value with its uncertainty.
///
/// ```
/// use syncscope_present::{Precision, Value};
/// use syncscope_present::units::Unit;
///
/// assert_eq!(Value::plain(1.5e-6, Unit::Seconds, Precision::Digits(3)).formatted().main, "1.50 µs");
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Value {
    /// The value, in `unit`.
    pub value: f64,
    /// Its unit.
    pub unit: Unit,
    /// The number of digits with which it is written.
    pub precision: Precision,
    /// The ends of its 95 % interval, in `unit`, where it has one.
    pub interval: Option<(f64, f64)>,
    /// The samples behind it, where there are some.
    pub samples: Option<Sampled>,
    /// Whether it is a difference of two measured values.
    pub difference: bool,
    /// The terms of which it is the sum, in `unit`, where its source gives them.
    pub terms: Vec<f64>,
    /// The value as a share of another.
    pub share: Option<Share>,
    /// The clock that took it, or its formula: `device events`.
    pub source: Option<String>,
    /// Notes beside it: another size, an extrapolation.
    pub notes: Vec<String>,
}

/// The samples behind a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampled {
    /// How many there are.
    pub n: usize,
    /// Of how many runs.
    pub runs: usize,
    /// Whether each of the runs is known to have as many as the others.
    pub even: bool,
    /// Whether they are trials, and the value is the share of yes among all of them.
    pub trials: bool,
}

/// The number of digits with which a value is written.
///
/// ```
/// use syncscope_present::{Precision, Value};
/// use syncscope_present::units::Unit;
///
/// let value = Value::plain(2.3456e-6, Unit::Seconds, Precision::Digits(3));
/// assert_eq!(value.formatted().main, "2.35 µs");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// This many significant digits.
    Digits(usize),
    /// As many as its interval supports.
    #[default]
    Interval,
    /// No decimals: it is a count.
    Whole,
}

/// A value as a share of another.
#[derive(Clone, Debug, PartialEq)]
pub struct Share {
    /// The share; 1 is the whole.
    pub value: f64,
    /// The ends of its interval, where it has one.
    pub interval: Option<(f64, f64)>,
    /// The number of digits with which it is written.
    pub precision: Precision,
    /// The name of the whole: `async`.
    pub of: String,
}

/// A written value, in parts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Formatted {
    /// The value, or that it is not distinguishable from 0.
    pub main: String,
    /// Its interval, with the unit.
    pub interval: Option<String>,
    /// The number of samples, by runs where there are several.
    pub samples: Option<String>,
    /// Its share of another value.
    pub share: Option<String>,
    /// The notes beside it.
    pub notes: Vec<String>,
}

impl Value {
    /// A value alone: no interval, no samples.
    pub fn plain(value: f64, unit: Unit, precision: Precision) -> Self {
        Self { value, unit, precision, ..Self::default() }
    }

    /// What samples come to. Too few of them have a range and no interval; runs that came to the same value, neither.
    pub fn estimated(estimate: &Estimate, unit: Unit, precision: Precision) -> Self {
        let Estimate { low, high, n, runs, .. } = *estimate;
        let ends = (low, high);
        let mut value = Self {
            interval: estimate.is_interval().then_some(ends),
            samples: Some(Sampled { n, runs, even: false, trials: false }),
            ..Self::plain(estimate.median, unit, precision)
        };
        if !estimate.is_interval() && runs > 1 {
            value.notes.push(format!("no interval: all {runs} runs came to the same value"));
        } else if !estimate.is_interval() && n > 1 {
            let scale = value.scale();
            let decimals = precision.decimals(scale, estimate.median, Some(ends));
            value.notes.push(format!("range {}", scale.interval(ends, decimals)));
        }
        value
    }

    /// Whether it is a difference whose interval contains 0, or one of too few samples for an interval.
    pub fn is_indistinguishable_from_zero(&self) -> bool {
        self.difference
            && match self.interval {
                Some((low, high)) => low <= 0.0 && high >= 0.0,
                None => self.samples.is_some_and(|samples| samples.n < LEAST_SAMPLES),
            }
    }

    /// The symbol of the unit in which it is written; empty for a number without one.
    pub fn symbol(&self) -> &'static str {
        self.scale().symbol
    }

    /// The scale of the largest of the value and the ends of its interval, so that all three share it.
    fn scale(&self) -> Scale {
        self.unit.scale(largest(self.value, self.interval))
    }

    /// The value as it is written.
    pub fn formatted(&self) -> Formatted {
        let scale = self.scale();
        let decimals = self.precision.decimals(scale, self.value, self.interval);
        let unknown = self.is_indistinguishable_from_zero();
        let main = if unknown {
            "not distinguishable from 0".to_owned()
        } else if self.terms.is_empty() {
            scale.fixed(self.value, decimals)
        } else {
            let terms: Vec<String> = self.terms.iter().map(|term| scale.fixed(*term, decimals)).collect();
            format!("{} = {}", terms.join(" + "), scale.fixed(self.value, decimals))
        };
        Formatted {
            main,
            share: self.share.as_ref().and_then(|share| share.formatted(unknown)),
            interval: self.interval.map(|ends| scale.interval(ends, decimals)),
            samples: self.samples.map(Sampled::counted),
            notes: self.notes.clone(),
        }
    }
}

impl Sampled {
    fn counted(self) -> String {
        match self {
            Self { n, runs: 0 | 1, .. } => format!("n = {n}"),
            Self { n, runs, even: true, .. } => format!("n = {runs} × {}", n / runs),
            Self { n, runs, .. } => format!("n = {n} in {runs} runs"),
        }
    }
}

/// From how many times the whole on a share is a factor: nobody reads 203 % as twice as much.
const LARGE: f64 = 2.0;

impl Share {
    /// The share in percent, and a large one as a factor; as its interval alone where its value is not distinguishable from 0.
    fn formatted(&self, unknown: bool) -> Option<String> {
        let scale = if self.value.abs() < LARGE { Scale::PERCENT } else { Scale::TIMES };
        let decimals = self.precision.decimals(scale, self.value, self.interval);
        let text = match unknown {
            true => scale.interval(self.interval?, decimals),
            false => scale.fixed(self.value, decimals),
        };
        let of = if scale == Scale::TIMES { "" } else { "of " };
        Some(format!("{text} {of}{}", self.of))
    }
}

impl Formatted {
    /// Everything beside the main text, in reading order.
    pub fn details(&self) -> Vec<String> {
        let parts = [&self.interval, &self.samples, &self.share];
        parts.into_iter().flatten().chain(&self.notes).cloned().collect()
    }
}

impl Precision {
    /// The digits after the decimal point with which a value and its interval are written.
    fn decimals(self, scale: Scale, value: f64, interval: Option<(f64, f64)>) -> usize {
        let largest = largest(value, interval);
        match (self, interval) {
            (Precision::Whole, _) => 0,
            (Precision::Digits(digits), _) => scale.decimals(largest, digits),
            (Precision::Interval, interval) => scale.decimals_of_interval(largest, interval.unwrap_or((value, value))),
        }
    }
}

fn largest(value: f64, interval: Option<(f64, f64)>) -> f64 {
    interval.map_or(value.abs(), |(low, high)| value.abs().max(low.abs()).max(high.abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampled(n: usize, runs: usize) -> Sampled {
        Sampled { n, runs, even: false, trials: false }
    }

    fn measured(value: f64, low: f64, high: f64) -> Value {
        let plain = Value::plain(value, Unit::Seconds, Precision::Interval);
        Value { interval: Some((low, high)), samples: Some(sampled(50, 1)), ..plain }
    }

    #[test]
    fn the_interval_decides_the_decimals() {
        let formatted = measured(1.632_17e-3, 1.631_1e-3, 1.634_2e-3).formatted();
        assert_eq!(formatted.main, "1.6322 ms");
        assert_eq!(formatted.interval.as_deref(), Some("1.6311 … 1.6342 ms"));
        assert_eq!(measured(14.43e-6, 12.0e-6, 17.0e-6).formatted().main, "14.4 µs");
    }

    #[test]
    fn a_published_value_keeps_the_digits_of_its_document() {
        let published = |value, digits| Value::plain(value, Unit::Seconds, Precision::Digits(digits)).formatted().main;
        assert_eq!(published(25.0359e-3, 6), "25.0359 ms");
        assert_eq!(published(14.0e-6, 3), "14.0 µs");
        assert_eq!(published(-139.4e-6, 4), "−139.4 µs");
    }

    #[test]
    fn a_difference_whose_interval_contains_zero_is_not_a_number() {
        let share =
            Share { value: 0.001, interval: Some((-0.01, 0.02)), precision: Precision::Interval, of: "a".into() };
        let value = Value { difference: true, share: Some(share), ..measured(2e-6, -3e-6, 8e-6) };
        let formatted = value.formatted();
        assert_eq!(formatted.main, "not distinguishable from 0");
        assert_eq!(formatted.interval.as_deref(), Some("−3.00 … 8.00 µs"));
        assert_eq!(formatted.share.as_deref(), Some("−1.00 … 2.00 % of a"));
    }

    #[test]
    fn a_difference_of_too_few_samples_is_not_a_number() {
        let share = Share { value: -0.5, interval: None, precision: Precision::Interval, of: "a".into() };
        let of = |n: usize| {
            let plain = Value::plain(-3.711e-3, Unit::Seconds, Precision::Interval);
            Value { difference: true, samples: Some(sampled(n, 1)), share: Some(share.clone()), ..plain }.formatted()
        };
        assert_eq!((of(1).main, of(1).share), ("not distinguishable from 0".to_owned(), None));
        // Of enough samples without an interval a note says why it has none.
        assert_eq!(of(6).main, "−3.711 ms");
    }

    #[test]
    fn a_share_of_many_times_the_whole_is_a_factor() {
        let of = |value: f64| {
            let share = Share { value, interval: None, precision: Precision::Digits(3), of: "a".into() };
            Value { share: Some(share), ..measured(2e-6, 1e-6, 3e-6) }.formatted().share.unwrap()
        };
        assert_eq!([of(1.87), of(9.87), of(337.2), of(-12.0)], ["187 % of a", "9.87 × a", "337 × a", "−12.0 × a"]);
    }

    #[test]
    fn a_sum_shows_its_terms() {
        let value = Value { terms: vec![25.0, 26.0], ..Value::plain(51.0, Unit::Seconds, Precision::Digits(2)) };
        assert_eq!(value.formatted().main, "25 s + 26 s = 51 s");
    }

    #[test]
    fn samples_of_several_runs_are_counted_by_run() {
        let of =
            |samples| Value { samples: Some(samples), ..measured(2e-3, 1.9e-3, 2.1e-3) }.formatted().samples.unwrap();
        assert_eq!(of(Sampled { even: true, ..sampled(50, 5) }), "n = 5 × 10");
        // 9, 1 and 8 of them may be 18, too.
        assert_eq!(of(sampled(18, 3)), "n = 18 in 3 runs");
    }

    #[test]
    fn a_count_has_no_decimals() {
        let count = |value| Value::plain(value, Unit::Number, Precision::Whole).formatted().main;
        assert_eq!((count(0.0), count(10_000_000.0)), ("0".to_owned(), "10000000".to_owned()));
    }
}
