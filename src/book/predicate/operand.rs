//! What a name in a test or a text stands for.

use crate::document::{Document, Figure, TableCase};
use crate::results::{
    Dimension, Expression, Extreme, MetricSpec, Parameters, Selector, Spelled, most_alike, name_of, nearest,
    nearest_number, preferred,
};
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
        /// The values of parameters that the name gives, each in the ways in which it may be meant.
        selectors: Vec<Vec<Selector>>,
        /// What it is of several rows.
        of_several: Option<Several>,
    },
    /// A figure that the document prints, in the row's unit.
    Published(Figure, Unit),
    /// A peak rate.
    Peak(f64),
    /// A parameter of the measurements beside it.
    Parameter(String),
}

/// What the last part of a name makes of several rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Several {
    /// One of them.
    One(Extreme),
    /// How many of those of yes and no say yes in every trial: a name that ends with `count`.
    Count,
}

/// A name that stands for nothing, or another reason why an expression means nothing.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct UnknownName {
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
    pub(crate) fn measured(&self) -> Option<&str> {
        if let Operand::Measured { id, .. } = self { Some(id) } else { None }
    }

    /// Its unit in a formula.
    pub(super) fn dimension(&self) -> Dimension {
        match self {
            Operand::Measured { unit, .. } | Operand::Published(_, unit) => Dimension::of(*unit),
            Operand::Peak(_) => Dimension::of(Unit::FlopsPerSecond),
            Operand::Parameter(name) if name.ends_with("seconds") => Dimension::TIME,
            Operand::Parameter(_) => Dimension::Unknown,
        }
    }

    /// The unit that other measurements of a test must share; `None` for a number without one.
    pub(super) fn measured_unit(&self) -> Option<&'static str> {
        match self {
            Operand::Measured { unit, .. } | Operand::Published(_, unit) => {
                Some(unit.words()).filter(|_| !unit.is_like(Unit::Number))
            }
            // Operations over a rate are seconds: the test turns one into the other itself.
            Operand::Peak(_) | Operand::Parameter(_) => None,
        }
    }
}

/// The names in an expression, in the order of the alphabet, with what they stand for.
pub(crate) fn operands_of(expression: &Expression, document: &Document) -> Result<Vec<(String, Operand)>, UnknownName> {
    let names = expression.names();
    if names.is_empty() {
        return Err(format!("`{}` names no measured value", expression.text()).into());
    }
    let found: Vec<(&str, Option<Operand>)> = names.into_iter().map(|name| (name, operand(document, name))).collect();
    let measured: Vec<&str> = found.iter().filter_map(|(_, operand)| operand.as_ref()?.measured()).collect();
    let parameters = document.names.rows.parameters(&measured);
    let operand = |(name, operand): (&str, Option<Operand>)| match operand {
        Some(operand) => Ok((name.to_owned(), operand)),
        None if parameters.contains_key(name) => Ok((name.to_owned(), Operand::Parameter(name.to_owned()))),
        None => Err(unknown(document, name)),
    };
    found.into_iter().map(operand).collect()
}

fn operand(document: &Document, name: &str) -> Option<Operand> {
    let parts: Vec<&str> = name.split('.').collect();
    match parts.as_slice() {
        ["published", ..] => published(document).find(|(own, _)| own == name).map(|(_, operand)| operand),
        ["peak", hardware, rate] => document.names.hardware.peak(hardware, rate).map(Operand::Peak),
        path => measurement(document, path),
    }
}

/// Says that a name stands for nothing, and what may have been meant. Comparing it with all names takes long, so only what
/// was not found comes here.
fn unknown(document: &Document, name: &str) -> UnknownName {
    let parts: Vec<&str> = name.split('.').collect();
    let near = |names: Vec<String>| nearest(name, names.iter().map(String::as_str));
    let figures = || published(document).map(|(name, _)| name).collect::<Vec<_>>();
    let peaks = || document.names.hardware.names().map(|name| format!("peak.{name}")).collect::<Vec<_>>();
    let (what, hint) = match parts.as_slice() {
        ["published", ..] => ("published figure of the document", near(figures())),
        ["peak", _, _] => ("peak rate of the hardware", near(peaks())),
        path => {
            let of_row = hint(document, path);
            let of_others = || near([figures(), peaks()].concat());
            ("measurement", if of_row.is_empty() { of_others() } else { of_row })
        }
    };
    UnknownName { name: Some(name.to_owned()), hint, ..format!("`{name}` names no {what}").into() }
}

