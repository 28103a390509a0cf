//! Timelines: a lane for each thread and each stream, a bar for each span.
//!
//! Spans too narrow to be told apart become one bar, and a run of equal ones has one name, with how many there are.
//! Of a lane with few runs, names stand below their bars, the longest first, as far as there is room; of one with many,
//! what it holds is counted below it. The description names the runs, too.
//! Each kind has a pattern of its own beside its colour, and the legend shows those that occur.

use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::{
    Area, Drawn, FIRST_PLACE, FOURTH_PLACE, GRID, LINE, MUTED, Picture, Place, SECOND_PLACE, TEXT, THIRD_PLACE, WIDTH,
};
use super::{beside, bold, font, identifier, one_line, tick_text, title_height};
use crate::error::PlotError;
use crate::timeline::{Kind, Timeline, Track};
use crate::units::Unit;

/// A timeline to be drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct TimelinePlot<'a> {
    /// What is drawn.
    pub title: String,
    /// The machine it was recorded on; for the description, not drawn.
    pub machine: String,
    /// What is drawn.
    pub timeline: &'a Timeline,
}

const LEFT: i32 = 8;
const RIGHT: i32 = 14;
const BAR: i32 = 20;
/// Rows of names below a lane.
const ROWS: usize = 2;
const NAME: i32 = 16;
const GAP: i32 = 8;
const AXIS: i32 = 28;
/// About how wide a character is.
const CHARACTER: i32 = 7;
/// Bars narrower than this, and as near to each other, become one.
const NARROW: i32 = 3;
/// Up to how many runs of a lane are named each by itself.
const NAMED: usize = 4;
/// How many runs of a lane the description names.
const DESCRIBED: usize = 8;

const KINDS: [Kind; 6] = [Kind::Enqueue, Kind::Synchronize, Kind::HostWork, Kind::Kernel, Kind::Copy, Kind::Wait];

/// A kind's colours: what fills it, what outlines it, and what takes their places.
struct Look {
    fill: RGBColor,
    outline: RGBColor,
    place: &'static str,
    /// The pattern on the page's ground, as a path and the width of its line; `None` where the colour itself fills.
    marks: Option<(&'static str, u32)>,
}

fn look(kind: Kind) -> Look {
    let (number, place, marks) = match kind {
        Kind::Enqueue => (20, FIRST_PLACE, None),
        Kind::Synchronize => (22, SECOND_PLACE, Some(("M-1 7L7 -1", 2))),
        Kind::HostWork => (24, FIRST_PLACE, Some(("M2 0V6", 2))),
        Kind::Copy => (28, FOURTH_PLACE, Some(("M0 2H6", 3))),
        Kind::Wait => (30, "var(--plot-muted, #5f5f5f)", Some(("M2 3H4", 2))),
        _ => (26, THIRD_PLACE, None),
    };
    let colour = |n| RGBColor(n, n, n);
    Look { fill: colour(number), outline: colour(number + 1), place, marks }
}

/// Spans drawn as one bar.
#[derive(Clone, Debug, PartialEq)]
struct Bar {
    kind: Kind,
    left: i32,
    right: i32,
}

/// Spans of one kind and name that follow each other.
#[derive(Clone, Debug, PartialEq)]
struct Run<'a> {
    kind: Kind,
    name: &'a str,
    count: usize,
    start_ns: u64,
    end_ns: u64,
}

impl Run<'_> {
    fn text(&self) -> String {
        if self.count == 1 { self.name.to_owned() } else { format!("{} × {}", self.count, self.name) }
    }
}

