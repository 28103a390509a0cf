//! Lines over a parameter: marks with whiskers, joined, with a legend above.
//!
//! Each line has its own mark and colour. A prediction has those of the line that it predicts, hollow and dashed; what
//! another system measured of the same, hollow and dotted. A bound is dashed and has no marks.

use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::axis::{Axis, Spacing};
use super::picture::{Area, DrawResult, LINE, MARGIN, Picture, WIDTH, room, title_height};
use super::svg::Paint;
use super::text::Weight;
use crate::Estimate;
use crate::PlotError;
use crate::units::{Unit, byte_size};

/// A panel of lines.
///
/// ```
/// use syncscope_present::{Line, LinePlot};
///
/// let line = Line::predicted("a model", 0, &[(1.0, 1e-6), (2.0, 2e-6)]);
/// assert!(LinePlot::of_times("A model", "size", vec![line]).to_svg("model")?.starts_with("<svg"));
/// # Ok::<(), syncscope_present::PlotError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct LinePlot {
    /// What is drawn.
    pub title: String,
    /// The machine it was measured on; for the description, not drawn.
    pub machine: String,
    /// The parameter along the horizontal axis.
    pub x: String,
    /// The unit of the parameter, where it has one.
    pub x_unit: Option<Unit>,
    /// How the horizontal axis is divided.
    pub x_spacing: Spacing,
    /// What is marked along it.
    pub x_ticks: Ticks,
    /// The unit of the values.
    pub unit: Unit,
    /// How the vertical axis is divided.
    pub y_spacing: Spacing,
    /// The lines.
    pub lines: Vec<Line>,
}

/// A line.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Its label.
    pub label: String,
    /// What it is among the lines of the plot.
    pub role: LineRole,
    /// Its points, ascending.
    pub points: Vec<Point>,
    /// Why points are missing: `50 skipped`.
    pub missing: Vec<String>,
}

/// What is marked along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ticks {
    /// The places of the points, as far as there is room.
    Places,
    /// Round numbers.
    Round,
}

/// What a line is among the lines of its plot, which decides how it looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineRole {
    /// Measured.
    Measured,
    /// A prediction of the line at this place.
    Prediction(usize),
    /// What another system measured of what the line at this place shows.
    OtherSystem(usize),
    /// A bound of what is measured.
    Bound,
    /// Single measurements below the bound at this place, which no line joins.
    Below(usize),
    /// The same by another system.
    OtherBelow(usize),
}

impl LineRole {
    /// The place of the line whose colour and mark it has, where that is another.
    fn of(self) -> Option<usize> {
        match self {
            Self::Measured | Self::Bound => None,
            Self::Prediction(of) | Self::OtherSystem(of) | Self::Below(of) | Self::OtherBelow(of) => Some(of),
        }
    }

    fn is_joined(self) -> bool {
        !matches!(self, Self::Below(_) | Self::OtherBelow(_))
    }

    /// How large its marks are, and whether they are hollow; none where it has no marks.
    fn marks(self) -> Option<(i32, bool)> {
        match self {
            Self::Measured | Self::Below(_) => Some((4, false)),
            Self::Prediction(_) => Some((7, true)),
            Self::OtherSystem(_) | Self::OtherBelow(_) => Some((5, true)),
            Self::Bound => None,
        }
    }

    /// How far to the side its points stand, so that its whiskers do not hide another's.
    fn aside(self) -> i32 {
        if matches!(self, Self::OtherSystem(_) | Self::OtherBelow(_)) { 4 } else { 0 }
    }

    /// What lies below what: bounds and predictions lie below what was measured.
    fn layer(self) -> u8 {
        match self {
            Self::Bound => 0,
            Self::Prediction(_) => 1,
            Self::OtherSystem(_) | Self::OtherBelow(_) => 2,
            Self::Measured | Self::Below(_) => 3,
        }
    }
}

/// A point of a line.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// The parameter.
    pub x: f64,
    /// The value and the ends of its whisker.
    pub value: (f64, Option<(f64, f64)>),
    /// The value in words.
    pub text: String,
}

