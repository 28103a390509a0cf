//! Units of what is measured, and how a value is written for a reader: all numbers of tables, plots and sentences are
//! written here.
//!
//! Values are stored in the base unit (seconds, bytes, bytes per second, floating-point operations per second);
//! a prefix is chosen only when one is written.

use std::time::Duration;

/// The unit of a measured or published value.
///
/// ```
/// use syncscope_present::units::Unit;
///
/// assert_eq!(Unit::BytesPerSecond.base(), "B/s");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Unit {
    /// Seconds.
    #[default]
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

/// A count with its noun: `1 row`, `2 rows`.
pub fn counted(count: impl TryInto<u64>, noun: &str) -> String {
    let count: u64 = count.try_into().unwrap_or(u64::MAX);
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Words that begin with a capital letter.
pub fn capitalized(words: &str) -> String {
    let mut rest = words.chars();
    rest.next().map(|first| first.to_uppercase().chain(rest).collect()).unwrap_or_default()
}

/// A number of bytes that was chosen, such as the size of a copy: in units of 1024 where these leave no rest, else in those of
/// 1000, else in bytes. One that would be a long row of digits is rounded.
pub fn byte_size(bytes: f64) -> String {
    /// The first count that is not written out.
    const LONG: f64 = 1e6;
    let whole = |step: f64, names: [&'static str; 3]| {
        let units = (1..).zip(names).map(|(power, name)| (bytes / step.powi(power), name));
        units.filter(|(count, _)| (1.0..LONG).contains(count) && count.fract() == 0.0).last()
    };
    match whole(1024.0, ["KiB", "MiB", "GiB"]).or_else(|| whole(1000.0, ["kB", "MB", "GB"])) {
        Some((count, name)) => format!("{count} {name}"),
        None if bytes.fract() == 0.0 && bytes < LONG => format!("{bytes} B"),
        None => Unit::Bytes.format(bytes, 3),
    }
}

/// A length of time that a suite states: more than 0 and at most an hour, in seconds.
///
/// ```
/// use syncscope_present::units::Seconds;
///
/// assert!(Seconds::try_from(0.5).is_ok() && Seconds::try_from(-1.0).is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(try_from = "f64", into = "f64"))]
pub struct Seconds(f64);

impl Seconds {
    /// So many milliseconds.
    pub const fn milliseconds(count: u32) -> Self {
        Self(count as f64 * 1e-3)
    }

    /// So many seconds, which are not checked.
    pub const fn of(seconds: f64) -> Self {
        Self(seconds)
    }

    /// As a duration.
    pub fn duration(self) -> Duration {
        Duration::from_secs_f64(self.0)
    }
}

impl TryFrom<f64> for Seconds {
    type Error = String;

    fn try_from(seconds: f64) -> Result<Self, String> {
        let sensible = (seconds > 0.0 && seconds <= 3600.0).then_some(Self(seconds));
        sensible.ok_or_else(|| format!("expected seconds, more than 0 and at most 3600, and found {seconds}"))
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
    ///
    /// ```
    /// use syncscope_present::units::Unit;
    ///
    /// assert_eq!(Unit::Seconds.format(14.4e-6, 3), "14.4 µs");
    /// assert_eq!(Unit::Ratio.format(f64::NAN, 3), "—");
    /// ```
    pub fn format(self, value: f64, digits: usize) -> String {
        self.scale(value).significant(value, digits)
    }

    /// The unit of a value that is written without a prefix, as a column of data names it.
    pub fn base(self) -> &'static str {
        if matches!(self, Unit::Number | Unit::Ratio) { "1" } else { self.scale(1.0).symbol }
    }

    /// What its values are, as a text names them: `bytes per second`.
    pub fn words(self) -> &'static str {
        match self {
            Unit::Seconds => "seconds",
            Unit::Bytes => "bytes",
            Unit::BytesPerSecond => "bytes per second",
            Unit::FlopsPerSecond => "operations per second",
            Unit::Number | Unit::Ratio => "numbers without a unit",
        }
    }

    /// Whether values in this unit can be set against values in another one.
    pub fn is_like(self, other: Self) -> bool {
        self.words() == other.words()
    }

    /// The scale that suits `value`: where several values share one, that of the largest.
    ///
    /// ```
    /// use syncscope_present::units::Unit;
    ///
    /// assert_eq!(Unit::Bytes.scale(2e9).symbol, "GB");
    /// ```
    pub fn scale(self, value: f64) -> Scale {
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
            *found.or_else(|| if magnitude == 0.0 { steps.first() } else { steps.last() }).unwrap_or(&(1.0, ""));
        Scale { factor, symbol }
    }

    /// The scale, and the digits after the decimal point, that a value and the ends of its interval share.
    pub fn scale_of(self, value: f64, (low, high): (f64, f64)) -> (Scale, usize) {
        let largest = value.abs().max(low.abs()).max(high.abs());
        let scale = self.scale(largest);
        (scale, scale.decimals_of_interval(largest, (low, high)))
    }
}