impl TimelinePlot<'_> {
    /// The plot as SVG. `id` must be unique in the page: the identifiers within the picture begin with it.
    ///
    /// # Errors
    /// What the drawing library reports.
    pub fn to_svg(&self, id: &str) -> Result<String, PlotError> {
        let (name, kinds) = (identifier(id), self.kinds());
        let (mut definitions, mut places) = ("<defs>".to_owned(), Vec::new());
        for &kind in &kinds {
            let look = look(kind);
            let label = kind.name().replace(' ', "-");
            places.push(Place::new(look.outline, look.place));
            let Some((path, width)) = look.marks else {
                places.push(Place::new(look.fill, look.place));
                continue;
            };
            definitions += &format!(
                "<pattern id=\"{name}-{label}\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">\
                 <rect width=\"6\" height=\"6\" fill=\"var(--plot-ground, #ffffff)\"/>\
                 <path d=\"{path}\" stroke=\"{}\" stroke-width=\"{width}\"/></pattern>",
                look.place
            );
            places.push(Place::new(look.fill, &format!("url(#{name}-{label})")));
        }
        definitions += "</defs>\n";
        let picture = Picture {
            id,
            title: &self.title,
            description: &self.description(),
            height: u32::try_from(self.height()).unwrap_or_default(),
            definitions: &definitions,
            places: &places,
        };
        picture.svg(|root| self.draw(root))
    }

    /// What the picture shows, in words.
    pub fn description(&self) -> String {
        let Self { timeline, .. } = self;
        let lanes = (0..timeline.tracks.len()).map(|track| {
            let runs = self.runs(track);
            let mut text: Vec<String> =
                runs.iter().take(DESCRIBED).map(|run| format!("{} ({})", run.text(), run.kind.name())).collect();
            if runs.len() > DESCRIBED {
                text.push(format!("and {} more", runs.len() - DESCRIBED));
            }
            format!(" {}, {}: {}.", self.lane_name(track), self.share(track), text.join(", then "))
        });
        let lanes: String = lanes.collect();
        let length = Unit::Seconds.format(self.seconds(), 3);
        format!("Timeline of {length}, recorded on {}.{lanes}", self.machine)
    }

    /// A thread by its name, a stream by its place among those that are drawn.
    fn lane_name(&self, track: usize) -> String {
        let streams = |track: &&Track| matches!(track, Track::Stream(_));
        match &self.timeline.tracks[track] {
            Track::Stream(_) if self.timeline.tracks.iter().filter(streams).count() == 1 => "stream".to_owned(),
            Track::Stream(_) => format!("stream {}", self.timeline.tracks[..=track].iter().filter(streams).count()),
            other => other.to_string(),
        }
    }

    fn seconds(&self) -> f64 {
        self.timeline.end_ns().max(1) as f64 * 1e-9
    }

    fn kinds(&self) -> Vec<Kind> {
        let occurs = |kind: &Kind| self.timeline.spans.iter().any(|span| span.kind == *kind);
        KINDS.into_iter().filter(occurs).collect()
    }

    /// How much of the time a lane's thread waited, or its stream worked.
    fn share(&self, track: usize) -> String {
        let host = self.timeline.tracks[track].is_host();
        let counts = |kind: Kind| if host { kind == Kind::Synchronize } else { kind.is_busy() };
        let spans = self.timeline.spans.iter().filter(|span| span.track == track && counts(span.kind));
        let share = spans.map(|span| span.duration_ns() as f64).sum::<f64>() * 1e-9 / self.seconds();
        // An empty sum is −0.
        format!("{} {:.0} %", if host { "waits" } else { "busy" }, 100.0 * share.abs())
    }

    /// The spans of a lane, those together that follow each other and are equal.
    fn runs(&self, track: usize) -> Vec<Run<'_>> {
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
    fn bars(&self, track: usize) -> Vec<Bar> {
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
    fn names(&self, track: usize) -> Vec<(usize, i32, String)> {
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

    fn x(&self, ns: u64) -> i32 {
        let width = f64::from(WIDTH as i32 - LEFT - RIGHT);
        LEFT + (width * (ns as f64 * 1e-9 / self.seconds()).clamp(0.0, 1.0)).round() as i32
    }

    fn legend_rows(&self) -> i32 {
        i32::try_from(self.kinds().len().div_ceil(3)).unwrap_or(0)
    }

    fn lane_height(&self, track: usize) -> i32 {
        let rows = self.names(track).iter().map(|(row, ..)| row + 1).max().unwrap_or(0);
        LINE as i32 + BAR + NAME * i32::try_from(rows).unwrap_or(0) + GAP
    }

    fn height(&self) -> i32 {
        let lanes: i32 = (0..self.timeline.tracks.len()).map(|track| self.lane_height(track)).sum();
        title_height(&self.title) as i32 + self.legend_rows() * LINE as i32 + GAP + lanes + AXIS
    }

    fn draw(&self, root: &Area<'_>) -> Drawn {
        let mut top = title_height(&self.title) as i32;
        for (index, kind) in (0..).zip(self.kinds()) {
            let (x, y) = (LEFT + 116 * (index % 3), top + LINE as i32 * (index / 3));
            draw_bar(root, kind, (x, y + 2), (x + 14, y + 14))?;
            root.draw(&Text::new(kind.name(), (x + 20, y + 9), beside(font(MUTED), HPos::Left)))?;
        }
        top += self.legend_rows() * LINE as i32 + GAP;
        self.draw_axis(root, top)?;
        for track in 0..self.timeline.tracks.len() {
            self.draw_lane(root, track, top)?;
            top += self.lane_height(track);
        }
        Ok(())
    }

    /// The ticks and their lines, from `top` down to the axis.
    fn draw_axis(&self, root: &Area<'_>, top: i32) -> Drawn {
        let (longest, bottom) = (self.seconds(), self.height() - AXIS);
        let (factor, symbol) = Unit::Seconds.scale(longest);
        let step = round_step(longest / factor / 4.5) * factor;
        for tick in (0..).map(|n| f64::from(n) * step).take_while(|tick| *tick <= longest * 1.0001) {
            let x = self.x((tick * 1e9).round() as u64);
            root.draw(&PathElement::new(vec![(x, top), (x, bottom)], GRID))?;
            let side = if tick == 0.0 { HPos::Left } else { HPos::Center };
            let fits = x + CHARACTER * 3 <= WIDTH as i32;
            let (side, x) = if fits { (side, x) } else { (HPos::Right, WIDTH as i32 - 2) };
            root.draw(&Text::new(tick_text(tick / factor, symbol), (x, bottom + 12), beside(font(MUTED), side)))?;
        }
        let line = vec![(LEFT, bottom), (WIDTH as i32 - RIGHT, bottom)];
        Ok(root.draw(&PathElement::new(line, MUTED))?)
    }

    fn draw_lane(&self, root: &Area<'_>, track: usize, top: i32) -> Drawn {
        let middle = top + LINE as i32 / 2;
        let name = one_line(&self.lane_name(track));
        root.draw(&Text::new(name, (LEFT, middle), beside(bold(), HPos::Left)))?;
        let right = (WIDTH as i32 - RIGHT, middle);
        root.draw(&Text::new(self.share(track), right, beside(font(MUTED), HPos::Right)))?;
        let bar = top + LINE as i32;
        for Bar { kind, left, right } in self.bars(track) {
            // A gap, so that bars that follow each other without one are told apart.
            let right = if right - left > NARROW { right - 1 } else { right };
            draw_bar(root, kind, (left, bar), (right, bar + BAR))?;
        }
        for (row, left, text) in self.names(track) {
            let y = bar + BAR + NAME * i32::try_from(row).unwrap_or(0) + NAME / 2;
            root.draw(&Text::new(text, (left, y), beside(font(TEXT), HPos::Left)))?;
        }
        Ok(())
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

fn draw_bar(root: &Area<'_>, kind: Kind, from: (i32, i32), to: (i32, i32)) -> Drawn {
    let look = look(kind);
    root.draw(&Rectangle::new([from, to], look.fill.filled()))?;
    Ok(root.draw(&Rectangle::new([from, to], look.outline))?)
}

/// The next greater of 1, 2 and 5 times a power of ten.
fn round_step(step: f64) -> f64 {
    let power = 10_f64.powf(step.log10().floor());
    [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power).into_iter().find(|round| *round >= step).unwrap_or(10.0 * power)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::{Span, Track};

    fn span(track: usize, name: &str, kind: Kind, (start_ns, end_ns): (u64, u64)) -> Span {
        Span {
            track,
            name: name.to_owned(),
            start_ns,
            end_ns,
            kind,
            stream: None,
            bytes: None,
            correlation: None,
            barrier: None,
            awaits: None,
            site: None,
            detail: None,
        }
    }

    /// 37 short calls and kernels, then a read that waits.
    fn timeline() -> Timeline {
        let mut spans = Vec::new();
        for i in 0..37 {
            spans.push(span(0, "affine", Kind::Enqueue, (1_000 * i, 1_000 * i + 900)));
            spans.push(span(1, "affine", Kind::Kernel, (20_000 * i + 2_000, 20_000 * i + 21_000)));
        }
        spans.push(span(0, "item", Kind::Synchronize, (37_000, 745_000)));
        spans.sort_by_key(|span| span.start_ns);
        Timeline {
            device: "cuda:0".to_owned(),
            source: "by hand".to_owned(),
            tracks: vec![Track::Host("main".to_owned()), Track::Stream(0)],
            spans,
            dropped: 0,
            region_ns: 745_000,
        }
    }

    fn plot(timeline: &Timeline) -> TimelinePlot<'_> {
        TimelinePlot { title: "Title".to_owned(), machine: "M".to_owned(), timeline }
    }

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
    fn the_description_says_what_each_lane_does_and_for_how_much_of_the_time() {
        let description = plot(&timeline()).description();
        assert_eq!(
            description,
            "Timeline of 745 µs, recorded on M. host, main, waits 95 %: 37 × affine (enqueue), then item (synchronize). \
             stream, busy 94 %: 37 × affine (kernel)."
        );
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

    #[test]
    fn no_made_up_colour_is_left_and_a_name_is_text_whatever_it_holds() {
        let mut timeline = timeline();
        timeline.spans[0].name = "<script>{{#include x}}".to_owned();
        let svg = plot(&timeline).to_svg("a b").unwrap();
        assert!(!svg.contains("\"#0") && !svg.contains("\"#1"), "{svg}");
        assert!(!svg.contains("<script") && !svg.contains("{{") && svg.contains("url(#a-b-synchronize)"), "{svg}");
    }

    #[test]
    fn a_timeline_without_spans_is_still_a_picture() {
        let empty = Timeline { tracks: Vec::new(), spans: Vec::new(), region_ns: 0, ..timeline() };
        assert!(plot(&empty).to_svg("p").is_ok());
    }

    #[test]
    fn steps_of_the_axis_are_round() {
        assert_eq!([0.3, 7.0, 18.0, 20.0].map(round_step), [0.5, 10.0, 20.0, 20.0]);
    }
}