impl Line {
    /// A line of measured times: at each place a median with its interval.
    pub fn measured(label: &str, points: &[(f64, Estimate)]) -> Self {
        let point = |(x, estimate): &(f64, Estimate)| Point {
            x: *x,
            value: (estimate.median, estimate.is_interval().then_some((estimate.low, estimate.high))),
            text: Unit::Seconds.format(estimate.median, 3),
        };
        Self {
            label: label.to_owned(),
            role: LineRole::Measured,
            points: points.iter().map(point).collect(),
            missing: Vec::new(),
        }
    }

    /// A line of times that predict the line `of`, by its place in the plot.
    pub fn predicted(label: &str, of: usize, points: &[(f64, f64)]) -> Self {
        let point = |&(x, time): &(f64, f64)| Point { x, value: (time, None), text: Unit::Seconds.format(time, 3) };
        Self {
            label: label.to_owned(),
            role: LineRole::Prediction(of),
            points: points.iter().map(point).collect(),
            missing: Vec::new(),
        }
    }

    /// What the legend says of it: its label, and why it has no points.
    fn legend(&self) -> Vec<String> {
        let mut text = self.label.clone();
        if self.points.is_empty() {
            text.push_str(&format!(": {}", self.missing.first().map_or("not in this run", String::as_str)));
        }
        Weight::Regular.lines(&text, room(LABEL))
    }
}

/// The place of the axis of the values, where its numbers need no more room.
const LEFT: i32 = 74;
const RIGHT: i32 = WIDTH as i32 - 18;
/// How far the first point stands from the axis.
const INSET: i32 = 14;
const HEIGHT: u32 = 190;
/// The ticks' numbers, above the name of the parameter.
const AXIS: u32 = 25;
/// Where a line's label begins in the legend.
const LABEL: i32 = 56;

/// The corners of a cross, from its middle, as shares of its size.
const CROSS: [(f64, f64); 12] = {
    const ARM: f64 = 0.3;
    [
        (-ARM, -1.0),
        (ARM, -1.0),
        (ARM, -ARM),
        (1.0, -ARM),
        (1.0, ARM),
        (ARM, ARM),
        (ARM, 1.0),
        (-ARM, 1.0),
        (-ARM, ARM),
        (-1.0, ARM),
        (-1.0, -ARM),
        (-ARM, -ARM),
    ]
};

/// The corners of an hourglass, as [`CROSS`].
const HOURGLASS: [(f64, f64); 6] = [(-1.0, -1.0), (1.0, -1.0), (0.25, 0.0), (1.0, 1.0), (-1.0, 1.0), (-0.25, 0.0)];

impl LinePlot {
    /// Times over the parameter `x`, both on logarithmic axes.
    pub fn of_times(title: &str, x: &str, lines: Vec<Line>) -> Self {
        Self {
            title: title.to_owned(),
            machine: "this device".to_owned(),
            x: x.to_owned(),
            x_unit: None,
            x_spacing: Spacing::Log,
            x_ticks: Ticks::Places,
            unit: Unit::Seconds,
            y_spacing: Spacing::Log,
            lines,
        }
    }

    /// The plot as SVG. `id` must be unique in the page: the identifiers within the picture begin with it.
    ///
    /// # Errors
    /// What the drawing library reports.
    pub fn to_svg(&self, id: &str) -> Result<String, PlotError> {
        let picture = Picture {
            id,
            title: &self.title,
            description: &self.description(),
            height: self.top() as u32 + HEIGHT + AXIS + LINE * self.x_lines().len() as u32 + 3,
            patterns: &[],
        };
        picture.svg(|root| self.draw(root))
    }

    /// What the picture shows, in words: for each line its ends and its extremes.
    pub fn description(&self) -> String {
        let x = &self.x;
        let line = |line: &Line| {
            let mut by_value: Vec<&Point> = line.points.iter().collect();
            by_value.sort_by(|a, b| a.value.0.total_cmp(&b.value.0));
            let gaps = if line.missing.is_empty() { String::new() } else { format!("; {}", line.missing.join(", ")) };
            match (by_value.as_slice(), line.points.len()) {
                ([], _) => format!("{}: no points{gaps}.", line.label),
                ([only], _) => format!("{}: {} at {x} {}{gaps}.", line.label, only.text, self.place(only.x)),
                ([least, .., largest], count) => format!(
                    "{}, {count} points: least {} at {x} {}, largest {} at {x} {}{gaps}.",
                    line.label,
                    least.text,
                    self.place(least.x),
                    largest.text,
                    self.place(largest.x)
                ),
            }
        };
        let lines: Vec<String> = self.lines.iter().map(line).collect();
        format!("Lines over {x}, measured on {}. {}", self.machine, lines.join(" "))
    }

