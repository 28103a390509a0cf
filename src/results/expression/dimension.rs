//! In which unit an expression is, and whether it adds or compares what no unit has in common.
//!
//! A unit is a product of powers of seconds and bytes; operations have none, so that operations over a rate are seconds. A
//! number that is written in an expression takes the unit of what it is added to or compared with, and has none in a product.
//! Of a parameter only the name says what it is: one that ends in `seconds` is a time, another may be anything.

use super::{Node, Operator, Part};
use crate::units::Unit;

/// The unit of an expression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Dimension {
    /// That of a number that is written in an expression.
    Free,
    /// One that cannot be told.
    Unknown,
    /// Powers of seconds and of bytes.
    Of(f64, f64),
}

impl Dimension {
    /// Without a unit.
    pub const NONE: Self = Self::Of(0.0, 0.0);
    /// Of a time.
    pub const TIME: Self = Self::Of(1.0, 0.0);

    /// Of the values in a unit.
    pub fn of(unit: Unit) -> Self {
        match unit {
            Unit::Seconds => Self::TIME,
            Unit::Bytes => Self::Of(0.0, 1.0),
            Unit::BytesPerSecond => Self::Of(-1.0, 1.0),
            Unit::FlopsPerSecond => Self::Of(-1.0, 0.0),
            Unit::Number | Unit::Ratio => Self::NONE,
        }
    }

    /// Whether a value may have another unit than this one.
    pub fn is_other_than(self, wanted: Self) -> bool {
        matches!(self, Self::Of(..)) && self != wanted
    }

    /// What a value is, in words.
    pub fn words(self) -> &'static str {
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

    fn to_the(self, exponent: Option<f64>) -> Self {
        match (self, exponent) {
            (Self::Of(seconds, bytes), Some(power)) => Self::Of(seconds * power, bytes * power),
            (Self::NONE | Self::Free, _) => self,
            _ => Self::Unknown,
        }
    }
}

impl Node {
    pub(super) fn dimension(&self, text: &str, of: &dyn Fn(&str) -> Dimension) -> Result<Dimension, String> {
        let children = self.children().iter().map(|node| Ok((node.dimension(text, of)?, text[node.at.clone()].trim())));
        let children: Vec<(Dimension, &str)> = children.collect::<Result<_, String>>()?;
        let first = children.first().map_or(Dimension::Free, |(first, _)| *first);
        Ok(match (&self.part, children.as_slice()) {
            (Part::Name(at), _) => of(&text[at.clone()]),
            (Part::Binary(Operator::Times, _), [_, (other, _)]) => first.times(*other, 1.0),
            (Part::Binary(Operator::Over, _), [_, (other, _)]) => first.times(*other, -1.0),
            (Part::Binary(Operator::Power, nodes), _) => first.to_the(nodes[1].evaluate(text, &|_| None)),
            (Part::Binary(..) | Part::Extreme(..), [head, rest @ ..]) => {
                let mut all = *head;
                for next in rest {
                    all = (alike(all, *next)?, next.1);
                }
                all.0
            }
            _ => first,
        })
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
    use super::super::Expression;
    use super::*;

    /// The unit of a formula of times `t`, `u`, bytes `b`, a rate `r`, a share `s` and something else `p`.
    fn unit(formula: &str) -> Result<Dimension, String> {
        Expression::parse(formula).unwrap().dimension(&|name| match name {
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
            ("[t, 2e-6, u.v_1]|max|abs", Dimension::TIME),
            ("b / r + t", Dimension::TIME),
            ("2 * 512 ** 3 / peak - t", Dimension::TIME),
            ("t ** 2 / u.v_1", Dimension::TIME),
            ("2 ** 3", Dimension::Free),
            ("p * t + b", Dimension::of(Unit::Bytes)),
        ] {
            assert_eq!(unit(formula), Ok(is), "{formula}");
        }
    }

    #[test]
    fn unlike_units_are_neither_added_nor_compared() {
        for (formula, says) in [
            ("t + b", "`t` is a time and `b` is a number of bytes: they cannot be added"),
            ("(t) - (2 * s)", "`(t)` is a time and `(2 * s)` is a number without a unit"),
            ("s * (t - t / u.v_1)", "`t` is a time and `t / u.v_1` is a number without a unit"),
            ("[t, s]|max", "`t` is a time and `s`"),
            ("t ** 2 - t", "`t ** 2` is of another unit and `t` is a time"),
        ] {
            let message = unit(formula).unwrap_err();
            assert!(message.starts_with(says), "{formula}: {message}");
        }
    }
}
