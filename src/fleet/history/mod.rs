//! Each row over time, by machine: what a store of results files says of many days.
//!
//! A file is one value of a row: its median of a run. A series of a row is searched for changes of level
//! ([`change_points`]); what else changed between the two files at such a place (driver, CUDA, commit) stands beside it.
//!
//! | file | what |
//! |---|---|
//! | `series` | the rows of a store over time, and their changes |
//! | `page`, `picture` | a page that stands alone |

mod page;
mod picture;
mod series;

pub use page::page;
pub use series::{History, HistoryEntry, HistoryValue, MachineHistory, RowHistory, SeriesChange};

#[cfg(doc)]
use crate::measure::change_points;
