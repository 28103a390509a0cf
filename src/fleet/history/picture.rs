//! A row over time as SVG: a point a file with its interval, a line a level, a band where a change may lie, a dotted line
//! where a driver, a library or the program changed.
//!
//! The horizontal axis is the machine's files, one beside the other: days without a run take no room.

use minijinja::{Value, context};

use super::series::{MachineHistory, RowHistory, SeriesChange};

/// Where the values lie in a panel, which the template draws.
const LEFT: f64 = 8.0;
const RIGHT: f64 = 332.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 158.0;
/// The most whiskers of a panel: more would be one grey area.
const WHISKERS: usize = 120;

/// The range of values, a little wider than they are.
fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
    let room = if high > low { (high - low) * 0.06 } else { high.abs().max(1e-12) * 0.05 };
    (low - room, high + room)
}

/// The panel of a row: a column of each file and change, a height of each value.
pub(super) fn panel(machine: &MachineHistory, track: &RowHistory) -> Value {
    let RowHistory { values, changes, unit, .. } = track;
    let has_whiskers = values.len() <= WHISKERS;
    let ends = values.iter().filter_map(|value| value.interval.filter(|_| has_whiskers));
    let medians = values.iter().map(|value| value.median);
    let (low, high) = range(medians.chain(ends.flat_map(|(low, high)| [low, high])));
    let entries = machine.entries.len();
    let x = |place: f64| LEFT + (RIGHT - LEFT) * (place + 0.5) / entries as f64;
    let y = |value: f64| BOTTOM - (BOTTOM - TOP) * (value - low) / (high - low);
    let points = values.iter().map(|value| {
        let ends = value.interval.filter(|_| has_whiskers).map(|(low, high)| [y(low), y(high)]);
        (x(value.entry as f64), y(value.median), ends)
    });
    let band = |change: &SeriesChange| {
        let edge = |place: usize| x(values.get(place).map_or(entries, |value| value.entry) as f64 - 0.5);
        let (from, to) = (edge(change.point.earliest), edge(change.point.latest));
        (change.shift.name(), from, (to - from).max(2.0))
    };
    let mut from = 0;
    let ends = changes.iter().map(|change| (change.point.at, change.point.before));
    let last = changes.last().map(|change| (values.len(), change.point.after));
    let levels = ends.chain(last).map(|(to, level)| {
        let [first, last] = [std::mem::replace(&mut from, to), to - 1].map(|place| x(values[place].entry as f64));
        (first, last, y(level))
    });
    let day = |place: usize| machine.entries.get(place).map(|entry| entry.day().to_string()).unwrap_or_default();
    context! {
        title => format!("{} of {} over time", track.title, machine.name),
        low => unit.format(low, 3),
        high => unit.format(high, 3),
        first => day(0),
        last => day(entries - 1),
        // Between the files before and after the change.
        facts => changes_of_facts(machine).into_iter().map(|place| x(place as f64 - 0.5)).collect::<Value>(),
        bands => changes.iter().map(band).collect::<Value>(),
        points => points.collect::<Value>(),
        levels => levels.collect::<Value>(),
    }
}

/// The files whose facts are others than those of the file before.
pub(super) fn changes_of_facts(machine: &MachineHistory) -> Vec<usize> {
    let differs = |place: &usize| machine.entries[*place].facts != machine.entries[*place - 1].facts;
    (1..machine.entries.len()).filter(differs).collect()
}
