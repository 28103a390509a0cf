//! The summary of an experiment for a console: a table a heading, in the order of the rows.

use super::cell::row_cell;
use crate::present::{Column, Role, Table, TableGroup, TableRow};
use crate::results::{Parameters, Results, begins, in_words};

/// The rows of an experiment, as text: what it asks, then a table a heading.
pub fn summary(results: &Results, experiment: &str) -> String {
    let ran = results.runs.iter().flat_map(|run| &run.order).find(|ran| ran.name == experiment);
    let asks = ran.map(|ran| ran.summary.as_str()).unwrap_or_default();
    let mut text = format!("{experiment}: {asks}\n\n");
    let lookup = results.lookup();
    let mut headings: Vec<(&str, Vec<(&Parameters, TableGroup)>)> = Vec::new();
    for (spec, metric) in lookup.metrics().filter(|(spec, _)| begins(&spec.id, experiment)) {
        let place = headings.iter().position(|(heading, _)| *heading == spec.group).unwrap_or_else(|| {
            headings.push((&spec.group, Vec::new()));
            headings.len() - 1
        });
        let groups = &mut headings[place].1;
        let place = groups.iter().position(|(parameters, _)| **parameters == spec.parameters).unwrap_or_else(|| {
            groups.push((&spec.parameters, TableGroup { label: Some(in_words(&spec.parameters)), rows: Vec::new() }));
            groups.len() - 1
        });
        let (id, label, cells) = (Some(spec.id.clone()), spec.label.clone(), vec![row_cell(metric)]);
        groups[place].1.rows.push(TableRow { id, label, cells });
    }
    for (heading, groups) in headings {
        let columns = vec![Column::new(Role::Label, ""), Column::new(Role::Measured, "measured")];
        let groups = groups.into_iter().map(|(_, group)| group).collect();
        text.push_str(&Table { title: heading.to_owned(), columns, groups }.to_console());
        text.push('\n');
    }
    text
}
