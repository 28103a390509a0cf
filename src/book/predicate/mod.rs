//! Tests and values in texts: expressions over measured values, published figures and peak rates.
//!
//! A test is a quantity and the region that it has to lie in: `0.9 <= item.pending.fp16 / big.fp16.async <= 1.1`. A name in
//! it is one of
//!
//! - a measurement: the row's identifier, with the values of parameters between or behind its parts. The name of the
//!   document's own experiment is left out. `small.fp16.delta` is the row `sync-points.small.delta` with a parameter of the
//!   value `fp16`; `model.queued.operations_20` is the row `model.queued` whose parameter `operations` is 20. `-` and a
//!   decimal point are written `_`;
//!   A name has to single out one row of each system: `no_way` selects those without the parameter `way`, and a last part
//!   `max` or `min` takes the one with the greatest or the least value. Of rows of yes and no, a last part `count` is how many of
//!   those that the name leaves say yes in every trial;
//! - a parameter of the measurements beside it: `stopwatch.events / spin_seconds`;
//! - a published figure: `published.TABLE.CASE.ROW`, the row by the last part of its identifier, and `published.TABLE.ROW`
//!   where a table has the one case `all`;
//! - a peak rate of the hardware: `peak.NAME.RATE`, from the project's `hardware.yaml`.
//!
//! Names are resolved when a document is read: one that stands for nothing is an error there, not a verdict. So is a
//! quantity that adds or compares unlike units, one whose measurements have different units, unless all but one are
//! numbers without a unit, and one in which a name has no part, such as `a - a`.
//!
//! | file | question |
//! |---|---|
//! | `test` | what is the quantity, and where has it to lie |
//! | `operand` | what does a name stand for |
//! | `dimension` | in which unit is a formula |
//! | `answer` | has a system no part in an answer |
//! | `source` | what is a name in the results |
//! | `quantity`, `found` | what did the quantity come to in the runs of a system |
//! | `judge`, `case` | what do the cases of a claim come to, on the system that it is about |
//! | `verdict` | how is that said, by the kind of the claim |

mod answer;
mod case;
mod dimension;
mod found;
mod judge;
mod operand;
mod quantity;
mod source;
mod test;
mod verdict;

use std::collections::{BTreeMap, BTreeSet};

use minijinja::{Environment, Error, ErrorKind, Expression, Value};

pub(super) use answer::is_foreign;
pub use case::CaseResult;
pub(super) use dimension::Dimension;
pub use judge::Judgement;
pub(super) use judge::{Held, holds};
#[cfg(test)]
pub(super) use operand::is_selected;
pub use operand::{Extreme, Operand};
pub(super) use operand::{UnknownName, operands_in, singled_out};
pub(super) use quantity::{ResolvedExpression, flat_name, flattened};
pub(super) use test::Test;
pub use verdict::ClaimVerdict;

use super::document::Document;
use super::language;
pub(super) use super::language::of_numbers as environment;
use crate::results::nearest;

/// The names in an expression, in the order of the alphabet, with what they stand for.
pub(super) fn operands_of(expression: &str, document: &Document) -> Result<Vec<(String, Operand)>, UnknownName> {
    operands_in(expression, &names_in(&environment(), expression)?, document)
}

/// An expression that can have a value.
pub(super) struct Checked {
    /// Its names, in the order of the alphabet, with what they stand for.
    pub(super) operands: Vec<(String, Operand)>,
    /// Its unit.
    pub(super) dimension: Dimension,
}

impl Checked {
    /// Finds an expression that names what there is not, that has no value whatever is measured, in which a name has no
    /// part, or that adds or compares unlike units.
    pub(crate) fn of(
        environment: &Environment<'_>,
        expression: &str,
        document: &Document,
    ) -> Result<Self, UnknownName> {
        let names = names_in(environment, expression)?;
        let operands = operands_in(expression, &names, document)?;
        let unit = |name: &str| {
            let operand = operands.iter().find(|(own, _)| own == name);
            operand.map_or(Dimension::Unknown, |(_, operand)| operand.dimension())
        };
        let dimension = dimension::of(expression, &unit)?;
        let units: BTreeSet<&str> = operands.iter().filter_map(|(_, operand)| operand.measured_unit()).collect();
        if units.len() > 1 {
            let units: Vec<&str> = units.into_iter().collect();
            return Err(format!("`{expression}` mixes {}", units.join(" and ")).into());
        }
        check_values(environment, expression, &names)?;
        Ok(Self { operands, dimension })
    }
}

