//! What horizontal bars have in common: the chart that they lie in, its axis below, and their whiskers.

use plotters::chart::ChartContext;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::axis::Axis;
use super::picture::{Area, DrawResult, WIDTH};
use super::svg::{Paint, Svg};
use super::text::Weight;
use crate::units::Unit;

/// The height of the axis with its numbers.
pub(super) const AXIS: u32 = 26;
/// The height of a bar.
pub(super) const BAR: f64 = 18.0;
/// The gap between the end of a bar and its value.
const GAP: i32 = 6;

type Chart<'a, 'b> = ChartContext<'a, Svg<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

/// How the bars lie in a panel.
pub(super) struct Layout<'a> {
    /// Where the chart begins, below the title.
    pub(super) top: u32,
    /// The left end of the bars.
    pub(super) left: u32,
    /// The height of all bars, with their labels.
    pub(super) height: f64,
    /// The value at the right end.
    pub(super) longest: f64,
    pub(super) unit: Unit,
    /// A logarithmic axis, where there is one.
    pub(super) decades: Option<Axis>,
    /// The texts at the ends of the bars, for which there is room to the right.
    pub(super) values: &'a [&'a str],
}

/// Where bars are drawn. Heights are pixels from the top of the chart.
pub(super) struct Horizontal<'a, 'b> {
    root: &'a Area<'b>,
    chart: Chart<'a, 'b>,
    decades: Option<Axis>,
    longest: f64,
}

impl<'a, 'b> Horizontal<'a, 'b> {
    pub(crate) fn new(root: &'a Area<'b>, layout: Layout<'_>) -> Result<Self, Box<dyn std::error::Error>> {
        let Layout { top, left, height, longest, unit, decades, values } = layout;
        let widest = values.iter().map(|text| Weight::Regular.width(text)).max().unwrap_or(0);
        let mut chart = ChartBuilder::on(root)
            .margin_top(top)
            .margin_right((widest + 2 * GAP).clamp(30, WIDTH as i32 / 2))
            .x_label_area_size(AXIS)
            .y_label_area_size(left)
            .build_cartesian_2d(0.0..longest, height..0.0)?;
        let scale = unit.scale(longest);
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
            .x_label_style(Weight::Regular.style(Paint::Muted, HPos::Center))
            .x_label_formatter(&|value| scale.tick(*value))
            .draw()?;
        let drawn = Self { root, chart, decades, longest };
        drawn.draw_decades(unit, height)?;
        Ok(drawn)
    }

    /// The ticks of a logarithmic axis, with their lines.
    fn draw_decades(&self, unit: Unit, height: f64) -> DrawResult {
        let (top, bottom) = (self.row(0.0), self.row(height));
        for tick in self.decades.iter().flat_map(|axis| &axis.ticks) {
            let column = self.column(*tick);
            self.root.draw(&PathElement::new([(column, top), (column, bottom)], Paint::Grid))?;
            let text = unit.scale(*tick).tick(*tick);
            Weight::Regular.draw_around(self.root, &text, (column, bottom + 14), Paint::Muted)?;
        }
        Ok(())
    }

    /// The pixel row of a height.
    pub(super) fn row(&self, height: f64) -> i32 {
        self.chart.backend_coord(&(0.0, height)).1
    }

    /// The pixel column of a value.
    fn column(&self, value: f64) -> i32 {
        let along = self.decades.as_ref().map_or(value.max(0.0), |axis| self.longest * axis.place(value));
        self.chart.backend_coord(&(along, 0.0)).0
    }

    /// A bar, or a part of one, from one value to another.
    pub(super) fn draw_bar(&self, (from, to): (f64, f64), top: f64, (ground, outline): (Paint, Paint)) -> DrawResult {
        // A logarithmic axis has no 0: there a bar begins at the end of the axis.
        let left = if from > 0.0 { self.column(from) } else { self.chart.backend_coord(&(0.0, 0.0)).0 };
        let corners = [(left, self.row(top)), (self.column(to), self.row(top + BAR))];
        self.root.draw(&Rectangle::new(corners, ground.filled()))?;
        Ok(self.root.draw(&Rectangle::new(corners, outline))?)
    }

    /// The ends of an interval, joined.
    pub(super) fn draw_whisker(&self, (low, high): (f64, f64), top: f64) -> DrawResult {
        let middle = self.row(top + BAR / 2.0);
        let (low, high, cap) = (self.column(low), self.column(high), BAR as i32 / 4);
        let cap_at = |column: i32| [(column, middle - cap), (column, middle + cap)];
        for line in [[(low, middle), (high, middle)], cap_at(low), cap_at(high)] {
            self.root.draw(&PathElement::new(line, Paint::Whisker.stroke_width(2)))?;
        }
        Ok(())
    }

    /// A line across the bar at a value.
    pub(super) fn draw_mark(&self, value: f64, top: f64) -> DrawResult {
        let line = [(self.column(value), self.row(top) - 2), (self.column(value), self.row(top + BAR) + 2)];
        Ok(self.root.draw(&PathElement::new(line, Paint::Whisker.stroke_width(2)))?)
    }

    /// The text beside the bar that ends at a value.
    pub(super) fn draw_value(&self, text: &str, end: f64, top: f64, paint: Paint) -> DrawResult {
        let left = self.column(end) + GAP;
        let text = Weight::Regular.shortened(text, WIDTH as i32 - left);
        let place = (left, self.row(top + BAR / 2.0));
        Ok(self.root.draw(&Text::new(text, place, Weight::Regular.style(paint, HPos::Left)))?)
    }
}