/// How the values of one unit are written: the divisor, and the symbol behind the number.
///
/// Numbers are in plain decimal notation, with a true minus sign and without a minus before zero.
///
/// ```
/// use syncscope_present::units::Scale;
///
/// assert_eq!(Scale::PERCENT.fixed(0.084, 1), "8.4 %");
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// What a value is divided by.
    pub factor: f64,
    /// The symbol of the unit with its prefix; empty for a number without a unit.
    pub symbol: &'static str,
}

impl Scale {
    /// A share in percent; 1 is the whole.
    pub const PERCENT: Self = Self { factor: 0.01, symbol: "%" };
    /// How many times the whole.
    pub const TIMES: Self = Self { factor: 1.0, symbol: "×" };

    /// `value` with `digits` significant digits; `—` where it is not finite.
    ///
    /// ```
    /// use syncscope_present::units::Unit;
    ///
    /// assert_eq!(Unit::Seconds.scale(1.0).significant(1.234, 3), "1.23 s");
    /// ```
    pub fn significant(self, value: f64, digits: usize) -> String {
        self.fixed(value, self.decimals(value, digits))
    }

    /// `value` with `decimals` digits after the decimal point; `—` where it is not finite.
    pub fn fixed(self, value: f64, decimals: usize) -> String {
        if value.is_finite() { self.with_symbol(&self.number(value, decimals)) } else { "—".to_owned() }
    }

    /// The two ends of an interval, with `decimals` digits after the decimal point.
    ///
    /// ```
    /// use syncscope_present::units::Unit;
    ///
    /// assert_eq!(Unit::Seconds.scale(2e-3).interval((1e-3, 2e-3), 1), "1.0 … 2.0 ms");
    /// ```
    pub fn interval(self, (low, high): (f64, f64), decimals: usize) -> String {
        self.with_symbol(&format!("{} … {}", self.number(low, decimals), self.number(high, decimals)))
    }

    /// `value` without the symbol, with `decimals` digits after the decimal point; as a power of ten, with three
    /// significant digits, where that would be a long row of zeros.
    pub fn number(self, value: f64, decimals: usize) -> String {
        /// The most digits before the decimal point and behind it.
        const MOST: usize = 15;
        let scaled = value / self.factor;
        let text = match scaled.is_finite() && (exponent(scaled) >= MOST as i64 || decimals > MOST) {
            true if scaled == 0.0 => "0".to_owned(),
            true => power_of_ten(scaled),
            false => format!("{scaled:.decimals$}"),
        };
        match text.strip_prefix('-') {
            Some(digits) if digits.bytes().all(|byte| matches!(byte, b'0' | b'.')) => digits.to_owned(),
            Some(digits) => format!("−{digits}"),
            None => text,
        }
    }

