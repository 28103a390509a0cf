//! Bars with whiskers as SVG that can stand within a page.
//!
//! A panel is drawn as wide as a phone, and a page sets as many beside each other as it has room for: text keeps its
//! size, where a wide picture would shrink it. Colours are variables of the page's style sheet with a fallback, so
//! that a plot follows the page's theme. Colour never stands alone: each bar carries its label and its value, and the
//! second of a group is hatched.
//!
//! plotters draws and knows no variables: it is given one made-up colour for each role, and the roles are put in their
//! place in its output. Coordinates are whole pixels, which is exact enough for a bar and a millimetre off for nobody.

use plotters::chart::ChartContext;
use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::escape::escape;
use crate::error::PlotError;
use crate::units::{Unit, significant};

/// A panel of bars.
#[derive(Clone, Debug, PartialEq)]
pub struct BarPlot {
    /// What is drawn.
    pub title: String,
    /// The machine it was measured on; for the description, not drawn.
    pub machine: String,
    /// The unit of the bars.
    pub unit: Unit,
    /// The bars, in groups.
    pub groups: Vec<BarGroup>,
}

/// Bars that are compared with each other.
#[derive(Clone, Debug, PartialEq)]
pub struct BarGroup {
    /// What they have in common.
    pub label: String,
    /// The bars.
    pub bars: Vec<Bar>,
}

/// A bar.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// What it stands for.
    pub label: String,
    /// Its length and the ends of its whisker; `None` where nothing was measured.
    pub extent: Option<(f64, Option<(f64, f64)>)>,
    /// What is written at its end.
    pub text: String,
}

impl Bar {
    /// A bar of `value` with its interval, and what is written at its end.
    pub fn new(label: &str, value: f64, interval: Option<(f64, f64)>, text: String) -> Self {
        Self { label: label.to_owned(), extent: Some((value, interval)), text }
    }

    /// No bar, and in its place why.
    pub fn missing(label: &str, state: &str) -> Self {
        Self { label: label.to_owned(), extent: None, text: state.to_owned() }
    }
}

const WIDTH: u32 = 360;
const HEAD: u32 = 34;
const LABELS: u32 = 92;
/// Room to the right of the longest bar for its value.
const VALUES: u32 = 84;
const AXIS: u32 = 26;
const BAR: f64 = 18.0;
const BAR_GAP: f64 = 4.0;
const GROUP_GAP: f64 = 14.0;
/// plotters divides a font's size by 1.24 when it writes SVG.
const FONT: f64 = 13.0 * 1.24;

const TEXT: RGBColor = RGBColor(1, 1, 1);
const MUTED: RGBColor = RGBColor(2, 2, 2);
const GRID: RGBColor = RGBColor(3, 3, 3);
const FIRST: RGBColor = RGBColor(4, 4, 4);
const SECOND: RGBColor = RGBColor(5, 5, 5);
const SECOND_OUTLINE: RGBColor = RGBColor(6, 6, 6);
const WHISKER: RGBColor = RGBColor(7, 7, 7);

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

impl BarPlot {
    /// The plot as SVG. `id` must be unique in the page: the identifiers within the picture begin with it.
    ///
    /// # Errors
    /// What the drawing library reports.
    pub fn to_svg(&self, id: &str) -> Result<String, PlotError> {
        let height = HEAD + AXIS + self.rows_height().ceil() as u32;
        let mut svg = String::new();
        {
            let root = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
            self.draw(&root).map_err(|error| PlotError { message: error.to_string() })?;
        }
        Ok(self.finish(&svg, id, height))
    }

    /// What the picture shows, in words.
    pub fn description(&self) -> String {
        let group = |group: &BarGroup| {
            let bars: Vec<String> = group.bars.iter().map(|bar| format!("{} {}", bar.label, bar.text)).collect();
            format!("{}: {}", group.label, bars.join(", "))
        };
        let groups: Vec<String> = self.groups.iter().map(group).collect();
        format!("Horizontal bars, measured on {}. {}.", self.machine, groups.join("; "))
    }

