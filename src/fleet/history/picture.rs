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
/// The most points of the small picture of a row without changes.
const BINS: usize = 80;

/// Where things lie.
struct Frame {
    entries: usize,
    low: f64,
    high: f64,
    bottom: f64,
    top: f64,
}

impl Frame {
    fn x(&self, place: f64) -> f64 {
        LEFT + (RIGHT - LEFT) * (place + 0.5) / self.entries as f64
    }

    fn y(&self, value: f64) -> f64 {
        self.bottom - (self.bottom - self.top) * (value - self.low) / (self.high - self.low)
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
    let frame = Frame { entries: machine.entries.len(), low, high, bottom: BOTTOM, top: TOP };
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
        let (top, bottom, number) = (frame.top - 4.0, frame.bottom, number + 1);
        let _ = writeln!(body, "<line class=\"fact\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{top}\" y2=\"{bottom}\"/>");
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
        let (width, height) = ((to - from).max(2.0), frame.bottom - frame.top);
        let _ = writeln!(
            body,
            "<rect class=\"band {}\" x=\"{from:.1}\" y=\"{}\" width=\"{width:.1}\" height=\"{height}\"/>",
            change.shift.name(),
            frame.top
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

/// A row without changes, small: the means of neighbouring files as a line.
pub(super) fn small(machine: &MachineHistory, track: &RowHistory) -> String {
    let frame = |low, high| Frame { entries: machine.entries.len(), low, high, bottom: 36.0, top: 4.0 };
    let size = track.values.len().div_ceil(BINS).max(1);
    let means: Vec<(f64, f64)> = track
        .values
        .chunks(size)
        .map(|values| {
            let count = values.len() as f64;
            let place = values.iter().map(|value| value.entry as f64).sum::<f64>() / count;
            (place, values.iter().map(|value| value.median).sum::<f64>() / count)
        })
        .collect();
    let (low, high) = range(means.iter().map(|(_, mean)| *mean));
    // What scatters by less than 2 % is to look flat.
    let middle = (low + high) / 2.0;
    let half = ((high - low) / 2.0).max(middle.abs() * 0.01).max(f64::MIN_POSITIVE);
    let frame = frame(middle - half, middle + half);
    let points: Vec<String> =
        means.iter().map(|(place, mean)| format!("{:.0},{:.0}", frame.x(*place), frame.y(*mean))).collect();
    let title = escape(&format!("{} over time", track.title));
    format!(
        "<svg viewBox=\"0 0 {WIDTH} 40\" role=\"img\" aria-label=\"{title}\"><polyline points=\"{}\"/></svg>",
        points.join(" ")
    )
}
