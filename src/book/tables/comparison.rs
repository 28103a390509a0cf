//! What a row came to, as a cell, and a document's table: what runs measured beside what the document printed.

use std::collections::HashSet;

use super::left_out::{left_out, without_meaning};
use crate::document::{Document, DocumentTable, Measured, TableCase, TableEntry};
use crate::measure::{Estimate, Ratio};
use crate::present::{Cell, Column, Missing, Precision, Role, Sampled, Share, Table, TableGroup, TableRow, Value};
use crate::results::{
    Derivation, Lookup, Metric, MetricSpec, MissingReason, Parameters, Program, Provenance, Results, Row, Run,
};
use crate::units::{Unit, counted};

/// What to call the machine of each run: the model of its device; where a model occurs twice, with how many of them the
/// machine has or else the device's name; and a number where that still does not tell them apart.
pub fn machine_labels(results: &[Results]) -> Vec<String> {
    let models: Vec<&str> = results.iter().map(|results| results.environment().device.model.as_str()).collect();
    let mut labels: Vec<String> = Vec::with_capacity(results.len());
    for results in results {
        let device = &results.environment().device;
        let shared = models.iter().filter(|model| **model == device.model).count() > 1;
        let name = match device.fact("GPUs of this machine") {
            _ if !shared => device.model.clone(),
            Some(count) => format!("{count} × {}", device.model),
            None => format!("{}, {}", device.model, device.name),
        };
        let numbered = (2..).map(|number| format!("{name} ({number})"));
        let free = std::iter::once(name.clone()).chain(numbered).find(|label| !labels.contains(label));
        labels.push(free.unwrap_or(name));
    }
    labels
}

/// The machines that a chapter shows: the results of each, with what is found out once about them.
#[derive(Clone, Debug)]
pub struct Machines<'a> {
    /// The results.
    pub results: &'a [Results],
    /// What to call the machine of each.
    pub labels: Vec<String>,
    /// Of each, the systems with the first run and the rows of each; the one that the results are about stands first.
    pub(crate) systems: Vec<Vec<SystemRows<'a>>>,
}

/// The first run of a system, and its rows.
pub(crate) type SystemRows<'a> = (&'a Run, Lookup<'a>);

impl<'a> Machines<'a> {
    /// The machines of `results`.
    pub fn of(results: &'a [Results]) -> Self {
        let systems = |results: &'a Results| {
            let first = |system| Some((results.runs_of(system).next()?, results.lookup_of(system)));
            results.systems().into_iter().filter_map(first).collect()
        };
        let systems = results.iter().map(systems).collect();
        Self { results, labels: machine_labels(results), systems }
    }

    /// The results of each with what to call its machine.
    pub fn named(&self) -> impl Iterator<Item = (&'a Results, &str)> {
        self.results.iter().zip(self.labels.iter().map(String::as_str))
    }
}

