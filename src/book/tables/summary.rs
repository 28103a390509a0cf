//! The summary of an experiment for a console: a table a heading, in the order of the rows.

use super::comparison::row_cell;
use crate::in_order::grouped;
use crate::present::{Column, Role, Table, TableGroup, TableRow};
use crate::results::{Results, begins, in_words};

/// The rows of an experiment, as text: what it asks, then a table a heading.
pub fn summary(results: &Results, experiment: &str) -> String {
    let ran = results.runs.iter().flat_map(|run| &run.order).find(|ran| ran.name == experiment);
    let asks = ran.map(|ran| ran.summary.as_str()).unwrap_or_default();
    let mut text = format!("{experiment}: {asks}\n\n");
    let lookup = results.lookup();
    let rows = lookup.metrics().filter(|(spec, _)| begins(&spec.id, experiment)).map(|(spec, metric)| {
        let row = TableRow::new(&spec.label, vec![row_cell(metric)]).of(&spec.id);
        (spec.group.as_str(), (&spec.parameters, row))
    });
    for (heading, rows) in grouped(rows) {
        let columns = vec![Column::new(Role::Label, ""), Column::new(Role::Measured, "measured")];
        let group = |(parameters, rows)| TableGroup { label: Some(in_words(parameters)), rows };
        let groups = grouped(rows).into_iter().map(group).collect();
        text.push_str(&Table { title: heading.to_owned(), columns, groups }.to_console());
        text.push('\n');
    }
    text
}
