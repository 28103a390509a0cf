//! Recorded timelines in a chapter, and the data of plots to download: a CSV file for each plot of a run, and one for each recorded
//! timeline.

use csv::Writer;

use super::document::{Document, DocumentFigure, Panel, TableCase, TableEntry};
use super::in_order::each_once;
use super::tables::{drawn_cases, found_value, matrix_system, oddities, pictures, shown_rows};
use crate::clean;
use crate::error::{BookError, FileError};
use crate::measure::median;
use crate::present::{Spread, escape};
use crate::results::{
    Lookup, Metric, MetricSpec, MissingReason, Parameters, Recorded, Results, in_words, roofline_points, share_of_peak,
};
use crate::timeline::{Span, Timeline};
use crate::units::Unit;

/// Where the data of a figure lies, beside the chapters. `number` is the run's, from 1.
pub(crate) fn place(document: &Document, figure: &DocumentFigure, number: usize) -> String {
    format!("data/{}-{}-{number}.csv", document.id, figure.id)
}

/// Where all rows of a chapter lie. `number` is the run's, from 1.
pub(crate) fn rows_place(document: &Document, number: usize) -> String {
    format!("data/{}.rows-{number}.csv", document.id)
}

/// Whether a figure draws rows.
pub(super) fn has_rows(figure: &DocumentFigure) -> bool {
    figure.panels.iter().any(|panel| panel.timeline.is_none())
}

/// What a document's chapter offers, of figures their data and of recorded timelines traces and spans: path within the book's
/// `src`, and content.
pub(super) fn files(document: &Document, results: &[Results]) -> Result<Vec<(String, Vec<u8>)>, BookError> {
    let scenarios: Vec<&String> = document.panels().filter_map(|panel| panel.timeline.as_ref()).collect();
    let mut files = Vec::new();
    for (number, results) in (1..).zip(results) {
        if !document.tables.is_empty() {
            files.push((rows_place(document, number), all_rows(document, results)?));
        }
        for figure in document.figures.iter().filter(|figure| has_rows(figure)) {
            files.push((place(document, figure, number), rows(document, figure, results)?));
        }
        for scenario in &scenarios {
            if let Some(Recorded::Timeline(timeline)) = results.timeline(scenario).map(|found| &found.recorded) {
                let [trace, data] = trace_places(scenario, number);
                files.extend([(trace, timeline.to_trace().into_bytes()), (data, spans(timeline)?)]);
            }
        }
    }
    Ok(files)
}

/// A line of data.
type Record = [String; HEADINGS.len()];

/// What stands in it: a value with its interval in its unit, without a prefix; how many samples of how many runs it is of, and how
/// far the medians of the runs and the samples within a run scatter, as standard deviations; its share of the peak rate that
/// limits it; the clock that took it, or its formula; and what is odd about it.
const HEADINGS: [&str; 16] = [
    "row",
    "what",
    "parameters",
    "system",
    "unit",
    "value",
    "low",
    "high",
    "n",
    "state",
    "runs",
    "spread_of_runs",
    "spread_of_samples",
    "share_of_peak",
    "source",
    "notes",
];

/// The rows of all tables of a document, of every system.
fn all_rows(document: &Document, results: &Results) -> Result<Vec<u8>, BookError> {
    let mut records: Vec<Record> = Vec::new();
    for system in results.systems() {
        let lookup = results.lookup_of(system);
        for table in &document.tables {
            let cases = table.cases_in(std::slice::from_ref(results));
            let is_there = |entry: &TableEntry<'_>| {
                system == results.run().system || lookup.specs_of(&entry.row.id, &entry.case.select).next().is_some()
            };
            let of = |entry: TableEntry<'_>| {
                let found = entry.measured(&lookup).map(|found| found.metric);
                record((&entry.row.id, &entry.row.label, system), &entry.case.select, found, &lookup)
            };
            records.extend(TableEntry::all(table, &cases).filter(is_there).map(of));
        }
    }
    csv(HEADINGS, each_once(records))
}