    fn rows_height(&self) -> f64 {
        self.groups.iter().map(|group| group.bars.len() as f64 * (BAR + BAR_GAP) + GROUP_GAP).sum()
    }

    fn longest(&self) -> f64 {
        let extents = self.groups.iter().flat_map(|group| &group.bars).filter_map(|bar| bar.extent);
        let longest = extents.map(|(value, whisker)| whisker.map_or(value, |(_, high)| value.max(high)));
        let longest = longest.fold(0.0, f64::max);
        if longest > 0.0 { longest } else { self.unit.scale(1.0).0 }
    }

    fn draw(&self, root: &Area<'_>) -> Result<(), Box<dyn std::error::Error>> {
        let longest = self.longest();
        let (factor, symbol) = self.unit.scale(longest);
        root.draw(&Text::new(one_line(&self.title), (8, 8), bold()))?;

        let mut chart = ChartBuilder::on(root)
            .margin_top(HEAD)
            .margin_right(VALUES)
            .x_label_area_size(AXIS)
            .y_label_area_size(LABELS)
            .build_cartesian_2d(0.0..longest, self.rows_height()..0.0)?;
        chart
            .configure_mesh()
            .disable_y_mesh()
            .disable_y_axis()
            .x_max_light_lines(0)
            .bold_line_style(GRID)
            .axis_style(MUTED)
            .x_labels(4)
            .x_label_style(font(MUTED))
            .x_label_formatter(&|value| format!("{} {symbol}", significant_short(value / factor)))
            .draw()?;

        let mut top = GROUP_GAP / 2.0;
        for group in &self.groups {
            let middle = self.pixel(&chart, top + (BAR + BAR_GAP) * group.bars.len() as f64 / 2.0);
            let style = bold().pos(Pos::new(HPos::Left, VPos::Center));
            root.draw(&Text::new(one_line(&group.label), (8, middle), style))?;
            for (index, bar) in group.bars.iter().enumerate() {
                self.draw_bar(root, &mut chart, bar, index, top)?;
                top += BAR + BAR_GAP;
            }
            top += GROUP_GAP;
        }
        root.present()?;
        Ok(())
    }

