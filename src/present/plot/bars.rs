//! Horizontal bars with whiskers, each with its label and its value.
//!
//! Short labels are beside their bars, long ones above them. Where two bars are compared, the second is hatched.

use plotters::chart::ChartContext;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::axis::{Axis, Spacing};
use super::picture::{Area, Drawn, LINE, Picture, beside, bold, font, title_height};
use super::svg::{Paint, Pattern, Svg};
use crate::error::PlotError;
use crate::units::Unit;

/// A panel of bars.
///
/// ```
/// use syncscope::present::BarPlot;
///
/// let plot = BarPlot::of_times("Two calls", &[("one", 1e-6), ("other", 2e-6)]);
/// assert!(plot.to_svg("two-calls")?.starts_with("<svg"));
/// # Ok::<(), syncscope::error::PlotError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct BarPlot {
    /// What is drawn.
    pub title: String,
    /// The machine it was measured on; for the description, not drawn.
    pub machine: String,
    /// The unit of the bars.
    pub unit: Unit,
    /// How the axis is divided. A logarithmic one has no 0: it begins below the least value, and linear it is where a value is
    /// not above 0.
    pub spacing: Spacing,
    /// The bars, in groups.
    pub groups: Vec<BarGroup>,
}

/// Bars that are compared with each other.
#[derive(Clone, Debug, PartialEq)]
pub struct BarGroup {
    /// What they have in common; empty where there is one group.
    pub label: String,
    /// The bars.
    pub bars: Vec<Bar>,
}

/// A bar.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// Its label.
    pub label: String,
    /// Its length and the ends of its whisker; `None` where nothing was measured.
    pub extent: Option<(f64, Option<(f64, f64)>)>,
    /// The text at its end.
    pub text: String,
}

impl Bar {
    /// A bar of `value` with its interval, and the text at its end.
    pub fn new(label: &str, value: f64, interval: Option<(f64, f64)>, text: String) -> Self {
        Self { label: label.to_owned(), extent: Some((value, interval)), text }
    }

    /// No bar, but the reason.
    pub fn missing(label: &str, state: &str) -> Self {
        Self { label: label.to_owned(), extent: None, text: state.to_owned() }
    }
}

/// Room to the right of the longest bar for its value.
const VALUES: u32 = 84;
const AXIS: u32 = 26;
const BAR: f64 = 18.0;
const GROUP_GAP: f64 = 14.0;

const HATCH: Pattern = Pattern { name: "hatch", paint: Paint::Series(1), path: "M1.5 0V6", width: 3, angle: 45 };

type Chart<'a, 'b> = ChartContext<'a, Svg<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

/// Where labels stand.
#[derive(Clone, Copy, PartialEq)]
enum Labels {
    /// To the left of the bars.
    Beside,
    /// Above each bar, which begins at the left edge.
    Above,
}

impl Labels {
    /// How many characters of a group's and a bar's label fit beside the bars, together.
    const FIT: usize = 11;

    fn of(groups: &[BarGroup]) -> Self {
        let longest = |labels: &mut dyn Iterator<Item = &String>| labels.map(|l| l.chars().count()).max().unwrap_or(0);
        let group = longest(&mut groups.iter().map(|group| &group.label));
        let bar = longest(&mut groups.iter().flat_map(|group| &group.bars).map(|bar| &bar.label));
        if group + bar <= Self::FIT { Self::Beside } else { Self::Above }
    }

    /// The left end of the bars.
    fn left(self) -> u32 {
        match self {
            Self::Beside => 92,
            Self::Above => 10,
        }
    }

    /// The room below a bar: a label above the next one must not seem to belong to this one.
    fn below(self) -> f64 {
        match self {
            Self::Beside => 4.0,
            Self::Above => 8.0,
        }
    }

    /// The height of what stands above a label that is not empty.
    fn above(self, label: &str) -> f64 {
        if self == Self::Above && !label.is_empty() { f64::from(LINE) } else { 0.0 }
    }
}

