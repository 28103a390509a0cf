//! A panel of a document's plot for the results of one machine.
//!
//! A panel is one picture, or one for each system. What has no meaning on the machine is left out, and told apart from
//! what was not measured for another reason, which the picture names.

use super::comparison::measured_value;
use super::left_out::{self, LeftOut};
use super::matrix::matrix;
use crate::document::{DocumentTable, Lines, Panel, PanelSeries, Shows, TableCase, TableEntry};
use crate::in_order::{each_once, grouped};
use crate::present::{Bar, BarGroup, BarPlot, Line, LinePlot, LineRole, Point, Spacing, Ticks, Value};
use crate::results::{
    Lookup, MissingReason, Parameter, Parameters, Results, RooflinePoint, memory_rate, roofline_points,
};
use crate::units::Unit;

/// What came of a panel.
#[derive(Clone, Debug, Default)]
pub struct Drawn {
    /// The pictures as SVG.
    pub pictures: Vec<String>,
    /// What has no value to draw, with the reason: it is left out.
    pub unmeasured: Vec<String>,
    /// What has no meaning on the machine.
    pub left_out: Vec<LeftOut>,
}

/// A panel's pictures; `id` must be unique in the page.
pub fn drawn(table: Option<&DocumentTable>, panel: &Panel, machine: &str, results: &Results, id: &str) -> Drawn {
    if let Some(rows) = &panel.matrix {
        return matrix(rows, panel.title.as_deref().unwrap_or_default(), results);
    }
    let mut drawn = Drawn::default();
    for (number, systems) in (1..).zip(pictures(panel, results)) {
        let id = if number == 1 { id.to_owned() } else { format!("{id}-{number}") };
        let mut has_values = true;
        let svg = match (table, &panel.lines) {
            (None, _) => roofline(panel, machine, results, &systems).map(|plot| plot.to_svg(&id)),
            (Some(table), Some(lines)) => {
                let (plot, left_out) = line_plot(table, panel, lines, machine, (results, &systems));
                drawn.left_out.extend(left_out);
                has_values = plot.lines.iter().any(|line| !line.points.is_empty());
                (!plot.lines.is_empty()).then(|| plot.to_svg(&id))
            }
            (Some(table), None) => {
                let (plot, left_out) = bar_plot(table, panel, machine, (results, &systems));
                drawn.left_out.extend(left_out);
                has_values = plot.groups.iter().flat_map(|group| &group.bars).any(|bar| bar.extent.is_some());
                (!plot.groups.is_empty()).then(|| plot.to_svg(&id))
            }
        };
        match (has_values, table) {
            (false, Some(table)) if svg.is_some() => {
                drawn.unmeasured.extend(unmeasured(table, panel, results, &systems));
            }
            _ => drawn.pictures.extend(svg),
        }
    }
    drawn
}

/// A panel of which systems have no value, with the reasons of what would be drawn.
fn unmeasured(table: &DocumentTable, panel: &Panel, results: &Results, systems: &[&str]) -> Option<String> {
    let lookup = results.lookup_of(systems.first()?);
    let reasons = drawn_cases(table, panel, results, &lookup).into_iter().filter_map(|(id, case)| {
        let row = table.row(id)?;
        (TableEntry { table, row, case: &case }).drawn(&lookup, systems[0] == results.run().system).err()
    });
    let title = title(table, panel) + &of_system(panel, results, systems);
    Some(left_out::unmeasured(&title, reasons))
}

/// What a panel draws of a table by the rows of a system: bars case by case, lines place by place.
pub(crate) fn drawn_cases<'a>(
    table: &DocumentTable,
    panel: &'a Panel,
    results: &Results,
    lookup: &Lookup<'_>,
) -> Vec<(&'a String, TableCase)> {
    let cases = panel.cases_in(table, std::slice::from_ref(results));
    let bars = cases.into_iter().flat_map(|case| panel.bars.iter().map(move |id| (id, case.clone())));
    let points = panel.lines.iter().flat_map(|lines| {
        lines.series.iter().flat_map(|series| {
            let places = places(series, &lines.x, lookup).into_iter();
            places.map(|(_, parameter)| (&series.id, case_at(series, &lines.x, parameter)))
        })
    });
    bars.chain(points).collect()
}

/// The most lines of a system in one picture with those of another.
const MAX_LINES: usize = 2;
/// The most bars that are compared with each other. In a longer list, each is compared with that of another system.
const MAX_COMPARED: usize = 6;

