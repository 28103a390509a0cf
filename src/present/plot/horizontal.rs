//! What horizontal bars have in common: the chart that they lie in, its axis below, and their whiskers.

use super::axis::{Axis, round_ticks};
use super::picture::WIDTH;
use super::svg::{Paint, Side, Svg};
use super::text::Weight;
use crate::units::Unit;

/// The height of the axis with its numbers.
pub(super) const AXIS: i32 = 26;
/// The height of a bar.
pub(super) const BAR: f64 = 18.0;
/// The gap between the end of a bar and its value.
const GAP: i32 = 6;

/// How the bars lie in a panel. Heights are pixels from the top of the chart.
pub(super) struct Horizontal {
    /// Where the chart begins, below the title.
    pub(super) top: i32,
    /// The left end of the bars.
    pub(super) left: i32,
    /// The height of all bars, with their labels.
    pub(super) height: f64,
    /// The value at the right end.
    pub(super) longest: f64,
    pub(super) unit: Unit,
    /// A logarithmic axis, where there is one.
    pub(super) decades: Option<Axis>,
    /// The width of the widest text at the end of a bar, for which there is room to the right.
    pub(super) widest: i32,
}

impl Horizontal {
    pub(super) fn draw_axis(&self, svg: &mut Svg<'_>) {
        let (top, bottom, right) = (self.row(0.0), self.row(self.height), self.right());
        let axis = svg.size.1 - AXIS;
        // In a small chart the ticks are short.
        let length = (0.05 * f64::from((right + 1 - self.left).min(axis - self.top))).round().min(5.0) as i32;
        match &self.decades {
            None => {
                let scale = self.unit.scale(self.longest);
                // Four steps would make a fifth tick.
                let ticks: Vec<(f64, i32)> =
                    round_ticks(self.longest, 4.0 - 1e-8).map(|tick| (tick, self.column(tick))).collect();
                ticks.iter().for_each(|(_, column)| svg.line((*column, bottom), (*column, top), Paint::Grid));
                svg.path(&[(self.left, axis), (right, axis)], Paint::Muted, 1);
                for (tick, column) in ticks {
                    let place = (column, axis + 2 * length + 6);
                    svg.text(&scale.tick(tick), place, Weight::Regular, Paint::Muted, Side::Middle);
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
    pub(super) fn row(&self, height: f64) -> i32 {
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

    /// A bar, or a part of one, from one value to another.
    pub(super) fn draw_bar(
        &self,
        svg: &mut Svg<'_>,
        (from, to): (f64, f64),
        top: f64,
        (ground, outline): (Paint, Paint),
    ) {
        // A logarithmic axis has no 0: there a bar begins at the end of the axis.
        let left = if from > 0.0 { self.column(from) } else { self.left };
        svg.bar([(left, self.row(top)), (self.column(to), self.row(top + BAR))], ground, outline);
    }

    /// The ends of an interval, joined.
    pub(super) fn draw_whisker(&self, svg: &mut Svg<'_>, (low, high): (f64, f64), top: f64) {
        let middle = self.row(top + BAR / 2.0);
        let (low, high, cap) = (self.column(low), self.column(high), BAR as i32 / 4);
        let cap_at = |column: i32| [(column, middle - cap), (column, middle + cap)];
        for line in [[(low, middle), (high, middle)], cap_at(low), cap_at(high)] {
            svg.path(&line, Paint::Whisker, 2);
        }
    }

    /// A line across the bar at a value.
    pub(super) fn draw_mark(&self, svg: &mut Svg<'_>, value: f64, top: f64) {
        let column = self.column(value);
        svg.path(&[(column, self.row(top) - 2), (column, self.row(top + BAR) + 2)], Paint::Whisker, 2);
    }

    /// The text beside the bar that ends at a value.
    pub(super) fn draw_value(&self, svg: &mut Svg<'_>, text: &str, end: f64, top: f64, paint: Paint) {
        let left = self.column(end) + GAP;
        let text = Weight::Regular.shortened(text, WIDTH - left);
        svg.text(&text, (left, self.row(top + BAR / 2.0)), Weight::Regular, paint, Side::Left);
    }
}
