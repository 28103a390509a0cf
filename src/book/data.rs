//! The data of plots, to download: a CSV file for each plot of a run, and one for each recorded timeline.

use std::path::PathBuf;

use csv::Writer;

use super::document::{Document, DocumentFigure, TableEntry};
use super::recorded;
use super::tables::shown_rows;
use crate::clean;
use crate::error::BookError;
use crate::results::{Recorded, Results, in_words};
use crate::timeline::Timeline;

/// Where the data of a figure lies, beside the chapters. `number` is the run's, from 1.
pub(super) fn place(document: &Document, figure: &DocumentFigure, number: usize) -> String {
    format!("data/{}-{}-{number}.csv", document.id, figure.id)
}

/// Whether a figure draws rows.
pub(super) fn has_rows(figure: &DocumentFigure) -> bool {
    figure.panels.iter().any(|panel| panel.timeline.is_none())
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

/// The rows that a figure draws. Values are in the unit of their row, without a prefix.
fn rows(document: &Document, figure: &DocumentFigure, results: &Results) -> Result<Vec<u8>, BookError> {
    let mut out = Writer::from_writer(Vec::new());
    write(&mut out, &["row", "what", "parameters", "unit", "value", "low", "high", "n", "state"])?;
    let mut written = Vec::new();
    let lookup = results.lookup();
    for panel in &figure.panels {
        for (spec, metric) in panel.matrix.iter().flat_map(|matrix| shown_rows(matrix, &lookup)) {
            let (id, label, words) = (spec.id.as_str(), spec.label.as_str(), in_words(&spec.parameters));
            let record: Vec<String> = match metric.and_then(|metric| metric.estimate()) {
                Ok(estimate) => {
                    let [value, low, high] = [estimate.median, estimate.low, estimate.high].map(|n| n.to_string());
                    let (unit, n) = (spec.unit.base(), estimate.n.to_string());
                    [id, label, &words, unit, &value, &low, &high, &n, "measured"].map(str::to_owned).to_vec()
                }
                Err(absence) => {
                    [id, label, &words, "", "", "", "", "", &absence.to_string()].map(str::to_owned).to_vec()
                }
            };
            write(&mut out, &record)?;
        }
        let Some(table) = document.table(&panel.table) else { continue };
        let series = panel.lines.iter().flat_map(|lines| &lines.series).map(|series| &series.id);
        let drawn: Vec<&String> = panel.bars.iter().chain(series).collect();
        let cases = table.cases_in(std::slice::from_ref(results));
        for entry in TableEntry::all(table, &cases).filter(|entry| drawn.contains(&&entry.row.id)) {
            let (id, label) = (entry.row.id.as_str(), entry.row.label.as_str());
            let record: Vec<String> = match entry.measured(&lookup) {
                Ok(measured) => {
                    let (row, estimate) = (measured.metric.spec, &measured.estimate);
                    let numbers = [estimate.median, estimate.low, estimate.high].map(|number| number.to_string());
                    let [value, low, high] = numbers;
                    let (words, unit, n) = (in_words(&row.parameters), row.unit.base(), estimate.n.to_string());
                    [id, label, &words, unit, &value, &low, &high, &n, "measured"].map(str::to_owned).to_vec()
                }
                Err(absence) => {
                    let (words, state) = (in_words(&entry.case.select), absence.to_string());
                    [id, label, &words, "", "", "", "", "", &state].map(str::to_owned).to_vec()
                }
            };
            if !written.contains(&record) {
                write(&mut out, &record)?;
                written.push(record);
            }
        }
    }
    finish(out)
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
    out.write_record(cells).map_err(|error| BookError::Data { message: error.to_string() })
}

fn finish(out: Writer<Vec<u8>>) -> Result<Vec<u8>, BookError> {
    out.into_inner().map_err(|error| BookError::Data { message: error.to_string() })
}
