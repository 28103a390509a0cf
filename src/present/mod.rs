//! How results look: one [`Table`] for the console, Markdown and HTML, and the plots.
//!
//! What a value reads like is decided once, in [`Value::formatted`]; the three forms of a table only place it. Whatever
//! comes from outside (the name of a device, the title of a suite) passes through [`escape`] on its way into Markdown,
//! HTML and SVG.

#[cfg(feature = "report")]
mod compared;
mod console;
mod escape;
#[cfg(feature = "report")]
mod found;
mod html;
mod markdown;
mod plot;
#[cfg(feature = "report")]
mod summary;
mod table;
mod value;

#[cfg(feature = "report")]
mod claims;
#[cfg(feature = "report")]
mod mirrored;
#[cfg(feature = "report")]
mod panel;
#[cfg(feature = "report")]
mod peers;

#[cfg(feature = "report")]
pub use claims::{claims_table, claims_text};
#[cfg(feature = "report")]
pub use compared::{Wording, compared, tally};
pub use escape::escape;
#[cfg(feature = "report")]
pub use mirrored::{Machines, machine_labels, mirrored};
#[cfg(feature = "report")]
pub use panel::{bar_plot, line_plot, panel};
#[cfg(feature = "report")]
pub use peers::peer_table;
pub use plot::{Bar, BarGroup, BarPlot, Histogram, Line, LinePlot, Point, Spacing, TimelinePlot};
#[cfg(feature = "report")]
pub use summary::summary;
pub use table::{Cell, Column, Group, Missing, Role, Row, Table};
pub use value::{Formatted, Precision, Share, Value};
