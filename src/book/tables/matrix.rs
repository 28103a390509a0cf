//! A matrix of a document's plot for the results of one machine.

use crate::book::document::{Matrix, MatrixColumn};
use crate::error::PlotError;
use crate::present::{MatrixCell, MatrixPlot, MatrixRow};
use crate::results::{Lookup, Metric, MetricSpec, MissingReason, Parameter, Parameters, Results};
use crate::units::{Unit, byte_size};

/// A matrix as SVG; `id` must be unique in the page.
///
/// # Errors
/// What the drawing library reports.
pub(in crate::book) fn matrix(
    matrix: &Matrix,
    title: Option<&str>,
    machine: &str,
    results: &Results,
    id: &str,
) -> Result<String, PlotError> {
    matrix_plot(matrix, title.unwrap_or_default(), machine, results).to_svg(id)
}

/// The cells of a row of the matrix: what makes it, and its measurements.
struct Drawn<'a> {
    select: Parameters,
    label: String,
    metrics: Vec<Found<'a>>,
}

/// What is drawn. Rows stand in the order of the results.
fn matrix_plot(matrix: &Matrix, title: &str, machine: &str, results: &Results) -> MatrixPlot {
    let lookup = results.lookup_of(system(matrix, results));
    let mut drawn: Vec<Drawn<'_>> = Vec::new();
    for (spec, metric) in selected(&matrix.id, &matrix.select, &lookup) {
        let select = own(matrix, &spec.parameters);
        match drawn.iter_mut().find(|row| row.select == select) {
            Some(row) => row.metrics.push((spec, metric)),
            None => drawn.push(Drawn { label: label(matrix, &select), select, metrics: vec![(spec, metric)] }),
        }
    }
    let rows = drawn.iter().map(|row| MatrixRow {
        label: row.label.clone(),
        cells: matrix.columns.iter().map(|column| cell(row, matrix, column, &lookup)).collect(),
        beside: matrix.beside.iter().map(|time| beside(row, &time.id, &time.select, &lookup)).collect(),
    });
    let heads = matrix.columns.iter().map(|column| &column.name).chain(matrix.beside.iter().map(|time| &time.name));
    MatrixPlot {
        title: title.to_owned(),
        machine: machine.to_owned(),
        legend: matrix.legend.clone(),
        columns: heads.cloned().collect(),
        rows: rows.collect(),
    }
}

type Found<'a> = (&'a MetricSpec, Result<Metric<'a>, MissingReason>);

/// The system whose measurements a matrix draws.
pub(in crate::book) fn system<'a>(matrix: &Matrix, results: &'a Results) -> &'a str {
    let has = |system: &&str| {
        let found = selected(&matrix.id, &matrix.select, &results.lookup_of(system));
        found.iter().any(|(_, metric)| metric.is_ok())
    };
    results.systems().into_iter().find(has).unwrap_or(&results.run().system)
}

/// The measurements of a matrix: those of its cells, and the times beside them.
pub(in crate::book) fn shown_rows<'a>(matrix: &'a Matrix, lookup: &Lookup<'a>) -> Vec<Found<'a>> {
    let ids = matrix.columns.iter().filter_map(|column| column.id.as_ref()).filter(|id| **id != matrix.id);
    let columns = ids.flat_map(|id| selected(id, &matrix.select, lookup));
    let beside = matrix.beside.iter().flat_map(|time| selected(&time.id, &time.select, lookup));
    selected(&matrix.id, &matrix.select, lookup).into_iter().chain(columns).chain(beside).collect()
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

/// All trials of the measurements of a row in one column.
fn cell(row: &Drawn<'_>, matrix: &Matrix, column: &MatrixColumn, lookup: &Lookup<'_>) -> MatrixCell {
    let other = column.id.as_ref().map(|id| selected(id, &row.select, lookup));
    let value = matrix.across.as_ref().zip(column.value.as_ref());
    let is_here = |spec: &MetricSpec| value.is_none_or(|(across, value)| spec.parameters.get(across) == Some(value));
    let here = other.as_ref().unwrap_or(&row.metrics).iter().filter(|(spec, _)| is_here(spec));
    let (mut yes, mut all, mut state) = (0, 0, MissingReason::NotInRun.state());
    for (_, metric) in here {
        match metric {
            Ok(metric) => {
                let samples = metric.samples();
                yes += samples.iter().filter(|sample| **sample > 0.5).count();
                all += samples.len();
            }
            Err(reason) => state = reason.state(),
        }
    }
    if all > 0 { MatrixCell::Trials(yes, all) } else { MatrixCell::Missing(state) }
}

/// A time of the one measurement that the row is of.
fn beside(row: &Drawn<'_>, id: &str, select: &Parameters, lookup: &Lookup<'_>) -> String {
    let mut wanted = row.select.clone();
    wanted.extend(select.clone());
    match lookup.find(id, &wanted, &Parameters::new()).and_then(|metric| metric.estimate()) {
        Ok(estimate) => Unit::Seconds.format(estimate.median, 2),
        Err(_) => "–".to_owned(),
    }
}