/// Finds an expression that has no value, and a name that its value does not depend on, by putting numbers in.
fn check_values(environment: &Environment<'_>, expression: &str, names: &[String]) -> Result<(), UnknownName> {
    /// With how many sets of numbers it is tried, and by what each number is then multiplied.
    const SETS: i32 = 5;
    const FACTORS: [f64; 3] = [3.7, 1e-3, 1e4];
    let own: Vec<&str> = names.iter().map(String::as_str).collect();
    let flat = flattened(expression, &own);
    let compiled = compile(environment, &flat)?;
    let value = |numbers: &[f64]| {
        let context: BTreeMap<String, f64> =
            numbers.iter().enumerate().map(|(place, number)| (flat_name(place), *number)).collect();
        compiled.eval(Value::from(context))
    };
    let first: Vec<f64> = (1..).zip(names).map(|(place, _)| 0.7 + f64::from(place)).collect();
    if let Err(error) = value(&first) {
        return Err(format!("`{expression}` never has a value: {}", reason(&error)).into());
    }
    // Of many sizes, in every order.
    let number = |set: i32, place: i32| 10_f64.powi((7 * place + 5 * set) % 9 - 4) * (1.3 + 0.4 * f64::from(place));
    for (place, name) in names.iter().enumerate() {
        let counts = (0..SETS).any(|set| {
            let mut numbers: Vec<f64> = (0..).zip(names).map(|(place, _)| number(set, place)).collect();
            let (before, size) = (value(&numbers).ok(), numbers[place]);
            FACTORS.iter().any(|factor| {
                numbers[place] = factor * size;
                differ(before.as_ref(), value(&numbers).ok().as_ref())
            })
        });
        if !counts {
            let message = format!("`{name}` has no part in `{expression}`, which is the same whatever `{name}` is");
            return Err(UnknownName { name: Some(name.clone()), ..UnknownName::from(message) });
        }
    }
    Ok(())
}

/// Whether two values differ by more than rounding does; one that there is not tells nothing.
fn differ(one: Option<&Value>, other: Option<&Value>) -> bool {
    let (Some(one), Some(other)) = (one, other) else { return false };
    match (f64::try_from(one.clone()), f64::try_from(other.clone())) {
        (Ok(one), Ok(other)) => (one - other).abs() > 1e-12 * one.abs().max(other.abs()),
        _ => one != other,
    }
}

/// The names in an expression, in the order of the alphabet; each filter in it is known.
pub(super) fn names_in(environment: &Environment<'_>, expression: &str) -> Result<Vec<String>, UnknownName> {
    language::check(expression)?;
    if let Some(filter) = filters(expression).find(|filter| !has_filter(environment, filter)) {
        let hint = nearest(filter, FILTERS.into_iter().filter(|known| has_filter(environment, known)));
        let message = format!("there is no filter `{filter}`");
        return Err(UnknownName { name: Some(filter.to_owned()), hint, ..message.into() });
    }
    let names: BTreeSet<String> = compile(environment, expression)?.undeclared_variables(true).into_iter().collect();
    Ok(names.into_iter().collect())
}

/// The filters of expressions: those that write a number stand in texts alone.
const FILTERS: [&str; 11] =
    ["abs", "round", "max", "min", "time", "percent", "times", "count", "interval", "trials", "share"];

/// The names behind the bars of an expression. An expression holds no text, so that every bar is that of a filter.
fn filters(expression: &str) -> impl Iterator<Item = &str> {
    let word = |part: &'_ str| part.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(part.len());
    expression.split('|').skip(1).map(str::trim_start).map(move |part| &part[..word(part)])
}

/// Whether a filter is known where an expression is evaluated.
fn has_filter(environment: &Environment<'_>, filter: &str) -> bool {
    let applied = format!("1.0|{filter}");
    let result = environment.compile_expression(&applied).and_then(|expression| expression.eval(()));
    !result.is_err_and(|error| error.kind() == ErrorKind::UnknownFilter)
}

/// The expression, compiled.
pub(super) fn compile<'a>(environment: &'a Environment<'_>, expression: &'a str) -> Result<Expression<'a, 'a>, String> {
    environment
        .compile_expression(expression)
        .map_err(|error| format!("`{expression}` is no formula: {}", reason(&error)))
}

/// What is wrong with an expression, in one line.
pub(super) fn reason(error: &Error) -> String {
    error.detail().map_or_else(|| error.kind().to_string(), str::to_owned)
}
