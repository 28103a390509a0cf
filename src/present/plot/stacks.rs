//! Stacked bars: what a measured whole consists of, each bar with its label above, and the whole beside the sum of its parts.
//!
//! The parts differ in colour and in hatching. A mark with a whisker stands where the whole ends: what lies between it and the
//! end of the bar is the closing error, which is also written.

use super::horizontal::{AXIS, BAR, Horizontal};
use super::picture::{LINE, MARGIN, Picture, WIDTH, height, room, title_height};
use super::svg::{Paint, Pattern, Side, Svg};
use super::text::Weight;
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
    pub fn to_svg(&self, id: &str) -> String {
        let picture = Picture {
            id,
            title: &self.title,
            description: &self.description(),
            height: self.top() + AXIS + self.rows_height().ceil() as i32,
            patterns: &PATTERNS,
        };
        picture.svg(|svg| self.draw(svg))
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
    fn top(&self) -> i32 {
        let names = self.parts.iter().map(|name| height(&Weight::Regular.lines(name, room(NAME))));
        title_height(&self.title) + names.sum::<i32>() + 6
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

    fn draw(&self, svg: &mut Svg<'_>) {
        self.draw_legend(svg);
        let stacks = self.bars.iter().filter_map(|bar| bar.stack.as_ref().ok());
        let chart = Horizontal {
            top: self.top(),
            left: LEFT,
            height: self.rows_height(),
            longest: self.longest(),
            unit: self.unit,
            decades: None,
            widest: stacks.map(|stack| Weight::Regular.width(&stack.text)).max().unwrap_or(0),
        };
        chart.draw_axis(svg);
        let mut top = 0.0;
        for bar in &self.bars {
            bar.draw(svg, &chart, top);
            top += bar.height();
        }
    }

    fn draw_legend(&self, svg: &mut Svg<'_>) {
        let mut top = title_height(&self.title) - 4;
        for (name, (ground, series)) in self.parts.iter().zip(FILLS) {
            svg.bar([(LEFT, top), (LEFT + SQUARE, top + SQUARE)], ground, Paint::Series(series));
            let lines = Weight::Regular.lines(name, room(NAME));
            Weight::Regular.draw(svg, &lines, (NAME, top + (SQUARE - LINE) / 2), Paint::Text);
            top += height(&lines);
        }
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
        f64::from(height(&self.label())) + BAR + GAP
    }

    fn draw(&self, svg: &mut Svg<'_>, chart: &Horizontal, top: f64) {
        let label = self.label();
        let bar = top + f64::from(height(&label));
        Weight::Regular.draw(svg, &label, (LEFT, chart.row(top)), Paint::Text);
        let stack = match &self.stack {
            Ok(stack) => stack,
            Err(state) => return chart.draw_value(svg, state, 0.0, bar, Paint::Muted),
        };
        let place = (WIDTH - MARGIN, chart.row(top + f64::from(LINE) / 2.0));
        svg.text(&stack.error, place, Weight::Regular, Paint::Muted, Side::Right);
        let mut end = 0.0;
        for (part, (ground, series)) in stack.parts.iter().zip(FILLS) {
            let from = end;
            end += part.max(0.0);
            chart.draw_bar(svg, (from, end), bar, (ground, Paint::Series(series)));
        }
        let (whole, whisker) = stack.whole;
        let (low, high) = whisker.map_or((whole, whole), |(low, high)| (low.max(0.0), high));
        chart.draw_mark(svg, whole, bar);
        chart.draw_whisker(svg, (low, high), bar);
        chart.draw_value(svg, &stack.text, end.max(high), bar, Paint::Text);
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
        let svg = plot().to_svg("p");
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
        let svg = plot().to_svg("p");
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
