//! Horizontal bars with whiskers, each with its label and its value.
//!
//! Short labels are beside their bars, long ones above them. Where two bars are compared, the second is hatched.

use super::axis::{Axis, Spacing, round_ticks};
use super::svg::{Paint, Pattern, Side, Svg, picture};
use super::text::{MARGIN, WIDTH, Weight, height, room, title_height};
use crate::units::Unit;

/// A panel of bars.
///
/// ```
/// use syncscope_present::BarPlot;
///
/// let plot = BarPlot::of_times("Two calls", &[("one", 1e-6), ("other", 2e-6)]);
/// assert!(plot.to_svg("two-calls").starts_with("<svg"));
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
///
/// ```
/// use syncscope_present::{Bar, BarGroup, BarPlot, Spacing};
/// use syncscope_present::units::Unit;
///
/// let interval = Some((1.9e-6, 2.2e-6));
/// let measured = Bar::new("launch", 2e-6, interval, "2.0 µs".to_owned());
/// let plot = BarPlot {
///     title: "Calls".to_owned(),
///     machine: "this machine".to_owned(),
///     unit: Unit::Seconds,
///     spacing: Spacing::Linear,
///     groups: vec![BarGroup { label: "async".to_owned(), bars: vec![measured, Bar::missing("graph", "skipped")] }],
/// };
/// assert!(plot.description().contains("launch 2.0 µs, graph skipped"));
/// ```
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

const GROUP_GAP: f64 = 14.0;

const HATCH: Pattern = Pattern { name: "hatch", paint: Paint::Series(1), path: "M1.5 0V6", width: 3, angle: 45 };

/// The left end of bars that have labels beside them.
const BESIDE: i32 = 104;

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
    pub fn to_svg(&self, id: &str) -> String {
        let height = title_height(&self.title) + AXIS + self.rows_height().ceil() as i32;
        picture(id, &[HATCH], (&self.title, &self.description()), height, |svg| self.draw(svg))
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

    /// Whether labels stand to the left of the bars, and not above each, which then begins at the left edge.
    fn has_labels_beside(&self) -> bool {
        let bars = self.groups.iter().flat_map(|group| &group.bars);
        let group = self.groups.iter().map(|group| Weight::Bold.width(&group.label)).max().unwrap_or(0);
        let bar = bars.map(|bar| Weight::Regular.width(&bar.label)).max().unwrap_or(0);
        MARGIN + group + 6 + bar + 6 <= BESIDE
    }

    /// The height of a bar with the room below it: a label above the next one must not seem to belong to this one.
    fn bar_height(is_beside: bool) -> f64 {
        if is_beside { BAR + 4.0 } else { BAR + 8.0 }
    }

    /// What stands above a bar or a group of them.
    fn above(label: &str, weight: Weight, is_beside: bool) -> Vec<String> {
        if is_beside { Vec::new() } else { weight.lines(label, room(MARGIN)) }
    }

    fn rows_height(&self) -> f64 {
        let is_beside = self.has_labels_beside();
        let above = |label: &str, weight| f64::from(height(&Self::above(label, weight, is_beside)));
        let bar = |bar: &Bar| above(&bar.label, Weight::Regular) + Self::bar_height(is_beside);
        let group =
            |group: &BarGroup| above(&group.label, Weight::Bold) + group.bars.iter().map(bar).sum::<f64>() + GROUP_GAP;
        self.groups.iter().map(group).sum()
    }

    /// All bars that were measured, with their lengths and whiskers.
    fn measured(&self) -> impl Iterator<Item = (&Bar, f64, Option<(f64, f64)>)> {
        let bars = self.groups.iter().flat_map(|group| &group.bars);
        bars.filter_map(|bar| bar.extent.map(|(value, whisker)| (bar, value, whisker)))
    }

    fn longest(&self) -> f64 {
        let longest = self.measured().map(|(_, value, whisker)| end(value, whisker)).fold(0.0, f64::max);
        match self.unit {
            // Shares are read against the whole.
            Unit::Ratio => longest.max(1.0),
            _ if longest > 0.0 => longest,
            unit => unit.scale(1.0).factor,
        }
    }

    /// The logarithmic axis, where there is one.
    fn decades(&self) -> Option<Axis> {
        let ends = |(_, value, whisker): (&Bar, f64, Option<(f64, f64)>)| [value, whisker.map_or(value, |ends| ends.1)];
        // Also the least bar has a length.
        let least = self.measured().map(|(_, value, _)| value / 2.0).fold(f64::INFINITY, f64::min);
        let axis = Axis::around(self.measured().flat_map(ends).chain([least]), self.spacing);
        (axis.spacing == Spacing::Log).then_some(axis)
    }

    fn draw(&self, svg: &mut Svg<'_>) {
        let is_beside = self.has_labels_beside();
        let chart = Horizontal {
            top: title_height(&self.title),
            left: if is_beside { BESIDE } else { 10 },
            height: self.rows_height(),
            longest: self.longest(),
            unit: self.unit,
            decades: self.decades(),
            widest: self.measured().map(|(bar, ..)| Weight::Regular.width(&bar.text)).max().unwrap_or(0),
        };
        chart.draw_axis(svg);
        let mut top = GROUP_GAP / 2.0;
        for group in &self.groups {
            let above = Self::above(&group.label, Weight::Bold, is_beside);
            if is_beside {
                let middle = chart.row(top + Self::bar_height(is_beside) * group.bars.len() as f64 / 2.0);
                svg.text(&group.label, (MARGIN, middle), Weight::Bold, Paint::Text, Side::Left);
            }
            Weight::Bold.draw(svg, &above, (MARGIN, chart.row(top)), Paint::Text);
            top += f64::from(height(&above));
            for (index, bar) in group.bars.iter().enumerate() {
                let hatched = index == 1 && group.bars.len() == 2;
                let above = Self::above(&bar.label, Weight::Regular, is_beside);
                if is_beside {
                    let place = (BESIDE - 6, chart.row(top + BAR / 2.0));
                    svg.text(&bar.label, place, Weight::Regular, Paint::Text, Side::Right);
                }
                Weight::Regular.draw(svg, &above, (MARGIN, chart.row(top)), Paint::Text);
                top += f64::from(height(&above));
                chart.draw_bar(svg, bar, hatched, top);
                top += Self::bar_height(is_beside);
            }
            top += GROUP_GAP;
        }
    }
}

