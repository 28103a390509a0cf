//! Plots as SVG that can stand within a page: bars with whiskers, lines over a parameter,
//! histograms, matrices of yes and no, and timelines.
//!
//! A panel is as wide as a phone, and a page sets as many beside each other as it has room for: text keeps its size,
//! where a wide picture would shrink it. Colour never stands alone: hatching, marks and dashes say the same. plotters draws,
//! through the backend in `svg`. Coordinates are whole pixels.

mod axis;
mod bars;
mod histogram;
mod lane;
mod lines;
mod svg;
mod text;
mod timeline;

pub use axis::Spacing;
pub use bars::{Bar, BarGroup, BarPlot};
pub use histogram::Histogram;
pub use lane::LaneSpan;
pub use lines::{Line, LinePlot, LineRole, Point, Ticks};
pub(crate) use svg::on_any_ground;
pub use svg::styled_once;
pub use timeline::{Lane, TimelinePlot};

#[cfg(test)]
mod tests;