/// The rows that a figure draws, of every system that it draws. Values are in the unit of
/// their row, without a prefix.
fn rows(document: &Document, figure: &DocumentFigure, results: &Results) -> Result<Vec<u8>, BookError> {
    let mut records: Vec<Record> = Vec::new();
    for panel in figure.panels.iter().filter(|panel| panel.timeline.is_none()) {
        if let Some(matrix) = &panel.matrix {
            let system = matrix_system(matrix, results);
            let lookup = results.lookup_of(system);
            let is_chosen =
                |found: &Result<Metric<'_>, MissingReason>| !found.as_ref().is_err_and(MissingReason::is_by_choice);
            let rows = shown_rows(matrix, &lookup).into_iter().filter(|(_, found)| is_chosen(found));
            let of =
                |spec: &MetricSpec, found| record((&spec.id, &spec.label, system), &spec.parameters, found, &lookup);
            records.extend(rows.map(|(spec, found)| of(spec, found)));
            continue;
        }
        let table = document.table(&panel.table);
        let mut systems: Vec<&str> = pictures(panel, results).concat();
        systems.dedup();
        for system in systems {
            let lookup = results.lookup_of(system);
            let Some(table) = table else {
                // The points of a roofline.
                records.extend(roofline_points(&lookup).into_iter().map(|found| {
                    let words =
                        format!("{}, operations per byte {}", in_words(&found.spec.parameters), found.intensity);
                    let row = [&found.spec.id, &found.spec.label, &words, system, Unit::FlopsPerSecond.base()];
                    measured_record(row, (found.rate, found.interval, found.n), Default::default())
                }));
                continue;
            };
            let record = |(id, case): (&String, TableCase)| {
                let row = table.row(id)?;
                let found = (TableEntry { table, row, case: &case }).drawn(&lookup, system == results.run().system);
                Some(record((id, &row.label, system), &case.select, found.map(|found| found.metric), &lookup))
            };
            records.extend(drawn_cases(table, panel, results, &lookup).into_iter().filter_map(record));
        }
    }
    csv(HEADINGS, each_once(records))
}

/// A row of a system: what it came to, with the parameters that it was measured with, or why there is nothing.
fn record(
    (id, label, system): (&str, &str, &str),
    select: &Parameters,
    found: Result<Metric<'_>, MissingReason>,
    lookup: &Lookup<'_>,
) -> Record {
    match found.and_then(|metric| Ok((metric.estimate()?, metric))) {
        Ok((estimate, metric)) => {
            let (spec, interval) = (metric.spec, metric.interval(&estimate));
            let words = in_words(&spec.parameters);
            let row = [&spec.id, label, &words, system, spec.unit.base()];
            let few = |value: f64| rounded(value, 3);
            let spread = |of: fn(&Spread) -> f64| estimate.spread.as_ref().map(|spread| few(of(spread)));
            let peak = share_of_peak(lookup, &metric, &estimate);
            let value = found_value(&metric, &estimate);
            let row_of = lookup.at(&spec.id, &spec.parameters);
            let odd = row_of.into_iter().flat_map(|row| oddities(row, lookup)).map(str::to_owned);
            let notes = value.notes.into_iter().chain(odd);
            let details = [
                Some(estimate.runs.to_string()),
                spread(|spread| spread.between),
                spread(|spread| spread.within),
                peak.map(|peak| format!("{} of {}", few(peak.share), peak.limit.name())),
                value.source,
                Some(notes.collect::<Vec<_>>().join("; ")),
            ];
            measured_record(row, (estimate.median, interval, estimate.n), details.map(Option::unwrap_or_default))
        }
        Err(absence) => {
            let mut record = Record::default();
            let known = [id, label, &in_words(select), system].map(str::to_owned);
            record.iter_mut().zip(known).for_each(|(cell, known)| *cell = known);
            record[STATE] = absence.to_string();
            record
        }
    }
}

/// The place of what says whether a row was measured.
const STATE: usize = 9;

/// A measured value with its `details`; without an interval, its state says why.
fn measured_record(
    [id, label, words, system, unit]: [&str; 5],
    (value, interval, n): (f64, Result<(f64, f64), String>, usize),
    details: [String; HEADINGS.len() - STATE - 1],
) -> Record {
    let (low, high, state) = match interval {
        Ok((low, high)) => {
            let digits = digits_of_ends(value, high - low);
            (rounded(low, digits), rounded(high, digits), "measured".to_owned())
        }
        Err(reason) => (String::new(), String::new(), format!("measured; {reason}")),
    };
    let (value, n) = (rounded(value, VALUE_DIGITS), n.to_string());
    let known = [id, label, words, system, unit, &value, &low, &high, &n, &state].map(str::to_owned);
    let mut record = Record::default();
    record.iter_mut().zip(known.into_iter().chain(details)).for_each(|(cell, known)| *cell = known);
    record
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
    let record = |span: &Span| {
        let lane = timeline.tracks.get(span.track).map(ToString::to_string).unwrap_or_default();
        let (start, end) = (span.start_ns.to_string(), span.end_ns.to_string());
        [lane, span.name.to_string(), span.kind.name().to_owned(), start, end]
    };
    csv(["lane", "what", "kind", "start_ns", "end_ns"], timeline.spans.iter().map(record).collect())
}