impl BarPlot {
    /// Bars of times, each with its label.
    pub fn of_times(title: &str, times: &[(&str, f64)]) -> Self {
        let bar = |(label, time): &(&str, f64)| Bar::new(label, *time, None, Unit::Seconds.format(*time, 3));
        Self {
            title: title.to_owned(),
            machine: "this device".to_owned(),
            unit: Unit::Seconds,
            spacing: Spacing::Linear,
            groups: vec![BarGroup { label: String::new(), bars: times.iter().map(bar).collect() }],
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
            height: title_height(&self.title) + AXIS + self.rows_height().ceil() as u32,
            patterns: &[HATCH],
        };
        picture.svg(|root| self.draw(root))
    }

    /// What the picture shows, in words.
    pub fn description(&self) -> String {
        let group = |group: &BarGroup| {
            let bars: Vec<String> = group.bars.iter().map(|bar| format!("{} {}", bar.label, bar.text)).collect();
            let bars = bars.join(", ");
            if group.label.is_empty() { bars } else { format!("{}: {bars}", group.label) }
        };
        let groups: Vec<String> = self.groups.iter().map(group).collect();
        format!("Horizontal bars, measured on {}. {}.{}", self.machine, groups.join("; "), self.extremes())
    }

    /// The shortest and the longest bar in words, where there are several.
    fn extremes(&self) -> String {
        let drawn = self.groups.iter().flat_map(|group| group.bars.iter().map(move |bar| (group, bar)));
        let mut drawn: Vec<_> = drawn.filter_map(|(g, bar)| Some((bar.extent?.0, g, bar))).collect();
        drawn.sort_by(|a, b| a.0.total_cmp(&b.0));
        let name = |(_, group, bar): &(f64, &BarGroup, &Bar)| {
            if group.label.is_empty() { bar.label.clone() } else { format!("{}, {}", group.label, bar.label) }
        };
        match drawn.as_slice() {
            [first, .., last] => format!(" Shortest: {}; longest: {}.", name(first), name(last)),
            _ => String::new(),
        }
    }

    fn labels(&self) -> Labels {
        Labels::of(&self.groups)
    }

    fn rows_height(&self) -> f64 {
        let labels = self.labels();
        let bars = |group: &BarGroup| -> f64 {
            group.bars.iter().map(|bar| labels.above(&bar.label) + BAR + labels.below()).sum::<f64>()
        };
        self.groups.iter().map(|group| labels.above(&group.label) + bars(group) + GROUP_GAP).sum()
    }

    fn longest(&self) -> f64 {
        let extents = self.groups.iter().flat_map(|group| &group.bars).filter_map(|bar| bar.extent);
        let longest = extents.map(|(value, whisker)| whisker.map_or(value, |(_, high)| value.max(high)));
        let longest = longest.fold(0.0, f64::max);
        match self.unit {
            // Shares are read against the whole.
            Unit::Ratio => longest.max(1.0),
            _ if longest > 0.0 => longest,
            unit => unit.scale(1.0).factor,
        }
    }

    /// The logarithmic axis, where there is one.
    fn decades(&self) -> Option<Axis> {
        let extents = || self.groups.iter().flat_map(|group| &group.bars).filter_map(|bar| bar.extent);
        let ends = |(value, whisker): (f64, Option<(f64, f64)>)| whisker.map_or([value; 2], |(_, high)| [value, high]);
        // Also the least bar has a length.
        let least = extents().map(|(value, _)| value / 2.0).fold(f64::INFINITY, f64::min);
        let axis = Axis::around(extents().flat_map(ends).chain([least]), self.spacing);
        (axis.spacing() == Spacing::Log).then_some(axis)
    }

