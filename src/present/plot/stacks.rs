//! Stacked bars: what a measured whole consists of, each bar with its label above, and the whole beside the sum of its parts.
//!
//! The parts differ in colour and in hatching. A mark with a whisker stands where the whole ends: what lies between it and the
//! end of the bar is the closing error, which is also written.

use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::horizontal::{AXIS, BAR, Horizontal, Layout};
use super::picture::{Area, DrawResult, LINE, MARGIN, Picture, WIDTH, room, title_height};
use super::svg::{Paint, Pattern};
use super::text::Weight;
use crate::PlotError;
use crate::units::Unit;

/// A panel of stacked bars.
///
/// ```
/// use syncscope_present::{Stack, StackBar, StackPlot};
/// use syncscope_present::units::Unit;
///
/// let stack = Stack {
///     parts: vec![2e-6, 5e-6],
///     whole: (7.5e-6, None),
///     text: "7.5 µs".to_owned(),
///     error: "0.5 µs not explained".to_owned(),
/// };
/// let plot = StackPlot {
///     title: "A read".to_owned(),
///     machine: "this machine".to_owned(),
///     unit: Unit::Seconds,
///     parts: vec!["launch".to_owned(), "copy".to_owned()],
///     bars: vec![StackBar { label: "item".to_owned(), stack: Ok(stack) }],
/// };
/// assert!(plot.description().contains("0.5 µs not explained"));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct StackPlot {
    /// What is drawn.
    pub title: String,
    /// The machine it was measured on; for the description, not drawn.
    pub machine: String,
    /// The unit of the bars.
    pub unit: Unit,
    /// The names of the parts, at most as many as there are paints.
    pub parts: Vec<String>,
    /// The bars.
    pub bars: Vec<StackBar>,
}

/// A bar of parts.
#[derive(Clone, Debug, PartialEq)]
pub struct StackBar {
    /// Its label.
    pub label: String,
    /// What was measured; the reason where nothing was.
    pub stack: Result<Stack, String>,
}

/// The parts of a whole.
#[derive(Clone, Debug, PartialEq)]
pub struct Stack {
    /// The length of each part, in the order of their names.
    pub parts: Vec<f64>,
    /// The whole and its interval.
    pub whole: (f64, Option<(f64, f64)>),
    /// The whole, as text.
    pub text: String,
    /// The closing error, as text: by how much the whole exceeds the sum of its parts.
    pub error: String,
}

const LEFT: i32 = 10;
const GAP: f64 = 10.0;
/// The side of a square of the legend.
const SQUARE: i32 = 12;

/// How the parts are filled, in their order: plain, or with a pattern of their own.
const FILLS: [(Paint, u8); 4] =
    [(Paint::Series(0), 0), (Paint::Pattern(0), 1), (Paint::Pattern(1), 2), (Paint::Pattern(2), 3)];

const PATTERNS: [Pattern; 3] = [
    Pattern { name: "hatch", paint: Paint::Series(1), path: "M1.5 0V6", width: 3, angle: 45 },
    Pattern { name: "dots", paint: Paint::Series(2), path: "M1 3H4", width: 3, angle: 0 },
    Pattern { name: "lines", paint: Paint::Series(3), path: "M0 1.5H6", width: 2, angle: 0 },
];

/// Where a part's name begins in the legend.
const NAME: i32 = LEFT + SQUARE + 8;

impl StackPlot {
    /// How many parts can be told apart.
    pub const MAX_PARTS: usize = FILLS.len();

    /// The plot as SVG. `id` must be unique in the page: the identifiers within the picture begin with it.
    ///
    /// # Errors
    /// What the drawing library reports.
    pub fn to_svg(&self, id: &str) -> Result<String, PlotError> {
        let picture = Picture {
            id,
            title: &self.title,
            description: &self.description(),
            height: self.top() + AXIS + self.rows_height().ceil() as u32,
            patterns: &PATTERNS,
        };
        picture.svg(|root| self.draw(root))
    }

