//! Timelines: a lane for each thread and each stream, a bar for each span.
//!
//! Each kind has its own pattern beside its colour, and the legend shows the kinds that occur.

#[cfg(feature = "serde")]
use std::collections::BTreeSet;

use super::axis::{STEPS, round_ticks};
use super::lane::{LEFT, LaneBar, LaneSpan, NARROW, RIGHT, TrackPlot, column};
use super::svg::{Paint, Pattern, Place, Side, Svg, picture};
use super::text::{LINE, WIDTH, Weight, title_height};
use crate::Kind;
use crate::units::{Scale, Unit};

/// A timeline to be drawn.
///
/// ```
/// use syncscope_present::{Kind, Lane, LaneSpan, TimelinePlot};
///
/// let spans = vec![LaneSpan { kind: Kind::Kernel, name: "sum", start_ns: 0, end_ns: 900 }];
/// let lanes = vec![Lane { name: "stream".to_owned(), is_host: false, spans }];
/// let plot = TimelinePlot { title: "A sum".to_owned(), machine: "cuda:0".to_owned(), end_ns: 1000, lanes };
/// assert!(plot.to_svg("sum").starts_with("<svg") && plot.description().contains("busy 90 %"));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct TimelinePlot<'a> {
    /// What is drawn.
    pub title: String,
    /// The machine it was recorded on; for the description, not drawn.
    pub machine: String,
    /// How long it is, in nanoseconds.
    pub end_ns: u64,
    /// The threads and the streams, of which the first 32 are drawn.
    pub lanes: Vec<Lane<'a>>,
}

/// What a thread or a stream did.
#[derive(Clone, Debug, PartialEq)]
pub struct Lane<'a> {
    /// Its name: `stream`.
    pub name: String,
    /// Whether it is a thread of the host.
    pub is_host: bool,
    /// What it did, by the begin.
    pub spans: Vec<LaneSpan<'a>>,
}

const BAR: i32 = 20;
const NAME: i32 = 16;
const GAP: i32 = 8;
const AXIS: i32 = 28;
/// How many lanes are drawn: the threads and streams of any program that a page can show.
const MAX_LANES: usize = 32;
/// How many runs of a lane the description names.
const DESCRIBED: usize = 8;

/// How many spans a page holds beside the picture; a program for traces shows more.
#[cfg(feature = "serde")]
const MAX_SPANS: usize = 4000;

/// The kinds, in the order of the legend.
const KINDS: [Kind; 6] = [Kind::Enqueue, Kind::Synchronize, Kind::HostWork, Kind::Kernel, Kind::Copy, Kind::Wait];

/// A kind's paint, and the marks that tell it from others of that paint.
fn look(kind: Kind) -> (Paint, Option<Pattern>) {
    let (paint, marks) = match kind {
        Kind::Enqueue => (Paint::Series(0), None),
        Kind::Synchronize => (Paint::Series(1), Some(("synchronize", "M-1 7L7 -1", 2))),
        Kind::HostWork => (Paint::Series(0), Some(("host-work", "M2 0V6", 2))),
        Kind::Copy => (Paint::Series(3), Some(("copy", "M0 2H6", 3))),
        Kind::Wait => (Paint::Muted, Some(("wait", "M2 3H4", 2))),
        _ => (Paint::Series(2), None),
    };
    (paint, marks.map(|(name, path, width)| Pattern { name, paint, path, width, angle: 0 }))
}