    /// The ticks of a logarithmic axis, with their lines.
    fn draw_decades(&self, root: &Area<'_>, chart: &Chart<'_, '_>, axis: &Axis) -> Drawn {
        let longest = self.longest();
        for tick in &axis.ticks {
            let column = chart.backend_coord(&(longest * axis.place(*tick), 0.0)).0;
            let (top, bottom) = (pixel(chart, 0.0), pixel(chart, self.rows_height()));
            root.draw(&PathElement::new([(column, top), (column, bottom)], Paint::Grid))?;
            let text = self.unit.scale(*tick).tick(*tick);
            root.draw(&Text::new(text, (column, bottom + 14), beside(font(Paint::Muted), HPos::Center)))?;
        }
        Ok(())
    }

    fn draw(&self, root: &Area<'_>) -> Drawn {
        let (longest, labels) = (self.longest(), self.labels());
        let (scale, decades) = (self.unit.scale(longest), self.decades());
        let along = |value: f64| decades.as_ref().map_or(value.max(0.0), |axis| longest * axis.place(value));
        let mut chart = ChartBuilder::on(root)
            .margin_top(title_height(&self.title))
            .margin_right(VALUES)
            .x_label_area_size(AXIS)
            .y_label_area_size(labels.left())
            .build_cartesian_2d(0.0..longest, self.rows_height()..0.0)?;
        if let Some(axis) = &decades {
            self.draw_decades(root, &chart, axis)?;
        }
        let mut mesh = chart.configure_mesh();
        if decades.is_some() {
            mesh.disable_x_mesh().disable_x_axis();
        }
        mesh.disable_y_mesh()
            .disable_y_axis()
            .x_max_light_lines(0)
            .bold_line_style(Paint::Grid)
            .axis_style(Paint::Muted)
            .x_labels(4)
            .x_label_style(font(Paint::Muted))
            .x_label_formatter(&|value| scale.tick(*value))
            .draw()?;

        let mut top = GROUP_GAP / 2.0;
        for group in &self.groups {
            let middle = match labels {
                Labels::Beside => top + (BAR + labels.below()) * group.bars.len() as f64 / 2.0,
                Labels::Above => top + f64::from(LINE) / 2.0,
            };
            let place = (8, pixel(&chart, middle));
            root.draw(&Text::new(group.label.clone(), place, beside(bold(), HPos::Left)))?;
            top += labels.above(&group.label);
            for (index, bar) in group.bars.iter().enumerate() {
                let hatched = index == 1 && group.bars.len() == 2;
                self.draw_label(root, &chart, bar, top)?;
                top += labels.above(&bar.label);
                draw_bar(root, &mut chart, (bar, &along), hatched, top)?;
                top += BAR + labels.below();
            }
            top += GROUP_GAP;
        }
        Ok(())
    }

    fn draw_label(&self, root: &Area<'_>, chart: &Chart<'_, '_>, bar: &Bar, top: f64) -> Drawn {
        let (x, middle, side) = match self.labels() {
            Labels::Beside => (Labels::Beside.left() as i32 - 6, top + BAR / 2.0, HPos::Right),
            Labels::Above => (8, top + f64::from(LINE) / 2.0, HPos::Left),
        };
        let text = Text::new(bar.label.clone(), (x, pixel(chart, middle)), beside(font(Paint::Text), side));
        Ok(root.draw(&text)?)
    }
}

