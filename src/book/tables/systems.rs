//! What other systems measured of the same work, beside what the run measured.

use std::collections::HashSet;

use super::cell::{found_value, missing, row_cell};
use super::comparison::SystemRows;
use crate::document::{DocumentTable, Measured, TableEntry};
use crate::measure::Ratio;
use crate::present::{Cell, Column, Missing, Precision, Role, Table, TableRow, Value};
use crate::results::{Metric, MetricSpec, Parameters, Program, Results, Run};
use crate::units::Unit;

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
pub(super) fn beside<'m, 'r>(systems: &'m [SystemRows<'r>], table: &DocumentTable) -> Vec<&'m SystemRows<'r>> {
    let ids: HashSet<&str> = table.rows.iter().map(|row| row.id.as_str()).collect();
    let measured = |(_, lookup): &&SystemRows<'_>| lookup.specs().any(|spec| ids.contains(spec.id.as_str()));
    systems.iter().skip(1).filter(measured).collect()
}

/// The columns of a system: what it measured, and what `own`, the system that the file is about, measured over that.
pub(super) fn columns(run: &Run, machine: &str, own: &str) -> [Column; 2] {
    let detail = format!("{machine}; {}", versions(&run.environment.program));
    [
        Column::new(Role::Peer, format!("{} on this machine", run.system)).of(detail),
        Column::new(Role::Ratio, format!("{own} / {}", run.system)),
    ]
}

/// The cells of those columns.
pub(super) fn cells(
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
    let found = lookup.find(id, select, prefer).and_then(|metric| {
        let estimate = metric.estimate()?;
        Ok((metric, estimate))
    });
    let (metric, estimate) = match found {
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

pub(super) fn no_ratio(reason: &str) -> Cell {
    Cell::Missing(Missing::new("no ratio", Some(reason)))
}
