//! In which unit a formula is, and whether it adds or compares what no unit has in common.
//!
//! A unit is a product of powers of seconds and bytes; operations have none, so that operations over a rate are seconds. A
//! number that is written in a formula takes the unit of what it is added to or compared with, and has none in a product.
//! Of a parameter only the name says what it is: one that ends in `seconds` is a time, another may be anything.

use crate::units::Unit;

/// The unit of a formula.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Dimension {
    /// That of a number that is written in a formula.
    Free,
    /// One that cannot be told.
    Unknown,
    /// Powers of seconds and of bytes.
    Of(f64, f64),
}

impl Dimension {
    /// Without a unit.
    pub(crate) const NONE: Self = Self::Of(0.0, 0.0);
    /// Of a time.
    pub(crate) const TIME: Self = Self::Of(1.0, 0.0);

    /// Of the values in a unit.
    pub(crate) fn of(unit: Unit) -> Self {
        match unit {
            Unit::Seconds => Self::TIME,
            Unit::Bytes => Self::Of(0.0, 1.0),
            Unit::BytesPerSecond => Self::Of(-1.0, 1.0),
            Unit::FlopsPerSecond => Self::Of(-1.0, 0.0),
            Unit::Number | Unit::Ratio => Self::NONE,
        }
    }

    /// Whether a value may have another unit than this one.
    pub(crate) fn is_other_than(self, wanted: Self) -> bool {
        matches!(self, Self::Of(..)) && self != wanted
    }

    /// What a value is, in words.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::NONE => "a number without a unit",
            Self::TIME => "a time",
            Self::Of(0.0, 1.0) => "a number of bytes",
            Self::Of(-1.0, 1.0) => "a rate in bytes per second",
            Self::Of(-1.0, 0.0) => "a rate per second",
            _ => "of another unit",
        }
    }

    fn times(self, other: Self, power: f64) -> Self {
        match (self, other) {
            (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
            (Self::Free, Self::Free) => Self::Free,
            (Self::Free, other) => Self::NONE.times(other, power),
            (own, Self::Free) => own,
            (Self::Of(seconds, bytes), Self::Of(s, b)) => Self::Of(seconds + power * s, bytes + power * b),
        }
    }
}

/// The unit of a formula that minijinja can read, whose names have the units that `of` says.
///
/// # Errors
/// It adds or compares what has different units, or writes a value in a unit that it does not have.
pub(super) fn of(formula: &str, of: &dyn Fn(&str) -> Dimension) -> Result<Dimension, String> {
    Reader { rest: formula, of }.sum()
}

struct Reader<'a> {
    rest: &'a str,
    of: &'a dyn Fn(&str) -> Dimension,
}

impl<'a> Reader<'a> {
    fn sum(&mut self) -> Result<Dimension, String> {
        let from = self.rest;
        let mut sum = self.product()?;
        loop {
            let before = self.since(from);
            if !(self.takes("+") || self.takes("-")) {
                return Ok(sum);
            }
            let start = self.rest;
            let next = self.product()?;
            sum = alike((sum, before), (next, self.since(start)))?;
        }
    }

    fn product(&mut self) -> Result<Dimension, String> {
        let mut product = self.power()?;
        loop {
            if self.takes("*") {
                product = product.times(self.power()?, 1.0);
            } else if self.takes("//") || self.takes("/") {
                product = product.times(self.power()?, -1.0);
            } else if self.takes("%") {
                // What is left of the first.
                self.power()?;
            } else {
                return Ok(product);
            }
        }
    }

    fn power(&mut self) -> Result<Dimension, String> {
        while self.takes("-") {}
        let base = self.value()?;
        if !self.takes("**") {
            return Ok(base);
        }
        let start = self.rest;
        self.power()?;
        let exponent: Option<f64> = self.since(start).parse().ok();
        Ok(match (base, exponent) {
            (Dimension::Of(seconds, bytes), Some(power)) => Dimension::Of(seconds * power, bytes * power),
            (Dimension::NONE | Dimension::Free, None) => base,
            (Dimension::Free, Some(_)) => base,
            _ => Dimension::Unknown,
        })
    }

    fn value(&mut self) -> Result<Dimension, String> {
        self.rest = self.rest.trim_start();
        let from = self.rest;
        let mut value = if self.takes("(") {
            let inner = self.sum()?;
            self.takes(")");
            inner
        } else if self.takes("[") {
            let (start, mut all) = (self.rest, self.sum()?);
            let mut before = self.since(start);
            while self.takes(",") {
                let start = self.rest;
                let next = self.sum()?;
                all = alike((all, before), (next, self.since(start)))?;
                before = self.since(start);
            }
            self.takes("]");
            all
        } else {
            self.word()
        };
        loop {
            let filtered = self.since(from);
            if !self.takes("|") {
                return Ok(value);
            }
            self.rest = self.rest.trim_start();
            let filter = self.name();
            let writes = match filter {
                "time" => Some(Dimension::TIME),
                "percent" | "times" => Some(Dimension::NONE),
                _ => None,
            };
            if let Some(wanted) = writes {
                if value.is_other_than(wanted) {
                    let (is, wanted) = (value.words(), wanted.words());
                    return Err(format!("`{filtered}` is {is}, and `{filter}` writes {wanted}"));
                }
                value = Dimension::Unknown;
            }
            if self.takes("(") {
                self.sum()?;
                self.takes(")");
            }
        }
    }

