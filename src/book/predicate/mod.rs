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
//! numbers without a unit.
//!
//! | file | question |
//! |---|---|
//! | `test` | what is the quantity, and where has it to lie |
//! | `operand` | what does a name stand for |
//! | `source` | what is a name in the results |
//! | `quantity` | what did the quantity come to in the runs of a system |
//! | `judge` | what do the cases of a claim come to, on the system that it is about |
//! | `case` | what did it come to in one case, and how are that and the verdict said |

mod case;
mod judge;
mod operand;
mod quantity;
mod source;
mod test;

use std::collections::BTreeSet;

pub(super) use case::operands_in_words;
pub use case::{CaseResult, ClaimVerdict, Found};
pub use judge::Judgement;
pub(super) use judge::{Held, holds, is_foreign};
pub use operand::{Operand, Several};
pub(super) use operand::{UnknownName, is_selected, operands_of, twins};
pub(super) use quantity::ResolvedExpression;
pub(super) use test::Test;

use super::document::Document;
pub use crate::results::Extreme;
use crate::results::{Dimension, EXPRESSION_FILTERS, Expression, MetricSpec, Parameters, agrees, nearest};

/// Reads an expression; behind it may stand one of the filters `others`, which the caller took off.
pub(super) fn parsed(text: &str, others: &[&str]) -> Result<Expression, UnknownName> {
    Expression::parse(text).map_err(|error| {
        let known = EXPRESSION_FILTERS.iter().chain(others).copied();
        let hint = error.filter.as_ref().map(|filter| nearest(filter, known)).unwrap_or_default();
        UnknownName { name: error.filter, hint, ..error.message.into() }
    })
}

/// An expression that can have a value.
pub(super) struct Checked {
    /// Its names, in the order of the alphabet, with what they stand for.
    pub(super) operands: Vec<(String, Operand)>,
    /// Its unit.
    pub(super) dimension: Dimension,
}

impl Checked {
    /// Finds an expression that names what there is not, that adds or compares unlike units, or of which a name stands for
    /// several rows in one of the `cases`; each value of the parameter `each` is by itself.
    pub(super) fn of(
        expression: &Expression,
        document: &Document,
        cases: &[Parameters],
        each: Option<&str>,
    ) -> Result<Self, UnknownName> {
        let operands = operands_of(expression, document)?;
        let unit = |name: &str| {
            let operand = operands.iter().find(|(own, _)| own == name);
            operand.map_or(Dimension::Unknown, |(_, operand)| operand.dimension())
        };
        let dimension = expression.dimension(&unit)?;
        let units: BTreeSet<&str> = operands.iter().filter_map(|(_, operand)| operand.measured_unit()).collect();
        if units.len() > 1 {
            let units: Vec<&str> = units.into_iter().collect();
            return Err(format!("`{}` mixes {}", expression.text(), units.join(" and ")).into());
        }
        for (name, operand) in &operands {
            let Operand::Measured { id, selectors, of_several: None, .. } = operand else { continue };
            let of_case = |case| {
                let fits = |spec: &MetricSpec| is_selected(spec, selectors) && agrees(&spec.parameters, case);
                twins(document, (id, each), &Parameters::new(), &fits)
            };
            if let Some([one, other]) = cases.iter().find_map(of_case) {
                return Err(UnknownName {
                    name: Some(name.clone()),
                    hint: format!("; name a parameter, or write `{name}.max` or `{name}.min`"),
                    ..format!("`{name}` fits several rows, such as {one} and {other}").into()
                });
            }
        }
        Ok(Self { operands, dimension })
    }
}
