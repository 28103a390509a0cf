//! Results as tables and plots: for the pages of a book and for a console.

mod cell;
mod claims;
mod compared;
mod comparison;
mod counts;
mod figure;
mod lacking;
mod left_out;
mod matrix;
mod roofline;
mod sampled;
mod summary;
mod systems;

pub use claims::claims_text;
pub(super) use claims::verdict_totals;
pub use compared::{Wording, agreement, compared, over_the_file, tally};
pub use comparison::{Machines, comparison_table, machine_labels};
pub(super) use counts::counts_table;
pub use figure::{Drawn, bar_plot, drawn, line_plot};
pub(super) use figure::{drawn_cases, pictures};
pub(super) use lacking::{Lacks, lacking_of};
pub use left_out::{LeftOut, Unmeasured};
pub(super) use left_out::{absence, columns_left_out, left_out_of, nothing_of};
pub(super) use matrix::{shown_rows, system as matrix_system};
pub(super) use sampled::sampled;
pub use summary::summary;
pub use systems::system_table;
pub(super) use systems::versions;
