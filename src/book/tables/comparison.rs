//! A document's table, with what runs measured beside what the document printed.

use super::found::{found_value, missing};
use super::peers;
use super::table::{Cell, Column, Group, Missing, Role, Row, Table};
use super::value::{Precision, Share, Value};
use crate::document::{Case, Comparison, Document, DocumentTable, Reading};
use crate::experiment::share_of_ceiling;
use crate::run::{DeviceDescription, Diagnosed, Run};
use crate::units::significant;

/// What to call the machine of each run: the model of its device; where a model occurs twice, with how many of them the
/// machine has or else the device's name; and a number where that still does not tell them apart.
pub fn machine_labels(runs: &[Run]) -> Vec<String> {
    let models: Vec<&str> = runs.iter().map(|run| run.environment.device.model.as_str()).collect();
    let mut labels: Vec<String> = Vec::with_capacity(runs.len());
    for run in runs {
        let device = &run.environment.device;
        let shared = models.iter().filter(|model| **model == device.model).count() > 1;
        let name = if shared { among_equals(device) } else { device.model.clone() };
        let numbered = (2..).map(|number| format!("{name} ({number})"));
        let free = std::iter::once(name.clone()).chain(numbered).find(|label| !labels.contains(label));
        labels.push(free.unwrap_or(name));
    }
    labels
}

fn among_equals(device: &DeviceDescription) -> String {
    match device.fact("GPUs of this machine") {
        Some("1") => format!("{}, alone", device.model),
        Some(count) => format!("{}, one of {count}", device.model),
        None => format!("{}, {}", device.model, device.name),
    }
}

/// The runs that a chapter shows, with what is found out once about each.
#[derive(Clone, Debug)]
pub struct Machines<'a> {
    /// The runs.
    pub runs: &'a [Run],
    /// What to call the machine of each.
    pub labels: Vec<String>,
    /// What is odd about the samples of each.
    diagnosed: Vec<Vec<Diagnosed>>,
}

impl<'a> Machines<'a> {
    /// The machines of `runs`.
    pub fn of(runs: &'a [Run]) -> Self {
        Self { runs, labels: machine_labels(runs), diagnosed: runs.iter().map(Run::diagnoses).collect() }
    }

    /// Each run with what to call its machine.
    pub fn named(&self) -> impl Iterator<Item = (&'a Run, &str)> {
        self.runs.iter().zip(self.labels.iter().map(String::as_str))
    }
}

/// A table of a document: published, then for each run measured, where the document prints figures the ratio, and what
/// its peers measured.
pub fn mirrored(document: &Document, table: &DocumentTable, machines: &Machines<'_>) -> Table {
    let published = table.has_published();
    let mut columns = vec![Column::new(Role::Label, "")];
    if published {
        let column = Column::new(Role::Published, "published");
        columns.push(match &document.gpu {
            Some(gpu) => column.of(gpu),
            None => column,
        });
    }
    for (run, label) in machines.named() {
        columns.push(Column::new(Role::Measured, "measured").of(label));
        if published {
            columns.push(Column::new(Role::Ratio, "measured / published"));
        }
        columns.extend(peers::peers_of(run, table).into_iter().flat_map(|peer| peers::columns(peer, label)));
    }

    let group = |case: &Case| {
        let rows = table.rows.iter().map(|row| mirrored_row(Comparison { table, row, case }, published, machines));
        Group { label: case.heading().map(str::to_owned), rows: rows.collect() }
    };
    Table { title: table.title.clone(), columns, groups: table.cases_in(machines.runs).iter().map(group).collect() }
}

fn mirrored_row(comparison: Comparison<'_>, published: bool, machines: &Machines<'_>) -> Row {
    let mut cells = Vec::new();
    if published {
        cells.push(published_cell(comparison));
    }
    for (run, diagnosed) in machines.runs.iter().zip(&machines.diagnosed) {
        let reading = comparison.measured(run);
        cells.push(match &reading {
            Ok(reading) => Cell::Value(Box::new(marked_value(reading, run, diagnosed))),
            Err(absence) => missing(absence),
        });
        if published {
            cells.push(ratio_cell(comparison, reading.as_ref().ok()));
        }
        let peers = peers::peers_of(run, comparison.table);
        cells.extend(peers.into_iter().flat_map(|peer| peers::cells(comparison, reading.as_ref().ok(), peer)));
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

/// A measured value with its share of the ceiling that limits it, and the names of what is odd about its samples; the
/// page on the machine says more.
fn marked_value(reading: &Reading<'_>, run: &Run, diagnosed: &[Diagnosed]) -> Value {
    let mut value = measured_value(reading);
    let row = reading.metric.row;
    let of_ceiling = share_of_ceiling(&run.lookup(), &reading.metric, &reading.estimate);
    value.share = value.share.or(of_ceiling.map(|found| Share {
        value: found.share,
        interval: Some(found.interval),
        // The ceiling has a spread of its own: more digits would say more than is known.
        precision: Precision::Digits(3),
        of: found.ceiling.name().to_owned(),
    }));
    let own = diagnosed.iter().filter(|(id, parameters, _)| *id == row.id && *parameters == row.parameters);
    value.notes.extend(own.map(|(.., diagnosis)| format!("⚠ {}", diagnosis.name())));
    value
}

/// What a run measured, as a table shows it.
pub(super) fn measured_value(reading: &Reading<'_>) -> Value {
    let deviations = reading.deviations.iter().map(ToString::to_string);
    let found = found_value(&reading.metric, &reading.estimate);
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
