//! How results look: one [`Table`] for the console, Markdown and HTML, and the plots.
//!
//! [`Value::formatted`] decides how a value is written; the three forms of a table only place it. All text (the name of a
//! device, the title of a suite) passes through [`escape`] on its way into a page or SVG; what is printed as Markdown, for
//! people who read it as it is, passes the backslashes of `markdown`.
//!
//! | file | holds |
//! |---|---|
//! | `escape` | the one escape of text |
//! | `value`, `table` | what stands in a table |
//! | `console`, `markdown`, `html` | a table in each form |
//! | `page` | the head of a page that needs no other file |
//! | `plot` | bars, stacked bars, lines, histograms and timelines as SVG |

mod console;
mod escape;
mod html;
mod markdown;
#[cfg(feature = "report")]
mod page;
mod plot;
mod table;
mod value;

pub use escape::escape;
#[cfg(feature = "report")]
pub(crate) use markdown::plain as in_markdown;
#[cfg(feature = "report")]
pub(crate) use page::{PAGE_BEGIN, page_head};
#[cfg(feature = "report")]
pub(crate) use plot::styled_once;
pub use plot::{
    Bar, BarGroup, BarPlot, Histogram, Line, LinePlot, LineRole, MatrixCell, MatrixPlot, MatrixRow, Point, Spacing,
    Stack, StackBar, StackPlot, Ticks, TimelinePlot,
};
pub use table::{Cell, Column, Missing, Role, Table, TableGroup, TableRow};
pub use value::{Formatted, Precision, Sampled, Share, Value};