/// A table of a document: published; for each machine what each system measured, the one that the results are about last; and
/// the ratios of the first to what is published, and of the last to each other. What has no meaning on any of the machines is
/// left out.
pub fn comparison_table(document: &Document, table: &DocumentTable, machines: &Machines<'_>) -> Table {
    let published = table.has_published();
    let mut columns = vec![Column::new(Role::Label, "")];
    if published {
        columns.push(Column { detail: document.gpu.clone(), ..Column::new(Role::Published, "published") });
    }
    let cases = table.cases_in(machines.results);
    let of_machine = |place: usize| (place, shown(table, machines, place));
    let mut shown: Vec<(usize, Vec<&SystemRows<'_>>)> = (0..machines.results.len()).map(of_machine).collect();
    // A reader sees the first columns first: those of a machine that measured nothing of the table stand last.
    shown.sort_by_key(|(_, systems)| {
        let is_measured = |entry: TableEntry<'_>| systems.iter().any(|(_, lookup)| entry.measured(lookup).is_ok());
        !TableEntry::all(table, &cases).any(is_measured)
    });
    for (place, shown) in &shown {
        let system = &machines.results[*place].run().system;
        columns.extend(system_columns(shown, system, &machines.labels[*place], published));
    }
    let group = |case: &TableCase| {
        let entries = table.rows.iter().map(|row| TableEntry { table, row, case });
        let entries = entries.filter(|entry| left_out(*entry, machines).is_none());
        let rows: Vec<TableRow> = entries.map(|entry| entry_row(entry, published, machines, &shown)).collect();
        (!rows.is_empty()).then(|| TableGroup { label: case.heading().map(str::to_owned), rows })
    };
    let groups = cases.iter().filter_map(group).collect();
    Table { title: table.title.clone(), columns, groups }
}

/// The table as a page shows it: trials that agree as a mark, and no column of ratios that has none. How the samples were taken
/// stands in the chapter's data.
pub(crate) fn on_page(mut table: Table) -> Table {
    let rows = || table.groups.iter().flat_map(|group| &group.rows);
    let is_empty = |place: usize| rows().all(|row| row.cells.get(place - 1) == Some(&Cell::Nothing));
    let ratios = table.columns.iter().enumerate().filter(|(_, column)| column.role == Role::Ratio);
    let empty: Vec<usize> = ratios.map(|(place, _)| place).filter(|place| is_empty(*place)).collect();
    for place in empty.into_iter().rev() {
        table.columns.remove(place);
        for row in table.groups.iter_mut().flat_map(|group| &mut group.rows) {
            row.cells.remove(place - 1);
        }
    }
    for cell in table.groups.iter_mut().flat_map(|group| &mut group.rows).flat_map(|row| &mut row.cells) {
        let Cell::Value(value) = cell else { continue };
        let is_trials = value.samples.is_some_and(|samples| samples.trials);
        (value.samples, value.source) = (None, None);
        if is_trials && (value.value == 0.0 || value.value == 1.0) {
            *cell = Cell::Text(if value.value == 1.0 { "✓" } else { "✗" }.to_owned());
        }
    }
    table
}

/// The systems that have a column for a machine: others that measured a row of the table, then the one that the results are about
/// where a row has a meaning in it.
fn shown<'m, 'r>(table: &DocumentTable, machines: &'m Machines<'r>, place: usize) -> Vec<&'m SystemRows<'r>> {
    let systems = &machines.systems[place];
    let own = systems.first().filter(|_| without_meaning(table, machines, place).is_none());
    beside(systems, table).into_iter().chain(own).collect()
}

/// The columns of a machine: of each system what it measured, and the ratios.
fn system_columns(shown: &[&SystemRows<'_>], own: &str, machine: &str, published: bool) -> Vec<Column> {
    let measured = shown.iter().map(|(run, _)| {
        let role = if run.system == own { Role::Measured } else { Role::Peer };
        Column::new(role, format!("{} here", run.system)).of(machine)
    });
    let first = shown.first().filter(|_| published);
    let first = first.map(|(run, _)| Column::new(Role::Ratio, format!("{} here / published", run.system)));
    let others = others(shown, own).map(|(run, _)| Column::new(Role::Ratio, format!("{own} / {}", run.system)));
    measured.chain(first).chain(others).collect()
}

/// The systems that the own one is set against: a ratio to what has no column would stand for nothing.
fn others<'s, 'm, 'r>(shown: &'s [&'m SystemRows<'r>], own: &str) -> impl Iterator<Item = &'s &'m SystemRows<'r>> {
    let has_own = shown.iter().any(|(run, _)| run.system == own);
    shown[..shown.len() - usize::from(has_own)].iter().filter(move |_| has_own)
}