/// A bar; `along` is where a value lies on the axis.
fn draw_bar<'a>(
    root: &Area<'a>,
    chart: &mut Chart<'_, 'a>,
    (bar, along): (&Bar, &impl Fn(f64) -> f64),
    hatched: bool,
    top: f64,
) -> Drawn {
    let middle = top + BAR / 2.0;
    let mut end = 0.0_f64;
    if let Some((value, whisker)) = bar.extent {
        end = along(value);
        let (ground, outline) =
            if hatched { (Paint::Pattern(0), Paint::Series(1)) } else { (Paint::Series(0), Paint::Series(0)) };
        chart.draw_series([Rectangle::new([(0.0, top), (end, top + BAR)], ground.filled())])?;
        chart.draw_series([Rectangle::new([(0.0, top), (end, top + BAR)], outline)])?;
        if let Some((low, high)) = whisker {
            let (low, high) = (along(low), along(high));
            end = end.max(high);
            let cap = BAR / 4.0;
            let lines = [
                vec![(low, middle), (high, middle)],
                vec![(low, middle - cap), (low, middle + cap)],
                vec![(high, middle - cap), (high, middle + cap)],
            ];
            chart.draw_series(lines.map(|line| PathElement::new(line, Paint::Whisker.stroke_width(2))))?;
        }
    }
    let x = chart.backend_coord(&(end, middle)).0 + 6;
    let colour = if bar.extent.is_some() { Paint::Text } else { Paint::Muted };
    let text = Text::new(bar.text.clone(), (x, pixel(chart, middle)), beside(font(colour), HPos::Left));
    Ok(root.draw(&text)?)
}

/// The pixel row of a height within the chart.
fn pixel(chart: &Chart<'_, '_>, height: f64) -> i32 {
    chart.backend_coord(&(0.0, height)).1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::present::escape;

    fn plot(label: &str) -> BarPlot {
        let bars = vec![
            Bar::new("async", 25e-3, Some((24e-3, 26e-3)), "25.0 ms".to_owned()),
            Bar::new("forced", 26e-3, None, "26.0 ms".to_owned()),
        ];
        let missing = vec![Bar::missing("async", "skipped"), Bar::missing("other", "failed")];
        let group = |label: &str, bars| BarGroup { label: label.to_owned(), bars };
        let groups = vec![group(label, bars), group("bf16", missing)];
        BarPlot {
            title: "Title".to_owned(),
            machine: "M".to_owned(),
            unit: Unit::Seconds,
            spacing: Spacing::Linear,
            groups,
        }
    }

    #[test]
    fn a_plot_names_itself_its_values_and_what_is_missing() {
        let svg = plot("fp16").to_svg("p").unwrap();
        let texts = ["25.0 ms", "26.0 ms", "skipped"].map(|text| format!(">{}</text>", escape(text)));
        let parts = texts.iter().map(String::as_str).chain(["aria-labelledby=\"p-title p-desc\"", "url(#p-hatch)"]);
        for part in parts {
            assert!(svg.contains(part), "{part} is missing in {svg}");
        }
    }

    #[test]
    fn the_description_names_the_extremes() {
        let description = plot("fp16").description();
        assert!(description.ends_with("Shortest: fp16, async; longest: fp16, forced."), "{description}");
    }

    #[test]
    fn a_picture_has_no_empty_line() {
        let svg = plot("fp16").to_svg("p").unwrap();
        assert!(!svg.contains("\n\n"), "{svg}");
    }

    #[test]
    fn a_label_is_text_whatever_it_holds() {
        let svg = plot("<script>{{#include x}}").to_svg("a b").unwrap();
        assert!(!svg.contains("<script") && !svg.contains("{{") && svg.contains("a-b-title"), "{svg}");
    }

    #[test]
    fn a_bar_of_a_thousandth_is_seen_on_a_logarithmic_axis() {
        let times = |spacing| BarPlot { spacing, ..BarPlot::of_times("T", &[("a", 1e-6), ("b", 1e-3)]) };
        let shorter = |plot: BarPlot| {
            let svg = plot.to_svg("p").unwrap();
            let bar = svg.lines().find(|line| line.starts_with("<rect") && line.contains("plot-first")).unwrap();
            let width = bar.split("width=\"").nth(1).unwrap().split('"').next().unwrap();
            width.parse::<u32>().unwrap()
        };
        assert!(shorter(times(Spacing::Linear)) < 2 && shorter(times(Spacing::Log)) > 10);
    }

    #[test]
    fn a_long_label_stands_above_its_bar() {
        let (short, long) = (plot("fp16"), plot("half precision"));
        assert!(short.labels() == Labels::Beside && long.labels() == Labels::Above);
        assert!(long.rows_height() > short.rows_height());
    }
}
