//! Results in the cells of a Rust notebook (the evcxr kernel of Jupyter).
//!
//! A value at the end of a cell shows itself as HTML, with plain text beside it: [`Device`](crate::device::Device),
//! [`Tensor`](crate::tensor::Tensor), [`Estimate`](crate::measure::Estimate), [`Samples`](crate::measure::Samples),
//! [`Rounds`](crate::measure::Rounds), [`Comparison`](crate::measure::Comparison),
//! [`Verdict`](crate::measure::Verdict), [`Timeline`](crate::timeline::Timeline), [`Audit`](crate::timeline::Audit),
//! [`AuditReport`](crate::audit::AuditReport), and the tables and plots of [`present`](crate::present). A [`Page`] puts
//! several into the one block that a cell can show.
//!
//! | file | holds |
//! |---|---|
//! | `display` | what each type shows |
//! | `page` | one block of a cell: pieces of HTML and their text |
//! | `progress` | samplers with a budget, which report their progress |
//! | `table` | a table with a style for each element |
//!
//! # Limits
//! Each cell links its own copy of the library, so nothing here depends on a `static`: all state is in values that
//! outlive their cell.

mod display;
mod page;
mod progress;
mod table;

pub use page::{Page, Show};
pub use progress::{BUDGET, sampler};
