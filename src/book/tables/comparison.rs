//! A document's table, with what runs measured beside what the document printed.

use super::cell::{found_value, missing};
use super::left_out::{left_out, without_meaning};
use super::systems;
use crate::document::{Document, DocumentTable, Measured, TableCase, TableEntry};
use crate::present::{Cell, Column, Precision, Role, Share, Table, TableGroup, TableRow, Value};
use crate::results::{DeviceDescription, Diagnosed, Lookup, Results, Run, share_of_peak};
use crate::units::Unit;

/// What to call the machine of each run: the model of its device; where a model occurs twice, with how many of them the
/// machine has or else the device's name; and a number where that still does not tell them apart.
pub fn machine_labels(results: &[Results]) -> Vec<String> {
    let models: Vec<&str> = results.iter().map(|results| results.environment().device.model.as_str()).collect();
    let mut labels: Vec<String> = Vec::with_capacity(results.len());
    for results in results {
        let device = &results.environment().device;
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
        Some("1") => format!("1 × {}", device.model),
        Some(count) => format!("{count} × {}", device.model),
        None => format!("{}, {}", device.model, device.name),
    }
}

/// The machines that a chapter shows: the results of each, with what is found out once about them.
#[derive(Clone, Debug)]
pub struct Machines<'a> {
    /// The results.
    pub results: &'a [Results],
    /// What to call the machine of each.
    pub labels: Vec<String>,
    /// The diagnoses of the samples of each.
    diagnosed: Vec<Vec<Diagnosed<'a>>>,
    /// Of each, the systems with the first run and the rows of each; the one that the results are about stands first.
    pub(super) systems: Vec<Vec<SystemRows<'a>>>,
}

/// The first run of a system, and its rows.
pub(super) type SystemRows<'a> = (&'a Run, Lookup<'a>);

impl<'a> Machines<'a> {
    /// The machines of `results`.
    pub fn of(results: &'a [Results]) -> Self {
        let diagnosed = results.iter().map(Results::diagnoses).collect();
        let systems = |results: &'a Results| {
            let first = |system| Some((results.runs_of(system).next()?, results.lookup_of(system)));
            results.systems().into_iter().filter_map(first).collect()
        };
        let systems = results.iter().map(systems).collect();
        Self { results, labels: machine_labels(results), diagnosed, systems }
    }

    /// The same, with these names, one for each.
    pub(crate) fn called(self, labels: Vec<String>) -> Self {
        Self { labels, ..self }
    }

    /// The results of each with what to call its machine.
    pub fn named(&self) -> impl Iterator<Item = (&'a Results, &str)> {
        self.results.iter().zip(self.labels.iter().map(String::as_str))
    }
}

