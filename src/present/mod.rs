//! How results look: one [`Table`] for the console, Markdown and HTML, and the plots.
//!
//! What a value reads like is decided once, in [`Value::formatted`]; the three forms of a table only place it. Whatever
//! comes from outside (the name of a device, the title of a suite) passes through [`escape`] on its way into Markdown,
//! HTML and SVG.

mod console;
mod escape;
mod html;
mod markdown;
mod plot;
mod table;
mod value;

pub use escape::escape;
pub use plot::{Bar, BarGroup, BarPlot, Histogram, Line, LinePlot, Point, Spacing, TimelinePlot};
pub use table::{Cell, Column, Group, Missing, Role, Table, TableRow};
pub use value::{Formatted, Precision, Share, Value};
