//! A document's figure and a run's, side by side.
//!
//! A ratio of the two is given only where it means something: both exist, neither is a difference that cannot be told
//! from 0 or has changed its sign, and the run measured what the document did, with the parameters that it states.

use serde::Deserialize;

use super::{DocumentRow, DocumentTable, Figure};
use crate::in_order::each_once;
use crate::measure::Estimate;
use crate::present::{Precision, Share};
use crate::results::{Lookup, Metric, MissingReason, Parameter, Parameters, Results, by_size, in_another_unit};

/// A row of a document's table for one case.
#[derive(Clone, Copy, Debug)]
pub struct TableEntry<'a> {
    /// The table.
    pub table: &'a DocumentTable,
    /// The row.
    pub row: &'a DocumentRow,
    /// The case.
    pub case: &'a TableCase,
}

/// What a run says to a row of a document.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured<'a> {
    /// The row and its samples.
    pub metric: Metric<'a>,
    /// What they come to.
    pub estimate: Estimate,
    /// The same relative to another row, where the document's row is.
    ///
    /// The ends of its interval are those of the value over the median of the whole, whose own spread is left out.
    pub relative: Option<Share>,
    /// Parameters of the document that the run measured with another value, in words.
    pub mismatches: Vec<String>,
    /// Why it cannot be set against what the document prints, where the run measured it in a unit of another kind.
    pub in_another_unit: Option<String>,
}

impl<'a> TableEntry<'a> {
    /// All rows of a table for `cases`, case by case; see [`DocumentTable::cases_in`].
    pub fn all(table: &'a DocumentTable, cases: &'a [TableCase]) -> impl Iterator<Item = Self> {
        cases.iter().flat_map(move |case| table.rows.iter().map(move |row| Self { table, row, case }))
    }

    /// What the document prints.
    pub fn published(&self) -> Option<&'a Figure> {
        self.row.published.get(&self.case.label)?.as_ref()
    }

    /// What the document prints as a share of another row, and that row's label.
    pub fn published_share(&self) -> Option<(&'a Figure, &'a str)> {
        let relative = self.row.relative.as_ref()?;
        let figure = relative.published.get(&self.case.label)?.as_ref()?;
        Some((figure, self.table.row(&relative.to)?.label.as_str()))
    }

    /// What the run measured.
    ///
    /// # Errors
    /// Says why it did not.
    pub fn measured<'r>(&self, lookup: &Lookup<'r>) -> Result<Measured<'r>, MissingReason> {
        self.found(self.find(lookup, &self.row.id), lookup)
    }

    /// What another system measured, of several measurements the one with the parameters of the `own` one; `None` where the
    /// system has no such row.
    pub(crate) fn measured_beside<'r>(
        &self,
        lookup: &Lookup<'r>,
        own: Option<&Measured<'_>>,
    ) -> Option<Result<Measured<'r>, MissingReason>> {
        let id = &self.row.id;
        // What tells several rows of the own system apart, such as its library for the host, another one may have otherwise.
        let selects = [self.table.selected(id, &self.case.select), self.case.select.clone()];
        let select = selects.into_iter().find(|select| lookup.specs_of(id, select).next().is_some())?;
        let text = self.table.published_with(id);
        let metric = lookup.find(id, &select, own.map_or(&text, |own| &own.metric.spec.parameters));
        Some(self.found(metric, lookup))
    }

    fn found<'r>(
        &self,
        metric: Result<Metric<'r>, MissingReason>,
        lookup: &Lookup<'r>,
    ) -> Result<Measured<'r>, MissingReason> {
        let metric = metric?;
        let estimate = metric.estimate()?;
        let relative = self.relative(lookup, &metric, &estimate);
        let mismatches = self.mismatches(&metric.spec.parameters);
        let in_another_unit = in_another_unit(metric.spec, self.row.unit);
        Ok(Measured { metric, estimate, relative, mismatches, in_another_unit })
    }

    /// What the run measured, or one of another system than the `own`, in the unit that the row was declared with: rows of one
    /// picture share an axis.
    ///
    /// # Errors
    /// As [`measured`](Self::measured); it is in a unit of another kind.
    pub fn drawn<'r>(&self, lookup: &Lookup<'r>, own: bool) -> Result<Measured<'r>, MissingReason> {
        let beside = || self.measured_beside(lookup, None).unwrap_or(Err(MissingReason::NotInRun));
        let measured = if own { self.measured(lookup)? } else { beside()? };
        match &measured.in_another_unit {
            Some(reason) => Err(MissingReason::Inconsistent(reason.clone())),
            None => Ok(measured),
        }
    }

    fn find<'r>(&self, lookup: &Lookup<'r>, id: &str) -> Result<Metric<'r>, MissingReason> {
        lookup.find(id, &self.table.selected(id, &self.case.select), &self.table.published_with(&self.row.id))
    }

    fn relative(&self, lookup: &Lookup<'_>, metric: &Metric<'_>, estimate: &Estimate) -> Option<Share> {
        let to = self.table.row(&self.row.relative.as_ref()?.to)?;
        let whole = self.find(lookup, &to.id).ok().filter(|whole| whole.spec.unit.is_like(metric.spec.unit))?;
        // Of the runs that have both, so that what is common to a run stands on both sides.
        let part = metric.paired(&whole);
        let (of_part, whole) = (part.estimate().ok()?, whole.paired(metric).estimate().ok()?.median);
        let interval = metric.interval(estimate).and(part.interval(&of_part)).ok();
        let interval = interval.map(|(low, high)| (low / whole, high / whole));
        let (value, precision, of) = (of_part.median / whole, Precision::Interval, to.label.clone());
        (whole > 0.0).then_some(Share { value, interval, precision, of })
    }

    fn mismatches(&self, parameters: &Parameters) -> Vec<String> {
        let mismatch = |(name, document): (String, Parameter)| {
            let run = parameters.get(&name)?;
            (*run != document).then(|| format!("{name} {run}, in the text {document}"))
        };
        self.table.published_with(&self.row.id).into_iter().filter_map(mismatch).collect()
    }
}

