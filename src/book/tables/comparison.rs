//! What a row came to, as a cell, and a document's table: what runs measured beside what the document printed.

use std::collections::HashSet;

use super::left_out::{left_out, without_meaning};
use crate::document::{Document, DocumentTable, Measured, TableCase, TableEntry};
use crate::measure::{Estimate, Ratio};
use crate::present::{Cell, Column, Missing, Precision, Role, Sampled, Share, Table, TableGroup, TableRow, Value};
use crate::results::{
    Derivation, Lookup, Metric, MetricSpec, MissingReason, Parameters, Program, Provenance, Results, Run, share_of_peak,
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

/// A table of a document: published, then for each machine measured, where the document prints figures the ratio, and
/// what other systems measured. What has no meaning on any of the machines is left out.
pub fn comparison_table(document: &Document, table: &DocumentTable, machines: &Machines<'_>) -> Table {
    let published = table.has_published();
    let mut columns = vec![Column::new(Role::Label, "")];
    if published {
        columns.push(Column { detail: document.gpu.clone(), ..Column::new(Role::Published, "published") });
    }
    let shown = |(place, all)| (without_meaning(table, machines, place).is_none(), beside(all, table));
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
            |(run, _): &&SystemRows<'_>| system_columns(run, label, own).into_iter().take(1 + usize::from(*has_own));
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
    for (place, results) in machines.results.iter().enumerate() {
        let lookup = &machines.systems[place][0].1;
        let (measured, (has_own, beside)) = (entry.measured(lookup), &beside[place]);
        if *has_own {
            cells.push(match &measured {
                Ok(measured) => Cell::Value(Box::new(marked_value(measured, lookup))),
                Err(absence) => missing(absence),
            });
        }
        if published {
            cells.push(ratio_cell(entry, measured.as_ref().ok()));
        }
        // A ratio to what has no column would stand for nothing.
        let of_system = |system: &&SystemRows<'_>| {
            system_cells(entry, measured.as_ref().ok(), results, system).into_iter().take(1 + usize::from(*has_own))
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
fn marked_value(measured: &Measured<'_>, lookup: &Lookup<'_>) -> Value {
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
    let row = lookup.at(&spec.id, &spec.parameters);
    let diagnoses = row.map_or(&[][..], |row| lookup.diagnoses(row));
    value.notes.extend(diagnoses.iter().map(|diagnosis| format!("⚠ {}", diagnosis.name())));
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
        Err(reason) => no_ratio(reason),
    }
}

/// What a row's samples come to, with how they were taken.
pub(super) fn found_value(metric: &Metric<'_>, estimate: &Estimate) -> Value {
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
pub(super) fn row_cell(metric: Result<Metric<'_>, MissingReason>) -> Cell {
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

/// The columns of a system: what it measured, and what `own`, the system that the file is about, measured over that.
fn system_columns(run: &Run, machine: &str, own: &str) -> [Column; 2] {
    let detail = format!("{machine}; {}", versions(&run.environment.program));
    [
        Column::new(Role::Peer, format!("{} on this machine", run.system)).of(detail),
        Column::new(Role::Ratio, format!("{own} / {}", run.system)),
    ]
}

/// The cells of those columns.
fn system_cells(
    entry: TableEntry<'_>,
    measured: Option<&Measured<'_>>,
    results: &Results,
    (run, lookup): &SystemRows<'_>,
) -> [Cell; 2] {
    let (id, select) = (&entry.row.id, &entry.case.select);
    if lookup.specs_of(id, select).next().is_none() {
        return [Cell::Nothing, Cell::Nothing];
    }
    let nothing = Parameters::new();
    let prefer = measured.map_or(&nothing, |measured| &measured.metric.spec.parameters);
    let found = lookup.find(id, select, prefer).and_then(|metric| Ok((metric.estimate()?, metric)));
    let (estimate, metric) = match found {
        Ok(found) => found,
        Err(absence) => return [missing(&absence), Cell::Nothing],
    };
    let mismatches = measured.map(|own| mismatches(&metric.spec.parameters, &own.metric.spec.parameters));
    let mismatches = mismatches.unwrap_or_default();
    let found = found_value(&metric, &estimate);
    let notes = mismatches.iter().chain(&found.notes).cloned().collect();
    let value = Value { notes, ..found };
    let ratio = match measured {
        None => Cell::Nothing,
        Some(_) if !mismatches.is_empty() => no_ratio("measured with other parameters"),
        Some(_) if !results.by_turns(&run.system) => no_ratio("the runs did not alternate"),
        Some(measured) => ratio((&measured.metric, &results.run().system), (&metric, &run.system)),
    };
    [Cell::Value(Box::new(value)), ratio]
}

/// What the other system's row was measured with, where this one's was not.
fn mismatches(other: &Parameters, own: &Parameters) -> Vec<String> {
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
    if own.is_difference() || other.is_difference() {
        return no_ratio("a difference can be near 0");
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