/// Where a bar ends, or its whisker.
fn end(value: f64, whisker: Option<(f64, f64)>) -> f64 {
    whisker.map_or(value, |(_, high)| value.max(high))
}

/// The height of the axis with its numbers.
const AXIS: i32 = 26;
/// The height of a bar.
const BAR: f64 = 18.0;
/// The gap between the end of a bar and its value.
const GAP: i32 = 6;

/// How the bars lie in a panel. Heights are pixels from the top of the chart.
struct Horizontal {
    /// Where the chart begins, below the title.
    top: i32,
    /// The left end of the bars.
    left: i32,
    /// The height of all bars, with their labels.
    height: f64,
    /// The value at the right end.
    longest: f64,
    unit: Unit,
    /// A logarithmic axis, where there is one.
    decades: Option<Axis>,
    /// The width of the widest text at the end of a bar, for which there is room to the right.
    widest: i32,
}

impl Horizontal {
    fn draw_axis(&self, svg: &mut Svg<'_>) {
        let (top, bottom, right) = (self.row(0.0), self.row(self.height), self.right());
        let axis = self.top + self.height.ceil() as i32;
        // In a small chart the ticks are short.
        let length = (0.05 * f64::from((right + 1 - self.left).min(axis - self.top))).round().min(5.0) as i32;
        match &self.decades {
            None => {
                let scale = self.unit.scale(self.longest);
                // Four steps would make a fifth tick.
                let ticks: Vec<(f64, i32)> =
                    round_ticks(self.longest, 4.0 - 1e-8).map(|tick| (tick, self.column(tick))).collect();
                ticks.iter().for_each(|(_, column)| svg.path(&[(*column, bottom), (*column, top)], Paint::Grid, 1));
                svg.path(&[(self.left, axis), (right, axis)], Paint::Muted, 1);
                for (tick, column) in ticks {
                    let place = (column, axis + 2 * length + 6);
                    svg.text(&scale.tick(tick), place, Weight::Regular, Paint::Muted, Side::Center);
                    svg.path(&[(column, axis), (column, axis + length)], Paint::Muted, 1);
                }
            }
            Some(decades) => {
                for tick in &decades.ticks {
                    let column = self.column(*tick);
                    svg.path(&[(column, top), (column, bottom)], Paint::Grid, 1);
                    let text = self.unit.scale(*tick).tick(*tick);
                    Weight::Regular.draw_around(svg, &text, (column, bottom + 14), Paint::Muted);
                }
            }
        }
    }