/// The systems of each picture of a panel: all that measured something of it, others before the one that the results are about.
pub(crate) fn pictures<'r>(panel: &Panel, results: &'r Results) -> Vec<Vec<&'r str>> {
    let series = panel.lines.iter().flat_map(|lines| &lines.series).map(|series| &series.id);
    let ids: Vec<&String> = panel.bars.iter().chain(series).collect();
    let draws = |system: &&str| {
        let (lookup, all) = (results.lookup_of(system), Parameters::new());
        let mut specs = ids.iter().flat_map(|id| lookup.specs_of(id, &all));
        panel.roofline || specs.any(|spec| lookup.of(spec).is_ok())
    };
    let mut all = results.systems();
    let others = all.split_off(1).into_iter().filter(draws);
    let all: Vec<&str> = others.chain(all).collect();
    if is_apart(panel) { all.into_iter().map(|system| vec![system]).collect() } else { vec![all] }
}

/// Whether each system has a picture of its own.
fn is_apart(panel: &Panel) -> bool {
    panel.lines.as_ref().is_some_and(|lines| lines.series.len() > MAX_LINES)
}

/// Bars: one for each of the panel's rows, in a group for each case. Of several systems, in a group for each system and case;
/// bars that are not compared with each other are one for each system, in a group for each case and row.
///
/// One row over several cases is one group, whose bars have the names of the cases.
pub fn bar_plot(
    table: &DocumentTable,
    panel: &Panel,
    machine: &str,
    (results, systems): (&Results, &[&str]),
) -> (BarPlot, Vec<LeftOut>) {
    let lookups: Vec<Lookup<'_>> = systems.iter().map(|system| results.lookup_of(system)).collect();
    let (mut sizes, mut unit, mut left_out) = (Vec::new(), None, Vec::new());
    let mut bars: Vec<(String, Bar)> = Vec::new();
    let own = results.run().system.as_str();
    for case in &panel.cases_in(table, std::slice::from_ref(results)) {
        // The title of a panel of one case says which.
        let is_said = panel.case.is_some() && panel.title.is_some();
        let heading = case.heading().filter(|_| !is_said).unwrap_or_default();
        let of_case = |name: &str| if heading.is_empty() { name.to_owned() } else { format!("{name}, {heading}") };
        for row in panel.bars.iter().filter_map(|id| table.row(id)) {
            let before = bars.len();
            for (system, lookup) in systems.iter().zip(&lookups) {
                let (group, label) = match (systems, panel.bars.len()) {
                    ([_], _) => (heading.to_owned(), row.label.as_str()),
                    (_, 1) => (heading.to_owned(), *system),
                    (_, 2..=MAX_COMPARED) => (of_case(system), row.label.as_str()),
                    _ => (of_case(&row.label), *system),
                };
                match (TableEntry { table, row, case }).drawn(lookup, *system == own) {
                    Ok(measured) => {
                        unit = Some(measured.metric.spec.unit);
                        sizes.extend(size(&measured.metric.spec.parameters));
                        let value = measured_value(&measured);
                        bars.push((group, Bar::new(label, value.value, value.interval, value.formatted().main)));
                    }
                    // Another system need not have the row; the own one stands last.
                    Err(MissingReason::NotInRun | MissingReason::NotApplicable(_)) if *system != own => {}
                    Err(MissingReason::NotApplicable(_)) if bars.len() > before => {}
                    Err(MissingReason::NotApplicable(reason)) => left_out.push(LeftOut::of(row, case, reason)),
                    Err(absence) => bars.push((group, Bar::missing(label, absence.state()))),
                }
            }
        }
    }
    let mut groups: Vec<BarGroup> = grouped(bars).into_iter().map(|(label, bars)| BarGroup { label, bars }).collect();
    let mut title = title(table, panel);
    if groups.len() > 1 && panel.bars.len() == 1 && systems.len() == 1 {
        if let (None, Some(bar)) = (&panel.title, groups[0].bars.first()) {
            title = format!("{title}: {}", bar.label);
        }
        let named = groups
            .into_iter()
            .flat_map(|BarGroup { label, bars }| bars.into_iter().map(move |bar| Bar { label: label.clone(), ..bar }));
        groups = vec![BarGroup { label: String::new(), bars: named.collect() }];
    }
    let unit = unit.unwrap_or(Unit::Seconds);
    let title = title + &sized(sizes) + &of_system(panel, results, systems);
    let left_out = LeftOut::collapsed(left_out, panel.cases_in(table, std::slice::from_ref(results)).len());
    (BarPlot { title, machine: machine.to_owned(), unit, spacing: panel.values, groups }, left_out)
}

