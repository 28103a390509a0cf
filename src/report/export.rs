//! `--export`: the rows of a run for a table of somebody's own, as CSV, Markdown or JSON.

use anyhow::Context;
use clap::ValueEnum;
use csv::Writer;
use serde::Serialize;

use super::facts::print_json;
use super::output;
use crate::clean;
use crate::measure::Estimate;
use crate::present::{Cell, Column, Role, Table, TableGroup, TableRow};
use crate::results::{Parameters, Results, in_words};
use crate::units::Unit;

/// What rows are written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// A line a row, values in the base unit
    Csv,
    /// A table
    Markdown,
    /// All that is known of each row, values in the base unit
    Json,
}

#[derive(Serialize)]
struct Exported<'a> {
    device: &'a str,
    model: &'a str,
    rows: Vec<ExportedRow<'a>>,
}

/// A row, with its estimate or with the reason why it has none.
#[derive(Serialize)]
struct ExportedRow<'a> {
    id: &'a str,
    label: &'a str,
    parameters: &'a Parameters,
    unit: Unit,
    estimate: Option<Estimate>,
    /// Why the estimate has no interval, where it has none: what stands as its ends is no interval then.
    no_interval: Option<String>,
    missing: Option<String>,
}

const HEADINGS: [&str; 9] = ["row", "what", "parameters", "unit", "value", "low", "high", "n", "state"];

/// Prints the rows of a run.
pub(super) fn print(results: &Results, format: Format) -> anyhow::Result<()> {
    let lookup = results.lookup();
    let rows: Vec<ExportedRow<'_>> = lookup
        .metrics()
        .map(|(spec, metric)| {
            let found = metric.and_then(|metric| Ok((metric.estimate()?, metric)));
            let (estimate, no_interval, missing) = match found {
                Ok((estimate, metric)) => (Some(estimate), metric.interval(&estimate).err(), None),
                Err(reason) => (None, None, Some(reason.to_string())),
            };
            let (id, label, parameters, unit) = (&spec.id, &spec.label, &spec.parameters, spec.unit);
            ExportedRow { id, label, parameters, unit, estimate, no_interval, missing }
        })
        .collect();
    match format {
        Format::Json => {
            let device = &results.environment().device;
            print_json("bench", &Exported { device: &device.name, model: &device.model, rows })?;
        }
        Format::Csv => output::whole(&csv(&rows)?),
        Format::Markdown => output::whole(&format!("{}\n", markdown(results, &rows).to_markdown())),
    }
    Ok(())
}

fn csv(rows: &[ExportedRow<'_>]) -> anyhow::Result<String> {
    let mut out = Writer::from_writer(Vec::new());
    out.write_record(HEADINGS)?;
    for row in rows {
        let numbers = row.estimate.as_ref().map(|estimate| {
            let ends = [estimate.low, estimate.high].map(|end| match row.no_interval {
                None => end.to_string(),
                Some(_) => String::new(),
            });
            let [low, high] = ends;
            [estimate.median.to_string(), low, high, estimate.n.to_string()]
        });
        let [value, low, high, n] = numbers.unwrap_or_default();
        let words = in_words(row.parameters);
        let state = match (&row.missing, &row.no_interval) {
            (Some(reason), _) => reason.clone(),
            (None, Some(reason)) => format!("measured; {reason}"),
            (None, None) => "measured".to_owned(),
        };
        let record = [row.id, row.label, &words, row.unit.base(), &value, &low, &high, &n, &state];
        out.write_record(record.map(|cell| clean::cell(cell).into_owned()))?;
    }
    let bytes = out.into_inner().context("cannot write the rows")?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn markdown(results: &Results, rows: &[ExportedRow<'_>]) -> Table {
    let row = |row: &ExportedRow<'_>| {
        let unit = |value: f64| row.unit.format(value, 3);
        let cells = match (&row.estimate, &row.missing) {
            (Some(estimate), _) => {
                let ends = || format!("{} … {}", unit(estimate.low), unit(estimate.high));
                let interval = row.no_interval.clone().unwrap_or_else(ends);
                [unit(estimate.median), interval, estimate.n.to_string()]
            }
            (None, missing) => [missing.clone().unwrap_or_default(), String::new(), String::new()],
        };
        let label = format!("{} ({})", row.label, row.id);
        TableRow { id: Some(row.id.to_owned()), label, cells: cells.map(Cell::Text).to_vec() }
    };
    let mut groups: Vec<(&Parameters, TableGroup)> = Vec::new();
    for own in rows {
        let place = groups.iter().position(|(parameters, _)| *parameters == own.parameters).unwrap_or_else(|| {
            let label = Some(in_words(own.parameters)).filter(|words| !words.is_empty());
            groups.push((own.parameters, TableGroup { label, rows: Vec::new() }));
            groups.len() - 1
        });
        groups[place].1.rows.push(row(own));
    }
    let names = ["measured", "95 % interval", "samples"];
    let columns = std::iter::once(Column::new(Role::Label, "row"))
        .chain(names.map(|name| Column::new(Role::Measured, name)))
        .collect();
    let device = &results.environment().device;
    let title = format!("{}: {} ({})", results.title(), device.name, device.model);
    Table { title, columns, groups: groups.into_iter().map(|(_, group)| group).collect() }
}
