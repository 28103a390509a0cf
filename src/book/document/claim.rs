//! Claims of a document, and the quantities that their predicates name.
//!
//! A predicate is an expression of the template engine that is true where the claim holds:
//! `small.fp16.delta / small.fp16.async > big.fp16.delta / big.fp16.async`. A quantity in it is one of
//!
//! - a measurement: the row's identifier without the document's (of a document without an experiment of its own, the
//!   whole of it), with the values of parameters between or behind its parts. `small.fp16.delta` is the row `sync-points.small.delta` with a parameter of the value `fp16`;
//!   `model.queued.operations_20` is the row `model.queued` whose parameter `operations` is 20. `-` is written `_`;
//! - a published figure: `published.TABLE.CASE.ROW`, the row by the last part of its identifier, and `published.TABLE.ROW`
//!   where a table has the one case `all`;
//! - a peak rate of the hardware: `peak.NAME.RATE`, from `book/hardware.yaml`.
//!
//! Names are resolved when a document is read: one that stands for nothing is an error there, not a verdict. So is a
//! predicate whose measurements have different units, unless all but one are numbers without a unit.

use std::collections::BTreeSet;

use minijinja::{Environment, Expression, UndefinedBehavior};
use serde::Deserialize;

use super::hardware::Hardware;
use super::{Document, Figure};
use crate::experiment::{Entry, Parameter, Row, RowPlan};
use crate::units::Unit;

/// A claim of a document.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The identifier: `c-small-hurts`.
    pub id: String,
    /// What the document claims, in our words (Markdown).
    pub claim: String,
    /// The predicate.
    pub holds: String,
    /// What it takes to judge it.
    #[serde(default)]
    pub needs: Needs,
    /// Whether it can be refuted and never confirmed: that a race was not seen does not show that there is none.
    #[serde(default)]
    pub refutable_only: bool,
    /// Why it is expected to hold, or not to (Markdown).
    pub because: String,
}

/// What it takes to judge a claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Needs {
    /// Any device.
    #[default]
    AnyDevice,
    /// A GPU: on another engine the claim means nothing.
    Gpu,
}

/// What a name in a predicate stands for.
#[derive(Clone, Debug, PartialEq)]
pub enum Quantity {
    /// A measurement: the row's identifier, and the values of parameters that tell it from others.
    Measured {
        /// The row.
        plan: RowPlan,
        /// Values, or `name_value`, with `_` for `-`.
        selectors: Vec<String>,
    },
    /// A figure that the document prints, in the row's unit.
    Published(Figure, Unit),
    /// A peak rate.
    Peak(f64),
}

impl Claim {
    /// Whether it is about published figures and peak rates alone, so that no machine has a say in it.
    pub fn is_about_figures(&self, document: &Document) -> bool {
        let measured = |(_, quantity): &(String, Quantity)| matches!(quantity, Quantity::Measured { .. });
        self.quantities(document).is_ok_and(|quantities| !quantities.iter().any(measured))
    }

    /// The names in the predicate, in the order of the alphabet, with what they stand for.
    ///
    /// # Errors
    /// Says which name stands for nothing, or why the predicate is none.
    pub fn quantities(&self, document: &Document) -> Result<Vec<(String, Quantity)>, String> {
        quantities_of(&self.holds, document)
    }
}

/// The names in a predicate with what they stand for; units that differ are not set against each other.
pub(super) fn quantities_of(predicate: &str, document: &Document) -> Result<Vec<(String, Quantity)>, String> {
    let names = names_in(&environment(), predicate)?;
    let quantities = quantities_in(predicate, &names, document)?;
    let units: BTreeSet<&str> = quantities.iter().filter_map(|(_, quantity)| quantity.dimension()).collect();
    if units.len() > 1 {
        let units: Vec<&str> = units.into_iter().collect();
        return Err(format!("`{predicate}` sets {} against each other", units.join(" and ")));
    }
    Ok(quantities)
}

/// The names in an expression, in the order of the alphabet.
pub(super) fn names_in(environment: &Environment<'_>, expression: &str) -> Result<Vec<String>, String> {
    let names: BTreeSet<String> = compile(environment, expression)?.undeclared_variables(true).into_iter().collect();
    Ok(names.into_iter().collect())
}