impl Measured<'_> {
    /// The measured value over the published one, where that means something.
    ///
    /// # Errors
    /// Says why it means nothing.
    pub fn ratio(&self, published: &Figure) -> Result<f64, &'static str> {
        let ratio = self.estimate.median / published.value;
        if self.in_another_unit.is_some() {
            Err("the units differ")
        } else if !self.mismatches.is_empty() {
            Err("measured with other parameters")
        } else if self.metric.may_be_zero() {
            Err("the difference may be 0")
        } else if ratio.is_finite() && ratio > 0.0 {
            Ok(ratio)
        } else {
            Err("the signs differ")
        }
    }
}

/// What a row is shown for: a dtype.
#[derive(Clone, Debug, PartialEq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TableCase {
    /// Its name, by which a row gives its published figure.
    pub label: String,
    /// The parameters that select the measurement.
    pub select: Parameters,
}

impl TableCase {
    /// The label of the one case of a table that names none.
    pub(crate) const ALL: &str = "all";

    fn all() -> Self {
        Self { label: Self::ALL.to_owned(), select: Parameters::new() }
    }

    /// The label, where it tells a reader something: the one case of a table that names none needs no heading.
    pub fn heading(&self) -> Option<&str> {
        (self.label != Self::ALL).then_some(self.label.as_str())
    }
}

impl DocumentTable {
    /// What each row is shown for: the table's own cases, or one for each value that the parameter `each` has in any of
    /// `results`, numbers by size and words as they come.
    ///
    /// Where no run has the parameter there is one case without it, so that the rows still stand there.
    pub fn cases_in(&self, results: &[Results]) -> Vec<TableCase> {
        let Some(name) = &self.each else {
            return if self.cases.is_empty() { vec![TableCase::all()] } else { self.cases.clone() };
        };
        let values = values_of(name, results, |id| self.row(id).is_some());
        if values.is_empty() {
            return vec![TableCase::all()];
        }
        let case = |value: &Parameter| TableCase {
            label: format!("{name} {value}"),
            select: Parameters::from([(name.clone(), value.clone())]),
        };
        values.into_iter().map(case).collect()
    }
}

/// The values of a parameter among rows, numbers by size and words as they come.
pub(crate) fn values_of<'r>(name: &str, results: &'r [Results], is_of: impl Fn(&str) -> bool) -> Vec<&'r Parameter> {
    let rows = results.iter().flat_map(|results| results.rows.iter()).filter(|row| is_of(&row.spec.id));
    let mut values = each_once(rows.filter_map(|row| row.spec.parameters.get(name)));
    values.sort_by(|a, b| by_size(a, b));
    values
}
