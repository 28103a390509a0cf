//! Lines over a parameter: marks with whiskers, joined, with a legend above.
//!
//! Each line has its own mark and colour. A prediction has those of the line that it predicts, hollow and dashed.

use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::axis::{Axis, Spacing};
use super::picture::{Area, Drawn, LINE, Picture, WIDTH, beside, font, title_height};
use super::svg::Paint;
use crate::error::PlotError;
use crate::measure::Estimate;
use crate::units::Unit;

/// A panel of lines.
#[derive(Clone, Debug, PartialEq)]
pub struct LinePlot {
    /// What is drawn.
    pub title: String,
    /// The machine it was measured on; for the description, not drawn.
    pub machine: String,
    /// The parameter along the horizontal axis.
    pub x: String,
    /// How the horizontal axis is divided.
    pub x_spacing: Spacing,
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
    /// The place of the line that it predicts, among the lines of the plot.
    pub predicts: Option<usize>,
    /// Its points, ascending.
    pub points: Vec<Point>,
    /// Why points are missing: `50 skipped`.
    pub missing: Vec<String>,
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
            predicts: None,
            points: points.iter().map(point).collect(),
            missing: Vec::new(),
        }
    }

    /// A line of times that predict the line `of`, by its place in the plot.
    pub fn predicted(label: &str, of: usize, points: &[(f64, f64)]) -> Self {
        let point = |&(x, time): &(f64, f64)| Point { x, value: (time, None), text: Unit::Seconds.format(time, 3) };
        Self {
            label: label.to_owned(),
            predicts: Some(of),
            points: points.iter().map(point).collect(),
            missing: Vec::new(),
        }
    }
}

/// The place of the axis of the values.
const LEFT: i32 = 74;
const RIGHT: i32 = WIDTH as i32 - 18;
/// How far the first point stands from the axis.
const INSET: i32 = 14;
const HEIGHT: u32 = 190;
/// The ticks' numbers and the name of the parameter.
const AXIS: u32 = 46;

