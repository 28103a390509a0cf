//! The summary of an experiment for a console: its sections in its document's order, then what follows from them.

use super::found::row_cell;
use super::table::{Column, Group, Role, Row, Table};
use crate::experiment::{Entry, Lookup, Parameters, RowPlan, Section, in_words};

/// The rows that an experiment left, as text: a table a section, then the takeaways.
pub fn summary(entry: &Entry, rows: &[crate::experiment::Row]) -> String {
    let experiment = entry.experiment();
    let plan = experiment.rows();
    let tables = experiment.sections().iter().filter_map(|section| table(section, &plan, rows));
    let mut text = format!("{}: {}\n\n", entry.name(), entry.summary());
    for table in tables {
        text.push_str(&table.to_console());
        text.push('\n');
    }
    let takeaways = experiment.takeaways(&Lookup::new(rows));
    if !takeaways.is_empty() {
        text.push_str("Takeaways:\n");
        takeaways.iter().for_each(|sentence| text.push_str(&format!("  - {sentence}\n")));
        text.push('\n');
    }
    text
}

/// The section's rows, in groups of the same parameters; `None` where it has none.
fn table(section: &Section, plan: &[RowPlan], rows: &[crate::experiment::Row]) -> Option<Table> {
    let mut groups: Vec<(&Parameters, Group)> = Vec::new();
    for row in rows.iter().filter(|row| section.holds(&row.id)) {
        let planned = plan.iter().find(|plan| plan.id == row.id);
        let label = planned.map_or_else(|| row.id.clone(), |plan| plan.what.to_owned());
        let place = groups.iter().position(|(parameters, _)| **parameters == row.parameters).unwrap_or_else(|| {
            groups.push((&row.parameters, Group { label: Some(in_words(&row.parameters)), rows: Vec::new() }));
            groups.len() - 1
        });
        groups[place].1.rows.push(Row { id: Some(row.id.clone()), label, cells: vec![row_cell(row)] });
    }
    if groups.is_empty() {
        return None;
    }
    let columns = vec![Column::new(Role::Label, ""), Column::new(Role::Measured, "measured")];
    let groups = groups.into_iter().map(|(_, group)| group).collect();
    Some(Table { title: section.title.to_owned(), columns, groups })
}
