//! The data of plots, to download: a CSV file for each plot of a run, and one for each recorded timeline.

use std::path::PathBuf;

use csv::Writer;

use super::document::{Document, DocumentFigure, DocumentTable, Matrix, Panel, StackedParts, TableCase, TableEntry};
use super::in_order::each_once;
use super::recorded;
use super::tables::{case_at, matrix_system, pictures, places, shown_rows};
use crate::clean;
use crate::error::{BookError, FileError};
use crate::results::{Lookup, Metric, MetricSpec, MissingReason, Recorded, Results, in_words, matmul_rates};
use crate::timeline::Timeline;
use crate::units::Unit;

/// Where the data of a figure lies, beside the chapters. `number` is the run's, from 1.
pub(crate) fn place(document: &Document, figure: &DocumentFigure, number: usize) -> String {
    format!("data/{}-{}-{number}.csv", document.id, figure.id)
}

/// Whether a figure draws rows whose data no other chapter offers.
pub(super) fn has_rows(figure: &DocumentFigure) -> bool {
    figure.panels.iter().any(has_data)
}

fn has_data(panel: &Panel) -> bool {
    panel.timeline.is_none() && panel.chapter.is_none()
}

/// The data that a document's chapter offers: path within the book's `src`, and content.
pub(super) fn files(document: &Document, results: &[Results]) -> Result<Vec<(PathBuf, Vec<u8>)>, BookError> {
    let mut files = Vec::new();
    for (number, results) in (1..).zip(results) {
        for figure in document.figures.iter().filter(|figure| has_rows(figure)) {
            files.push((PathBuf::from(place(document, figure, number)), rows(document, figure, results)?));
        }
    }
    Ok(files)
}

/// The rows that a figure draws and no other chapter offers, of every system that it draws. Values are in the unit of
/// their row, without a prefix.
fn rows(document: &Document, figure: &DocumentFigure, results: &Results) -> Result<Vec<u8>, BookError> {
    let mut out = Writer::from_writer(Vec::new());
    write(&mut out, &["row", "what", "parameters", "system", "unit", "value", "low", "high", "n", "state"])?;
    let mut records: Vec<[String; 10]> = Vec::new();
    for panel in figure.panels.iter().filter(|panel| has_data(panel)) {
        if let Some(matrix) = &panel.matrix {
            records.extend(matrix_rows(matrix, results));
            continue;
        }
        let table = document.table(&panel.table);
        let mut systems: Vec<&str> = pictures(table, panel, results).concat();
        systems.dedup();
        for system in systems {
            let lookup = results.lookup_of(system);
            records.extend(match table {
                Some(table) => drawn_rows(table, panel, results, (system, &lookup)),
                None => matmuls(system, &lookup),
            });
        }
    }
    each_once(records).iter().try_for_each(|record| write(&mut out, record))?;
    finish(out)
}

/// All rows that a matrix draws.
fn matrix_rows(matrix: &Matrix, results: &Results) -> Vec<[String; 10]> {
    let system = matrix_system(matrix, results);
    let lookup = results.lookup_of(system);
    let record = |(spec, metric): (&MetricSpec, Result<Metric<'_>, MissingReason>)| {
        let (label, words) = (spec.label.as_str(), in_words(&spec.parameters));
        match metric.and_then(|metric| Ok((metric.estimate()?, metric))) {
            Ok((estimate, metric)) => {
                let interval = metric.interval(&estimate);
                measured_record(spec, label, system, (estimate.median, interval, estimate.n))
            }
            Err(absence) => {
                let state = absence.to_string();
                [spec.id.as_str(), label, &words, system, "", "", "", "", "", &state].map(str::to_owned)
            }
        }
    };
    shown_rows(matrix, &lookup).into_iter().map(record).collect()
}

