//! Lines over a parameter: marks with whiskers, joined, with a legend above.
//!
//! Each line has its own mark and colour. A prediction has those of the line that it predicts, hollow and dashed; what
//! another system measured of the same, hollow and dotted. A bound is dashed and has no marks.

use super::axis::{Axis, Spacing};
use super::svg::{Paint, Place, Side, Svg, picture};
use super::text::{LINE, MARGIN, WIDTH, Weight, height, room, title_height};
use crate::Estimate;
use crate::units::{Unit, byte_size};

/// A panel of lines.
///
/// ```
/// use syncscope_present::{Line, LinePlot};
///
/// let line = Line::predicted("a model", 0, &[(1.0, 1e-6), (2.0, 2e-6)]);
/// assert!(LinePlot::of_times("A model", "size", vec![line]).to_svg("model").starts_with("<svg"));
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

/// How a line of some role looks.
struct RoleLook {
    /// The place of the line whose colour and mark it has, where that is another.
    of: Option<usize>,
    /// How large its marks are, and whether they are hollow; none where it has no marks.
    marks: Option<(i32, bool)>,
    /// What lies below what: bounds and predictions lie below what was measured.
    layer: u8,
    /// What joins its points, by the number of its colour; none where nothing does.
    joined: Option<fn(u8) -> Paint>,
    /// How far to the side its points stand, so that its whiskers do not hide another's.
    aside: i32,
}