/// What the names of an expression stand for.
pub(super) fn quantities_in(
    expression: &str,
    names: &[String],
    document: &Document,
) -> Result<Vec<(String, Quantity)>, String> {
    if names.is_empty() {
        return Err(format!("`{expression}` names no quantity"));
    }
    names.iter().map(|name| document.quantity(name).map(|quantity| (name.clone(), quantity))).collect()
}

/// Where predicates are evaluated: a name without a value is an error, never something to compare with.
pub(super) fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment
}

/// The predicate, compiled.
pub(super) fn compile<'a>(environment: &'a Environment<'_>, predicate: &'a str) -> Result<Expression<'a, 'a>, String> {
    environment.compile_expression(predicate).map_err(|error| format!("`{predicate}` is no predicate: {error:#}"))
}

impl Quantity {
    /// The unit that other quantities of a predicate must share; `None` for a number without one.
    fn dimension(&self) -> Option<&'static str> {
        let unit = match self {
            Quantity::Measured { plan, .. } => plan.unit,
            Quantity::Published(_, unit) => *unit,
            // Operations over a rate are seconds: the predicate turns one into the other itself.
            Quantity::Peak(_) => return None,
        };
        match unit {
            Unit::Seconds => Some("seconds"),
            Unit::Bytes => Some("bytes"),
            Unit::BytesPerSecond => Some("bytes per second"),
            Unit::FlopsPerSecond => Some("operations per second"),
            Unit::Number | Unit::Ratio => None,
        }
    }
}

impl Document {
    fn quantity(&self, name: &str) -> Result<Quantity, String> {
        let parts: Vec<&str> = name.split('.').collect();
        match parts.as_slice() {
            ["published", path @ ..] => self.published(path).ok_or(format!("`{name}` names no figure of the document")),
            ["peak", hardware, rate] => {
                let peak = Hardware::embedded().map_err(|error| error.to_string())?.peak(hardware, rate);
                peak.map(Quantity::Peak).ok_or(format!("`{name}` names no peak rate of book/hardware.yaml"))
            }
            path => self.measurement(path).ok_or(format!("`{name}` names no measurement")),
        }
    }

    /// The rows that its names may stand for, and whether they are those of an experiment of its own.
    fn plans(&self) -> (Vec<RowPlan>, bool) {
        match Entry::default_for(&self.id, "cuda") {
            Some(entry) => (entry.experiment().rows(), true),
            None => (Entry::all("cuda").iter().flat_map(|entry| entry.experiment().rows()).collect(), false),
        }
    }

    fn published(&self, path: &[&str]) -> Option<Quantity> {
        let (table, case, row) = match path {
            [table, case, row] => (table, *case, row),
            [table, row] => (table, "all", row),
            _ => return None,
        };
        let table = self.tables.iter().find(|found| name_of(&found.id) == **table)?;
        let row = table.rows.iter().find(|found| found.id.rsplit('.').next().map(name_of).as_deref() == Some(*row))?;
        let (_, figure) = row.published.iter().find(|(label, _)| name_of(label) == case)?;
        Some(Quantity::Published(figure.clone()?, row.unit))
    }

    /// The row whose parts stand in the path in their order; of several, the one with the most parts.
    fn measurement(&self, path: &[&str]) -> Option<Quantity> {
        let (plans, own) = self.plans();
        let matches = plans.into_iter().filter_map(|plan| {
            let parts: Vec<String> = plan.id.split('.').skip(usize::from(own)).map(name_of).collect();
            let mut rest = parts.iter().peekable();
            let selectors: Vec<String> = path
                .iter()
                .filter(|part| rest.next_if(|next| next == *part).is_none())
                .map(|s| (*s).to_owned())
                .collect();
            let told = rest.peek().is_none() && selectors.iter().all(|selector| is_selector(selector));
            told.then_some((parts.len(), plan, selectors))
        });
        let (_, plan, selectors) = matches.max_by_key(|(parts, ..)| *parts)?;
        Some(Quantity::Measured { plan, selectors })
    }
}

