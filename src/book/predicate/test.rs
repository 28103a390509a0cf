//! What a test says: a quantity, and the region that it has to lie in.
//!
//! `0.9 <= item.pending / big.async <= 1.1` is a quantity between two bounds, `same - other > 0` one with a single bound.
//! Bounds are numbers, or formulas of numbers. Where both sides of a comparison name something, the quantity is their
//! difference: `a > 2 * b` asks whether `a - 2 * b` is above 0.
//!
//! What a text says of a figure with *about* (or *nearly*) is written so: `small.forced about 28e-6`, and of a range
//! `small.delta about 10e-6 to 15e-6`. [`ABOUT`] says how far from the figure that reaches.

use super::{UnknownName, parsed};
use crate::measure::{AcceptedRegion, Bound};
use crate::results::Expression;

/// A quantity and where it has to lie; a quantity alone where there is no comparison.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Test {
    /// The quantity.
    pub quantity: Expression,
    /// Where it has to lie.
    pub region: Option<AcceptedRegion>,
}

/// How far from a figure still counts as about it, as a share of it: a tenth. Of a range, a tenth beyond either end.
pub(crate) const ABOUT: f64 = 0.1;

/// The comparisons, each also as it is read from the right.
const COMPARISONS: [(&str, &str); 5] = [("<=", ">="), (">=", "<="), ("==", "=="), ("<", ">"), (">", "<")];

impl Test {
    /// Reads a test.
    pub(crate) fn parse(text: &str) -> Result<Self, UnknownName> {
        if text.trim().is_empty() {
            return Err("a test is empty: it is `quantity < bound`, or `bound < quantity < bound`".to_owned().into());
        }
        let test = match text.split_once(" about ") {
            Some((quantity, figure)) => Self::about(quantity.trim(), figure)?,
            None => Self::compared(text)?,
        };
        let ends = test.region.and_then(|AcceptedRegion { low, high }| low.zip(high));
        match ends {
            Some((low, high))
                if low.value > high.value || low.value == high.value && !(low.included && high.included) =>
            {
                Err(format!("`{}` never holds: no number lies between its bounds", text.trim()).into())
            }
            _ => Ok(test),
        }
    }

    /// A quantity that is compared, or a quantity alone.
    fn compared(text: &str) -> Result<Self, UnknownName> {
        let (sides, signs) = split(text.trim());
        let wrong = |what: &str| Err(UnknownName::from(format!("`{}` {what}", text.trim())));
        if sides.iter().any(|side| side.is_empty()) {
            return wrong("compares with nothing");
        }
        match (sides.as_slice(), signs.as_slice()) {
            ([quantity], []) => Ok(Self { quantity: parsed(quantity, &[])?, region: None }),
            ([left, right], [sign]) => match (number(left)?, number(right)?) {
                (_, Some(bound)) => Self::new(left, beyond(sign, bound)),
                (Some(bound), None) => Self::new(right, beyond(reversed(sign), bound)),
                (None, None) => Self::new(&format!("({left}) - ({right})"), beyond(sign, 0.0)),
            },
            ([low, quantity, high], [first, second]) if first.starts_with('<') && second.starts_with('<') => {
                let (Some(low), Some(high)) = (number(low)?, number(high)?) else {
                    return wrong("has a bound that is no number");
                };
                let (low, high) = (beyond(reversed(first), low).low, beyond(second, high).high);
                Self::new(quantity, AcceptedRegion { low, high })
            }
            _ => wrong("is no test: `quantity < bound`, or `bound < quantity < bound`"),
        }
    }

    /// A quantity about a figure, or about a range.
    fn about(quantity: &str, figure: &str) -> Result<Self, UnknownName> {
        let (low, high) = figure.split_once(" to ").unwrap_or((figure, figure));
        let (Some(low), Some(high)) = (number(low.trim())?, number(high.trim())?) else {
            return Err(format!("`{figure}` is no figure").into());
        };
        let bound = |value| Some(Bound { value, included: true });
        let (low, high) = (bound(low - ABOUT * low.abs()), bound(high + ABOUT * high.abs()));
        Self::new(quantity, AcceptedRegion { low, high })
    }

    /// The tests that all have to hold: joined by `and`.
    pub(crate) fn all(text: &str) -> Result<Vec<Self>, UnknownName> {
        text.split(" and ").map(Self::parse).collect()
    }

