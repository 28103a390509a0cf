//! A lane of a timeline: its bars, and the names below them.
//!
//! Narrow spans become one bar, and a run of equal spans has one name with their number. In a lane with few runs, names are
//! below their bars, the longest first, as far as there is room. In a lane with many runs, the names are counted below it.

use std::collections::HashMap;

use super::text::WIDTH;
use super::text::Weight;
use crate::Kind;

pub(super) const LEFT: i32 = 8;
pub(super) const RIGHT: i32 = 14;
/// The room for names below a lane.
const ROOM: i32 = WIDTH - LEFT - RIGHT;
/// Names of one row are that far apart.
const APART: i32 = 8;
/// Rows of names below a lane.
const ROWS: usize = 2;
/// Bars narrower than this, and as near to each other, become one.
pub(super) const NARROW: i32 = 5;
/// Rows of names with their counts below a lane.
const MAX_ROWS: usize = 8;
/// More names than there is room for, were each as wide as a dot.
const MAX_NAMES: usize = MAX_ROWS * ROOM as usize;
/// Up to how many runs of a lane are named each by itself.
const NAMED: usize = 4;

/// A call of a host, or work of a device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LaneSpan<'a> {
    /// What it is.
    pub kind: Kind,
    /// Its name.
    pub name: &'a str,
    /// When it began, in nanoseconds.
    pub start_ns: u64,
    /// When it ended.
    pub end_ns: u64,
}

/// Spans drawn as one bar.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LaneBar {
    pub(crate) kind: Kind,
    pub(super) left: i32,
    pub(super) right: i32,
}

/// Spans of one kind and name that follow each other.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SpanRun<'a> {
    /// The first, which ends with the last.
    pub(super) span: LaneSpan<'a>,
    count: usize,
}

impl SpanRun<'_> {
    pub(super) fn text(&self) -> String {
        let name = self.span.name.split_whitespace().collect::<Vec<_>>().join(" ");
        match (self.count, self.span.kind) {
            (1, _) => name,
            // The call that launched them has their name, and may have launched several.
            (count, Kind::Kernel) => format!("{name}: {count} kernels"),
            (count, _) => format!("{count} × {name}"),
        }
    }
}

/// The spans of a track, by their begin.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TrackPlot<'a> {
    pub(super) spans: &'a [LaneSpan<'a>],
    /// The length of the whole timeline.
    pub(super) seconds: f64,
}

/// The column of an instant of a timeline that is `seconds` long.
pub(super) fn column(instant: f64, seconds: f64) -> i32 {
    let width = f64::from(WIDTH - LEFT - RIGHT);
    LEFT + (width * (instant / seconds).clamp(0.0, 1.0)).round() as i32
}

impl<'a> TrackPlot<'a> {
    fn x(&self, ns: u64) -> i32 {
        column(ns as f64 * 1e-9, self.seconds)
    }

    /// The spans, those together that follow each other and are equal.
    pub(super) fn runs(&self) -> Vec<SpanRun<'a>> {
        let mut runs: Vec<SpanRun<'a>> = Vec::new();
        for span in self.spans {
            match runs.last_mut() {
                Some(run) if run.span.kind == span.kind && run.span.name == span.name => {
                    run.count += 1;
                    run.span.end_ns = run.span.end_ns.max(span.end_ns);
                }
                _ => runs.push(SpanRun { span: *span, count: 1 }),
            }
        }
        runs
    }

    /// The bars: narrow ones of one kind that nearly touch are one.
    pub(super) fn bars(&self) -> Vec<LaneBar> {
        let mut bars: Vec<LaneBar> = Vec::new();
        let mut mergeable = false;
        for span in self.spans {
            let (left, right) = (self.x(span.start_ns), self.x(span.end_ns));
            let (right, narrow) = (right.max(left + 1), right - left < NARROW);
            match bars.last_mut() {
                // No picture shows a second bar within a column.
                Some(bar) if bar.kind != span.kind && right <= bar.right && right - left == 1 => {}
                Some(bar) if bar.kind == span.kind && narrow && mergeable && left - bar.right < NARROW => {
                    bar.right = bar.right.max(right);
                }
                _ => {
                    bars.push(LaneBar { kind: span.kind, left, right });
                    mergeable = narrow;
                }
            }
        }
        bars
    }

    /// What stands where below the bars: row, left end, text.
    pub(super) fn names(&self) -> Vec<(usize, i32, String)> {
        let runs = self.runs();
        if runs.len() > NAMED { counted(&runs) } else { self.placed(runs) }
    }

    /// Names below their runs. Wide runs come first; what finds no room is left out.
    fn placed(&self, mut runs: Vec<SpanRun<'_>>) -> Vec<(usize, i32, String)> {
        let length = |span: &LaneSpan<'_>| span.end_ns.saturating_sub(span.start_ns);
        runs.sort_by_key(|SpanRun { span, .. }| (std::cmp::Reverse(length(span)), span.start_ns));
        let (mut taken, mut names): (Vec<(usize, i32, i32)>, Vec<_>) = (Vec::new(), Vec::new());
        for run in runs {
            let text = Weight::Regular.shortened(&run.text(), ROOM);
            let width = Weight::Regular.width(&text);
            let middle = (self.x(run.span.start_ns) + self.x(run.span.end_ns)) / 2;
            let most = WIDTH - LEFT - width;
            let left = (middle - width / 2).min(most).max(LEFT);
            let free = |row: &usize| {
                taken.iter().all(|(other, a, b)| other != row || left >= b + APART || left + width + APART <= *a)
            };
            if let Some(row) = (0..ROWS).find(free) {
                taken.push((row, left, left + width));
                names.push((row, left, text));
            }
        }
        names
    }
}