    /// A number or a name.
    fn word(&mut self) -> Dimension {
        let word = self.name();
        if !word.starts_with(|c: char| c.is_ascii_digit()) {
            return (self.of)(word);
        }
        // The exponent of a number may have a sign.
        if word.ends_with(['e', 'E']) && self.rest.starts_with(['+', '-']) {
            self.rest = &self.rest[1..];
            self.name();
        }
        Dimension::Free
    }

    fn name(&mut self) -> &'a str {
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.');
        let (name, rest) = self.rest.split_at(self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len()));
        self.rest = rest;
        name
    }

    /// Takes a sign, where it comes next; of two stars neither is a product.
    fn takes(&mut self, sign: &str) -> bool {
        let rest = self.rest.trim_start();
        let is_next = rest.starts_with(sign) && !(sign == "*" && rest.starts_with("**"));
        if is_next {
            self.rest = &rest[sign.len()..];
        }
        is_next
    }

    /// What was read since then.
    fn since(&self, from: &'a str) -> &'a str {
        from[..from.len() - self.rest.len()].trim()
    }
}

/// The unit that two values have in common.
fn alike((one, left): (Dimension, &str), (other, right): (Dimension, &str)) -> Result<Dimension, String> {
    match (one, other) {
        (Dimension::Of(..), Dimension::Of(..)) if one != other => {
            let (one, other) = (one.words(), other.words());
            Err(format!("`{left}` is {one} and `{right}` is {other}: they cannot be added or compared"))
        }
        (Dimension::Of(..), _) => Ok(one),
        (_, Dimension::Of(..)) => Ok(other),
        (Dimension::Unknown, _) | (_, Dimension::Unknown) => Ok(Dimension::Unknown),
        _ => Ok(Dimension::Free),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The unit of a formula of times `t`, `u`, bytes `b`, a rate `r`, a share `s` and something else `p`.
    fn unit(formula: &str) -> Result<Dimension, String> {
        of(formula, &|name| match name {
            "t" | "u.v_1" => Dimension::TIME,
            "b" => Dimension::of(Unit::Bytes),
            "r" => Dimension::of(Unit::BytesPerSecond),
            "peak" => Dimension::of(Unit::FlopsPerSecond),
            "s" => Dimension::NONE,
            "p" => Dimension::Unknown,
            other => panic!("{other}"),
        })
    }

    #[test]
    fn a_formula_has_the_unit_of_its_parts() {
        for (formula, is) in [
            ("t - 5e-6 * u.v_1", Dimension::TIME),
            ("t + 1.5e-6", Dimension::TIME),
            ("-(t - u.v_1)|abs / u.v_1 - 1", Dimension::NONE),
            ("[t, 2e-6, u.v_1]|max|round(2)", Dimension::TIME),
            ("b / r + t", Dimension::TIME),
            ("2 * 512 ** 3 / peak - t", Dimension::TIME),
            ("t ** 2 / u.v_1", Dimension::TIME),
            ("2 ** 3", Dimension::Free),
            ("p * t + b", Dimension::of(Unit::Bytes)),
            ("(t / u.v_1)|percent", Dimension::Unknown),
            ("t % 3", Dimension::TIME),
        ] {
            assert_eq!(unit(formula), Ok(is), "{formula}");
        }
    }

    #[test]
    fn unlike_units_are_neither_added_nor_compared_nor_written_as_what_they_are_not() {
        for (formula, says) in [
            ("t + b", "`t` is a time and `b` is a number of bytes: they cannot be added"),
            ("(t) - (2 * s)", "`(t)` is a time and `(2 * s)` is a number without a unit"),
            ("s * (t - t / u.v_1)", "`t` is a time and `t / u.v_1` is a number without a unit"),
            ("[t, s]|max", "`t` is a time and `s`"),
            ("t ** 2 - t", "`t ** 2` is of another unit and `t` is a time"),
            ("(r * 2)|time", "`(r * 2)` is a rate in bytes per second, and `time` writes a time"),
            ("t|percent", "`t` is a time, and `percent` writes a number without a unit"),
        ] {
            let message = unit(formula).unwrap_err();
            assert!(message.starts_with(says), "{formula}: {message}");
        }
    }
}