/// Lines: every row of each series that has the parameter gives a point.
pub fn line_plot(
    table: &DocumentTable,
    panel: &Panel,
    lines: &Lines,
    machine: &str,
    (results, systems): (&Results, &[&str]),
) -> (LinePlot, Vec<LeftOut>) {
    let mut sizes: Vec<String> = Vec::new();
    let (mut unit, mut left_out) = (None, Vec::new());
    let own = results.run().system.as_str();
    let mut drawn: Vec<Line> = Vec::new();
    // Where the own line of each row stands, to which predictions refer.
    let mut places_of: Vec<(&str, usize)> = Vec::new();
    for series in &lines.series {
        let Some(row) = table.row(&series.id) else { continue };
        let mut own_line = None;
        for (number, system) in systems.iter().enumerate() {
            // The bounds of the own system stand for all.
            if number > 0 && series.bound {
                continue;
            }
            let lookup = results.lookup_of(system);
            let role = match (number, &series.predicts) {
                (0, _) if series.bound => LineRole::Bound,
                (0, None) => LineRole::Measured,
                (0, Some(other)) => match places_of.iter().find(|(id, _)| id == other) {
                    Some((_, place)) => LineRole::Prediction(*place),
                    None => LineRole::Measured,
                },
                _ => own_line.map_or(LineRole::Measured, LineRole::OtherSystem),
            };
            let label = series.label.clone().unwrap_or_else(|| row.label.clone());
            let label = if systems.len() > 1 && !series.bound { format!("{label}, {system}") } else { label };
            let mut line = Line::new(label, role, Vec::new());
            let mut reason = None;
            for (x, parameter) in places(series, &lines.x, &lookup) {
                let case = case_at(series, &lines.x, parameter);
                match (TableEntry { table, row, case: &case }).drawn(&lookup, *system == own) {
                    Ok(measured) => {
                        unit = Some(lines.shown_unit(measured.metric.spec.unit));
                        if lines.x != "size" {
                            sizes.extend(size(&measured.metric.spec.parameters));
                        }
                        let value = shown(lines.shows, x, measured_value(&measured));
                        let text = value.formatted().main;
                        line.points.push(Point { x, value: (value.value, value.interval), text });
                    }
                    Err(MissingReason::NotApplicable(why)) => reason = Some(why),
                    Err(absence) => line.missing.push(format!("{x} {}", absence.state())),
                }
            }
            match reason.filter(|_| line.points.is_empty() && line.missing.is_empty()) {
                // Another system need not have the row.
                _ if *system != own && line.points.is_empty() => {}
                Some(reason) => left_out.push(LeftOut::new(line.label, reason)),
                None => {
                    if number == 0 {
                        own_line = Some(drawn.len());
                        places_of.push((&series.id, drawn.len()));
                    }
                    drawn.push(line);
                }
            }
        }
    }
    let plot = LinePlot {
        title: title(table, panel) + &sized(sizes) + &of_system(panel, results, systems),
        machine: machine.to_owned(),
        x: lines.name.as_ref().unwrap_or(&lines.x).clone(),
        x_unit: lines.unit,
        x_spacing: lines.scale,
        x_ticks: Ticks::Places,
        unit: unit.unwrap_or(Unit::Seconds),
        y_spacing: lines.values,
        lines: drawn,
    };
    (plot, left_out)
}

/// What is drawn of a value.
fn shown(shows: Shows, x: f64, value: Value) -> Value {
    let (of, unit) = match shows {
        Shows::Value => return value,
        Shows::Excess => {
            let interval = value.interval.map(|(low, high)| (low - x, high - x));
            return Value { value: value.value - x, interval, ..value };
        }
        Shows::Rate => (1.0, Unit::Number),
        Shows::Throughput => (x, Unit::BytesPerSecond),
    };
    let interval = value.interval.filter(|(low, _)| *low > 0.0).map(|(low, high)| (of / high, of / low));
    Value { value: of / value.value, unit, interval, ..value }
}

/// The rows of a series at one value of the parameter `x`.
fn case_at(series: &PanelSeries, x: &str, parameter: Parameter) -> TableCase {
    let mut select = series.select.clone();
    select.insert(x.to_owned(), parameter);
    TableCase { label: String::new(), select }
}