/// How often each name occurs, in the order in which they do, in as many rows as there may be.
fn counted(runs: &[SpanRun<'_>]) -> Vec<(usize, i32, String)> {
    let mut counts: Vec<SpanRun<'_>> = Vec::new();
    let mut places: HashMap<(Kind, &str), usize> = HashMap::new();
    for run in runs {
        let name = (run.span.kind, run.span.name);
        match places.get(&name) {
            Some(place) => counts[*place].count += run.count,
            None if counts.len() == MAX_NAMES => {}
            None => {
                places.insert(name, counts.len());
                counts.push(run.clone());
            }
        }
    }
    let mut rows: Vec<String> = Vec::new();
    for text in counts.iter().map(|count| count.text()) {
        let full = rows.len() == MAX_ROWS;
        match rows.last_mut() {
            Some(row) if Weight::Regular.width(&format!("{row}, {text}")) <= ROOM => *row = format!("{row}, {text}"),
            _ if full => {
                rows.push("and others".to_owned());
                break;
            }
            _ => rows.push(Weight::Regular.shortened(&text, ROOM)),
        }
    }
    rows.into_iter().enumerate().map(|(row, text)| (row, LEFT, text)).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::timeline::{Lane, TimelinePlot};
    use super::*;

    /// 37 short calls and kernels, then a read that waits.
    pub(in crate::plot) fn timeline() -> TimelinePlot<'static> {
        let span = |kind, name, (start_ns, end_ns)| LaneSpan { kind, name, start_ns, end_ns };
        let calls = (0..37).map(|i| span(Kind::Enqueue, "affine", (1_000 * i, 1_000 * i + 900)));
        let kernels = (0..37).map(|i| span(Kind::Kernel, "affine", (20_000 * i + 2_000, 20_000 * i + 21_000)));
        let host = calls.chain([span(Kind::Synchronize, "item", (37_000, 745_000))]).collect();
        let lanes = vec![
            Lane { name: "host, main".to_owned(), is_host: true, spans: host },
            Lane { name: "stream".to_owned(), is_host: false, spans: kernels.collect() },
        ];
        TimelinePlot { title: "Title".to_owned(), machine: "M".to_owned(), end_ns: 745_000, lanes }
    }

    fn named(name: &'static str, kind: Kind, (start_ns, end_ns): (u64, u64)) -> LaneSpan<'static> {
        LaneSpan { kind, name, start_ns, end_ns }
    }

    fn lane<'a>(spans: &'a [LaneSpan<'a>]) -> TrackPlot<'a> {
        let end = spans.iter().map(|span| span.end_ns).max().unwrap_or(1);
        TrackPlot { spans, seconds: end as f64 * 1e-9 }
    }

    #[test]
    fn equal_short_spans_are_one_bar_with_their_number() {
        let timeline = timeline();
        let lane = lane(&timeline.lanes[0].spans);
        assert_eq!(lane.bars().len(), 2);
        let names: Vec<_> = lane.names().into_iter().map(|(.., name)| name).collect();
        assert_eq!(names, ["item", "37 × affine"]);
    }

    #[test]
    fn kernels_are_no_calls_although_they_have_their_names() {
        let timeline = timeline();
        let names: Vec<_> = lane(&timeline.lanes[1].spans).names().into_iter().map(|(.., name)| name).collect();
        assert_eq!(names, ["affine: 37 kernels"]);
    }

    #[test]
    fn what_alternates_is_counted_below_its_lane() {
        let kinds = [("matmul", Kind::Enqueue), ("Device::synchronize", Kind::Synchronize)];
        let span = |i: u64| {
            let (name, kind) = kinds[(i % 2) as usize];
            named(name, kind, (i * 10_000, i * 10_000 + 9_000))
        };
        let spans: Vec<_> = (0..20).map(span).collect();
        let names = lane(&spans).names();
        assert_eq!(names, [(0, LEFT, "10 × matmul, 10 × Device::synchronize".to_owned())]);
    }

    #[test]
    fn names_of_a_row_do_not_overlap_and_stay_in_the_picture() {
        let span = |(i, name): (u64, &&'static str)| named(name, Kind::Enqueue, (i * 10_000, i * 10_000 + 9_000));
        let spans: Vec<_> = (0..).zip(&["matmul", "synchronize", "affine", "record"]).map(span).collect();
        let names = lane(&spans).names();
        let ends = |(row, left, text): &(usize, i32, String)| (*row, *left, left + Weight::Regular.width(text));
        for (i, a) in names.iter().map(ends).enumerate() {
            assert!(a.1 >= LEFT && a.2 <= WIDTH, "{a:?}");
            assert!(names.iter().map(ends).skip(i + 1).all(|b| a.0 != b.0 || a.2 <= b.1 || b.2 <= a.1));
        }
    }
}