/// The values that a predicate may give bare: those of parameters that are names.
const VALUES: [&str; 11] = [
    "fp16",
    "bf16",
    "fp32",
    "big",
    "small",
    "large",
    "pageable",
    "pinned",
    "write_combined",
    "blocking",
    "non_blocking",
];

/// The parameters that a predicate may give as `name_value`.
const PARAMETERS: [&str; 6] = ["size", "operations", "every", "bytes", "element", "steps"];

/// Whether a part of a path can tell rows apart at all: a misspelt one must not pass for a row that was not measured.
fn is_selector(part: &str) -> bool {
    let named = PARAMETERS.iter().any(|name| part.strip_prefix(name).is_some_and(|rest| rest.starts_with('_')));
    named || VALUES.contains(&part)
}

/// Whether a row's parameters hold all selectors.
pub(super) fn is_selected(row: &Row, selectors: &[String]) -> bool {
    let value = |parameter: &Parameter| name_of(&parameter.to_string());
    selectors.iter().all(|selector| {
        row.parameters.iter().any(|(name, parameter)| {
            let named = selector.strip_prefix(name_of(name).as_str()).and_then(|rest| rest.strip_prefix('_'));
            *selector == value(parameter) || named == Some(value(parameter).as_str())
        })
    })
}

/// An identifier's part as a predicate names it.
fn name_of(part: &str) -> String {
    part.replace(['-', ' '], "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document() -> Document {
        let documents = Document::embedded().unwrap();
        documents.into_iter().find(|document| document.id == "sync-points").unwrap()
    }

    fn claim(holds: &str) -> Claim {
        let (id, claim, because) = ("c-test".to_owned(), String::new(), String::new());
        Claim { id, claim, holds: holds.to_owned(), needs: Needs::AnyDevice, refutable_only: false, because }
    }

    fn error(holds: &str) -> String {
        claim(holds).quantities(&document()).unwrap_err()
    }

    #[test]
    fn a_path_is_a_row_with_the_values_of_parameters() {
        let quantities = claim("small.fp16.delta < big.size_8192.fp16.async").quantities(&document()).unwrap();
        let rows: Vec<_> = quantities
            .iter()
            .map(|(_, quantity)| match quantity {
                Quantity::Measured { plan, selectors } => (plan.id, selectors.join(" ")),
                other => panic!("{other:?}"),
            })
            .collect();
        let expected =
            [("sync-points.big.async", "size_8192 fp16".to_owned()), ("sync-points.small.delta", "fp16".to_owned())];
        assert_eq!(rows, expected);
    }

    #[test]
    fn published_figures_and_peak_rates_have_their_own_names() {
        let quantities = claim("2 * 8192 ** 3 / peak.h100.fp16 < published.big.fp16.async").quantities(&document());
        assert!(
            matches!(&quantities.unwrap()[..], [(_, Quantity::Peak(_)), (_, Quantity::Published(f, _))] if f.value == 25.0359e-3)
        );
    }

    #[test]
    fn a_name_that_stands_for_nothing_and_a_text_that_is_no_predicate_are_errors() {
        assert!(error("smal.fp16.delta > 0").contains("`smal.fp16.delta` names no measurement"));
        assert!(error("small.fp61.delta > 0").contains("`small.fp61.delta` names no measurement"));
        assert!(error("published.small.fp17.delta > 0").contains("no figure"));
        assert!(error("peak.abacus.fp16 > 0").contains("no peak rate"));
        assert!(error("small.fp16.delta >").contains("is no predicate"));
        assert!(error("1 > 0").contains("names no quantity"));
    }

    #[test]
    fn units_that_differ_are_not_set_against_each_other() {
        let documents = Document::embedded().unwrap();
        let overlap = documents.iter().find(|document| document.id == "overlap").unwrap();
        let mixed = claim("transfer.h2d.rate.pinned > transfer.h2d.done.pinned").quantities(overlap).unwrap_err();
        assert!(mixed.contains("bytes per second and seconds"), "{mixed}");
    }
}
