//! Units of what is measured, and how a value is written for a reader.
//!
//! Values are stored in the base unit (seconds, bytes, bytes per second, floating-point operations per second);
//! a prefix is chosen only when one is written.

use std::time::Duration;

/// The unit of a measured or published value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "report", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Unit {
    /// Seconds.
    Seconds,
    /// Bytes.
    Bytes,
    /// Bytes per second.
    BytesPerSecond,
    /// Floating-point operations per second.
    FlopsPerSecond,
    /// A number without a unit.
    Number,
    /// A share or quotient; 1 is the whole.
    Ratio,
}

/// A length of time that a suite states: more than 0 and at most an hour, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "report", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(try_from = "f64", into = "f64"))]
pub struct Seconds(f64);

impl Seconds {
    #[cfg(feature = "report")]
    pub(crate) const fn milliseconds(count: u32) -> Self {
        Self(count as f64 * 1e-3)
    }

    /// As a duration.
    pub fn duration(self) -> Duration {
        Duration::from_secs_f64(self.0)
    }
}

impl TryFrom<f64> for Seconds {
    type Error = String;

    fn try_from(seconds: f64) -> Result<Self, String> {
        let sensible = seconds > 0.0 && seconds <= 3600.0;
        if sensible {
            Ok(Self(seconds))
        } else {
            Err(format!("expected seconds, more than 0 and at most 3600, and found {seconds}"))
        }
    }
}

impl From<Seconds> for f64 {
    fn from(seconds: Seconds) -> Self {
        seconds.0
    }
}

impl Unit {
    /// Writes `value` with the prefix that suits it and `digits` significant digits: `14.4 µs`, `55.2 GB/s`.
    ///
    /// A ratio is written as a bare number and a value that is not finite as `—`.
    pub fn format(self, value: f64, digits: usize) -> String {
        if !value.is_finite() {
            return "—".to_owned();
        }
        let (factor, symbol) = self.scale(value);
        let number = significant(value / factor, digits);
        if symbol.is_empty() { number } else { format!("{number} {symbol}") }
    }

    /// The unit of a value that is written without a prefix, as a column of data names it.
    pub fn base(self) -> &'static str {
        match self {
            Unit::Seconds => "s",
            Unit::Bytes => "B",
            Unit::BytesPerSecond => "B/s",
            Unit::FlopsPerSecond => "FLOP/s",
            Unit::Number | Unit::Ratio => "1",
        }
    }

    /// The divisor and the symbol with which `value` is written.
    pub fn scale(self, value: f64) -> (f64, &'static str) {
        let steps: &[(f64, &str)] = match self {
            Unit::Seconds => &[(1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")],
            Unit::Bytes => &[(1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")],
            Unit::BytesPerSecond => &[(1e12, "TB/s"), (1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "B/s")],
            Unit::FlopsPerSecond => &[(1e12, "TFLOP/s"), (1e9, "GFLOP/s"), (1e6, "MFLOP/s"), (1.0, "FLOP/s")],
            Unit::Number | Unit::Ratio => &[(1.0, "")],
        };
        let magnitude = value.abs();
        let found = steps.iter().find(|(factor, _)| magnitude >= *factor * 0.9995);
        let (factor, symbol) =
            found.or_else(|| if magnitude == 0.0 { steps.first() } else { steps.last() }).unwrap_or(&(1.0, ""));
        (*factor, symbol)
    }
}

/// `value` with `digits` significant digits, in plain decimal notation, with a true minus sign.
pub fn significant(value: f64, digits: usize) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let exponent = value.abs().log10().floor() as i64;
    let decimals = (digits as i64 - 1 - exponent).max(0) as usize;
    let text = format!("{value:.decimals$}");
    text.replace('-', "−")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_takes_the_prefix_that_suits_it() {
        assert_eq!(Unit::Seconds.format(25.0359e-3, 4), "25.04 ms");
        assert_eq!(Unit::Seconds.format(14.4e-6, 3), "14.4 µs");
        assert_eq!(Unit::Seconds.format(2.5, 2), "2.5 s");
        assert_eq!(Unit::Seconds.format(0.0, 3), "0 s");
    }

    #[test]
    fn a_negative_difference_keeps_its_sign_and_prefix() {
        assert_eq!(Unit::Seconds.format(-139.4e-6, 4), "−139.4 µs");
    }

    #[test]
    fn a_length_of_time_is_positive_and_finite() {
        assert_eq!(Seconds::try_from(0.25).unwrap().duration(), Duration::from_millis(250));
        for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e9] {
            assert!(Seconds::try_from(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn rates_and_ratios_are_written_in_their_own_way() {
        assert_eq!(Unit::BytesPerSecond.format(55.24e9, 3), "55.2 GB/s");
        assert_eq!(Unit::Ratio.format(0.5234, 2), "0.52");
        assert_eq!(Unit::Ratio.format(f64::NAN, 2), "—");
    }
}