    /// A value of the parameter in words.
    pub fn place(&self, x: f64) -> String {
        match self.x_unit {
            Some(Unit::Bytes) => byte_size(x),
            Some(unit) => unit.scale(x).tick(x),
            None if x.fract() == 0.0 && x.abs() < 1e6 => x.to_string(),
            None => Unit::Number.scale(x).short(x),
        }
    }

    /// Which colour and mark a line has: its place among the lines that have their own, or that of the line that it
    /// belongs to.
    fn look(&self, index: usize) -> u8 {
        let own = self.lines[index].role.of().unwrap_or(index);
        let before = self.lines.iter().take(own).filter(|line| line.role.of().is_none()).count();
        (before % usize::from(Paint::SERIES)) as u8
    }

    /// What a line is drawn with between its marks.
    fn paint(&self, index: usize) -> Paint {
        let look = self.look(index);
        match self.lines[index].role {
            LineRole::Prediction(_) | LineRole::Bound => Paint::Dashed(look),
            LineRole::OtherSystem(_) => Paint::Dotted(look),
            LineRole::Measured | LineRole::Below(_) | LineRole::OtherBelow(_) => Paint::Series(look),
        }
    }

    /// The pixel row of the upper end of the axis of the values.
    fn top(&self) -> i32 {
        let legend: usize = self.lines.iter().map(|line| line.legend().len()).sum();
        (title_height(&self.title) + LINE * legend as u32 + 8) as i32
    }

    fn points(&self) -> impl Iterator<Item = &Point> {
        self.lines.iter().flat_map(|line| &line.points)
    }

    fn draw(&self, root: &Area<'_>) -> DrawResult {
        let x = self.x_axis();
        let ends = self.points().flat_map(|point| {
            let (value, whisker) = point.value;
            whisker.map_or([value, value], |(low, high)| [low, high])
        });
        // The lower end of a whisker may lie below what a logarithm reaches; a value may not.
        let y = match self.y_spacing {
            Spacing::Log if self.points().all(|point| point.value.0 > 0.0) => {
                Axis::around(ends.filter(|end| *end > 0.0), Spacing::Log)
            }
            // No share is above the whole, whatever its interval says.
            Spacing::Log | Spacing::Linear
                if self.unit == Unit::Ratio && self.points().all(|point| (0.0..=1.0).contains(&point.value.0)) =>
            {
                Axis::around(ends.map(|end| end.clamp(0.0, 1.0)).chain([1.0]), Spacing::Linear)
            }
            Spacing::Log | Spacing::Linear => Axis::around(ends, Spacing::Linear),
        };
        let left = self.left(&y);
        self.draw_axes(root, &x, &y)?;
        let mut order: Vec<_> = (0..self.lines.len()).map(|index| (self.lines[index].role.layer(), index)).collect();
        order.sort_unstable();
        for (_, index) in order {
            self.draw_line(
                root,
                index,
                |point| {
                    let along = f64::from(RIGHT - left - 2 * INSET) * x.place(point);
                    left + INSET + along.round() as i32
                },
                |value| self.row(&y, value),
            )?;
        }
        self.draw_legend(root)
    }

    fn x_axis(&self) -> Axis {
        let places = self.points().map(|point| point.x);
        match self.x_ticks {
            Ticks::Places => Axis::through(places, self.x_spacing),
            Ticks::Round => Axis::around(places, self.x_spacing),
        }
    }

    /// The pixel row of a value.
    fn row(&self, axis: &Axis, value: f64) -> i32 {
        self.top() + (f64::from(HEIGHT) * (1.0 - axis.place(value))).round() as i32
    }

    /// The numbers at the ticks of the axis of the values.
    fn numbers(&self, y: &Axis) -> Vec<String> {
        let scale = self.unit.scale(y.ticks.last().copied().unwrap_or(1.0));
        let number = |tick: &f64| match y.spacing() {
            Spacing::Linear => scale.tick(*tick),
            Spacing::Log => self.unit.scale(*tick).tick(*tick),
        };
        y.ticks.iter().map(number).collect()
    }