/// The figures that the document prints, as tests name them.
fn published(document: &Document) -> impl Iterator<Item = (String, Operand)> {
    let rows = document.tables.iter().flat_map(|table| table.rows.iter().map(move |row| (table, row)));
    let figures = rows.flat_map(|(table, row)| row.published.iter().map(move |figure| (table, row, figure)));
    figures.filter_map(|(table, row, (case, figure))| {
        let (table, row_name) = (name_of(&table.id), name_of(row.id.rsplit('.').next()?));
        let name = match name_of(case).as_str() {
            TableCase::ALL => format!("published.{table}.{row_name}"),
            case => format!("published.{table}.{case}.{row_name}"),
        };
        Some((name, Operand::Published(figure.clone()?, row.unit)))
    })
}

/// Two rows of one system that fit and could both be meant, also with the parameters that are preferred. Of the parameter `each`,
/// rows are taken value by value.
pub(crate) fn twins(
    document: &Document,
    (id, each): (&str, Option<&str>),
    prefer: &Parameters,
    fits: &dyn Fn(&MetricSpec) -> bool,
) -> Option<[String; 2]> {
    let value = |spec: &MetricSpec| each.and_then(|each| spec.parameters.get(each)).cloned();
    document.names.rows.together(id).find_map(|specs| {
        let fits: Vec<&MetricSpec> = specs.iter().filter(|spec| fits(spec)).collect();
        fits.iter().find_map(|spec| {
            let own = fits.iter().copied().filter(|other| value(other) == value(spec));
            let [one, other, ..] = preferred(own, prefer)[..] else { return None };
            Some([one.title(), other.title()])
        })
    })
}

/// The row of the document's experiment, or of another one whose name begins the path.
fn measurement(document: &Document, path: &[&str]) -> Option<Operand> {
    let own = own_experiment(document);
    let of_another = || own.filter(|_| begins_with_experiment(document, path)).and_then(|_| row(document, path, None));
    row(document, path, own).or_else(of_another)
}

/// Whether a path begins with the name of an experiment.
fn begins_with_experiment(document: &Document, path: &[&str]) -> bool {
    let first = path.first().copied();
    document.names.rows.spelled().iter().any(|row| row.parts.first().map(String::as_str) == first)
}

/// The document's experiment, of which the name is left out, where it is one.
fn own_experiment(document: &Document) -> Option<&str> {
    document.names.rows.has_experiment(&document.id).then_some(document.id.as_str())
}

/// A row whose parts stand in a path in their order.
struct Fit<'a> {
    row: &'a Spelled,
    /// The other parts of the path: values of its parameters.
    selectors: Vec<&'a str>,
    of_several: Option<Several>,
}

impl<'a> Fit<'a> {
    /// The first selector that tells no such rows apart.
    fn wrong(&self) -> Option<&'a str> {
        self.selectors.iter().copied().find(|selector| !is_selector(selector, &self.row.selectors))
    }
}

/// The rows, of the experiment `of` where there is one, whose parts stand in the path in their order. Of the experiment the
/// name is left out.
fn fits<'a>(document: &'a Document, path: &'a [&'a str], of: Option<&'a str>) -> impl Iterator<Item = Fit<'a>> {
    let own = usize::from(of.is_some());
    rows_of(document, of).filter_map(move |row| {
        let mut parts = row.parts[own..].iter().peekable();
        let is_other = |part: &&str| parts.next_if(|next| next == part).is_none();
        let mut selectors: Vec<&str> = path.iter().copied().filter(is_other).collect();
        let of_several = match selectors.last() {
            Some(&"min") => Some(Several::One(Extreme::Least)),
            Some(&"max") => Some(Several::One(Extreme::Greatest)),
            Some(&"count") => Some(Several::Count),
            _ => None,
        };
        selectors.truncate(selectors.len() - usize::from(of_several.is_some()));
        parts.peek().is_none().then_some(Fit { row, selectors, of_several })
    })
}