impl TimelinePlot<'_> {
    /// The plot as SVG. `id` must be unique in the page: the identifiers within the picture begin with it.
    pub fn to_svg(&self, id: &str) -> String {
        let sketch = self.sketch();
        let texts = (self.title.as_str(), &*self.described(&sketch));
        picture(id, &sketch.patterns, texts, sketch.height(), |svg| sketch.draw(svg))
    }

    /// What the picture shows, in words.
    pub fn description(&self) -> String {
        self.described(&self.sketch())
    }

    fn described(&self, sketch: &Sketch<'_>) -> String {
        let Sketch { lanes, left_out, seconds, .. } = sketch;
        let lanes = lanes.iter().map(|Drawing { lane, name, share, .. }| {
            let runs = lane.runs();
            let mut text: Vec<String> =
                runs.iter().take(DESCRIBED).map(|run| format!("{} ({})", run.text(), run.span.kind.name())).collect();
            if runs.len() > DESCRIBED {
                text.push(format!("and {} more", runs.len() - DESCRIBED));
            }
            format!(" {name}, {share}: {}.", text.join(", then "))
        });
        let lanes: String = lanes.collect();
        let rest = if *left_out > 0 { format!(" {left_out} more lanes are not drawn.") } else { String::new() };
        let length = Unit::Seconds.format(*seconds, 3);
        format!("Timeline of {length}, recorded on {}.{lanes}{rest}", self.machine)
    }

    /// What is drawn as JSON, from which a page's script draws any part of it: the length in nanoseconds, each kind with its
    /// class and its fill, the names of the spans, and each lane with four numbers a span: its kind, name, start and end.
    /// The fills are of the picture that has this `id`. None where a page would hold too many.
    #[cfg(feature = "serde")]
    pub fn spans(&self, id: &str) -> Option<String> {
        let Sketch { lanes, kinds, .. } = self.sketch();
        if lanes.iter().map(|drawing| drawing.lane.spans.len()).sum::<usize>() > MAX_SPANS {
            return None;
        }
        let names: BTreeSet<&str> = lanes.iter().flat_map(|drawing| drawing.lane.spans).map(|span| span.name).collect();
        let names: Vec<&str> = names.into_iter().collect();
        let numbers = |span: &LaneSpan<'_>| {
            let kind = kinds.iter().position(|kind| *kind == span.kind).unwrap_or_default();
            let name = names.binary_search(&span.name).unwrap_or_default();
            [kind as u64, name as u64, span.start_ns, span.end_ns]
        };
        let numbered = |drawing: &Drawing<'_>| drawing.lane.spans.iter().flat_map(numbers).collect::<Vec<_>>();
        let lanes: Vec<_> = lanes.iter().map(|drawing| (drawing.name, numbered(drawing))).collect();
        let painted = |kind: &Kind| {
            let (paint, pattern) = look(*kind);
            let fill = pattern.map_or("currentColor".to_owned(), |pattern| format!("url(#{id}-{})", pattern.name));
            (kind.name(), paint.class(), fill)
        };
        let kinds: Vec<_> = kinds.iter().map(painted).collect();
        let end = self.end_ns.max(1);
        Some(serde_json::json!({ "end": end, "kinds": kinds, "names": names, "lanes": lanes }).to_string())
    }

    /// What is drawn, each span looked at a fixed number of times.
    fn sketch(&self) -> Sketch<'_> {
        let seconds = self.end_ns.max(1) as f64 * 1e-9;
        let drawn = &self.lanes[..self.lanes.len().min(MAX_LANES)];
        let mut kinds = KINDS.to_vec();
        kinds.retain(|kind| drawn.iter().flat_map(|lane| &lane.spans).any(|span| span.kind == *kind));
        let lanes = drawn.iter().map(|Lane { name, is_host, spans }| {
            let lane = TrackPlot { spans, seconds };
            let (share, names) = (share(&lane, *is_host), lane.names());
            Drawing { lane, name, share, names }
        });
        let lanes = lanes.collect();
        let patterns = kinds.iter().filter_map(|kind| look(*kind).1).collect();
        let left_out = self.lanes.len() - drawn.len();
        Sketch { title: &self.title, lanes, left_out, kinds, patterns, seconds }
    }
}

/// A lane with what stands beside it.
struct Drawing<'a> {
    lane: TrackPlot<'a>,
    name: &'a str,
    share: String,
    /// The names below its bars.
    names: Vec<(usize, i32, String)>,
}

/// A picture as it is drawn.
struct Sketch<'a> {
    title: &'a str,
    lanes: Vec<Drawing<'a>>,
    left_out: usize,
    kinds: Vec<Kind>,
    patterns: Vec<Pattern>,
    seconds: f64,
}

/// How much of the time a lane's thread waited, or its stream worked.
fn share(lane: &TrackPlot<'_>, host: bool) -> String {
    let counts = |kind: Kind| if host { kind == Kind::Synchronize } else { kind.is_busy() };
    let spans = lane.spans.iter().filter(|span| counts(span.kind));
    let share = spans.map(|span| span.end_ns.saturating_sub(span.start_ns) as f64).sum::<f64>() * 1e-9 / lane.seconds;
    format!("{} {}", if host { "waits" } else { "busy" }, Scale::PERCENT.fixed(share, 0))
}

impl Drawing<'_> {
    fn height(&self) -> i32 {
        let rows = self.names.iter().map(|(row, ..)| row + 1).max().unwrap_or(0);
        LINE + BAR + NAME * rows as i32 + GAP
    }
}