    fn new(quantity: &str, region: AcceptedRegion) -> Result<Self, UnknownName> {
        Ok(Self { quantity: parsed(quantity, &[])?, region: Some(region) })
    }
}

/// The sides of the comparisons in a text, and the signs between them.
fn split(text: &str) -> (Vec<&str>, Vec<&str>) {
    let signs = text.split(|c| !matches!(c, '<' | '=' | '>'));
    let signs: Vec<&str> = signs.filter(|sign| COMPARISONS.iter().any(|(own, _)| own == sign)).collect();
    let (mut sides, mut rest) = (Vec::new(), text);
    for sign in &signs {
        let (side, behind) = rest.split_once(sign).unwrap_or((rest, ""));
        sides.push(side.trim());
        rest = behind;
    }
    sides.push(rest.trim());
    (sides, signs)
}

/// The sign, read from the right.
fn reversed(sign: &str) -> &str {
    COMPARISONS.into_iter().find(|(own, _)| *own == sign).map_or(sign, |(_, reversed)| reversed)
}

/// The numbers that stand so to a bound.
fn beyond(sign: &str, value: f64) -> AcceptedRegion {
    let bound = Some(Bound { value, included: sign.ends_with('=') });
    match sign {
        "<" | "<=" => AcceptedRegion { low: None, high: bound },
        ">" | ">=" => AcceptedRegion { low: bound, high: None },
        _ => AcceptedRegion { low: bound, high: bound },
    }
}

/// What a side without names comes to; `None` where it has names.
fn number(side: &str) -> Result<Option<f64>, UnknownName> {
    let expression = parsed(side, &[])?;
    if !expression.names().is_empty() {
        return Ok(None);
    }
    let number = expression.evaluate(&|_| None).filter(|number| number.is_finite());
    number.map(Some).ok_or_else(|| format!("`{side}` is no number").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    type End = Option<(f64, bool)>;

    fn region(text: &str) -> (String, End, End) {
        let test = Test::parse(text).unwrap();
        let end = |bound: Option<Bound>| bound.map(|bound| (bound.value, bound.included));
        let region = test.region.unwrap();
        (test.quantity.text().to_owned(), end(region.low), end(region.high))
    }

    #[test]
    fn a_quantity_stands_between_two_bounds_or_beyond_one() {
        let quantity = |text: &str| text.to_owned();
        assert_eq!(region("a - b > 0"), (quantity("a - b"), Some((0.0, false)), None));
        assert_eq!(region("0 < a"), (quantity("a"), Some((0.0, false)), None));
        assert_eq!(region("1 / 4 <= a < 2 ** 3"), (quantity("a"), Some((0.25, true)), Some((8.0, false))));
        assert_eq!(region("a == 1"), (quantity("a"), Some((1.0, true)), Some((1.0, true))));
        assert_eq!(region("a.x < 0.5 * b.y"), (quantity("(a.x) - (0.5 * b.y)"), None, Some((0.0, false))));
        assert_eq!(Test::parse("a / b - 1").unwrap().region, None);
    }

    #[test]
    fn about_a_figure_is_within_a_tenth_of_it_and_of_a_range_beyond_its_ends() {
        let near = |end: End, value: f64| end.is_some_and(|(end, included)| included && (end - value).abs() < 1e-12);
        let (quantity, low, high) = region("a / b about 2");
        assert!(quantity == "a / b" && near(low, 1.8) && near(high, 2.2), "{low:?} {high:?}");
        let (_, low, high) = region("a about 10 to 15");
        assert!(near(low, 9.0) && near(high, 16.5), "{low:?} {high:?}");
        let (_, low, high) = region("a about -10");
        assert!(near(low, -11.0) && near(high, -9.0), "{low:?} {high:?}");
    }

    #[test]
    fn what_is_no_test_is_refused() {
        for text in [
            "a about b",
            "a about 1 to",
            "a about 15 to 10",
            "2 < a < 1",
            "1 < a <= 1",
            " ",
            "a <",
            "1 > a > 2",
            "1 < a < 2 < 3",
            "b < a < 2",
            "a < 1 / 0",
            "a < (",
            "",
        ] {
            assert!(Test::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn tests_that_all_have_to_hold_are_joined_by_and() {
        assert_eq!(Test::all("a > 1 and b < 2").unwrap().len(), 2);
    }
}