    /// What the picture shows, in words.
    pub fn description(&self) -> String {
        let scale = self.unit.scale(self.longest());
        let bar = |bar: &StackBar| match &bar.stack {
            Ok(stack) => {
                let parts = self.parts.iter().zip(&stack.parts);
                let parts: Vec<String> =
                    parts.map(|(name, part)| format!("{name} {}", scale.significant(*part, 3))).collect();
                format!("{} {} ({}; {})", bar.label, stack.text, parts.join(", "), stack.error)
            }
            Err(state) => format!("{} {state}", bar.label),
        };
        let bars: Vec<String> = self.bars.iter().map(bar).collect();
        format!("Stacked horizontal bars, measured on {}. {}.", self.machine, bars.join("; "))
    }

    /// Where the chart begins, below the title and the legend.
    fn top(&self) -> u32 {
        let names = self.parts.iter().map(|name| Weight::Regular.lines(name, room(NAME)).len());
        title_height(&self.title) + LINE * names.sum::<usize>() as u32 + 6
    }

    fn rows_height(&self) -> f64 {
        self.bars.iter().map(StackBar::height).sum()
    }

    fn longest(&self) -> f64 {
        let stacks = self.bars.iter().filter_map(|bar| bar.stack.as_ref().ok());
        let ends = stacks.map(|stack| {
            let (whole, whisker) = stack.whole;
            stack.parts.iter().sum::<f64>().max(whisker.map_or(whole, |(_, high)| whole.max(high)))
        });
        let longest = ends.fold(0.0, f64::max);
        if longest > 0.0 { longest } else { self.unit.scale(1.0).factor }
    }

    fn draw(&self, root: &Area<'_>) -> DrawResult {
        self.draw_legend(root)?;
        let stacks = self.bars.iter().filter_map(|bar| bar.stack.as_ref().ok());
        let values: Vec<&str> = stacks.map(|stack| stack.text.as_str()).collect();
        let layout = Layout {
            top: self.top(),
            left: LEFT.unsigned_abs(),
            height: self.rows_height(),
            longest: self.longest(),
            unit: self.unit,
            decades: None,
            values: &values,
        };
        let chart = Horizontal::new(root, layout)?;
        let mut top = 0.0;
        for bar in &self.bars {
            bar.draw(root, &chart, top)?;
            top += bar.height();
        }
        Ok(())
    }

    fn draw_legend(&self, root: &Area<'_>) -> DrawResult {
        let mut top = title_height(&self.title) as i32 - 4;
        for (name, (ground, series)) in self.parts.iter().zip(FILLS) {
            let square = [(LEFT, top), (LEFT + SQUARE, top + SQUARE)];
            root.draw(&Rectangle::new(square, ground.filled()))?;
            root.draw(&Rectangle::new(square, Paint::Series(series)))?;
            let lines = Weight::Regular.lines(name, room(NAME));
            let below = top + LINE as i32 * lines.len() as i32;
            Weight::Regular.draw(root, lines, (NAME, top + (SQUARE - LINE as i32) / 2), Paint::Text)?;
            top = below;
        }
        Ok(())
    }
}

impl StackBar {
    /// The label, which leaves room for the closing error beside it.
    fn label(&self) -> Vec<String> {
        let error = self.stack.as_ref().map_or(0, |stack| Weight::Regular.width(&stack.error) + 12);
        Weight::Regular.lines(&self.label, room(LEFT) - error)
    }

    /// Its height with its label and the gap below.
    fn height(&self) -> f64 {
        f64::from(LINE) * self.label().len() as f64 + BAR + GAP
    }