/// Records below their headings.
pub(super) fn csv<const N: usize>(headings: [&str; N], records: Vec<[String; N]>) -> Result<Vec<u8>, BookError> {
    let wrong = |error: &dyn std::error::Error| FileError::whole("the data of a plot", error.to_string());
    let mut out = Writer::from_writer(Vec::new());
    for record in std::iter::once(headings.map(str::to_owned)).chain(records) {
        let cells = record.iter().map(|cell| clean::cell(cell).into_owned());
        out.write_record(cells).map_err(|error| wrong(&error))?;
    }
    Ok(out.into_inner().map_err(|error| wrong(&error))?)
}

/// The timeline of a panel, where it is of one, as HTML without empty lines. What was not recorded says so. `number` is the
/// run's, from 1.
pub(super) fn timeline_panel(drawn: &Panel, run: (&Results, usize, &str), id: &str) -> Option<String> {
    let (scenario, (results, number, machine)) = (drawn.timeline.as_deref()?, run);
    let title = drawn.title.as_deref().unwrap_or(scenario);
    let missing = |why: &str| Some(format!("<p class=\"missing\">{}: {}</p>\n", escape(title), escape(why)));
    let Some(found) = results.timeline(scenario) else { return missing("not recorded in this run") };
    let timeline = match &found.recorded {
        Recorded::Timeline(timeline) => timeline,
        Recorded::Failed(reason) => return missing(&format!("not recorded: {reason}")),
    };
    let plot = timeline.plot(title.to_owned(), machine.to_owned());
    let spans = plot.spans(id).map(|spans| format!(" data-spans=\"{}\"", escape(&spans))).unwrap_or_default();
    let svg = plot.to_svg(id);
    let source = escape(&timeline.source);
    let words = escape(&in_words(&found.parameters));
    let with = if words.is_empty() { words } else { format!("With {words}. ") };
    let lost = timeline.dropped;
    let dropped = if lost == 0 { String::new() } else { format!(" {lost} records were lost.") };
    // What recording costs, where it was timed.
    let passes = [&found.untraced_s, &found.traced_s];
    let [off, on] = passes.map(|passes| Unit::Seconds.format(median(passes.clone()), 3));
    let cost = escape(&format!("The pass took {off} untraced and {on} traced."));
    let cost = if passes.iter().any(|passes| passes.is_empty()) { String::new() } else { format!(" {cost}") };
    let [trace, data] = trace_places(scenario, number);
    Some(format!(
        "<div class=\"timeline\"{spans}>\n{svg}\n<p class=\"source\">{with}Device times: {source}.{dropped}{cost} \
         <a href=\"{trace}\" download>Trace for Perfetto</a>, <a href=\"{data}\" download>data (CSV)</a></p>\n</div>\n",
    ))
}

/// The picture alone, where the scenario was recorded.
pub(super) fn timeline_picture(drawn: &Panel, (results, machine): (&Results, &str), id: &str) -> Option<String> {
    let scenario = drawn.timeline.as_deref()?;
    let Recorded::Timeline(timeline) = &results.timeline(scenario)?.recorded else { return None };
    let title = drawn.title.as_deref().unwrap_or(scenario);
    Some(timeline.plot(title.to_owned(), machine.to_owned()).to_svg(id))
}

/// Where the trace and the data of a scenario lie, beside the chapters.
pub(crate) fn trace_places(scenario: &str, number: usize) -> [String; 2] {
    let name: String =
        scenario.chars().map(|c| if c.is_ascii_alphanumeric() || "-.".contains(c) { c } else { '-' }).collect();
    [format!("traces/{name}-{number}.trace.json"), format!("data/{name}-{number}.csv")]
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