    /// The place of the axis of the values: its numbers stand to the left of it.
    fn left(&self, y: &Axis) -> i32 {
        let longest = self.numbers(y).iter().map(|text| Weight::Regular.width(text)).max().unwrap_or(0);
        LEFT.max(longest + 10)
    }

    fn draw_axes(&self, root: &Area<'_>, x: &Axis, y: &Axis) -> DrawResult {
        let (top, bottom) = (self.top(), self.top() + HEIGHT as i32);
        let left = self.left(y);
        for (tick, text) in y.ticks.iter().zip(self.numbers(y)) {
            let row = self.row(y, *tick);
            root.draw(&PathElement::new([(left, row), (RIGHT, row)], Paint::Grid))?;
            root.draw(&Text::new(text, (left - 8, row), Weight::Regular.style(Paint::Muted, HPos::Right)))?;
        }
        root.draw(&PathElement::new([(left, top), (left, bottom), (RIGHT, bottom)], Paint::Muted))?;

        let ticks = x.ticks.iter().map(|tick| {
            let along = f64::from(RIGHT - left - 2 * INSET) * x.place(*tick);
            (left + INSET + along.round() as i32, self.place(*tick))
        });
        for (column, text) in legible(ticks.collect()) {
            root.draw(&PathElement::new([(column, bottom), (column, bottom + 4)], Paint::Muted))?;
            Weight::Regular.draw_around(root, &text, (column, bottom + 14), Paint::Muted)?;
        }
        for (line, number) in self.x_lines().into_iter().zip(0..) {
            let middle = (WIDTH as i32 / 2, bottom + AXIS as i32 + LINE as i32 * number + LINE as i32 / 2);
            Weight::Regular.draw_around(root, &line, middle, Paint::Text)?;
        }
        Ok(())
    }

    /// The name of the parameter, below the axis.
    fn x_lines(&self) -> Vec<String> {
        Weight::Regular.lines(&self.x, room(MARGIN))
    }

    fn draw_line(
        &self,
        root: &Area<'_>,
        index: usize,
        column: impl Fn(f64) -> i32,
        row: impl Fn(f64) -> i32,
    ) -> DrawResult {
        let Line { points, role, .. } = &self.lines[index];
        let column = |x: f64| column(x) + role.aside();
        let path: Vec<(i32, i32)> = points.iter().map(|point| (column(point.x), row(point.value.0))).collect();
        if path.len() > 1 && role.is_joined() {
            root.draw(&PathElement::new(path, self.paint(index).stroke_width(2)))?;
        }
        for point in points {
            let x = column(point.x);
            if let (_, Some((low, high))) = point.value {
                let (low, high) = (row(low), row(high));
                for line in [[(x, low), (x, high)], [(x - 4, low), (x + 4, low)], [(x - 4, high), (x + 4, high)]] {
                    root.draw(&PathElement::new(line, Paint::Whisker))?;
                }
            }
            self.draw_mark(root, index, (x, row(point.value.0)))?;
        }
        Ok(())
    }

    /// The mark of a line: a disc, a square, a triangle, a diamond, a triangle upside down, a cross or an
    /// hourglass, or a hollow one.
    fn draw_mark(&self, root: &Area<'_>, index: usize, (x, y): (i32, i32)) -> DrawResult {
        let Some((size, hollow)) = self.lines[index].role.marks() else { return Ok(()) };
        let paint = Paint::Series(self.look(index));
        let corners: &[(f64, f64)] = match self.look(index) {
            0 => {
                let style = if hollow { paint.stroke_width(2) } else { paint.filled() };
                return Ok(root.draw(&Circle::new((x, y), size, style))?);
            }
            1 => &[(-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)],
            2 => &[(0.0, -1.0), (1.0, 1.0), (-1.0, 1.0)],
            3 => &[(0.0, -1.0), (1.0, 0.0), (0.0, 1.0), (-1.0, 0.0)],
            4 => &[(-1.0, -1.0), (1.0, -1.0), (0.0, 1.0)],
            5 => &CROSS,
            _ => &HOURGLASS,
        };
        let away = |share: f64| (share * f64::from(size)).round() as i32;
        let mut corners: Vec<_> = corners.iter().map(|(dx, dy)| (x + away(*dx), y + away(*dy))).collect();
        if hollow {
            corners.extend(corners.first().copied());
            root.draw(&PathElement::new(corners, paint.stroke_width(2)))?;
        } else {
            root.draw(&Polygon::new(corners, paint))?;
        }
        Ok(())
    }