    fn draw(&self, root: &Area<'_>, chart: &Horizontal<'_, '_>, top: f64) -> DrawResult {
        let label = self.label();
        let bar = top + f64::from(LINE) * label.len() as f64;
        Weight::Regular.draw(root, label, (LEFT, chart.row(top)), Paint::Text)?;
        let stack = match &self.stack {
            Ok(stack) => stack,
            Err(state) => return chart.draw_value(state, 0.0, bar, Paint::Muted),
        };
        let place = (WIDTH as i32 - MARGIN, chart.row(top + f64::from(LINE) / 2.0));
        let style = Weight::Regular.style(Paint::Muted, HPos::Right);
        root.draw(&Text::new(stack.error.as_str(), place, style))?;
        let mut end = 0.0;
        for (part, paints) in stack.parts.iter().zip(FILLS) {
            let from = end;
            end += part.max(0.0);
            chart.draw_bar((from, end), bar, (paints.0, Paint::Series(paints.1)))?;
        }
        let (whole, whisker) = stack.whole;
        let (low, high) = whisker.map_or((whole, whole), |(low, high)| (low.max(0.0), high));
        chart.draw_mark(whole, bar)?;
        chart.draw_whisker((low, high), bar)?;
        chart.draw_value(&stack.text, end.max(high), bar, Paint::Text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::escape;

    fn plot() -> StackPlot {
        let stack = Stack {
            parts: vec![3e-6, 45e-6, 5e-6],
            whole: (54e-6, Some((53e-6, 56e-6))),
            text: "54.0 µs".to_owned(),
            error: "error 1.0 µs".to_owned(),
        };
        StackPlot {
            title: "Parts".to_owned(),
            machine: "M".to_owned(),
            unit: Unit::Seconds,
            parts: ["enqueue", "residual", "call"].map(str::to_owned).to_vec(),
            bars: vec![
                StackBar { label: "<wait>".to_owned(), stack: Ok(stack) },
                StackBar { label: "other".to_owned(), stack: Err("skipped".to_owned()) },
            ],
        }
    }

    #[test]
    fn each_part_has_a_fill_of_its_own_and_the_whole_and_its_error_are_written() {
        let svg = plot().to_svg("p").unwrap();
        let texts = ["<wait>", "54.0 µs", "error 1.0 µs", "skipped", "enqueue", "residual", "call"];
        for text in texts.map(|text| format!(">{}</text>", escape(text))) {
            assert!(svg.contains(&text), "{text} is missing in {svg}");
        }
        // In the legend and in the bar.
        for fill in ["class=\"plot-first\" fill=\"currentColor\"", "url(#p-hatch)", "url(#p-dots)"] {
            assert_eq!(svg.matches(fill).count(), 2, "{fill} in {svg}");
        }
        assert!(!svg.contains("url(#p-lines)") && !svg.contains("\n\n"), "{svg}");
    }

    #[test]
    fn the_parts_follow_each_other_from_the_left() {
        let svg = plot().to_svg("p").unwrap();
        let place = |fill: &str| -> (i32, i32) {
            let rect = svg.lines().rfind(|line| line.starts_with("<rect") && line.contains(fill)).unwrap();
            let number = |name: &str| {
                let value = rect.split_once(&format!(" {name}=\"")).unwrap().1;
                value.split_once('"').unwrap().0.parse().unwrap()
            };
            (number("x"), number("width"))
        };
        let [first, second, third] = ["plot-first\" fill", "p-hatch", "p-dots"].map(place);
        assert_eq!((first.0 + first.1, second.0 + second.1), (second.0, third.0));
        assert!(second.1 > 10 * first.1 && third.1 > first.1, "{first:?} {second:?} {third:?}");
    }

    #[test]
    fn the_description_names_the_parts_and_the_closing_error() {
        let description = plot().description();
        assert!(
            description.contains("<wait> 54.0 µs (enqueue 3.00 µs, residual 45.0 µs, call 5.00 µs"),
            "{description}"
        );
        assert!(description.contains("; error 1.0 µs)") && description.ends_with("other skipped."));
    }
}
