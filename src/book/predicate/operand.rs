//! What a name in a test or a text stands for.

use crate::book::document::{Document, Figure, TableCase};
use crate::results::{MetricSpec, Parameter, Parameters, nearest};
use crate::units::Unit;

/// What a name in a test or a text stands for.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// A measurement: the row's identifier, and the values of parameters that tell it from others.
    Measured {
        /// The row's identifier.
        id: String,
        /// Its unit.
        unit: Unit,
        /// Values, or `name_value`, with `_` for `-` and for a decimal point; `no_name` for a row without the parameter.
        selectors: Vec<String>,
        /// Which of several rows it is.
        of_several: Option<Extreme>,
    },
    /// A figure that the document prints, in the row's unit.
    Published(Figure, Unit),
    /// A peak rate.
    Peak(f64),
    /// A parameter of the measurements beside it.
    Parameter(String),
}

/// Which of several rows a name stands for, where its parameters leave several: its last part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extreme {
    /// The one with the least value: `min`.
    Least,
    /// The one with the greatest: `max`.
    Greatest,
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
    /// The row's identifier, where it is a measurement.
    pub(in crate::book) fn measured(&self) -> Option<String> {
        match self {
            Operand::Measured { id, .. } => Some(id.clone()),
            Operand::Published(..) | Operand::Peak(_) | Operand::Parameter(_) => None,
        }
    }

    /// The unit that other operands of a test must share; `None` for a number without one.
    pub(super) fn dimension(&self) -> Option<&'static str> {
        let unit = match self {
            Operand::Measured { unit, .. } | Operand::Published(_, unit) => *unit,
            // Operations over a rate are seconds: the test turns one into the other itself.
            Operand::Peak(_) | Operand::Parameter(_) => return None,
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
    let found: Vec<(&String, Result<Operand, UnknownName>)> =
        names.iter().map(|name| (name, operand(document, name))).collect();
    let measured: Vec<String> = found.iter().filter_map(|(_, operand)| operand.as_ref().ok()?.measured()).collect();
    let measured: Vec<&str> = measured.iter().map(String::as_str).collect();
    let parameters = document.names.rows.parameters(&measured);
    let operand = |(name, operand): (&String, Result<Operand, UnknownName>)| match operand {
        Err(_) if parameters.contains_key(name.as_str()) => Ok((name.clone(), Operand::Parameter(name.clone()))),
        operand => operand.map(|operand| (name.clone(), operand)),
    };
    found.into_iter().map(operand).collect()
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

/// The figures that the document prints, as tests name them.
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

/// Refuses the names in an expression that leave several rows to choose from, of those that experiments declare for one
/// engine. Of the rows, `cases` select some; each value of the parameter `each` is by itself.
pub(in crate::book) fn singled_out(
    operands: &[(String, Operand)],
    document: &Document,
    cases: &[Parameters],
    each: Option<&str>,
) -> Result<(), UnknownName> {
    for (name, operand) in operands {
        let Operand::Measured { id, selectors, of_several: None, .. } = operand else { continue };
        for specs in document.names.rows.together(id) {
            let several = cases.iter().find_map(|case| {
                let fits = |spec: &&MetricSpec| is_selected(spec, selectors) && agrees(spec, case);
                let fits: Vec<&MetricSpec> = specs.iter().filter(fits).collect();
                let value = |spec: &MetricSpec| each.and_then(|each| spec.parameters.get(each)).cloned();
                let twin = |(place, spec): (usize, &&MetricSpec)| {
                    let twin = fits[..place].iter().find(|other| value(other) == value(spec))?;
                    Some([twin.title(), spec.title()])
                };
                fits.iter().enumerate().find_map(twin)
            });
            if let Some([one, other]) = several {
                return Err(UnknownName {
                    name: Some(name.clone()),
                    message: format!("`{name}` fits several rows, such as {one} and {other}"),
                    hint: format!("; name a parameter, or write `{name}.max` or `{name}.min`"),
                });
            }
        }
    }
    Ok(())
}

/// Whether a row has no other value of a parameter.
pub(super) fn agrees(spec: &MetricSpec, select: &Parameters) -> bool {
    let same = |(name, wanted): (&String, &Parameter)| match (spec.parameters.get(name), wanted) {
        (Some(value), wanted) => value == wanted || value.number().is_some_and(|value| wanted.number() == Some(value)),
        (None, _) => true,
    };
    select.iter().all(same)
}

/// The row of the document's experiment, or of another one whose name begins the path.
fn measurement(document: &Document, path: &[&str]) -> Result<Operand, String> {
    let rows = &document.names.rows;
    if !rows.has_experiment(&document.id) {
        return row(document, path, None);
    }
    let is_named = |id: &str| id.split('.').next().map(name_of).as_deref() == path.first().copied();
    row(document, path, Some(&document.id))
        .or_else(|hint| if rows.ids().any(is_named) { row(document, path, None) } else { Err(hint) })
}

/// The row whose parts stand in the path in their order, while each other part is a value of one of its parameters; of
/// several, the one with the most parts. Of the experiment `of` the name is left out. Else what may have been meant.
fn row(document: &Document, path: &[&str], of: Option<&str>) -> Result<Operand, String> {
    let rows = &document.names.rows;
    let own = usize::from(of.is_some());
    let belongs = |id: &&str| of.is_none_or(|of| id.split('.').next() == Some(of));
    let mut found: Vec<(usize, &str, Vec<&str>, Option<Extreme>)> = Vec::new();
    for id in rows.ids().filter(belongs) {
        let parts: Vec<String> = id.split('.').skip(own).map(name_of).collect();
        let mut rest = parts.iter().peekable();
        let mut selectors: Vec<&str> =
            path.iter().copied().filter(|part| rest.next_if(|next| next == part).is_none()).collect();
        if rest.peek().is_none() {
            let of_several = match selectors.last() {
                Some(&"min") => Some(Extreme::Least),
                Some(&"max") => Some(Extreme::Greatest),
                _ => None,
            };
            if of_several.is_some() {
                selectors.pop();
            }
            found.push((parts.len(), id, selectors, of_several));
        }
    }
    let wrong = |id: &str, selectors: &[&str]| {
        let known = selectors_of(document, id);
        selectors.iter().find(|selector| !is_selector(selector, &known)).map(|wrong| (*wrong).to_owned())
    };
    let good = found.iter().filter(|(_, id, selectors, _)| wrong(id, selectors).is_none());
    if let Some((_, id, selectors, of_several)) = good.max_by_key(|(parts, ..)| *parts) {
        let unit = rows.get(id).map_or(Unit::Number, |spec| spec.unit);
        let selectors = selectors.iter().map(|selector| (*selector).to_owned()).collect();
        return Ok(Operand::Measured { id: (*id).to_owned(), unit, selectors, of_several: *of_several });
    }
    let closest = found.iter().max_by_key(|(parts, ..)| *parts);
    let wrong = closest.and_then(|(_, id, selectors, _)| Some((id, wrong(id, selectors)?)));
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

/// An identifier as a test names it.
fn shown(id: &str, own: usize) -> String {
    id.split('.').skip(own).map(name_of).collect::<Vec<_>>().join(".")
}

/// How the parameters of a row may be given: values that are names by themselves, others as `name_value`, of which any
/// number will do.
fn selectors_of(document: &Document, id: &str) -> Vec<(String, bool)> {
    let mut known = Vec::new();
    for (name, values) in document.names.rows.parameters(&[id]) {
        known.push((format!("no_{}", name_of(name)), false));
        for value in values {
            match value {
                Parameter::Text(text) => known.push((name_of(text), false)),
                number => known.push((format!("{}_{}", name_of(name), name_of(&number.to_string())), true)),
            }
        }
    }
    known
}

/// Whether a part of a path can tell rows apart at all: a misspelt one must not pass for a row that was not measured.
fn is_selector(part: &str, known: &[(String, bool)]) -> bool {
    let numbered = |selector: &str| {
        let name = selector.trim_end_matches(|c: char| c.is_ascii_digit() || c == '_');
        let value = part.strip_prefix(name).and_then(|rest| rest.strip_prefix('_'));
        value.is_some_and(|value| value.replacen('_', ".", 1).parse::<f64>().is_ok())
    };
    known.iter().any(|(selector, number)| if *number { numbered(selector) } else { selector == part })
}

/// Whether a row's parameters hold all selectors.
pub(super) fn is_selected(spec: &MetricSpec, selectors: &[String]) -> bool {
    let lacks = |name: &str| spec.parameters.keys().all(|own| name_of(own) != name);
    selectors.iter().all(|selector| {
        selector.strip_prefix("no_").is_some_and(lacks)
            || spec.parameters.iter().any(|(name, parameter)| {
                let value = name_of(&parameter.to_string());
                let named = selector.strip_prefix(name_of(name).as_str()).and_then(|rest| rest.strip_prefix('_'));
                *selector == value || named == Some(value.as_str())
            })
    })
}

/// An identifier's part as a test names it.
fn name_of(part: &str) -> String {
    part.replace(['-', ' ', '.'], "_")
}