    fn draw_legend(&self, root: &Area<'_>) -> DrawResult {
        let mut top = title_height(&self.title) as i32 - 4;
        for (index, line) in self.lines.iter().enumerate() {
            let y = top + LINE as i32 / 2;
            if line.role.is_joined() {
                root.draw(&PathElement::new([(10, y), (46, y)], self.paint(index).stroke_width(2)))?;
            }
            self.draw_mark(root, index, (28, y))?;
            let legend = line.legend();
            let below = top + LINE as i32 * legend.len() as i32;
            Weight::Regular.draw(root, legend, (LABEL, top), Paint::Text)?;
            top = below;
        }
        Ok(())
    }
}

/// Those of the ticks' texts that can stand beside each other; the first and the last always.
fn legible(ticks: Vec<(i32, String)>) -> Vec<(i32, String)> {
    let half = |text: &str| Weight::Regular.width(text) / 2 + 3;
    let clear = |a: &(i32, String), b: &(i32, String)| a.0 + half(&a.1) <= b.0 - half(&b.1);
    let mut kept: Vec<(i32, String)> = Vec::new();
    let last = ticks.last().cloned();
    for tick in ticks {
        let is_last = last.as_ref() == Some(&tick);
        while is_last && kept.len() > 1 && kept.last().is_some_and(|before| !clear(before, &tick)) {
            kept.pop();
        }
        if is_last || kept.last().is_none_or(|before| clear(before, &tick)) {
            kept.push(tick);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot() -> LinePlot {
        let point = |x: f64, value: f64| Point {
            x,
            value: (value, Some((value * 0.9, value * 1.1))),
            text: Unit::Seconds.format(value, 3),
        };
        let line = |label: &str, role, factor: f64| Line {
            label: label.to_owned(),
            role,
            points: [1.0, 10.0, 100.0].map(|x| point(x, x * factor)).to_vec(),
            missing: vec![],
        };
        LinePlot {
            title: "Title".to_owned(),
            machine: "M".to_owned(),
            x: "operations".to_owned(),
            x_unit: None,
            x_spacing: Spacing::Log,
            x_ticks: Ticks::Places,
            unit: Unit::Seconds,
            y_spacing: Spacing::Log,
            lines: vec![
                line("queued", LineRole::Measured, 2e-6),
                line("serial", LineRole::Measured, 9e-6),
                line("model", LineRole::Prediction(0), 2.1e-6),
            ],
        }
    }

    #[test]
    fn every_point_has_a_mark_and_every_line_its_legend() {
        let svg = plot().to_svg("p").unwrap();
        // Three points and the legend, for the discs of the measured line and the circles of its prediction.
        assert_eq!(svg.matches("<circle").count(), 8, "{svg}");
        assert_eq!(svg.matches("<polygon").count(), 4, "{svg}");
        for text in ["queued", "serial", "model", "operations"] {
            assert!(svg.contains(text), "{text} is missing in {svg}");
        }
    }

    #[test]
    fn six_lines_have_six_colours_and_six_marks() {
        let mut plot = plot();
        let line = plot.lines[0].clone();
        plot.lines = (0..6).map(|number| Line { label: format!("line {number}"), ..line.clone() }).collect();
        let svg = plot.to_svg("p").unwrap();
        let lines = ["first", "second", "third", "fourth", "fifth", "sixth"];
        for class in lines.map(|name| format!("class=\"plot-{name}\" stroke-width=\"2\"")) {
            assert_eq!(svg.matches(&class).count(), 2, "the line and its legend: {class} in {svg}");
        }
        // The marks of the legend, each from its middle.
        let marks = svg.lines().filter(|line| line.starts_with("<polygon") || line.starts_with("<circle"));
        let shape = |mark: &str| {
            let points = mark.split("points=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default();
            let pairs = points.split(' ').filter_map(|pair| pair.split_once(','));
            let numbers: Vec<(i32, i32)> = pairs.map(|(x, y)| (x.parse().unwrap(), y.parse().unwrap())).collect();
            let least = |of: fn(&(i32, i32)) -> i32| numbers.iter().map(of).min().unwrap_or(0);
            let (left, top) = (least(|pair| pair.0), least(|pair| pair.1));
            numbers.iter().map(|(x, y)| (x - left, y - top)).collect::<Vec<_>>()
        };
        let shapes: std::collections::BTreeSet<Vec<(i32, i32)>> = marks.map(shape).collect();
        assert_eq!(shapes.len(), 6, "{shapes:?}");
    }

    #[test]
    fn a_prediction_is_dashed_in_the_colour_of_what_it_predicts() {
        let svg = plot().to_svg("p").unwrap();
        let dashed = "class=\"plot-first\" stroke-width=\"2\" stroke-dasharray";
        assert!(svg.contains(dashed) && !svg.contains("class=\"plot-third\""), "{svg}");
    }

    #[test]
    fn another_system_is_told_apart_by_its_marks_and_its_dots_and_not_by_its_colour() {
        let mut plot = plot();
        plot.lines[2].role = LineRole::OtherSystem(0);
        let svg = plot.to_svg("p").unwrap();
        let dotted = "class=\"plot-first\" stroke-width=\"2\" stroke-dasharray=\"2 3\"";
        let hollow = "r=\"5\" stroke=\"currentColor\" class=\"plot-first\"";
        assert!(svg.contains(dotted) && svg.contains(hollow) && !svg.contains("class=\"plot-third\""), "{svg}");
    }

    #[test]
    fn bounds_have_no_marks_and_differ_in_their_dashes() {
        let mut plot = plot();
        plot.lines[0].role = LineRole::Bound;
        plot.lines[1].role = LineRole::Bound;
        plot.lines[2].role = LineRole::Below(0);
        let svg = plot.to_svg("p").unwrap();
        assert!(svg.contains("stroke-dasharray=\"5 4\"") && svg.contains("stroke-dasharray=\"11 4\""), "{svg}");
        // Marks of the measurements below the first bound alone, which no line joins: three points and the legend.
        assert_eq!((svg.matches("<circle").count(), svg.matches("<polygon").count()), (4, 0), "{svg}");
    }

    #[test]
    fn a_value_that_has_no_logarithm_makes_the_axis_linear() {
        let mut plot = plot();
        plot.lines[0].points[0].value = (-1e-3, None);
        assert!(plot.to_svg("p").unwrap().contains("−1 ms"));
    }

    #[test]
    fn a_parameter_with_a_unit_is_written_with_it() {
        let mut plot = plot();
        plot.x_unit = Some(Unit::Bytes);
        assert!(plot.to_svg("p").unwrap().contains(">100 B</text>"));
        assert!(plot.description().contains("at operations 100 B"));
        // Each point has the unit of its own size.
        assert_eq!([4096.0, 1048576.0, 4e7].map(|x| plot.place(x)), ["4 KiB", "1 MiB", "40 MB"]);
    }

    #[test]
    fn the_description_names_the_extremes_and_where_they_lie() {
        let description = plot().description();
        let extremes = "queued, 3 points: least 2.00 µs at operations 1, largest 200 µs at operations 100.";
        assert!(description.contains(extremes), "{description}");
    }

    #[test]
    fn a_line_without_points_says_why() {
        let mut plot = plot();
        plot.lines[0].points.clear();
        plot.lines[0].missing.push("10 skipped".to_owned());
        assert!(plot.to_svg("p").unwrap().contains("10 skipped"));
        assert!(plot.description().contains("queued: no points; 10 skipped."));
    }

    #[test]
    fn no_two_tick_texts_touch() {
        let ticks = (0..40).map(|i| (i * 6, (i * 1000).to_string())).collect();
        let kept = legible(ticks);
        assert_eq!(kept.first().unwrap().0, 0);
        assert_eq!(kept.last().unwrap().0, 39 * 6);
        assert!(kept.windows(2).all(|pair| pair[1].0 - pair[0].0 >= 30));
    }
}
