//! Results as tables and plots: for the pages of a book and for a console.

mod cell;
mod claims;
mod compared;
mod comparison;
mod figure;
mod matrix;
mod sampled;
mod summary;
mod systems;

pub use claims::{claims_table, claims_text};
pub use compared::{Wording, compared, tally};
pub use comparison::{Machines, comparison_table, machine_labels};
pub use figure::{bar_plot, line_plot, panel};

pub(super) use matrix::{matrix, shown_rows};
pub(super) use sampled::sampled;
pub use summary::summary;
pub use systems::system_table;
pub(super) use systems::versions;