    /// `value` without the symbol, with at most three significant digits: what stands at a tick of an axis.
    pub fn short(self, value: f64) -> String {
        let text = self.number(value, self.decimals(value, 3));
        let is_decimal = text.contains('.') && !text.contains('×');
        if is_decimal { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
    }

    /// As [`short`](Self::short), with the symbol; 0 stands alone.
    pub fn tick(self, value: f64) -> String {
        let number = self.short(value);
        if value == 0.0 { number } else { self.with_symbol(&number) }
    }

    /// The digits after the decimal point that give `value` `digits` significant ones; none for 0.
    pub fn decimals(self, value: f64, digits: usize) -> usize {
        let value = value / self.factor;
        if value == 0.0 || !value.is_finite() {
            return 0;
        }
        usize::try_from(digits as i64 - 1 - exponent(value)).unwrap_or(0)
    }

    /// The digits after the decimal point that an interval supports: two significant digits of half its width, but no
    /// fewer than three significant digits of `largest` and no more than five. Four for an interval without width.
    pub fn decimals_of_interval(self, largest: f64, (low, high): (f64, f64)) -> usize {
        let half_width = (high - low) / 2.0 / self.factor;
        if half_width.is_nan() || half_width <= 0.0 {
            return self.decimals(largest, 4);
        }
        let supported = usize::try_from(1 - exponent(half_width)).unwrap_or(0);
        supported.clamp(self.decimals(largest, 3), self.decimals(largest, 5))
    }

    fn with_symbol(self, number: &str) -> String {
        if self.symbol.is_empty() { number.to_owned() } else { format!("{number} {}", self.symbol) }
    }
}

/// A number with three significant digits and a power of ten: `1.00 × 10³⁰⁰`.
fn power_of_ten(value: f64) -> String {
    let text = format!("{value:.2e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let raised = |digit: char| match digit {
        '-' => '⁻',
        digit => digit.to_digit(10).and_then(|digit| "⁰¹²³⁴⁵⁶⁷⁸⁹".chars().nth(digit as usize)).unwrap_or(digit),
    };
    format!("{digits} × 10{}", exponent.chars().map(raised).collect::<String>())
}

/// The power of ten of a value's first digit.
fn exponent(value: f64) -> i64 {
    value.abs().log10().floor() as i64
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
    fn a_size_has_the_unit_that_leaves_no_rest() {
        let written = [1.0, 256.0, 4096.0, 65536.0, 65537.0, 1048576.0, 268435456.0, 1e7, 4e7, 0.0].map(byte_size);
        let expected = ["1 B", "256 B", "4 KiB", "64 KiB", "65537 B", "1 MiB", "256 MiB", "10 MB", "40 MB", "0 B"];
        assert_eq!(written, expected);
        assert_eq!([12_345_678.0, 0.5, 1e300].map(|bytes| byte_size(bytes).chars().count() < 20), [true; 3]);
        assert_eq!(byte_size(f64::NAN), "—");
    }

    #[test]
    fn a_negative_difference_keeps_its_sign_and_prefix() {
        assert_eq!(Unit::Seconds.format(-139.4e-6, 4), "−139.4 µs");
    }

    #[test]
    fn what_would_be_a_long_row_of_zeros_is_a_power_of_ten() {
        assert_eq!(Unit::Number.format(1e300, 3), "1.00 × 10³⁰⁰");
        assert_eq!(Unit::Seconds.format(-2.5e-40, 3), "−2.50 × 10⁻³¹ ns");
        assert_eq!(Unit::Seconds.scale(4e20).tick(4e20), "4.00 × 10²⁰ s");
        assert_eq!(Unit::Number.format(123_456_789_012_345.0, 3), "123456789012345");
        assert_eq!(Unit::Seconds.format(5e-324, 3), "4.94 × 10⁻³¹⁵ ns");
        let (scale, decimals) = Unit::Seconds.scale_of(5e-324, (0.0, 1e-323));
        assert_eq!(scale.interval((-0.0, 1e-323), decimals), "0 … 9.88 × 10⁻³¹⁵ ns");
    }

    #[test]
    fn a_length_of_time_is_positive_and_finite() {
        assert_eq!(Seconds::try_from(0.25).unwrap().duration(), Duration::from_millis(250));
        for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e9] {
            assert!(Seconds::try_from(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_rounded_negative_does_not_read_as_minus_zero() {
        assert_eq!(Unit::Number.scale(1.0).number(-0.001, 1), "0.0");
    }

    #[test]
    fn the_interval_decides_the_decimals() {
        let scale = Unit::Seconds.scale(1.6e-3);
        assert_eq!(scale.decimals_of_interval(1.6342e-3, (1.6311e-3, 1.6342e-3)), 4);
        assert_eq!(scale.decimals_of_interval(1.7e-3, (1.4e-3, 1.7e-3)), 2);
        assert_eq!(scale.decimals_of_interval(1.7e-3, (1.7e-3, 1.7e-3)), 3);
        assert_eq!(scale.decimals_of_interval(0.0, (0.0, 0.0)), 0);
    }

    #[test]
    fn a_tick_is_as_short_as_it_is_exact() {
        let scale = Unit::Seconds.scale(2e-3);
        assert_eq!([0.0, 5e-4, 2e-3].map(|value| scale.tick(value)), ["0", "0.5 ms", "2 ms"]);
    }

    #[test]
    fn rates_and_ratios_are_written_in_their_own_way() {
        assert_eq!(Unit::BytesPerSecond.format(55.24e9, 3), "55.2 GB/s");
        assert_eq!(Unit::Ratio.format(0.5234, 2), "0.52");
        assert_eq!(Unit::Ratio.format(f64::NAN, 2), "—");
    }
}
