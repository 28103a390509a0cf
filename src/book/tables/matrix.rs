//! A matrix of a document's plot for the results of one machine: a table of yes (✓) and no (✗).

use std::collections::HashSet;

use super::figure::Drawn;
use super::left_out::unmeasured;
use crate::document::{Matrix, MatrixColumn};
use crate::in_order::grouped;
use crate::present::{Cell, Column, Missing, Role, Table, TableRow};
use crate::results::{Lookup, Metric, MetricSpec, MissingReason, Parameter, Parameters, Results};
use crate::units::{byte_size, counted};

/// A matrix as a table, or why there is nothing to show.
pub(super) fn matrix(matrix: &Matrix, title: &str, results: &Results) -> Drawn {
    let lookup = results.lookup_of(system(matrix, results));
    let found = shown_rows(matrix, &lookup);
    if found.iter().all(|(_, metric)| metric.is_err()) {
        let unmeasured = unmeasured(title, found.into_iter().filter_map(|(_, metric)| metric.err()));
        return Drawn { unmeasured: vec![unmeasured], ..Drawn::default() };
    }
    let table = matrix_table(matrix, title, results).to_html();
    Drawn { pictures: vec![format!("<div class=\"matrix\">\n{table}</div>\n")], ..Drawn::default() }
}

/// The cells of a row of the matrix: what makes it, and its measurements.
struct Cells<'a> {
    select: Parameters,
    label: String,
    metrics: Vec<Found<'a>>,
}

/// What is shown. Rows stand in the order of the results.
fn matrix_table(matrix: &Matrix, title: &str, results: &Results) -> Table {
    let lookup = results.lookup_of(system(matrix, results));
    let found = selected(&matrix.id, &matrix.select, &lookup).into_iter();
    let found = grouped(found.map(|(spec, metric)| (own(matrix, &spec.parameters), (spec, metric)))).into_iter();
    let cells = |(select, metrics)| Cells { label: label(matrix, &select), select, metrics };
    let shown: Vec<Cells<'_>> = found.map(cells).collect();
    let most = shown.iter().filter_map(trials).max();
    let rows = shown.iter().map(|row| {
        let few = trials(row).filter(|trials| most.is_some_and(|most| 2 * trials < most));
        let few = few.map(|trials| format!(" (only {} each)", counted(trials, "trial"))).unwrap_or_default();
        let cells = matrix.columns.iter().map(|column| cell(row, matrix, column, &lookup));
        TableRow::new(row.label.clone() + &few, cells.collect())
    });
    let heads = matrix.columns.iter().map(|column| Column::new(Role::Fact, column.name.as_str()));
    Table::new(title, std::iter::once(Column::new(Role::Label, "call")).chain(heads).collect(), rows.collect())
}

type Found<'a> = (&'a MetricSpec, Result<Metric<'a>, MissingReason>);

/// The system whose measurements a matrix draws.
pub(crate) fn system<'a>(matrix: &Matrix, results: &'a Results) -> &'a str {
    let has = |system: &&str| {
        let found = selected(&matrix.id, &matrix.select, &results.lookup_of(system));
        found.iter().any(|(_, metric)| metric.is_ok())
    };
    results.systems().into_iter().find(has).unwrap_or(&results.run().system)
}

/// The measurements of a matrix: those of its cells, and the times of the same calls.
pub(crate) fn shown_rows<'a>(matrix: &'a Matrix, lookup: &Lookup<'a>) -> Vec<Found<'a>> {
    let mut ids = HashSet::new();
    let ids = matrix.ids().filter(|id| ids.insert(id.as_str()));
    let found = ids.flat_map(|id| selected(id, &matrix.select, lookup));
    // A time that has no meaning takes no line.
    let has_meaning = |(spec, metric): &Found<'_>| {
        !matrix.data.contains(&spec.id) || !matches!(metric, Err(MissingReason::NotApplicable(_)))
    };
    found.filter(has_meaning).collect()
}

fn selected<'a>(id: &str, select: &Parameters, lookup: &Lookup<'a>) -> Vec<Found<'a>> {
    lookup.specs_of(id, select).map(|spec| (spec, lookup.of(spec))).collect()
}

/// The parameters by which a measurement belongs to a row.
fn own(matrix: &Matrix, parameters: &Parameters) -> Parameters {
    let named = |name: &String| Some((name.clone(), parameters.get(name)?.clone()));
    matrix.rows.iter().filter_map(named).collect()
}

fn label(matrix: &Matrix, select: &Parameters) -> String {
    let values = matrix.rows.iter().filter_map(|name| {
        let value = select.get(name)?;
        match (name.as_str(), value) {
            ("bytes", Parameter::Integer(bytes)) => Some(byte_size(*bytes as f64)),
            _ => Some(value.to_string()),
        }
    });
    values.collect::<Vec<_>>().join(", ")
}