/// A table of a document: published, then for each machine measured, where the document prints figures the ratio, and
/// what other systems measured. What has no meaning on any of the machines is left out.
pub fn comparison_table(document: &Document, table: &DocumentTable, machines: &Machines<'_>) -> Table {
    let published = table.has_published();
    let mut columns = vec![Column::new(Role::Label, "")];
    if published {
        let column = Column::new(Role::Published, "published");
        columns.push(match &document.gpu {
            Some(gpu) => column.of(gpu),
            None => column,
        });
    }
    let shown = |(place, all)| (without_meaning(table, machines, place).is_none(), systems::beside(all, table));
    let beside: Vec<(bool, Vec<&SystemRows<'_>>)> =
        machines.systems.iter().map(Vec::as_slice).enumerate().map(shown).collect();
    for ((results, label), (has_own, beside)) in machines.named().zip(&beside) {
        // Where another system has a column, too, both are measured.
        let own = results.run().system.as_str();
        if *has_own {
            let head = if beside.is_empty() { "measured" } else { own };
            columns.push(Column::new(Role::Measured, head).of(label));
        }
        if published {
            columns.push(Column::new(Role::Ratio, "measured / published"));
        }
        let of_system =
            |(run, _): &&SystemRows<'_>| systems::columns(run, label, own).into_iter().take(1 + usize::from(*has_own));
        columns.extend(beside.iter().flat_map(of_system));
    }
    let group = |case: &TableCase| {
        let entries = table.rows.iter().map(|row| TableEntry { table, row, case });
        let shown = entries.filter(|entry| left_out(*entry, machines).is_none());
        let rows: Vec<TableRow> = shown.map(|entry| entry_row(entry, published, machines, &beside)).collect();
        (!rows.is_empty()).then(|| TableGroup { label: case.heading().map(str::to_owned), rows })
    };
    let groups = table.cases_in(machines.results).iter().filter_map(group).collect();
    Table { title: table.title.clone(), columns, groups }
}

fn entry_row(
    entry: TableEntry<'_>,
    published: bool,
    machines: &Machines<'_>,
    beside: &[(bool, Vec<&SystemRows<'_>>)],
) -> TableRow {
    let mut cells = Vec::new();
    if published {
        cells.push(published_cell(entry));
    }
    for (place, (results, diagnosed)) in machines.results.iter().zip(&machines.diagnosed).enumerate() {
        let lookup = &machines.systems[place][0].1;
        let (measured, (has_own, beside)) = (entry.measured(lookup), &beside[place]);
        if *has_own {
            cells.push(match &measured {
                Ok(measured) => Cell::Value(Box::new(marked_value(measured, lookup, diagnosed))),
                Err(absence) => missing(absence),
            });
        }
        if published {
            cells.push(ratio_cell(entry, measured.as_ref().ok()));
        }
        // A ratio to what has no column would stand for nothing.
        let of_system = |system: &&SystemRows<'_>| {
            systems::cells(entry, measured.as_ref().ok(), results, system).into_iter().take(1 + usize::from(*has_own))
        };
        cells.extend(beside.iter().flat_map(of_system));
    }
    TableRow::new(&entry.row.label, cells).of(&entry.row.id)
}

fn published_cell(entry: TableEntry<'_>) -> Cell {
    let Some(figure) = entry.published() else { return Cell::Nothing };
    let share = entry.published_share().map(|(figure, of)| Share {
        value: figure.value,
        interval: None,
        precision: Precision::Digits(figure.digits),
        of: of.to_owned(),
    });
    let notes = entry.row.note.iter().cloned().collect();
    let plain = Value::plain(figure.value, entry.row.unit, Precision::Digits(figure.digits));
    Cell::Value(Box::new(Value { terms: figure.terms.clone(), share, notes, ..plain }))
}

/// A measured value with its share of the peak rate that limits it, and the names of what is odd about its samples; the
/// page on the machine says more.
fn marked_value(measured: &Measured<'_>, lookup: &Lookup<'_>, diagnosed: &[Diagnosed<'_>]) -> Value {
    let mut value = measured_value(measured);
    let of_peak = share_of_peak(lookup, &measured.metric, &measured.estimate);
    value.share = value.share.or(of_peak.map(|found| Share {
        value: found.share,
        interval: found.interval,
        // The peak has a spread of its own: more digits would say more than is known.
        precision: Precision::Digits(3),
        of: found.limit.name().to_owned(),
    }));
    let spec = measured.metric.spec;
    let own = diagnosed.iter().filter(|(of, _)| of.is(&spec.id, &spec.parameters));
    value.notes.extend(own.map(|(_, diagnosis)| format!("⚠ {}", diagnosis.name())));
    value
}

/// What was measured, as a table shows it.
pub(super) fn measured_value(measured: &Measured<'_>) -> Value {
    let mismatches = measured.mismatches.iter().cloned();
    let found = found_value(&measured.metric, &measured.estimate);
    Value {
        share: measured.relative.clone(),
        notes: mismatches.chain(measured.in_another_unit.clone()).chain(found.notes.iter().cloned()).collect(),
        ..found
    }
}

fn ratio_cell(entry: TableEntry<'_>, measured: Option<&Measured<'_>>) -> Cell {
    let (Some(figure), Some(measured)) = (entry.published(), measured) else { return Cell::Nothing };
    match measured.ratio(figure) {
        Ok(ratio) => Cell::Text(format!("×{}", Unit::Ratio.format(ratio, 3))),
        Err(reason) => systems::no_ratio(reason),
    }
}
