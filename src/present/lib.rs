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
//! | `console`, `markdown`, `html` | a table in each form; the head of a page that needs no other file |
//! | `plot` | bars, lines, histograms and timelines as SVG |

#![forbid(unsafe_code)]

pub mod clean;
mod console;
mod error;
mod escape;
mod estimate;
mod html;
mod kind;
mod markdown;
#[cfg(feature = "plots")]
pub mod notebook;
#[cfg(feature = "plots")]
mod plot;
mod table;
pub mod units;
mod value;

pub use error::{FileError, in_plain_words};
pub use escape::escape;
pub use estimate::{Estimate, LEAST_COVERAGE, Larger, Spread};
pub use html::{PAGE_BEGIN, page_head};
pub use kind::Kind;
pub use markdown::plain as in_markdown;
#[cfg(feature = "plots")]
pub use notebook::{Page, Show};
#[cfg(feature = "plots")]
pub use plot::{
    Bar, BarGroup, BarPlot, Histogram, Lane, LaneSpan, Line, LinePlot, LineRole, Point, Spacing, Ticks, TimelinePlot,
    styled_once,
};
pub use table::{Cell, Column, Missing, Role, Table, TableGroup, TableRow};
pub use value::{Formatted, Precision, Sampled, Share, Value};
