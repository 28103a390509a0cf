//! Stacked bars: what a measured whole consists of, each bar with its label above, and the whole beside the sum of its parts.
//!
//! The parts differ in colour and in hatching. A mark with a whisker stands where the whole ends: what lies between it and the
//! end of the bar is the closing error, which is also written.

use plotters::chart::ChartContext;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::picture::{Area, Drawn, LINE, Picture, WIDTH, beside, font, title_height};
use super::svg::{Paint, Pattern, Svg};
use crate::error::PlotError;
use crate::units::Unit;

/// A panel of stacked bars.
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

/// Room to the right of the longest bar for its value.
const VALUES: u32 = 84;
const LEFT: u32 = 10;
const AXIS: u32 = 26;
const BAR: f64 = 18.0;
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

type Chart<'a, 'b> = ChartContext<'a, Svg<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

impl StackPlot {
    /// How many parts can be told apart.
    pub const MOST_PARTS: usize = FILLS.len();

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
        title_height(&self.title) + LINE * self.parts.len() as u32 + 6
    }

    fn rows_height(&self) -> f64 {
        (f64::from(LINE) + BAR + GAP) * self.bars.len() as f64
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

    fn draw(&self, root: &Area<'_>) -> Drawn {
        let longest = self.longest();
        let scale = self.unit.scale(longest);
        self.draw_legend(root)?;
        let mut chart = ChartBuilder::on(root)
            .margin_top(self.top())
            .margin_right(VALUES)
            .x_label_area_size(AXIS)
            .y_label_area_size(LEFT)
            .build_cartesian_2d(0.0..longest, self.rows_height()..0.0)?;
        chart
            .configure_mesh()
            .disable_y_mesh()
            .disable_y_axis()
            .x_max_light_lines(0)
            .bold_line_style(Paint::Grid)
            .axis_style(Paint::Muted)
            .x_labels(4)
            .x_label_style(font(Paint::Muted))
            .x_label_formatter(&|value| scale.tick(*value))
            .draw()?;
        for (bar, number) in self.bars.iter().zip(0_u32..) {
            let top = (f64::from(LINE) + BAR + GAP) * f64::from(number);
            draw_bar(root, &mut chart, bar, top)?;
        }
        Ok(())
    }

    fn draw_legend(&self, root: &Area<'_>) -> Drawn {
        let first = title_height(&self.title) as i32 - 4;
        for ((name, (ground, series)), number) in self.parts.iter().zip(FILLS).zip(0..) {
            let top = first + LINE as i32 * number;
            let square = [(LEFT as i32, top), (LEFT as i32 + SQUARE, top + SQUARE)];
            root.draw(&Rectangle::new(square, ground.filled()))?;
            root.draw(&Rectangle::new(square, Paint::Series(series)))?;
            let place = (LEFT as i32 + SQUARE + 8, top + SQUARE / 2);
            root.draw(&Text::new(name.clone(), place, beside(font(Paint::Text), HPos::Left)))?;
        }
        Ok(())
    }
}

fn draw_bar<'a>(root: &Area<'a>, chart: &mut Chart<'_, 'a>, bar: &StackBar, top: f64) -> Drawn {
    let label = chart.backend_coord(&(0.0, top + f64::from(LINE) / 2.0)).1;
    let text = |text: &str, place: (i32, i32), paint, side| {
        root.draw(&Text::new(text.to_owned(), place, beside(font(paint), side)))
    };
    text(&bar.label, (LEFT as i32, label), Paint::Text, HPos::Left)?;
    let (top, bottom) = (top + f64::from(LINE), top + f64::from(LINE) + BAR);
    let middle = (top + bottom) / 2.0;
    let row = chart.backend_coord(&(0.0, middle)).1;
    let stack = match &bar.stack {
        Ok(stack) => stack,
        Err(state) => return Ok(text(state, (LEFT as i32 + 6, row), Paint::Muted, HPos::Left)?),
    };
    text(&stack.error, (WIDTH as i32 - 6, label), Paint::Muted, HPos::Right)?;
    let mut end = 0.0;
    for (part, (ground, series)) in stack.parts.iter().zip(FILLS) {
        let from = end;
        end += part.max(0.0);
        chart.draw_series([Rectangle::new([(from, top), (end, bottom)], ground.filled())])?;
        chart.draw_series([Rectangle::new([(from, top), (end, bottom)], Paint::Series(series))])?;
    }
    let (whole, whisker) = stack.whole;
    let (low, high) = whisker.map_or((whole, whole), |(low, high)| (low.max(0.0), high));
    let cap = BAR / 4.0;
    let lines = [
        vec![(whole, top - 2.0), (whole, bottom + 2.0)],
        vec![(low, middle), (high, middle)],
        vec![(low, middle - cap), (low, middle + cap)],
        vec![(high, middle - cap), (high, middle + cap)],
    ];
    chart.draw_series(lines.map(|line| PathElement::new(line, Paint::Whisker.stroke_width(2))))?;
    let right = chart.backend_coord(&(end.max(high), middle)).0 + 6;
    Ok(text(&stack.text, (right, row), Paint::Text, HPos::Left)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::present::escape;

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
