//! Results in the cells of a Rust notebook (the evcxr kernel of Jupyter).
//!
//! A value at the end of a cell shows itself as HTML, with plain text beside it: [`Device`](crate::device::Device),
//! [`Tensor`](crate::tensor::Tensor), [`Estimate`](crate::measure::Estimate), [`Samples`](crate::measure::Samples),
//! [`Rounds`](crate::measure::Rounds), [`Comparison`](crate::measure::Comparison),
//! [`Verdict`](crate::measure::Verdict), [`Timeline`](crate::timeline::Timeline), [`Audit`](crate::timeline::Audit),
//! and the tables and plots of [`present`](crate::present). A [`Page`] puts several into the one block that a cell can
//! show.
//!
//! | file | holds |
//! |---|---|
//! | `display` | what each type shows |
//! | `progress` | samplers with a budget, which report their progress |
//!
//! # Limits
//! Each cell links its own copy of the library, so nothing here depends on a `static`: all state is in values that
//! outlive their cell.

mod display;
mod progress;

pub use progress::{BUDGET, sampler};
pub use syncscope_present::{Page, Show};