    fn draw_bar<'a>(
        &self,
        root: &Area<'a>,
        chart: &mut Chart<'_, 'a>,
        bar: &Bar,
        index: usize,
        top: f64,
    ) -> Result<(), Box<dyn std::error::Error>> {
        let middle = top + BAR / 2.0;
        let y = self.pixel(chart, middle);
        let label = font(TEXT).pos(Pos::new(HPos::Right, VPos::Center));
        root.draw(&Text::new(one_line(&bar.label), (LABELS as i32 - 6, y), label))?;

        let mut end = 0.0_f64;
        if let Some((value, whisker)) = bar.extent {
            end = value.max(0.0);
            let (ground, outline) = if index == 0 { (FIRST, FIRST) } else { (SECOND, SECOND_OUTLINE) };
            chart.draw_series([Rectangle::new([(0.0, top), (end, top + BAR)], ground.filled())])?;
            chart.draw_series([Rectangle::new([(0.0, top), (end, top + BAR)], outline)])?;
            if let Some((low, high)) = whisker {
                let (low, high) = (low.max(0.0), high.max(0.0));
                end = end.max(high);
                let cap = BAR / 4.0;
                let lines = [
                    vec![(low, middle), (high, middle)],
                    vec![(low, middle - cap), (low, middle + cap)],
                    vec![(high, middle - cap), (high, middle + cap)],
                ];
                chart.draw_series(lines.map(|line| PathElement::new(line, WHISKER.stroke_width(2))))?;
            }
        }
        let x = chart.backend_coord(&(end, middle)).0 + 6;
        let colour = if bar.extent.is_some() { TEXT } else { MUTED };
        let style = font(colour).pos(Pos::new(HPos::Left, VPos::Center));
        root.draw(&Text::new(one_line(&bar.text), (x, y), style))?;
        Ok(())
    }

    /// The pixel row of a height within the chart.
    fn pixel(&self, chart: &Chart<'_, '_>, height: f64) -> i32 {
        chart.backend_coord(&(0.0, height)).1
    }

    /// Puts the title, the description, the hatching and the page's colours into what plotters drew.
    fn finish(&self, svg: &str, id: &str, height: u32) -> String {
        let (id, title, description) = (escape_id(id), escape(&self.title), escape(&self.description()));
        let hatch = format!(
            "<defs><pattern id=\"{id}-hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" \
             patternTransform=\"rotate(45)\"><rect width=\"6\" height=\"6\" fill=\"var(--plot-ground, #ffffff)\"/>\
             <rect width=\"3\" height=\"6\" fill=\"var(--plot-second, #b5541c)\"/></pattern></defs>\n"
        );
        let head = format!(
            "<svg class=\"plot\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
             aria-labelledby=\"{id}-title {id}-desc\" xmlns=\"http://www.w3.org/2000/svg\">\n\
             <title id=\"{id}-title\">{title}</title>\n<desc id=\"{id}-desc\">{description}</desc>\n{hatch}"
        );
        let body = svg.split_once('\n').map_or("", |(_, body)| body);
        // A brace can come only from a label, and two of them would be a directive of mdBook.
        let mut body = body.replace('{', "&#123;").replace('}', "&#125;");
        for (colour, place) in [
            (TEXT, "var(--plot-text, #1a1a1a)".to_owned()),
            (MUTED, "var(--plot-muted, #5f5f5f)".to_owned()),
            (GRID, "var(--plot-grid, #dddddd)".to_owned()),
            (FIRST, "var(--plot-first, #2a6fb0)".to_owned()),
            (SECOND, format!("url(#{id}-hatch)")),
            (SECOND_OUTLINE, "var(--plot-second, #b5541c)".to_owned()),
            (WHISKER, "var(--plot-whisker, #000000)".to_owned()),
        ] {
            let RGBColor(r, g, b) = colour;
            body = body.replace(&format!("\"#{r:02X}{g:02X}{b:02X}\""), &format!("\"{place}\""));
        }
        head + &body
    }
}

fn font(colour: RGBColor) -> TextStyle<'static> {
    ("sans-serif", FONT).into_font().color(&colour)
}

fn bold() -> TextStyle<'static> {
    ("sans-serif", FONT).into_font().style(FontStyle::Bold).color(&TEXT)
}

/// A tick's number: as short as it is exact.
fn significant_short(value: f64) -> String {
    let text = significant(value, 3);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// `id` with all but letters, digits and hyphens replaced.
fn escape_id(id: &str) -> String {
    id.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(label: &str) -> BarPlot {
        let bars = vec![
            Bar::new("async", 25e-3, Some((24e-3, 26e-3)), "25.0 ms".to_owned()),
            Bar::new("forced", 26e-3, None, "26.0 ms".to_owned()),
            Bar::missing("other", "skipped"),
        ];
        let groups = vec![BarGroup { label: label.to_owned(), bars }];
        BarPlot { title: "Title".to_owned(), machine: "M".to_owned(), unit: Unit::Seconds, groups }
    }

    #[test]
    fn a_plot_names_itself_its_values_and_what_is_missing() {
        let svg = plot("fp16").to_svg("p").unwrap();
        for part in ["25.0 ms", "26.0 ms", "skipped", "aria-labelledby=\"p-title p-desc\"", "url(#p-hatch)"] {
            assert!(svg.contains(part), "{part} is missing in {svg}");
        }
    }

    #[test]
    fn no_made_up_colour_and_no_empty_line_is_left() {
        let svg = plot("fp16").to_svg("p").unwrap();
        assert!(!svg.contains("\"#0"), "{svg}");
        assert!(!svg.contains("\n\n"), "{svg}");
    }

    #[test]
    fn a_label_is_text_whatever_it_holds() {
        let svg = plot("<script>{{#include x}}").to_svg("a b").unwrap();
        assert!(!svg.contains("<script") && !svg.contains("{{") && svg.contains("a-b-title"), "{svg}");
    }
}
