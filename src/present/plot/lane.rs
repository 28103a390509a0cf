//! What stands in a lane of a timeline: its bars, and the names below them.
//!
//! Spans too narrow to be told apart become one bar, and a run of equal ones has one name, with how many there are.
//! Of a lane with few runs, names stand below their bars, the longest first, as far as there is room; of one with many,
//! what it holds is counted below it. The description names the runs, too.

use super::timeline::{CHARACTER, LEFT, RIGHT, TimelinePlot};
use super::{WIDTH, one_line};
use crate::timeline::Kind;

/// Rows of names below a lane.
const ROWS: usize = 2;
/// Bars narrower than this, and as near to each other, become one.
pub(super) const NARROW: i32 = 5;
/// Up to how many runs of a lane are named each by itself.
const NAMED: usize = 4;

/// Spans drawn as one bar.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Bar {
    pub(super) kind: Kind,
    pub(super) left: i32,
    pub(super) right: i32,
}

/// Spans of one kind and name that follow each other.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Run<'a> {
    pub(super) kind: Kind,
    name: &'a str,
    count: usize,
    start_ns: u64,
    end_ns: u64,
}

impl Run<'_> {
    pub(super) fn text(&self) -> String {
        if self.count == 1 { self.name.to_owned() } else { format!("{} × {}", self.count, self.name) }
    }
}

impl TimelinePlot<'_> {
    /// The spans of a lane, those together that follow each other and are equal.
    pub(super) fn runs(&self, track: usize) -> Vec<Run<'_>> {
        let mut runs: Vec<Run<'_>> = Vec::new();
        for span in self.timeline.spans.iter().filter(|span| span.track == track) {
            match runs.last_mut() {
                Some(run) if run.kind == span.kind && run.name == span.name => {
                    run.count += 1;
                    run.end_ns = run.end_ns.max(span.end_ns);
                }
                _ => runs.push(Run {
                    kind: span.kind,
                    name: &span.name,
                    count: 1,
                    start_ns: span.start_ns,
                    end_ns: span.end_ns,
                }),
            }
        }
        runs
    }

    /// The bars of a lane: narrow ones of one kind that nearly touch are one.
    pub(super) fn bars(&self, track: usize) -> Vec<Bar> {
        let mut bars: Vec<Bar> = Vec::new();
        let mut mergeable = false;
        for span in self.timeline.spans.iter().filter(|span| span.track == track) {
            let (left, right) = (self.x(span.start_ns), self.x(span.end_ns));
            let (right, narrow) = (right.max(left + 1), right - left < NARROW);
            match bars.last_mut() {
                Some(bar) if bar.kind == span.kind && narrow && mergeable && left - bar.right < NARROW => {
                    bar.right = bar.right.max(right);
                }
                _ => {
                    bars.push(Bar { kind: span.kind, left, right });
                    mergeable = narrow;
                }
            }
        }
        bars
    }

    /// What stands where below a lane: row, left end, text.
    pub(super) fn names(&self, track: usize) -> Vec<(usize, i32, String)> {
        let runs = self.runs(track);
        if runs.len() > NAMED { counted(&runs) } else { self.placed(runs) }
    }

    /// Names below their runs. Wide runs come first; what finds no room is left out.
    fn placed(&self, mut runs: Vec<Run<'_>>) -> Vec<(usize, i32, String)> {
        runs.sort_by_key(|run| (std::cmp::Reverse(run.end_ns - run.start_ns), run.start_ns));
        let (mut taken, mut names): (Vec<(usize, i32, i32)>, Vec<_>) = (Vec::new(), Vec::new());
        for run in runs {
            let text = one_line(&run.text());
            let width = CHARACTER * i32::try_from(text.chars().count()).unwrap_or(0);
            let middle = (self.x(run.start_ns) + self.x(run.end_ns)) / 2;
            let most = WIDTH as i32 - LEFT - width;
            let left = (middle - width / 2).min(most).max(LEFT);
            let free = |row: &usize| {
                taken
                    .iter()
                    .all(|(other, a, b)| other != row || left >= b + CHARACTER || left + width + CHARACTER <= *a)
            };
            if let Some(row) = (0..ROWS).find(free) {
                taken.push((row, left, left + width));
                names.push((row, left, text));
            }
        }
        names
    }
}

/// How often each name occurs, in the order in which they do, in as many rows as it takes.
fn counted(runs: &[Run<'_>]) -> Vec<(usize, i32, String)> {
    let mut counts: Vec<Run<'_>> = Vec::new();
    for run in runs {
        match counts.iter_mut().find(|known| (known.kind, known.name) == (run.kind, run.name)) {
            Some(known) => known.count += run.count,
            None => counts.push(run.clone()),
        }
    }
    let mut rows: Vec<String> = Vec::new();
    let most = ((WIDTH as i32 - LEFT - RIGHT) / CHARACTER) as usize;
    for text in counts.iter().map(|count| one_line(&count.text())) {
        match rows.last_mut() {
            Some(row) if row.chars().count() + 2 + text.chars().count() <= most => *row = format!("{row}, {text}"),
            _ => rows.push(text),
        }
    }
    rows.into_iter().enumerate().map(|(row, text)| (row, LEFT, text)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::timeline::tests::{plot, span, timeline};
    use super::*;

    #[test]
    fn equal_short_spans_are_one_bar_with_their_number() {
        let timeline = timeline();
        let plot = plot(&timeline);
        assert_eq!(plot.bars(0).len(), 2);
        let names: Vec<_> = plot.names(0).into_iter().map(|(.., name)| name).collect();
        assert_eq!(names, ["item", "37 × affine"]);
        assert!(plot.to_svg("p").unwrap().contains("37 × affine"));
    }

    #[test]
    fn what_takes_turns_is_counted_below_its_lane() {
        let mut timeline = timeline();
        let kinds = [("matmul", Kind::Enqueue), ("Device::synchronize", Kind::Synchronize)];
        let span = |i: u64| {
            let (name, kind) = kinds[(i % 2) as usize];
            span(0, name, kind, (i * 10_000, i * 10_000 + 9_000))
        };
        timeline.spans = (0..20).map(span).collect();
        let names = plot(&timeline).names(0);
        assert_eq!(names, [(0, LEFT, "10 × matmul, 10 × Device::synchronize".to_owned())]);
    }

    #[test]
    fn names_of_a_row_do_not_overlap_and_stay_in_the_picture() {
        let mut timeline = timeline();
        let span = |(i, name): (u64, &&str)| span(0, name, Kind::Enqueue, (i * 10_000, i * 10_000 + 9_000));
        timeline.spans = (0..).zip(&["matmul", "synchronize", "affine", "record"]).map(span).collect();
        let names = plot(&timeline).names(0);
        let ends =
            |(row, left, text): &(usize, i32, String)| (*row, *left, left + CHARACTER * text.chars().count() as i32);
        for (i, a) in names.iter().map(ends).enumerate() {
            assert!(a.1 >= LEFT && a.2 <= WIDTH as i32, "{a:?}");
            assert!(names.iter().map(ends).skip(i + 1).all(|b| a.0 != b.0 || a.2 <= b.1 || b.2 <= a.1));
        }
    }
}
