//! A row over time as SVG: a point a file with its interval, a line a level, a band where a change may lie, a dotted line
//! where a driver, a library or the program changed.
//!
//! The horizontal axis is the machine's files, one beside the other: days without a run take no room.

use std::fmt::Write as _;

use super::series::{MachineHistory, RowHistory};
use crate::present::escape;

/// The size of a panel: as wide as a phone.
const WIDTH: f64 = 340.0;
const HEIGHT: f64 = 190.0;
const LEFT: f64 = 8.0;
const RIGHT: f64 = 332.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 158.0;
/// The most whiskers of a panel: more would be one grey area.
const WHISKERS: usize = 120;

/// Where things lie.
struct Frame {
    entries: usize,
    low: f64,
    high: f64,
}

impl Frame {
    fn x(&self, place: f64) -> f64 {
        LEFT + (RIGHT - LEFT) * (place + 0.5) / self.entries as f64
    }

    fn y(&self, value: f64) -> f64 {
        BOTTOM - (BOTTOM - TOP) * (value - self.low) / (self.high - self.low)
    }
}

/// The range of values, a little wider than they are.
fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
    let room = if high > low { (high - low) * 0.06 } else { high.abs().max(1e-12) * 0.05 };
    (low - room, high + room)
}

/// The panel of a row.
pub(super) fn panel(machine: &MachineHistory, track: &RowHistory) -> String {
    let whiskers = track.values.len() <= WHISKERS;
    let ends = track.values.iter().filter_map(|value| value.interval.filter(|_| whiskers));
    let medians = track.values.iter().map(|value| value.median);
    let (low, high) = range(medians.chain(ends.flat_map(|(low, high)| [low, high])));
    let frame = Frame { entries: machine.entries.len(), low, high };
    let mut body = String::new();
    facts(machine, &frame, &mut body);
    bands(track, &frame, &mut body);
    for value in &track.values {
        let (x, y) = (frame.x(value.entry as f64), frame.y(value.median));
        if let Some((low, high)) = value.interval.filter(|_| whiskers) {
            let (low, high) = (frame.y(low), frame.y(high));
            let _ = writeln!(
                body,
                "<line class=\"whisker\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{low:.1}\" y2=\"{high:.1}\"/>"
            );
        }
        let _ = writeln!(body, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"1.8\"/>");
    }
    levels(track, &frame, &mut body);
    let (low, high) = (track.unit.format(frame.low, 3), track.unit.format(frame.high, 3));
    let [first, last] =
        [machine.entries.first(), machine.entries.last()].map(|entry| entry.map_or("", |own| own.day()));
    let (first, last) = (escape(first), escape(last));
    let title = escape(&format!("{} of {} over time", track.title, machine.name));
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{title}\">\n\
         <text x=\"{LEFT}\" y=\"{:.0}\">{high}</text><text x=\"{LEFT}\" y=\"{:.0}\">{low}</text>\n\
         <text x=\"{LEFT}\" y=\"{HEIGHT}\" dy=\"-3\">{first}</text><text x=\"{RIGHT}\" y=\"{HEIGHT}\" dy=\"-3\" text-anchor=\"end\">{last}</text>\n\
         {body}</svg>\n",
        TOP - 18.0,
        BOTTOM + 12.0,
    )
}

/// A line where something of the machine or program changed, with its number in the list of the page.
fn facts(machine: &MachineHistory, frame: &Frame, body: &mut String) {
    for (number, place) in changes_of_facts(machine).into_iter().enumerate() {
        let x = frame.x(place as f64 - 0.5);
        let (top, number) = (TOP - 4.0, number + 1);
        let _ = writeln!(body, "<line class=\"fact\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{top}\" y2=\"{BOTTOM}\"/>");
        let _ = writeln!(
            body,
            "<text class=\"fact\" x=\"{x:.1}\" y=\"{:.0}\" text-anchor=\"middle\">{number}</text>",
            top - 2.0
        );
    }
}

/// The files whose facts are others than those of the file before.
pub(super) fn changes_of_facts(machine: &MachineHistory) -> Vec<usize> {
    let differs = |place: &usize| machine.entries[*place].facts != machine.entries[*place - 1].facts;
    (1..machine.entries.len()).filter(differs).collect()
}

fn bands(track: &RowHistory, frame: &Frame, body: &mut String) {
    for change in &track.changes {
        let x = |place: usize| frame.x(track.values.get(place).map_or(frame.entries, |value| value.entry) as f64 - 0.5);
        let (from, to) = (x(change.point.earliest), x(change.point.latest));
        let (width, height) = ((to - from).max(2.0), BOTTOM - TOP);
        let _ = writeln!(
            body,
            "<rect class=\"band {}\" x=\"{from:.1}\" y=\"{}\" width=\"{width:.1}\" height=\"{height}\"/>",
            change.shift.name(),
            TOP
        );
    }
}

fn levels(track: &RowHistory, frame: &Frame, body: &mut String) {
    let mut from = 0;
    let ends = track.changes.iter().map(|change| (change.point.at, change.point.before));
    let last = track.changes.last().map(|change| (track.values.len(), change.point.after));
    for (to, level) in ends.chain(last) {
        let y = frame.y(level);
        let (x1, x2) = (frame.x(track.values[from].entry as f64), frame.x(track.values[to - 1].entry as f64));
        let _ = writeln!(body, "<line class=\"level\" x1=\"{x1:.1}\" x2=\"{x2:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>");
        from = to;
    }
}
