//! What the rows of a table are shown for: cases that the document names, or the values of a parameter in the runs.

use serde::Deserialize;

use super::DocumentTable;
use crate::results::{Parameter, Parameters, Results, by_size};

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
        let mut values: Vec<&Parameter> = Vec::new();
        for row in results.iter().flat_map(|results| &results.rows).filter(|row| self.row(&row.spec.id).is_some()) {
            values.extend(row.spec.parameters.get(name).filter(|value| !values.contains(value)));
        }
        if values.is_empty() {
            return vec![TableCase::all()];
        }
        values.sort_by(|a, b| by_size(a, b));
        let case = |value: &Parameter| TableCase {
            label: format!("{name} {value}"),
            select: Parameters::from([(name.clone(), value.clone())]),
        };
        values.into_iter().map(case).collect()
    }
}