fn rows_of<'a>(document: &'a Document, of: Option<&'a str>) -> impl Iterator<Item = &'a Spelled> {
    let belongs = move |row: &&Spelled| of.is_none_or(|of| row.id.split('.').next() == Some(of));
    document.names.rows.spelled().iter().filter(belongs)
}

/// The row whose parts stand in the path in their order, while each other part is a value of one of its parameters; of
/// several, the one with the most parts.
fn row(document: &Document, path: &[&str], of: Option<&str>) -> Option<Operand> {
    let good = fits(document, path, of).filter(|fit| fit.wrong().is_none());
    let Fit { row, selectors, of_several } = good.max_by_key(|fit| fit.row.parts.len())?;
    let unit = document.names.rows.get(&row.id).map_or(Unit::Number, |spec| spec.unit);
    // Only a share is of trials that say yes or no.
    let unit = match (of_several, unit) {
        (Some(Several::Count), Unit::Ratio) => Unit::Number,
        (Some(Several::Count), _) => return None,
        (_, unit) => unit,
    };
    let meant = |text: &str| row.selectors.iter().filter(|known| known.text == text).cloned().collect();
    let (id, selectors) = (row.id.clone(), selectors.into_iter().map(meant).collect());
    Some(Operand::Measured { id, unit, selectors, of_several })
}

/// What may have been meant by a path that is no row.
fn hint(document: &Document, path: &[&str]) -> String {
    let of = own_experiment(document).filter(|_| !begins_with_experiment(document, path));
    let own = usize::from(of.is_some());
    let closest = fits(document, path, of).max_by_key(|fit| fit.row.parts.len());
    let wrong = closest.and_then(|fit| Some((fit.row, fit.wrong()?)));
    let near_selector = wrong.and_then(|(row, wrong)| {
        let hint = match number_in(wrong, &row.selectors) {
            Some((number, known)) => nearest_number(number, &known),
            None => nearest(wrong, row.selectors.iter().map(|selector| selector.text.as_str())),
        };
        Some(hint).filter(|hint| !hint.is_empty())
    });
    let near_row = || {
        // What tells the rows of a name apart is no part of it.
        let pair = |row: &Spelled| {
            let is_name = |part: &&str| !is_selector(part, &row.selectors) && number_in(part, &row.selectors).is_none();
            let written: Vec<&str> = path.iter().copied().filter(is_name).collect();
            (written.join("."), row.parts[own..].join("."))
        };
        most_alike(rows_of(document, of).map(pair)).map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
    };
    let hint = near_selector.unwrap_or_else(near_row);
    match wrong.filter(|_| hint.is_empty()) {
        Some((row, wrong)) => format!("; `{wrong}` is no parameter of `{}` and no value of one", row.id),
        None => hint,
    }
}

/// Whether a part of a path tells rows apart: a value that none of them has must not pass for a row that was not measured.
fn is_selector(part: &str, known: &[Selector]) -> bool {
    known.iter().any(|known| known.text == part)
}

/// The number that a part of a path gives to a parameter, and the numbers that the parameter has.
fn number_in(part: &str, known: &[Selector]) -> Option<(f64, Vec<f64>)> {
    let numbers = || known.iter().filter_map(|known| Some((name_of(&known.name), known.value.as_ref()?.number()?)));
    numbers().find_map(|(name, _)| {
        let written = part.strip_prefix(name.as_str())?.strip_prefix('_')?;
        let number = written.replacen('_', ".", 1).parse().ok()?;
        Some((number, numbers().filter(|(other, _)| *other == name).map(|(_, number)| number).collect()))
    })
}

/// Whether a row's parameters hold all selectors.
pub(crate) fn is_selected(spec: &MetricSpec, selectors: &[Vec<Selector>]) -> bool {
    let holds = |meant: &Selector| spec.parameters.get(&meant.name) == meant.value.as_ref();
    selectors.iter().all(|ways| ways.iter().any(holds))
}
