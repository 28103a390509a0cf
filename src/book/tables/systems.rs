//! What other programs measured of a table's rows on the machine of a run, beside what the run measured.

use super::found::{found_value, missing, row_cell};
use super::table::{Cell, Column, Group, Missing, Role, Row, Table};
use super::value::{Precision, Value};
use crate::document::{Comparison, DocumentTable, Reading};
use crate::experiment::{Metric, Parameters, titled};
use crate::measure::Ratio;
use crate::run::{Peer, Run};
use crate::units::Unit;

/// The level of the interval of a ratio: that of all intervals in a table.
const LEVEL: f64 = 0.95;

/// All that a peer measured.
pub fn peer_table(peer: &Peer) -> Table {
    let rows = peer.rows.iter().map(|row| {
        let label = titled(&row.id, &row.parameters);
        Row { id: Some(row.id.clone()), label, cells: vec![row_cell(row)] }
    });
    Table {
        title: format!("{} on {} ({}), {}", peer.name, peer.machine.model, peer.versions_in_words(), peer.started),
        columns: vec![Column::new(Role::Label, "row"), Column::new(Role::Peer, "measured")],
        groups: vec![Group { label: None, rows: rows.collect() }],
    }
}

/// The peers of a run that measured a row of the table.
pub(super) fn peers_of<'r>(run: &'r Run, table: &DocumentTable) -> Vec<&'r Peer> {
    run.peers.iter().filter(|peer| peer.rows.iter().any(|row| table.row(&row.id).is_some())).collect()
}

/// The columns of a peer: what it measured, and what the run measured over that.
pub(super) fn columns(peer: &Peer, machine: &str) -> [Column; 2] {
    let detail = format!("{machine}; {}", peer.versions_in_words());
    [
        Column::new(Role::Peer, format!("{} on this machine", peer.name)).of(detail),
        Column::new(Role::Ratio, format!("measured / {}", peer.name)),
    ]
}

/// The cells of those columns.
pub(super) fn cells(comparison: Comparison<'_>, reading: Option<&Reading<'_>>, peer: &Peer) -> [Cell; 2] {
    let lookup = peer.lookup();
    let (id, select) = (&comparison.row.id, &comparison.case.select);
    if lookup.rows_of(id, select).next().is_none() {
        return [Cell::Nothing, Cell::Nothing];
    }
    let nothing = Parameters::new();
    let prefer = reading.map_or(&nothing, |reading| &reading.metric.row.parameters);
    let found = lookup.find(id, select, prefer).and_then(|metric| Ok((metric, metric.estimate()?)));
    let (metric, estimate) = match found {
        Ok(found) => found,
        Err(absence) => return [missing(&absence), Cell::Nothing],
    };
    let deviations = reading.map(|reading| deviations(&metric.row.parameters, &reading.metric.row.parameters));
    let deviations = deviations.unwrap_or_default();
    let value = Value { notes: deviations.clone(), ..found_value(&metric, &estimate) };
    let ratio = match reading {
        None => Cell::Nothing,
        Some(_) if !deviations.is_empty() => no_ratio("measured with other parameters"),
        Some(reading) => ratio(&reading.metric, &metric),
    };
    [Cell::Value(Box::new(value)), ratio]
}

/// What the peer's row was measured with, where the run's row was not.
fn deviations(peer: &Parameters, run: &Parameters) -> Vec<String> {
    let names: std::collections::BTreeSet<&String> = peer.keys().chain(run.keys()).collect();
    let deviation = |name: &String| {
        let shown = |parameters: &Parameters| parameters.get(name).map_or("none".to_owned(), ToString::to_string);
        let (peer, run) = (shown(peer), shown(run));
        (peer != run).then(|| format!("{name} {peer}, in the run {run}"))
    };
    names.into_iter().filter_map(deviation).collect()
}

/// The run's median over the peer's, where both are of one kind and greater than 0.
fn ratio(run: &Metric<'_>, peer: &Metric<'_>) -> Cell {
    if run.is_difference() || peer.is_difference() {
        return no_ratio("a difference may be 0");
    }
    if run.row.unit != peer.row.unit || !matches!(run.row.unit, Unit::Seconds | Unit::BytesPerSecond) {
        return Cell::Nothing;
    }
    match Ratio::of(run.samples, peer.samples, LEVEL) {
        Some(ratio) => Cell::Value(Box::new(Value {
            interval: Some((ratio.low, ratio.high)),
            ..Value::plain(ratio.value, Unit::Ratio, Precision::Interval)
        })),
        None => no_ratio("too few samples"),
    }
}

fn no_ratio(reason: &str) -> Cell {
    Cell::Missing(Missing { state: "no ratio".to_owned(), reason: Some(reason.to_owned()) })
}