fn entry_row(
    entry: TableEntry<'_>,
    published: bool,
    machines: &Machines<'_>,
    shown: &[(usize, Vec<&SystemRows<'_>>)],
) -> TableRow {
    let mut cells = Vec::new();
    if published {
        cells.push(published_cell(entry));
    }
    for (place, shown) in shown {
        let results = &machines.results[*place];
        let system = results.run().system.as_str();
        let own = entry.measured(&machines.systems[*place][0].1);
        let mut found: Vec<Option<Result<Measured<'_>, MissingReason>>> = Vec::new();
        for (run, lookup) in shown {
            let is_own = run.system == system;
            found.push(if is_own { Some(own.clone()) } else { entry.measured_beside(lookup, own.as_ref().ok()) });
        }
        cells.extend(shown.iter().zip(&found).map(|((_, lookup), found)| match found {
            Some(Ok(measured)) => {
                let mut value = marked_value(measured, lookup);
                let beside = own.iter().flat_map(|own| mismatches(measured, own));
                value.notes.splice(0..0, beside);
                Cell::Value(Box::new(value))
            }
            Some(Err(absence)) => missing(absence),
            None => Cell::Nothing,
        }));
        if let Some(first) = found.first().filter(|_| published) {
            cells.push(ratio_cell(entry, first.as_ref().and_then(|found| found.as_ref().ok())));
        }
        cells.extend(others(shown, system).zip(&found).map(|((run, _), found)| {
            let (Ok(own), Some(Ok(other))) = (&own, found) else { return Cell::Nothing };
            beside_ratio((own, system), (other, &run.system), results)
        }));
    }
    TableRow::new(&entry.row.label, cells).of(&entry.row.id)
}

/// What a system measured over what another did, where their runs alternated and measured the same.
fn beside_ratio(own: (&Measured<'_>, &str), other: (&Measured<'_>, &str), results: &Results) -> Cell {
    if !mismatches(other.0, own.0).is_empty() {
        no_ratio("measured with other parameters")
    } else if !results.by_turns(other.1) {
        no_ratio("the runs did not alternate")
    } else {
        ratio((&own.0.metric, own.1), (&other.0.metric, other.1))
    }
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

/// A measured value with the names of what is odd about it; the data of the page on the machine say more.
fn marked_value(measured: &Measured<'_>, lookup: &Lookup<'_>) -> Value {
    let mut value = measured_value(measured);
    let spec = measured.metric.spec;
    let row = lookup.at(&spec.id, &spec.parameters);
    value.notes.extend(row.into_iter().flat_map(|row| oddities(row, lookup)).map(|oddity| format!("⚠ {oddity}")));
    value
}

/// What is odd about a row: its samples, and what held the clocks of the device back.
pub(crate) fn oddities<'a>(row: &Row, lookup: &'a Lookup<'_>) -> impl Iterator<Item = &'a str> {
    let of_samples = lookup.diagnoses(row).iter().map(|diagnosis| -> &'a str { diagnosis.name() });
    of_samples.chain(lookup.held_back(row))
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
        Err(reason) => no_ratio(reason),
    }
}

/// What a row's samples come to, with how they were taken.
pub(crate) fn found_value(metric: &Metric<'_>, estimate: &Estimate) -> Value {
    let (source, notes) = match &metric.spec.provenance {
        Provenance::Measured { clock, .. } => (clock.name().to_owned(), vec![]),
        Provenance::Derived { derivation: Derivation::Extrapolation, formula, .. } => {
            (formula.clone(), vec![format!("extrapolated: {formula}")])
        }
        Provenance::Derived { formula, .. } => (formula.clone(), vec![]),
    };
    let left_out =
        (metric.left_out > 0).then(|| format!("; {} of a slowed host left out", counted(metric.left_out, "sample")));
    let slowed = (metric.slowed_runs > 0)
        .then(|| format!("; all samples of {} are of a slowed host", counted(metric.slowed_runs, "run")));
    let source = [Some(source), left_out, slowed].into_iter().flatten().collect();
    let counts = metric.spec.unit == Unit::Number
        && metric.runs.iter().flat_map(|run| run.iter()).all(|sample| sample.fract() == 0.0);
    let precision = if counts { Precision::Whole } else { Precision::Interval };
    let found = Value::estimated(estimate, metric.spec.unit, precision);
    let samples = found.samples.map(|samples| Sampled {
        even: metric.runs.iter().all(|run| run.len() == metric.runs[0].len()),
        trials: metric.is_share(),
        ..samples
    });
    let unsteady = metric.unsteady();
    let fewer = format!("{} of {} runs", metric.runs.len(), metric.planned());
    let fewer = Some(fewer).filter(|_| !metric.lacking.is_empty());
    Value {
        interval: metric.interval(estimate).ok(),
        difference: metric.is_difference(),
        samples,
        source: Some(source),
        notes: notes.into_iter().chain(found.notes).chain(unsteady).chain(fewer).collect(),
        ..found
    }
}

/// A cell that says why there is no value.
pub(super) fn missing(absence: &MissingReason) -> Cell {
    Cell::Missing(Missing::new(absence.state(), absence.reason()))
}

/// The cell of a row, whatever came of it.
pub(crate) fn row_cell(metric: Result<Metric<'_>, MissingReason>) -> Cell {
    let value = metric.and_then(|metric| Ok(found_value(&metric, &metric.estimate()?)));
    value.map_or_else(|absence| missing(&absence), |value| Cell::Value(Box::new(value)))
}

/// The level of the interval of a ratio: that of all intervals in a table.
const LEVEL: f64 = 0.95;

/// All that one system measured.
pub fn system_table(results: &Results, system: &str) -> Table {
    let lookup = results.lookup_of(system);
    let row = |(spec, metric): (&MetricSpec, _)| TableRow::new(spec.title(), vec![row_cell(metric)]).of(&spec.id);
    let rows = lookup.metrics().map(row).collect();
    let run = results.runs_of(system).next();
    let about = run.map(|run| {
        format!(" on {} ({}), {}", run.environment.device.model, versions(&run.environment.program), run.started)
    });
    let columns = vec![Column::new(Role::Label, "row"), Column::new(Role::Peer, "measured")];
    Table::new(format!("{system}{}", about.unwrap_or_default()), columns, rows)
}

/// The versions of a program and of what it stands on, in words: `PyTorch 2.11.0, CUDA 13.0`.
pub(crate) fn versions(program: &Program) -> String {
    let own = std::iter::once((&program.name, &program.version));
    let all = own.chain(program.libraries.iter().map(|(name, version)| (name, version)));
    all.map(|(name, version)| format!("{name} {version}")).collect::<Vec<_>>().join(", ")
}

/// The other systems that measured a row of the table.
fn beside<'m, 'r>(systems: &'m [SystemRows<'r>], table: &DocumentTable) -> Vec<&'m SystemRows<'r>> {
    let ids: HashSet<&str> = table.rows.iter().map(|row| row.id.as_str()).collect();
    let measured = |(_, lookup): &&SystemRows<'_>| lookup.specs().any(|spec| ids.contains(spec.id.as_str()));
    systems.iter().skip(1).filter(measured).collect()
}

/// What another system's row was measured with, where the own one's was not.
fn mismatches(other: &Measured<'_>, own: &Measured<'_>) -> Vec<String> {
    let [other, own] = [other, own].map(|measured| &measured.metric.spec.parameters);
    let names: std::collections::BTreeSet<&String> = other.keys().chain(own.keys()).collect();
    let mismatch = |name: &String| {
        let shown = |parameters: &Parameters| parameters.get(name).map_or("none".to_owned(), ToString::to_string);
        let (other, own) = (shown(other), shown(own));
        (other != own).then(|| format!("{name} {other}, in the run {own}"))
    };
    names.into_iter().filter_map(mismatch).collect()
}

/// This system's median over the other's, where both are of one kind and greater than 0.
fn ratio((own, own_system): (&Metric<'_>, &str), (other, other_system): (&Metric<'_>, &str)) -> Cell {
    if own.may_be_zero() || other.may_be_zero() {
        return no_ratio("the difference may be 0");
    }
    if own.spec.unit != other.spec.unit || !matches!(own.spec.unit, Unit::Seconds | Unit::BytesPerSecond) {
        return Cell::Nothing;
    }
    let (measured, beside) = (own.paired(other), other.paired(own));
    let pairs: Vec<(f64, f64)> = measured.run_medians().into_iter().zip(beside.run_medians()).collect();
    if pairs.len() < 2 {
        return no_ratio("one run of each has no interval");
    }
    match Ratio::of_pairs(&pairs, LEVEL) {
        Some(ratio) => {
            let named = |metric: &Metric<'_>, system: &str| Some(format!("{} (of {system})", metric.unsteady()?));
            let reason = named(own, own_system).or_else(|| named(other, other_system));
            let all = own.planned().max(other.planned());
            let fewer = format!("{} of {all} pairs of runs", pairs.len());
            let fewer = Some(fewer).filter(|_| pairs.len() < all);
            Cell::Value(Box::new(Value {
                interval: Some((ratio.low, ratio.high)).filter(|_| reason.is_none()),
                notes: reason.into_iter().chain(fewer).collect(),
                ..Value::plain(ratio.value, Unit::Ratio, Precision::Interval)
            }))
        }
        None => no_ratio("the pairs of runs show no scatter, or a value is not above 0"),
    }
}

fn no_ratio(reason: &str) -> Cell {
    Cell::Missing(Missing::new("no ratio", Some(reason)))
}