/// The values of the parameter `x` among the rows of a series, ascending.
fn places(series: &PanelSeries, x: &str, lookup: &Lookup<'_>) -> Vec<(f64, Parameter)> {
    let rows = lookup.specs_of(&series.id, &series.select);
    let parameters = rows.filter_map(|spec| spec.parameters.get(x));
    let numbers = parameters.filter_map(|parameter| Some((parameter.number()?, parameter.clone())));
    let mut places: Vec<(f64, Parameter)> = numbers.collect();
    places.sort_by(|a, b| a.0.total_cmp(&b.0));
    places.dedup_by(|a, b| a.0 == b.0);
    places
}

fn title(table: &DocumentTable, panel: &Panel) -> String {
    panel.title.as_ref().unwrap_or(&table.title).clone()
}

fn size(parameters: &Parameters) -> Option<String> {
    parameters.get("size").map(ToString::to_string)
}

/// What a title says of the sizes that were measured.
fn sized(sizes: Vec<String>) -> String {
    if sizes.is_empty() { String::new() } else { format!(", size {}", each_once(sizes).join(" and ")) }
}

/// What a title says of the system, where each has a picture of its own.
pub(super) fn of_system(panel: &Panel, results: &Results, systems: &[&str]) -> String {
    match systems {
        [system] if pictures(panel, results).len() > 1 => format!(", {system}"),
        _ => String::new(),
    }
}

/// The roofline of a run, with the kernels whose bytes and operations are known; `None` where it has no matmul or no copy to draw
/// one of.
pub(super) fn roofline(panel: &Panel, machine: &str, results: &Results, systems: &[&str]) -> Option<LinePlot> {
    let lookups: Vec<_> = systems.iter().map(|system| results.lookup_of(system)).collect();
    let memory = lookups.iter().filter_map(memory_rate).reduce(f64::max)?;
    let rates: Vec<Vec<RooflinePoint<'_>>> = lookups.iter().map(roofline_points).collect();
    let mut lines = Vec::new();
    // The best rate of each element type, in the order in which they occur.
    let matmuls = rates.iter().flatten().filter(|rate| rate.kernel.is_none());
    let peaks = grouped(matmuls.map(|rate| (rate.dtype, rate.rate))).into_iter();
    let peaks: Vec<(&str, f64)> =
        peaks.map(|(dtype, rates)| (dtype, rates.into_iter().fold(f64::NEG_INFINITY, f64::max))).collect();
    let ridges = peaks.iter().map(|(_, peak)| peak / memory);
    let places = || rates.iter().flatten().map(|rate| rate.intensity);
    let low = places().chain(ridges).reduce(f64::min)? / 4.0;
    let high = places().reduce(f64::max)? * 1.5;
    for (dtype, peak) in peaks {
        let roof = lines.len();
        let ends = [low, peak / memory, high];
        let roofs = ends.iter().filter(|x| **x <= high).map(|x| {
            let rate = (x * memory).min(peak);
            Point { x: *x, value: (rate, None), text: Unit::FlopsPerSecond.format(rate, 3) }
        });
        let label = format!("{dtype}, roof ({})", Unit::FlopsPerSecond.format(peak, 3));
        lines.push(Line::new(label, LineRole::Bound, roofs.collect()));
        for ((number, system), rates) in systems.iter().enumerate().zip(&rates) {
            let own = rates.iter().filter(|rate| rate.dtype == dtype);
            let point = |rate: &RooflinePoint<'_>| {
                let text = Unit::FlopsPerSecond.format(rate.rate, 3);
                Point { x: rate.intensity, value: (rate.rate, rate.interval.clone().ok()), text }
            };
            for (name, points) in grouped(own.map(|rate| (rate.kernel.unwrap_or(dtype), point(rate)))) {
                let role = if number == 0 { LineRole::Below(roof) } else { LineRole::OtherBelow(roof) };
                let label = if systems.len() > 1 { format!("{name}, {system}") } else { name.to_owned() };
                lines.push(Line::new(label, role, points));
            }
        }
    }
    let title = panel.title.clone().unwrap_or_else(|| "Roofline".to_owned());
    Some(LinePlot {
        title: title + &of_system(panel, results, systems),
        machine: machine.to_owned(),
        x: "floating-point operations per byte".to_owned(),
        x_unit: None,
        x_spacing: Spacing::Log,
        x_ticks: Ticks::Round,
        unit: Unit::FlopsPerSecond,
        y_spacing: Spacing::Log,
        lines,
    })
}
