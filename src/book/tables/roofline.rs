//! A roofline: the rates of all matmuls of a run by their arithmetic intensity, below what memory and arithmetic allow.
//!
//! The roof of an element type is the smaller of two peaks: its best matmul rate, and the rate of the memory times the
//! intensity. Both are the best that any system of the file reached. (S. Williams, A. Waterman, D. Patterson, *Roofline:
//! an insightful visual performance model*, CACM 52, 2009.) A matmul whose matrices lie in a cache may be above the roof of
//! the memory.

use super::figure::of_system;
use crate::document::Panel;
use crate::present::{Line, LinePlot, LineRole, Point, Spacing, Ticks};
use crate::results::{MatmulRate, Results, matmul_rates, memory_rate};
use crate::units::Unit;

/// The roofline of a run; `None` where it has no matmul or no copy to draw one of.
pub(super) fn roofline(panel: &Panel, machine: &str, results: &Results, systems: &[&str]) -> Option<LinePlot> {
    let lookups: Vec<_> = systems.iter().map(|system| results.lookup_of(system)).collect();
    let memory = lookups.iter().filter_map(memory_rate).reduce(f64::max)?;
    let rates: Vec<Vec<MatmulRate<'_>>> = lookups.iter().map(matmul_rates).collect();
    let mut lines = Vec::new();
    let peaks = peaks(&rates);
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
            let points: Vec<Point> = own.map(point).collect();
            if points.is_empty() {
                continue;
            }
            let role = if number == 0 { LineRole::Below(roof) } else { LineRole::OtherBelow(roof) };
            let label = if systems.len() > 1 { format!("{dtype}, {system}") } else { dtype.to_owned() };
            lines.push(Line::new(label, role, points));
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

/// The best rate of each element type, in the order in which they occur.
fn peaks<'a>(rates: &[Vec<MatmulRate<'a>>]) -> Vec<(&'a str, f64)> {
    let mut peaks: Vec<(&str, f64)> = Vec::new();
    for rate in rates.iter().flatten() {
        match peaks.iter_mut().find(|(dtype, _)| *dtype == rate.dtype) {
            Some((_, peak)) => *peak = peak.max(rate.rate),
            None => peaks.push((rate.dtype, rate.rate)),
        }
    }
    peaks
}

fn point(rate: &MatmulRate<'_>) -> Point {
    let text = Unit::FlopsPerSecond.format(rate.rate, 3);
    Point { x: rate.intensity, value: (rate.rate, rate.interval.clone().ok()), text }
}
