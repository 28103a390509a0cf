//! How many cases of a table say yes: in every trial, in some of them, or in none.
//!
//! It is of rows that observe yes and no. A case without trials is not counted, and a row without such a case is left out.

use super::comparison::{Machines, SystemRows};
use crate::document::{DocumentRow, DocumentTable, TableCase, TableEntry};
use crate::present::{Cell, Column, Role, Table, TableRow};

/// The counts of a table that asks for them, of each system that measured it.
pub(crate) fn counts_table(table: &DocumentTable, machines: &Machines<'_>) -> Option<Table> {
    let cases = table.cases_in(machines.results);
    let mut columns = vec![Column::new(Role::Label, "")];
    let mut rows: Vec<Vec<usize>> = vec![Vec::new(); table.rows.len()];
    for ((_, machine), systems) in machines.named().zip(&machines.systems) {
        for system in systems {
            let counts: Vec<[usize; 3]> =
                (0..table.rows.len()).map(|place| counts(table, place, &cases, system)).collect();
            if counts.iter().flatten().all(|count| *count == 0) {
                continue;
            }
            for (place, heading) in ["in every trial", "in some trials", "in no trial"].into_iter().enumerate() {
                columns.push(Column::new(Role::Measured, heading).of(format!("{}, {machine}", system.0.system)));
                for (row, counts) in rows.iter_mut().zip(&counts) {
                    row.push(counts[place]);
                }
            }
        }
    }
    let row = |(row, counts): (&DocumentRow, Vec<usize>)| {
        let cells = counts.iter().map(|count| Cell::Text(count.to_string())).collect();
        // A row that no system has a case of counts nothing.
        let row = TableRow::new(&row.label, cells).of(&row.id);
        counts.iter().any(|count| *count > 0).then_some(row)
    };
    let rows = table.rows.iter().zip(rows).filter_map(row).collect();
    (table.counts && columns.len() > 1).then(|| Table::new(&table.title, columns, rows))
}

/// Of how many cases a row is yes in every trial, in some, and in none.
fn counts(table: &DocumentTable, place: usize, cases: &[TableCase], (_, lookup): &SystemRows<'_>) -> [usize; 3] {
    let mut counts = [0; 3];
    for case in cases {
        let Ok(measured) = (TableEntry { table, row: &table.rows[place], case }).measured(lookup) else { continue };
        let samples = measured.metric.samples();
        let yes = samples.iter().filter(|sample| **sample > 0.5).count();
        counts[match yes {
            0 => 2,
            yes if yes < samples.len() => 1,
            _ => 0,
        }] += 1;
    }
    counts
}