    fn right(&self) -> i32 {
        WIDTH - 1 - (self.widest + 2 * GAP).clamp(30, WIDTH / 2)
    }

    /// The pixel row of a height.
    fn row(&self, height: f64) -> i32 {
        let length = self.height.ceil() as i32 - 1;
        // What is a row but for rounding is that row.
        let above = (f64::from(-length) * ((height - self.height) / -self.height) - 1e-3).ceil() as i32;
        self.top + length + above
    }

    /// The pixel column of a value.
    fn column(&self, value: f64) -> i32 {
        let along = self.decades.as_ref().map_or(value.max(0.0) / self.longest, |axis| axis.place(value));
        self.left + (f64::from(self.right() - self.left) * along + 1e-3).floor() as i32
    }

    /// A bar, which begins at the left end of the axis: a logarithmic one has no 0. On it the ends of its interval, joined.
    fn draw_bar(&self, svg: &mut Svg<'_>, bar: &Bar, hatched: bool, top: f64) {
        let Some((value, whisker)) = bar.extent else {
            return self.draw_value(svg, &bar.text, 0.0, top, Paint::Muted);
        };
        let ground = if hatched { Paint::Pattern(0) } else { Paint::Series(0) };
        let corners = [(self.left, self.row(top)), (self.column(value), self.row(top + BAR))];
        svg.bar(corners, ground, Paint::Series(u8::from(hatched)));
        if let Some((low, high)) = whisker {
            let middle = self.row(top + BAR / 2.0);
            let (low, high, cap) = (self.column(low), self.column(high), BAR as i32 / 4);
            let cap_at = |column: i32| [(column, middle - cap), (column, middle + cap)];
            for line in [[(low, middle), (high, middle)], cap_at(low), cap_at(high)] {
                svg.path(&line, Paint::Whisker, 2);
            }
        }
        self.draw_value(svg, &bar.text, end(value, whisker), top, Paint::Text);
    }

    /// The text beside the bar that ends at a value.
    fn draw_value(&self, svg: &mut Svg<'_>, text: &str, end: f64, top: f64, paint: Paint) {
        let left = self.column(end) + GAP;
        let text = Weight::Regular.shortened(text, WIDTH - left);
        svg.text(&text, (left, self.row(top + BAR / 2.0)), Weight::Regular, paint, Side::Left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::escape;

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
        let svg = plot("fp16").to_svg("p");
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
        let svg = plot("fp16").to_svg("p");
        assert!(!svg.contains("\n\n"), "{svg}");
    }

    #[test]
    fn a_label_is_text_whatever_it_holds() {
        let svg = plot("<script>{{#include x}}").to_svg("a b");
        assert!(!svg.contains("<script") && !svg.contains("{{") && svg.contains("a-b-title"), "{svg}");
    }

    #[test]
    fn a_bar_of_a_thousandth_is_seen_on_a_logarithmic_axis() {
        let times = |spacing| BarPlot { spacing, ..BarPlot::of_times("T", &[("a", 1e-6), ("b", 1e-3)]) };
        let shorter = |plot: BarPlot| {
            let svg = plot.to_svg("p");
            let bar = svg.lines().find(|line| line.starts_with("<rect") && line.contains("plot-first")).unwrap();
            let width = bar.split("width=\"").nth(1).unwrap().split('"').next().unwrap();
            width.parse::<u32>().unwrap()
        };
        assert!(shorter(times(Spacing::Linear)) < 2 && shorter(times(Spacing::Log)) > 10);
    }

    #[test]
    fn a_long_label_stands_above_its_bar() {
        let (short, long) = (plot("fp16"), plot("half precision"));
        assert!(short.has_labels_beside() && !long.has_labels_beside());
        assert!(long.rows_height() > short.rows_height());
    }
}
