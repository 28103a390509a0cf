//! All machines of a store beside each other: which differ from the rest, and what the models come to.
//!
//! Of each machine the newest file counts. Machines of one model are compared row by row ([`outliers`]).
//!
//! | file | what |
//! |---|---|
//! | `table` | the newest values of each machine, and the machines that differ |
//! | `page`, `strip` | a page that stands alone |
//! | `template` | the templates of the pages |
//! | `tasks` | a job of many tasks: those that left no results |

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod history;
mod page;
mod strip;
mod table;
mod tasks;
mod template;

use syncscope_present::{self as present, units};
use syncscope_results::{self as results, error, files, statistics as measure, store, yaml};

pub use page::page;
pub use table::{Different, Fleet, FleetRow, Member, Newest};
pub use tasks::{MAX_TASKS, MissingTask, PLAN, SCRIPT, missing};

#[cfg(doc)]
use crate::measure::outliers;

/// When a file began, by what it says: as texts, times of two time zones have no order.
fn began(started: &str) -> jiff::Timestamp {
    started.parse().unwrap_or(jiff::Timestamp::MIN)
}