/// How many trials each measurement of a row has: the fewest.
fn trials(row: &Cells<'_>) -> Option<usize> {
    row.metrics.iter().filter_map(|(_, metric)| Some(metric.as_ref().ok()?.count())).min()
}

/// All trials of the measurements of a row in one column. Where they differ, the share of yes.
fn cell(row: &Cells<'_>, matrix: &Matrix, column: &MatrixColumn, lookup: &Lookup<'_>) -> Cell {
    let other = column.id.as_ref().map(|id| selected(id, &row.select, lookup));
    let value = matrix.across.as_ref().zip(column.value.as_ref());
    let is_here = |spec: &MetricSpec| value.is_none_or(|(across, value)| spec.parameters.get(across) == Some(value));
    let here = other.as_ref().unwrap_or(&row.metrics).iter().filter(|(spec, _)| is_here(spec));
    let (mut yes, mut all, mut missing) = (0, 0, None);
    for (_, metric) in here {
        match metric {
            Ok(metric) => {
                let samples = metric.samples();
                yes += samples.iter().filter(|sample| **sample > 0.5).count();
                all += samples.len();
            }
            Err(reason) => missing = missing.or(Some(reason)),
        }
    }
    match missing.filter(|_| all == 0) {
        Some(MissingReason::NotApplicable(_)) => Cell::Nothing,
        Some(reason) => Cell::Missing(Missing::new(reason.state(), None)),
        None if all == 0 => Cell::Nothing,
        None => Cell::Text(match yes {
            0 => "✗".to_owned(),
            yes if yes == all => "✓".to_owned(),
            yes => format!("{yes} of {all}"),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::{Clock, StoppedBy};
    use crate::results::{Outcome, Provenance, Row, Series};
    use crate::units::Unit;

    const MATRIX: &str = "{id: d.blocks, select: {bytes: 4}, rows: [call], across: held, \
                          columns: [{value: same, name: same}]}";

    fn row(id: &str, parameters: &str, samples: &[f64]) -> Row {
        let parameters: Parameters = serde_saphyr::from_str(parameters).unwrap();
        let outcome = Outcome::of_samples(samples.to_vec(), StoppedBy::Samples);
        let spec = MetricSpec {
            id: id.to_owned(),
            group: String::new(),
            label: String::new(),
            unit: Unit::Ratio,
            parameters,
            provenance: Provenance::measured(Clock::Observed),
            work: None,
            floor: None,
        };
        Row { spec, series: vec![Series { run: "syncscope-1".to_owned(), outcome }] }
    }

    fn blocks(kind: &str, samples: &[f64]) -> Row {
        row("d.blocks", &format!("{{call: c, held: same, bytes: 4, memory: {kind}}}"), samples)
    }

    fn table(rows: Vec<Row>) -> Vec<TableRow> {
        let mut results = crate::tests::results().clone();
        results.runs.truncate(1);
        results.rows = rows.into();
        let matrix: Matrix = serde_saphyr::from_str(MATRIX).unwrap();
        matrix_table(&matrix, "T", &results).groups.remove(0).rows
    }

    #[test]
    fn a_call_of_less_than_half_the_trials_of_another_says_how_many() {
        let of = |call: &str, trials: usize| {
            row("d.blocks", &format!("{{call: {call}, held: same, bytes: 4}}"), &vec![1.0; trials])
        };
        let labels = |rows: Vec<Row>| table(rows).into_iter().map(|row| row.label).collect::<Vec<_>>();
        let few = labels(vec![of("c", 9), of("d", 3), of("e", 1)]);
        assert_eq!(few, ["c", "d (only 3 trials each)", "e (only 1 trial each)"]);
        assert_eq!(labels(vec![of("c", 3), of("d", 3)]), ["c", "d"]);
        assert_eq!(labels(vec![of("c", 30), of("d", 21)]), ["c", "d"]);
    }

    #[test]
    fn a_cell_of_all_kinds_says_yes_no_or_in_how_many_trials() {
        let cell =
            |one: &[f64], other: &[f64]| table(vec![blocks("a", one), blocks("b", other)]).remove(0).cells.remove(0);
        let text = |text: &str| Cell::Text(text.to_owned());
        assert_eq!(cell(&[1.0; 3], &[1.0; 3]), text("✓"));
        assert_eq!(cell(&[0.0; 3], &[0.0; 3]), text("✗"));
        assert_eq!(cell(&[1.0; 3], &[0.0; 3]), text("3 of 6"));
    }
}
