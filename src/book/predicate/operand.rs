//! What a name in a predicate stands for.

use crate::book::document::{Document, Figure, TableCase};
use crate::results::{MetricSpec, Parameter, nearest};
use crate::units::Unit;

/// What a name in a predicate stands for.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// A measurement: the row's identifier, and the values of parameters that tell it from others.
    Measured {
        /// The row's identifier.
        id: String,
        /// Its unit.
        unit: Unit,
        /// Values, or `name_value`, with `_` for `-`.
        selectors: Vec<String>,
    },
    /// A figure that the document prints, in the row's unit.
    Published(Figure, Unit),
    /// A peak rate.
    Peak(f64),
}

/// A name that stands for nothing, or another reason why an expression means nothing.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::book) struct UnknownName {
    /// The name, where it is one.
    pub name: Option<String>,
    /// What is wrong.
    pub message: String,
    /// What may have been meant.
    pub hint: String,
}

impl From<String> for UnknownName {
    fn from(message: String) -> Self {
        Self { name: None, message, hint: String::new() }
    }
}

impl Operand {
    /// The unit that other operands of a predicate must share; `None` for a number without one.
    pub(super) fn dimension(&self) -> Option<&'static str> {
        let unit = match self {
            Operand::Measured { unit, .. } | Operand::Published(_, unit) => *unit,
            // Operations over a rate are seconds: the predicate turns one into the other itself.
            Operand::Peak(_) => return None,
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

/// What the names of an expression stand for.
pub(in crate::book) fn operands_in(
    expression: &str,
    names: &[String],
    document: &Document,
) -> Result<Vec<(String, Operand)>, UnknownName> {
    if names.is_empty() {
        return Err(format!("`{expression}` names no measured value").into());
    }
    names.iter().map(|name| operand(document, name).map(|operand| (name.clone(), operand))).collect()
}

fn operand(document: &Document, name: &str) -> Result<Operand, UnknownName> {
    let parts: Vec<&str> = name.split('.').collect();
    let unknown = |what: &str, hint: String| UnknownName {
        name: Some(name.to_owned()),
        message: format!("`{name}` names no {what}"),
        hint,
    };
    match parts.as_slice() {
        ["published", path @ ..] => published(document, path).ok_or_else(|| {
            let names = published_names(document);
            unknown("published figure of the document", nearest(name, names.iter().map(String::as_str)))
        }),
        ["peak", hardware, rate] => document.names.hardware.peak(hardware, rate).map(Operand::Peak).ok_or_else(|| {
            let names: Vec<String> = document.names.hardware.names().map(|name| format!("peak.{name}")).collect();
            unknown("peak rate of the hardware", nearest(name, names.iter().map(String::as_str)))
        }),
        path => measurement(document, path).map_err(|hint| unknown("measurement", hint)),
    }
}

fn published(document: &Document, path: &[&str]) -> Option<Operand> {
    let (table, case, row) = match path {
        [table, case, row] => (table, *case, row),
        [table, row] => (table, TableCase::ALL, row),
        _ => return None,
    };
    let table = document.tables.iter().find(|found| name_of(&found.id) == **table)?;
    let row = table.rows.iter().find(|found| found.id.rsplit('.').next().map(name_of).as_deref() == Some(*row))?;
    let (_, figure) = row.published.iter().find(|(label, _)| name_of(label) == case)?;
    Some(Operand::Published(figure.clone()?, row.unit))
}

/// The figures that the document prints, as predicates name them.
fn published_names(document: &Document) -> Vec<String> {
    let mut names = Vec::new();
    for table in &document.tables {
        for row in &table.rows {
            let row_name = row.id.rsplit('.').next().map(name_of).unwrap_or_default();
            let cases = row.published.iter().filter(|(_, figure)| figure.is_some()).map(|(label, _)| name_of(label));
            names.extend(cases.map(|case| match case.as_str() {
                TableCase::ALL => format!("published.{}.{row_name}", name_of(&table.id)),
                case => format!("published.{}.{case}.{row_name}", name_of(&table.id)),
            }));
        }
    }
    names
}

/// The row whose parts stand in the path in their order, while each other part is a value of one of its parameters; of
/// several, the one with the most parts. Else what may have been meant.
fn measurement(document: &Document, path: &[&str]) -> Result<Operand, String> {
    let rows = &document.names.rows;
    let own = usize::from(rows.has_experiment(&document.id));
    let belongs = |id: &&str| own == 0 || id.split('.').next() == Some(document.id.as_str());
    let mut found: Vec<(usize, &str, Vec<&str>)> = Vec::new();
    for id in rows.ids().filter(belongs) {
        let parts: Vec<String> = id.split('.').skip(own).map(name_of).collect();
        let mut rest = parts.iter().peekable();
        let selectors: Vec<&str> =
            path.iter().copied().filter(|part| rest.next_if(|next| next == part).is_none()).collect();
        if rest.peek().is_none() {
            found.push((parts.len(), id, selectors));
        }
    }
    let wrong = |id: &str, selectors: &[&str]| {
        let known = selectors_of(document, id);
        selectors.iter().find(|selector| !is_selector(selector, &known)).map(|wrong| (*wrong).to_owned())
    };
    let good = found.iter().filter(|(_, id, selectors)| wrong(id, selectors).is_none());
    if let Some((_, id, selectors)) = good.max_by_key(|(parts, ..)| *parts) {
        let unit = rows.get(id).map_or(Unit::Number, |spec| spec.unit);
        let selectors = selectors.iter().map(|selector| (*selector).to_owned()).collect();
        return Ok(Operand::Measured { id: (*id).to_owned(), unit, selectors });
    }
    let closest = found.iter().max_by_key(|(parts, ..)| *parts);
    let wrong = closest.and_then(|(_, id, selectors)| Some((id, wrong(id, selectors)?)));
    let selector = wrong.as_ref().map(|(id, wrong)| {
        let known: Vec<String> = selectors_of(document, id).into_iter().map(|(selector, _)| selector).collect();
        nearest(wrong, known.iter().map(String::as_str))
    });
    let row = || {
        // What tells rows apart is no part of their names.
        let known: Vec<_> = rows.ids().filter(belongs).flat_map(|id| selectors_of(document, id)).collect();
        let rest: Vec<&str> = path.iter().copied().filter(|part| !is_selector(part, &known)).collect();
        let names: Vec<String> = rows.ids().filter(belongs).map(|id| shown(id, own)).collect();
        nearest(&rest.join("."), names.iter().map(String::as_str))
    };
    let hint = selector.filter(|hint| !hint.is_empty()).unwrap_or_else(row);
    Err(match wrong.filter(|_| hint.is_empty()) {
        Some((id, wrong)) => format!("; `{wrong}` is no parameter of `{id}` and no value of one"),
        None => hint,
    })
}

/// An identifier as a predicate names it.
fn shown(id: &str, own: usize) -> String {
    id.split('.').skip(own).map(name_of).collect::<Vec<_>>().join(".")
}

/// How the parameters of a row may be given: values that are names by themselves, others as `name_value`, of which any
/// number will do.
fn selectors_of(document: &Document, id: &str) -> Vec<(String, bool)> {
    let mut known = Vec::new();
    for (name, values) in document.names.rows.parameters(&[id]) {
        for value in values {
            match value {
                Parameter::Text(text) => known.push((name_of(text), false)),
                number => known.push((format!("{}_{number}", name_of(name)), true)),
            }
        }
    }
    known
}

/// Whether a part of a path can tell rows apart at all: a misspelt one must not pass for a row that was not measured.
fn is_selector(part: &str, known: &[(String, bool)]) -> bool {
    let numbered = |selector: &str| {
        let name = selector.rsplit_once('_').map_or(selector, |(name, _)| name);
        part.strip_prefix(name).and_then(|rest| rest.strip_prefix('_')).is_some_and(|rest| rest.parse::<f64>().is_ok())
    };
    known.iter().any(|(selector, number)| if *number { numbered(selector) } else { selector == part })
}

/// Whether a row's parameters hold all selectors.
pub(super) fn is_selected(spec: &MetricSpec, selectors: &[String]) -> bool {
    selectors.iter().all(|selector| {
        spec.parameters.iter().any(|(name, parameter)| {
            let value = name_of(&parameter.to_string());
            let named = selector.strip_prefix(name_of(name).as_str()).and_then(|rest| rest.strip_prefix('_'));
            *selector == value || named == Some(value.as_str())
        })
    })
}

/// An identifier's part as a predicate names it.
fn name_of(part: &str) -> String {
    part.replace(['-', ' '], "_")
}