impl LinePlot {
    /// Times over the parameter `x`, both on logarithmic axes.
    pub fn of_times(title: &str, x: &str, lines: Vec<Line>) -> Self {
        Self {
            title: title.to_owned(),
            machine: "this device".to_owned(),
            x: x.to_owned(),
            x_spacing: Spacing::Log,
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
            height: self.top() as u32 + HEIGHT + AXIS,
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
                ([only], _) => format!("{}: {} at {x} {}{gaps}.", line.label, only.text, only.x),
                ([least, .., largest], count) => format!(
                    "{}, {count} points: least {} at {x} {}, largest {} at {x} {}{gaps}.",
                    line.label, least.text, least.x, largest.text, largest.x
                ),
            }
        };
        let lines: Vec<String> = self.lines.iter().map(line).collect();
        format!("Lines over {x}, measured on {}. {}", self.machine, lines.join(" "))
    }

    /// Which colour and mark a line has: its place among the lines that are no prediction, or that of the line that it
    /// predicts.
    fn look(&self, index: usize) -> u8 {
        let own = self.lines[index].predicts.unwrap_or(index);
        let before = self.lines.iter().take(own).filter(|line| line.predicts.is_none()).count();
        (before % usize::from(Paint::SERIES)) as u8
    }

    /// What a line is drawn with between its marks.
    fn paint(&self, index: usize) -> Paint {
        let look = self.look(index);
        if self.lines[index].predicts.is_some() { Paint::Dashed(look) } else { Paint::Series(look) }
    }

    /// The pixel row of the upper end of the axis of the values.
    fn top(&self) -> i32 {
        (title_height(&self.title) + LINE * self.lines.len() as u32 + 8) as i32
    }

    fn points(&self) -> impl Iterator<Item = &Point> {
        self.lines.iter().flat_map(|line| &line.points)
    }

    fn draw(&self, root: &Area<'_>) -> Drawn {
        let x = Axis::through(self.points().map(|point| point.x), self.x_spacing);
        let ends = self.points().flat_map(|point| {
            let (value, whisker) = point.value;
            whisker.map_or([value, value], |(low, high)| [low, high])
        });
        // The lower end of a whisker may lie below what a logarithm reaches; the value does not.
        let y = match self.y_spacing {
            Spacing::Linear => Axis::around(ends, Spacing::Linear),
            Spacing::Log => Axis::around(ends.filter(|end| *end > 0.0), Spacing::Log),
        };
        self.draw_axes(root, &x, &y)?;
        let order = (0..self.lines.len()).map(|index| (self.lines[index].predicts.is_none(), index));
        let mut order: Vec<_> = order.collect();
        // Predictions first: what was measured lies on top of them.
        order.sort_unstable();
        for (_, index) in order {
            self.draw_line(
                root,
                index,
                |point| {
                    let along = f64::from(RIGHT - LEFT - 2 * INSET) * x.place(point);
                    LEFT + INSET + along.round() as i32
                },
                |value| self.row(&y, value),
            )?;
        }
        self.draw_legend(root)
    }

    /// The pixel row of a value.
    fn row(&self, axis: &Axis, value: f64) -> i32 {
        self.top() + (f64::from(HEIGHT) * (1.0 - axis.place(value))).round() as i32
    }

    fn draw_axes(&self, root: &Area<'_>, x: &Axis, y: &Axis) -> Drawn {
        let (top, bottom) = (self.top(), self.top() + HEIGHT as i32);
        let scale = self.unit.scale(y.ticks.last().copied().unwrap_or(1.0));
        for tick in &y.ticks {
            let row = self.row(y, *tick);
            root.draw(&PathElement::new([(LEFT, row), (RIGHT, row)], Paint::Grid))?;
            let text = match self.y_spacing {
                Spacing::Linear => scale.tick(*tick),
                Spacing::Log => self.unit.scale(*tick).tick(*tick),
            };
            root.draw(&Text::new(text, (LEFT - 8, row), beside(font(Paint::Muted), HPos::Right)))?;
        }
        root.draw(&PathElement::new([(LEFT, top), (LEFT, bottom), (RIGHT, bottom)], Paint::Muted))?;

        let ticks = x.ticks.iter().map(|tick| {
            let along = f64::from(RIGHT - LEFT - 2 * INSET) * x.place(*tick);
            (LEFT + INSET + along.round() as i32, tick.to_string())
        });
        for (column, text) in legible(ticks.collect()) {
            root.draw(&PathElement::new([(column, bottom), (column, bottom + 4)], Paint::Muted))?;
            root.draw(&Text::new(text, (column, bottom + 14), beside(font(Paint::Muted), HPos::Center)))?;
        }
        let middle = ((LEFT + RIGHT) / 2, bottom + 34);
        root.draw(&Text::new(self.x.clone(), middle, beside(font(Paint::Text), HPos::Center)))?;
        Ok(())
    }

    fn draw_line(&self, root: &Area<'_>, index: usize, column: impl Fn(f64) -> i32, row: impl Fn(f64) -> i32) -> Drawn {
        let points = &self.lines[index].points;
        let path: Vec<(i32, i32)> = points.iter().map(|point| (column(point.x), row(point.value.0))).collect();
        if path.len() > 1 {
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

    /// The mark of a line: a disc, a square, a triangle or a diamond; of a prediction, larger and hollow.
    fn draw_mark(&self, root: &Area<'_>, index: usize, (x, y): (i32, i32)) -> Drawn {
        let hollow = self.lines[index].predicts.is_some();
        let size = if hollow { 7 } else { 4 };
        let paint = Paint::Series(self.look(index));
        let corners: &[(i32, i32)] = match self.look(index) {
            0 => {
                let style = if hollow { paint.stroke_width(2) } else { paint.filled() };
                return Ok(root.draw(&Circle::new((x, y), size, style))?);
            }
            1 => &[(-1, -1), (1, -1), (1, 1), (-1, 1)],
            2 => &[(0, -1), (1, 1), (-1, 1)],
            _ => &[(0, -1), (1, 0), (0, 1), (-1, 0)],
        };
        let mut corners: Vec<_> = corners.iter().map(|(dx, dy)| (x + dx * size, y + dy * size)).collect();
        if hollow {
            corners.extend(corners.first().copied());
            root.draw(&PathElement::new(corners, paint.stroke_width(2)))?;
        } else {
            root.draw(&Polygon::new(corners, paint))?;
        }
        Ok(())
    }

    fn draw_legend(&self, root: &Area<'_>) -> Drawn {
        for (index, line) in self.lines.iter().enumerate() {
            let y = (title_height(&self.title) - 4 + LINE * index as u32 + LINE / 2) as i32;
            root.draw(&PathElement::new([(10, y), (46, y)], self.paint(index).stroke_width(2)))?;
            self.draw_mark(root, index, (28, y))?;
            let mut text = line.label.clone();
            if line.points.is_empty() {
                text.push_str(&format!(": {}", line.missing.first().map_or("not in this run", String::as_str)));
            }
            root.draw(&Text::new(text, (56, y), beside(font(Paint::Text), HPos::Left)))?;
        }
        Ok(())
    }
}

/// Those of the ticks' texts that can stand beside each other; the first and the last always.
fn legible(ticks: Vec<(i32, String)>) -> Vec<(i32, String)> {
    let half = |text: &str| 4 * text.chars().count() as i32 + 3;
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
        let line = |label: &str, predicts, factor: f64| Line {
            label: label.to_owned(),
            predicts,
            points: [1.0, 10.0, 100.0].map(|x| point(x, x * factor)).to_vec(),
            missing: vec![],
        };
        LinePlot {
            title: "Title".to_owned(),
            machine: "M".to_owned(),
            x: "operations".to_owned(),
            x_spacing: Spacing::Log,
            unit: Unit::Seconds,
            y_spacing: Spacing::Log,
            lines: vec![line("queued", None, 2e-6), line("serial", None, 9e-6), line("model", Some(0), 2.1e-6)],
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
    fn a_prediction_is_dashed_in_the_colour_of_what_it_predicts() {
        let svg = plot().to_svg("p").unwrap();
        let dashed = "class=\"plot-first\" stroke=\"currentColor\" stroke-width=\"2\" stroke-dasharray";
        assert!(svg.contains(dashed) && !svg.contains("class=\"plot-third\""), "{svg}");
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