impl Sketch<'_> {
    fn legend_rows(&self) -> i32 {
        self.kinds.len().div_ceil(3) as i32
    }

    fn height(&self) -> i32 {
        let lanes: i32 = self.lanes.iter().map(Drawing::height).sum();
        title_height(self.title) + self.legend_rows() * LINE + GAP + lanes + AXIS
    }

    fn draw(&self, svg: &mut Svg<'_>) {
        let mut top = title_height(self.title);
        for (index, &kind) in (0..).zip(&self.kinds) {
            let (x, y) = (LEFT + 116 * (index % 3), top + LINE * (index / 3));
            self.draw_bar(svg, kind, [(x, y + 2), (x + 14, y + 14)]);
            svg.text(kind.name(), (x + 20, y + 9), Weight::Regular, Paint::Muted, Side::Left);
        }
        top += self.legend_rows() * LINE + GAP;
        self.draw_axis(svg, top);
        for drawing in &self.lanes {
            self.draw_lane(svg, drawing, top);
            top += drawing.height();
        }
    }

    /// The ticks and their lines, from `top` down to the axis.
    fn draw_axis(&self, svg: &mut Svg<'_>, top: i32) {
        let (longest, bottom) = (self.seconds, self.height() - AXIS);
        let scale = Unit::Seconds.scale(longest);
        for tick in round_ticks(longest, STEPS) {
            let x = column(tick, longest);
            svg.path(&[(x, top), (x, bottom)], Paint::Grid, 1);
            Weight::Regular.draw_around(svg, &scale.tick(tick), (x, bottom + 12), Paint::Muted);
        }
        svg.path(&[(LEFT, bottom), (WIDTH - RIGHT, bottom)], Paint::Muted, 1);
    }

    fn draw_lane(&self, svg: &mut Svg<'_>, drawing: &Drawing<'_>, top: i32) {
        let middle = top + LINE / 2;
        let right = (WIDTH - RIGHT, middle);
        let name = Weight::Bold.shortened(drawing.name, right.0 - LEFT - Weight::Regular.width(&drawing.share) - 8);
        svg.text(&name, (LEFT, middle), Weight::Bold, Paint::Text, Side::Left);
        svg.text(&drawing.share, right, Weight::Regular, Paint::Muted, Side::Right);
        let bar = top + LINE;
        for LaneBar { kind, left, right } in drawing.lane.bars() {
            // A gap, so that bars that follow each other without one are told apart; of a wide one it shows at any scale.
            let gap = [0, 1, 2][usize::from(right - left > NARROW) + usize::from(right - left > 4 * NARROW)];
            self.draw_bar(svg, kind, [(left, bar), (right - gap, bar + BAR)]);
        }
        for (row, left, text) in &drawing.names {
            let y = bar + BAR + NAME * *row as i32 + NAME / 2;
            svg.text(text, (*left, y), Weight::Regular, Paint::Text, Side::Left);
        }
    }

    fn draw_bar(&self, svg: &mut Svg<'_>, kind: Kind, corners: [Place; 2]) {
        let (paint, pattern) = look(kind);
        let place = pattern.and_then(|pattern| self.patterns.iter().position(|known| *known == pattern));
        svg.bar(corners, place.map_or(paint, |place| Paint::Pattern(place as u8)), paint);
    }
}

#[cfg(test)]
mod tests {
    use super::super::lane::tests::timeline;
    use super::*;

    #[test]
    fn the_description_says_what_each_lane_does_and_for_how_much_of_the_time() {
        let description = timeline().description();
        assert_eq!(
            description,
            "Timeline of 745 µs, recorded on M. host, main, waits 95 %: 37 × affine (enqueue), then item (synchronize). \
             stream, busy 94 %: affine: 37 kernels (kernel)."
        );
    }

    #[test]
    fn a_kind_has_its_pattern_and_a_name_is_text_whatever_it_holds() {
        let mut timeline = timeline();
        timeline.lanes[0].spans[0].name = "<script>{{#include x}}";
        let svg = timeline.to_svg("a b");
        assert!(!svg.contains("<script") && !svg.contains("{{") && svg.contains("url(#a-b-synchronize)"), "{svg}");
    }

    #[cfg(feature = "serde")]
    #[test]
    fn a_page_s_script_gets_each_span_with_its_lane_its_kind_and_its_name() {
        let mut timeline = timeline();
        let spans: serde_json::Value = serde_json::from_str(&timeline.spans("p").unwrap()).unwrap();
        let index = |list: &str, name: &str| {
            let mut names = spans[list].as_array().unwrap().iter().map(|one| one.get(0).unwrap_or(one));
            names.position(|known| known == name).unwrap()
        };
        let first = timeline.lanes[0].spans[0];
        let last = (1, timeline.lanes[1].spans.len() - 1);
        for (lane, place) in [(0, 0), last] {
            let span = &timeline.lanes[lane].spans[place];
            let numbers = spans["lanes"][lane][1].as_array().unwrap();
            let own = serde_json::json!([
                index("kinds", span.kind.name()),
                index("names", span.name),
                span.start_ns,
                span.end_ns
            ]);
            assert_eq!(numbers[4 * place..4 * place + 4], own.as_array().unwrap()[..], "{spans}");
        }
        assert_eq!(spans["end"], timeline.end_ns);
        let synchronize = &spans["kinds"][index("kinds", "synchronize")];
        assert_eq!(*synchronize, serde_json::json!(["synchronize", "plot-second", "url(#p-synchronize)"]));
        timeline.lanes[0].spans = vec![first; MAX_SPANS + 1];
        assert_eq!(timeline.spans("p"), None);
    }

    #[test]
    fn a_timeline_without_spans_is_still_a_picture() {
        let empty = TimelinePlot { lanes: Vec::new(), end_ns: 0, ..timeline() };
        assert!(empty.to_svg("p").contains("</svg>"));
    }
}
