//! A document's table and plots, with what runs measured beside what the document printed.

use super::found::{found_value, missing};
use super::plot::{Bar, BarGroup, BarPlot};
use super::table::{Cell, Column, Group, Missing, Role, Row, Table};
use super::value::{Precision, Share, Value};
use crate::document::{Comparison, Document, DocumentTable, Panel, Reading};
use crate::run::Run;
use crate::units::{Unit, significant};

/// What to call the machine of each run: the model of its device, with the device's name where a model occurs twice,
/// and a number where that still does.
pub fn machine_labels(runs: &[Run]) -> Vec<String> {
    let models: Vec<&str> = runs.iter().map(|run| run.environment.device.model.as_str()).collect();
    let mut labels: Vec<String> = Vec::with_capacity(runs.len());
    for run in runs {
        let device = &run.environment.device;
        let shared = models.iter().filter(|model| **model == device.model).count() > 1;
        let name = if shared { format!("{}, {}", device.model, device.name) } else { device.model.clone() };
        let numbered = (2..).map(|number| format!("{name} ({number})"));
        let free = std::iter::once(name.clone()).chain(numbered).find(|label| !labels.contains(label));
        labels.push(free.unwrap_or(name));
    }
    labels
}

/// A table of a document: published, then for each run measured and, where the document prints figures, the ratio.
pub fn mirrored(document: &Document, table: &DocumentTable, runs: &[Run]) -> Table {
    let published = table.has_published();
    let mut columns = vec![Column::new(Role::Label, "")];
    if published {
        let column = Column::new(Role::Published, "published");
        columns.push(match &document.gpu {
            Some(gpu) => column.of(gpu),
            None => column,
        });
    }
    for label in machine_labels(runs) {
        columns.push(Column::new(Role::Measured, "measured").of(&label));
        if published {
            columns.push(Column::new(Role::Ratio, "measured / published"));
        }
    }

    let group = |case| {
        let rows = table.rows.iter().map(|row| mirrored_row(Comparison { table, row, case }, published, runs));
        Group { label: Some(case.label.clone()), rows: rows.collect() }
    };
    Table { title: table.title.clone(), columns, groups: table.cases.iter().map(group).collect() }
}

fn mirrored_row(comparison: Comparison<'_>, published: bool, runs: &[Run]) -> Row {
    let mut cells = Vec::new();
    if published {
        cells.push(published_cell(comparison));
    }
    for run in runs {
        let reading = comparison.measured(run);
        cells.push(match &reading {
            Ok(reading) => Cell::Value(Box::new(measured_value(reading))),
            Err(absence) => missing(absence),
        });
        if published {
            cells.push(ratio_cell(comparison, reading.ok().as_ref()));
        }
    }
    Row { id: Some(comparison.row.id.clone()), label: comparison.row.label.clone(), cells }
}

fn published_cell(comparison: Comparison<'_>) -> Cell {
    let Some(figure) = comparison.published() else { return Cell::Nothing };
    let share = comparison.published_share().map(|(figure, of)| Share {
        value: figure.value,
        interval: None,
        precision: Precision::Digits(figure.digits),
        of: of.to_owned(),
    });
    let notes = comparison.row.note.iter().cloned().collect();
    let plain = Value::plain(figure.value, comparison.row.unit, Precision::Digits(figure.digits));
    Cell::Value(Box::new(Value { terms: figure.terms.clone(), share, notes, ..plain }))
}

fn measured_value(reading: &Reading<'_>) -> Value {
    let deviations = reading.deviations.iter().map(ToString::to_string);
    let found = found_value(&reading.finding, &reading.estimate);
    Value {
        share: reading.relative.as_ref().map(|relative| Share {
            value: relative.share,
            interval: Some(relative.interval),
            precision: Precision::Interval,
            of: relative.of.clone(),
        }),
        notes: deviations.chain(found.notes.iter().cloned()).collect(),
        ..found
    }
}

fn ratio_cell(comparison: Comparison<'_>, reading: Option<&Reading<'_>>) -> Cell {
    let (Some(figure), Some(reading)) = (comparison.published(), reading) else { return Cell::Nothing };
    match reading.ratio(figure) {
        Ok(ratio) => Cell::Text(format!("×{}", significant(ratio, 3))),
        Err(reason) => Cell::Missing(Missing { state: "no ratio".to_owned(), reason: Some(reason.to_owned()) }),
    }
}

/// A panel of a document's plot for one run: a bar for each of its rows, in a group for each case.
pub fn bar_plot(table: &DocumentTable, panel: &Panel, machine: &str, run: &Run) -> BarPlot {
    let mut sizes: Vec<String> = Vec::new();
    let mut unit = Unit::Seconds;
    let mut groups = Vec::new();
    for case in &table.cases {
        let mut bars = Vec::new();
        for row in panel.bars.iter().filter_map(|id| table.row(id)) {
            let reading = Comparison { table, row, case }.measured(run);
            bars.push(match reading {
                Ok(reading) => {
                    unit = reading.finding.row.unit;
                    let size = reading.finding.row.parameters.get("size").map(ToString::to_string);
                    sizes.extend(size.filter(|size| !sizes.contains(size)));
                    let value = measured_value(&reading);
                    Bar::new(&row.label, value.value, value.interval, value.written().main)
                }
                Err(absence) => Bar::missing(&row.label, absence.state()),
            });
        }
        groups.push(BarGroup { label: case.label.clone(), bars });
    }
    let size = if sizes.is_empty() { String::new() } else { format!(", size {}", sizes.join(" and ")) };
    BarPlot { title: format!("{}{size}", table.title), machine: machine.to_owned(), unit, groups }
}