impl LineRole {
    fn look(self) -> RoleLook {
        let look =
            |of, marks, layer, joined: Option<fn(u8) -> Paint>, aside| RoleLook { of, marks, layer, joined, aside };
        match self {
            Self::Bound => look(None, None, 0, Some(Paint::Dashed), 0),
            Self::Prediction(of) => look(Some(of), Some((7, true)), 1, Some(Paint::Dashed), 0),
            Self::OtherSystem(of) => look(Some(of), Some((5, true)), 2, Some(Paint::Dotted), 4),
            Self::OtherBelow(of) => look(Some(of), Some((5, true)), 2, None, 4),
            Self::Measured => look(None, Some((4, false)), 3, Some(Paint::Series), 0),
            Self::Below(of) => look(Some(of), Some((4, false)), 3, None, 0),
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
    /// A line of points, of which none is missing.
    pub fn new(label: impl Into<String>, role: LineRole, points: Vec<Point>) -> Self {
        Self { label: label.into(), role, points, missing: Vec::new() }
    }

    /// A line of measured times: at each place a median with its interval.
    pub fn measured(label: &str, points: &[(f64, Estimate)]) -> Self {
        let point = |(x, estimate): &(f64, Estimate)| Point {
            x: *x,
            value: (estimate.median, estimate.is_interval().then_some((estimate.low, estimate.high))),
            text: Unit::Seconds.format(estimate.median, 3),
        };
        Self::new(label, LineRole::Measured, points.iter().map(point).collect())
    }

    /// A line of times that predict the line `of`, by its place in the plot.
    pub fn predicted(label: &str, of: usize, points: &[(f64, f64)]) -> Self {
        let point = |&(x, time): &(f64, f64)| Point { x, value: (time, None), text: Unit::Seconds.format(time, 3) };
        Self::new(label, LineRole::Prediction(of), points.iter().map(point).collect())
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
const RIGHT: i32 = WIDTH - 18;
/// How far the first point stands from the axis.
const INSET: i32 = 14;
const HEIGHT: i32 = 190;
/// The ticks' numbers, above the name of the parameter.
const AXIS: i32 = 25;
/// Where a line's label begins in the legend.
const LABEL: i32 = 56;

/// The corners of a cross, from its middle, as shares of its size: an arm, turned three times.
fn cross() -> [(f64, f64); 12] {
    const ARM: [(f64, f64); 3] = [(-0.3, -1.0), (0.3, -1.0), (0.3, -0.3)];
    std::array::from_fn(|place| (0..place / 3).fold(ARM[place % 3], |(x, y), _| (-y, x)))
}

/// The corners of an hourglass, as of a [`cross`].
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
    pub fn to_svg(&self, id: &str) -> String {
        let height = self.top() + HEIGHT + AXIS + height(&self.x_lines()) + 3;
        picture(id, &[], (&self.title, &self.description()), height, |svg| self.draw(svg))
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
        let own = self.lines[index].role.look().of.unwrap_or(index);
        let before = self.lines.iter().take(own).filter(|line| line.role.look().of.is_none()).count();
        (before % usize::from(Paint::SERIES)) as u8
    }

    /// What a line is drawn with between its marks, where its points are joined.
    fn paint(&self, index: usize) -> Option<Paint> {
        Some(self.lines[index].role.look().joined?(self.look(index)))
    }

    /// The pixel row of the upper end of the axis of the values.
    fn top(&self) -> i32 {
        title_height(&self.title) + self.lines.iter().map(|line| height(&line.legend())).sum::<i32>() + 8
    }

    fn points(&self) -> impl Iterator<Item = &Point> {
        self.lines.iter().flat_map(|line| &line.points)
    }

    fn draw(&self, svg: &mut Svg<'_>) {
        let axes = self.axes();
        self.draw_axes(svg, &axes);
        let mut order: Vec<_> =
            (0..self.lines.len()).map(|index| (self.lines[index].role.look().layer, index)).collect();
        order.sort_unstable();
        order.into_iter().for_each(|(_, index)| self.draw_line(svg, index, &axes));
        self.draw_legend(svg);
    }

    fn axes(&self) -> Axes {
        let places = self.points().map(|point| point.x);
        let x = match self.x_ticks {
            Ticks::Places => Axis::through(places, self.x_spacing),
            Ticks::Round => Axis::around(places, self.x_spacing),
        };
        let ends = self.points().flat_map(|point| {
            let (value, whisker) = point.value;
            whisker.map_or([value, value], |(low, high)| [low, high])
        });
        let all = |holds: fn(f64) -> bool| self.points().all(|point| holds(point.value.0));
        // The lower end of a whisker may lie below what a logarithm reaches; a value may not.
        let y = if self.y_spacing == Spacing::Log && all(|value| value > 0.0) {
            Axis::around(ends.filter(|end| *end > 0.0), Spacing::Log)
        // No share is above the whole, whatever its interval says.
        } else if self.unit == Unit::Ratio && all(|value| (0.0..=1.0).contains(&value)) {
            Axis::around(ends.map(|end| end.clamp(0.0, 1.0)).chain([1.0]), Spacing::Linear)
        } else {
            Axis::around(ends, Spacing::Linear)
        };
        // Its numbers stand to the left of the axis of the values.
        let longest = self.numbers(&y).iter().map(|text| Weight::Regular.width(text)).max().unwrap_or(0);
        Axes { left: LEFT.max(longest + 10), top: self.top(), x, y }
    }

    /// The numbers at the ticks of the axis of the values.
    fn numbers(&self, y: &Axis) -> Vec<String> {
        let scale = self.unit.scale(y.ticks.last().copied().unwrap_or(1.0));
        let number = |tick: &f64| match y.spacing {
            Spacing::Linear => scale.tick(*tick),
            Spacing::Log => self.unit.scale(*tick).tick(*tick),
        };
        y.ticks.iter().map(number).collect()
    }

    fn draw_axes(&self, svg: &mut Svg<'_>, axes: &Axes) {
        let (left, top, bottom) = (axes.left, axes.top, axes.top + HEIGHT);
        for (tick, text) in axes.y.ticks.iter().zip(self.numbers(&axes.y)) {
            let row = axes.row(*tick);
            svg.path(&[(left, row), (RIGHT, row)], Paint::Grid, 1);
            svg.text(&text, (left - 8, row), Weight::Regular, Paint::Muted, Side::Right);
        }
        svg.path(&[(left, top), (left, bottom), (RIGHT, bottom)], Paint::Muted, 1);
        let ticks = axes.x.ticks.iter().map(|tick| (axes.column(*tick), self.place(*tick)));
        for (column, text) in legible(ticks.collect()) {
            svg.path(&[(column, bottom), (column, bottom + 4)], Paint::Muted, 1);
            Weight::Regular.draw_around(svg, &text, (column, bottom + 14), Paint::Muted);
        }
        for (line, number) in self.x_lines().iter().zip(0..) {
            let middle = (WIDTH / 2, bottom + AXIS + LINE * number + LINE / 2);
            Weight::Regular.draw_around(svg, line, middle, Paint::Text);
        }
    }

    /// The name of the parameter, below the axis.
    fn x_lines(&self) -> Vec<String> {
        Weight::Regular.lines(&self.x, room(MARGIN))
    }

    fn draw_line(&self, svg: &mut Svg<'_>, index: usize, axes: &Axes) {
        let Line { points, role, .. } = &self.lines[index];
        let place = |point: &Point| (axes.column(point.x) + role.look().aside, axes.row(point.value.0));
        let path: Vec<Place> = points.iter().map(place).collect();
        if let Some(paint) = self.paint(index).filter(|_| path.len() > 1) {
            svg.path(&path, paint, 2);
        }
        for (point, (x, y)) in points.iter().zip(path) {
            if let (_, Some((low, high))) = point.value {
                let (low, high) = (axes.row(low), axes.row(high));
                for line in [[(x, low), (x, high)], [(x - 4, low), (x + 4, low)], [(x - 4, high), (x + 4, high)]] {
                    svg.path(&line, Paint::Whisker, 1);
                }
            }
            self.draw_mark(svg, index, (x, y));
        }
    }

    /// The mark of a line: a disc, a square, a triangle, a diamond, a triangle upside down, a cross or an
    /// hourglass, or a hollow one.
    fn draw_mark(&self, svg: &mut Svg<'_>, index: usize, (x, y): Place) {
        let Some((size, hollow)) = self.lines[index].role.look().marks else { return };
        let paint = Paint::Series(self.look(index));
        let corners: &[(f64, f64)] = match self.look(index) {
            0 => return svg.circle((x, y), size, paint, hollow),
            1 => &[(-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)],
            2 => &[(0.0, -1.0), (1.0, 1.0), (-1.0, 1.0)],
            3 => &[(0.0, -1.0), (1.0, 0.0), (0.0, 1.0), (-1.0, 0.0)],
            4 => &[(-1.0, -1.0), (1.0, -1.0), (0.0, 1.0)],
            5 => &cross(),
            _ => &HOURGLASS,
        };
        let away = |share: f64| (share * f64::from(size)).round() as i32;
        let mut corners: Vec<Place> = corners.iter().map(|(dx, dy)| (x + away(*dx), y + away(*dy))).collect();
        if hollow {
            corners.extend(corners.first().copied());
            svg.path(&corners, paint, 2);
        } else {
            svg.polygon(&corners, paint);
        }
    }

    fn draw_legend(&self, svg: &mut Svg<'_>) {
        let mut top = title_height(&self.title) - 4;
        for (index, line) in self.lines.iter().enumerate() {
            let y = top + LINE / 2;
            if let Some(paint) = self.paint(index) {
                svg.path(&[(10, y), (46, y)], paint, 2);
            }
            self.draw_mark(svg, index, (28, y));
            let legend = line.legend();
            Weight::Regular.draw(svg, &legend, (LABEL, top), Paint::Text);
            top += height(&legend);
        }
    }
}

/// Where the points of a plot lie.
struct Axes {
    /// The pixel column of the axis of the values, and the row of its upper end.
    left: i32,
    top: i32,
    x: Axis,
    y: Axis,
}

impl Axes {
    fn column(&self, x: f64) -> i32 {
        self.left + INSET + (f64::from(RIGHT - self.left - 2 * INSET) * self.x.place(x)).round() as i32
    }

    fn row(&self, value: f64) -> i32 {
        self.top + (f64::from(HEIGHT) * (1.0 - self.y.place(value))).round() as i32
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
mod tests;
