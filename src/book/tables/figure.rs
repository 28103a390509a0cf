//! A panel of a document's plot for the results of one machine.

use super::comparison::measured_value;
use crate::book::document::{DocumentTable, Lines, Panel, Scale, Series, TableCase, TableEntry};
use crate::error::PlotError;
use crate::present::{Bar, BarGroup, BarPlot, Line, LinePlot, Point, Spacing};
use crate::results::{Lookup, Parameter, Parameters, Results};
use crate::units::Unit;

/// A panel as SVG; `id` must be unique in the page.
///
/// # Errors
/// What the drawing library reports.
pub fn panel(
    table: &DocumentTable,
    panel: &Panel,
    machine: &str,
    results: &Results,
    id: &str,
) -> Result<String, PlotError> {
    match &panel.lines {
        Some(lines) => line_plot(table, panel, lines, machine, results).to_svg(id),
        None => bar_plot(table, panel, machine, results).to_svg(id),
    }
}

/// Bars: one for each of the panel's rows, in a group for each case.
///
/// One row over several cases is one group, whose bars have the names of the cases.
pub fn bar_plot(table: &DocumentTable, panel: &Panel, machine: &str, results: &Results) -> BarPlot {
    let lookup = results.lookup();
    let mut sizes: Vec<String> = Vec::new();
    let mut unit = None;
    let mut groups = Vec::new();
    for case in &table.cases_in(std::slice::from_ref(results)) {
        let mut bars = Vec::new();
        for row in panel.bars.iter().filter_map(|id| table.row(id)) {
            bars.push(match (TableEntry { table, row, case }).measured(&lookup) {
                Ok(measured) => {
                    unit = Some(measured.metric.spec.unit);
                    note_size(&mut sizes, &measured.metric.spec.parameters);
                    let value = measured_value(&measured);
                    Bar::new(&row.label, value.value, value.interval, value.formatted().main)
                }
                Err(absence) => Bar::missing(&row.label, absence.state()),
            });
        }
        groups.push(BarGroup { label: case.heading().unwrap_or_default().to_owned(), bars });
    }
    let mut title = panel.title.clone().unwrap_or_else(|| table.title.clone());
    if groups.len() > 1 && groups.iter().all(|group| group.bars.len() == 1) {
        if let (None, Some(bar)) = (&panel.title, groups[0].bars.first()) {
            title = format!("{title}: {}", bar.label);
        }
        let named = groups
            .into_iter()
            .flat_map(|BarGroup { label, bars }| bars.into_iter().map(move |bar| Bar { label: label.clone(), ..bar }));
        groups = vec![BarGroup { label: String::new(), bars: named.collect() }];
    }
    let unit = unit.unwrap_or(Unit::Seconds);
    BarPlot { title: title + &sized(&sizes), machine: machine.to_owned(), unit, groups }
}

/// Lines: every row of each series that has the parameter gives a point.
pub fn line_plot(table: &DocumentTable, panel: &Panel, lines: &Lines, machine: &str, results: &Results) -> LinePlot {
    let lookup = results.lookup();
    let mut sizes: Vec<String> = Vec::new();
    let mut unit = None;
    let mut drawn = Vec::new();
    for series in &lines.series {
        let Some(row) = table.row(&series.id) else { continue };
        let predicts = series.predicts.as_ref().and_then(|id| lines.series.iter().position(|other| other.id == *id));
        let label = series.label.clone().unwrap_or_else(|| row.label.clone());
        let mut line = Line { label, predicts, points: Vec::new(), missing: Vec::new() };
        for (x, parameter) in places(series, &lines.x, &lookup) {
            let mut select = series.select.clone();
            select.insert(lines.x.clone(), parameter);
            let case = TableCase { label: String::new(), select };
            match (TableEntry { table, row, case: &case }).measured(&lookup) {
                Ok(measured) => {
                    unit = Some(measured.metric.spec.unit);
                    if lines.x != "size" {
                        note_size(&mut sizes, &measured.metric.spec.parameters);
                    }
                    let value = measured_value(&measured);
                    let text = value.formatted().main;
                    line.points.push(Point { x, value: (value.value, value.interval), text });
                }
                Err(absence) => line.missing.push(format!("{x} {}", absence.state())),
            }
        }
        drawn.push(line);
    }
    LinePlot {
        title: panel.title.as_ref().unwrap_or(&table.title).clone() + &sized(&sizes),
        machine: machine.to_owned(),
        x: lines.name.as_ref().unwrap_or(&lines.x).clone(),
        x_spacing: spacing(lines.scale),
        unit: unit.unwrap_or(Unit::Seconds),
        y_spacing: spacing(lines.values),
        lines: drawn,
    }
}

/// The values of the parameter `x` among the rows of a series, ascending.
fn places(series: &Series, x: &str, lookup: &Lookup<'_>) -> Vec<(f64, Parameter)> {
    let rows = lookup.specs_of(&series.id, &series.select);
    let mut places: Vec<(f64, Parameter)> = rows
        .filter_map(|spec| {
            let parameter = spec.parameters.get(x)?;
            Some((parameter.number()?, parameter.clone()))
        })
        .collect();
    places.sort_by(|a, b| a.0.total_cmp(&b.0));
    places.dedup_by(|a, b| a.0 == b.0);
    places
}

fn spacing(scale: Scale) -> Spacing {
    match scale {
        Scale::Linear => Spacing::Linear,
        Scale::Log => Spacing::Log,
    }
}

fn note_size(sizes: &mut Vec<String>, parameters: &Parameters) {
    let size = parameters.get("size").map(ToString::to_string);
    sizes.extend(size.filter(|size| !sizes.contains(size)));
}

/// What a title says of the sizes that were measured.
fn sized(sizes: &[String]) -> String {
    if sizes.is_empty() { String::new() } else { format!(", size {}", sizes.join(" and ")) }
}