/// The rows that a panel draws of a table: bars and their parts case by case, lines place by place.
fn drawn_rows(
    table: &DocumentTable,
    panel: &Panel,
    results: &Results,
    (system, lookup): (&str, &Lookup<'_>),
) -> Vec<[String; 10]> {
    let cases = table.cases_in(std::slice::from_ref(results));
    let bars = cases.into_iter().flat_map(|case| {
        let stacked = panel.stack.iter().flat_map(StackedParts::ids);
        panel.bars.iter().chain(stacked).map(move |id| (id, case.clone()))
    });
    let points = panel.lines.iter().flat_map(|lines| {
        lines.series.iter().flat_map(|series| {
            let places = places(series, &lines.x, lookup);
            places.into_iter().map(|(_, parameter)| (&series.id, case_at(series, &lines.x, parameter)))
        })
    });
    let drawn: Vec<(&String, TableCase)> = bars.chain(points).collect();
    let record = |(id, case): &(&String, TableCase)| {
        let row = table.row(id)?;
        Some(match (TableEntry { table, row, case }).measured(lookup) {
            Ok(measured) => {
                let estimate = &measured.estimate;
                let interval = measured.metric.interval(estimate);
                measured_record(measured.metric.spec, &row.label, system, (estimate.median, interval, estimate.n))
            }
            Err(absence) => {
                let (words, state) = (in_words(&case.select), absence.to_string());
                [id.as_str(), &row.label, &words, system, "", "", "", "", "", &state].map(str::to_owned)
            }
        })
    };
    drawn.iter().filter_map(record).collect()
}

/// The matmuls of a roofline.
fn matmuls(system: &str, lookup: &Lookup<'_>) -> Vec<[String; 10]> {
    let rates = matmul_rates(lookup).into_iter().map(|found| {
        let value = (found.rate, found.interval, found.n);
        let mut record = measured_record(found.spec, &found.spec.label, system, value);
        record[2] = format!("{}, operations per byte {}", record[2], found.intensity);
        record[4] = Unit::FlopsPerSecond.base().to_owned();
        record
    });
    rates.collect()
}

/// A measured value; without an interval, its state says why.
fn measured_record(
    spec: &MetricSpec,
    label: &str,
    system: &str,
    (value, interval, n): (f64, Result<(f64, f64), String>, usize),
) -> [String; 10] {
    let (low, high, state) = match interval {
        Ok((low, high)) => {
            let digits = digits_of_ends(value, high - low);
            (rounded(low, digits), rounded(high, digits), "measured".to_owned())
        }
        Err(reason) => (String::new(), String::new(), format!("measured; {reason}")),
    };
    let (words, value, n) = (in_words(&spec.parameters), rounded(value, VALUE_DIGITS), n.to_string());
    [&spec.id, label, &words, system, spec.unit.base(), &value, &low, &high, &n, &state].map(str::to_owned)
}

/// With how many digits the ends of an interval are written: the value stays between them.
fn digits_of_ends(value: f64, width: f64) -> usize {
    let needed = 3.0 + (value.abs() / width).log10().ceil();
    // Of 0 without a width any number will do.
    if needed.is_nan() { 5 } else { needed.clamp(5.0, VALUE_DIGITS as f64) as usize }
}

/// With how many digits a value is written.
const VALUE_DIGITS: usize = 9;

/// A number with so many significant digits: more than its clock or its interval has, and fewer than fill a file.
fn rounded(value: f64, digits: usize) -> String {
    let rounded = format!("{value:.*e}", digits - 1).parse().unwrap_or(value);
    f64::to_string(&rounded)
}

/// The spans of a timeline.
fn spans(timeline: &Timeline) -> Result<Vec<u8>, BookError> {
    let mut out = Writer::from_writer(Vec::new());
    write(&mut out, &["lane", "what", "kind", "start_ns", "end_ns"])?;
    for span in &timeline.spans {
        let lane = timeline.tracks.get(span.track).map(ToString::to_string).unwrap_or_default();
        let (start, end) = (span.start_ns.to_string(), span.end_ns.to_string());
        write(&mut out, &[&lane, span.name.as_str(), span.kind.name(), &start, &end])?;
    }
    finish(out)
}

/// What a document's chapter offers of recorded timelines: traces and spans.
pub(super) fn timelines(document: &Document, results: &[Results]) -> Result<Vec<(PathBuf, Vec<u8>)>, BookError> {
    let panels = document.figures.iter().flat_map(|figure| &figure.panels);
    let scenarios: Vec<&String> = panels.filter_map(|panel| panel.timeline.as_ref()).collect();
    let mut files = Vec::new();
    for (number, results) in (1..).zip(results) {
        for scenario in &scenarios {
            if let Some(Recorded::Timeline(timeline)) = results.timeline(scenario).map(|found| &found.recorded) {
                let [trace, data] = recorded::places(scenario, number);
                files.push((PathBuf::from(trace), timeline.to_trace().into_bytes()));
                files.push((PathBuf::from(data), spans(timeline)?));
            }
        }
    }
    Ok(files)
}

fn write<T: AsRef<str>>(out: &mut Writer<Vec<u8>>, record: &[T]) -> Result<(), BookError> {
    let cells = record.iter().map(|cell| clean::cell(cell.as_ref()).into_owned());
    out.write_record(cells).map_err(|error| wrong(&error))
}

fn wrong(error: &dyn std::error::Error) -> BookError {
    FileError::whole("the data of a plot", error.to_string()).into()
}

fn finish(out: Writer<Vec<u8>>) -> Result<Vec<u8>, BookError> {
    out.into_inner().map_err(|error| wrong(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_lies_between_the_ends_of_its_interval_as_they_are_written() {
        for value in [1_048_576.0, 1.234_567_89e-6, -3.987_654_3e12, 0.0] {
            for width in [0.0, 1e-12, 1e-7, 1e-3, 0.5, 20.0] {
                let half = f64::abs(value) * width / 2.0;
                let [low, high] =
                    [value - half, value + half].map(|end| rounded(end, digits_of_ends(value, 2.0 * half)));
                let [low, value, high] =
                    [low, rounded(value, VALUE_DIGITS), high].map(|text| text.parse::<f64>().unwrap());
                assert!(low <= value && value <= high, "{low} {value} {high}");
            }
        }
    }
}
