//! Results as tables and plots: for the pages of a book and for a console.

mod claims;
mod compared;
mod comparison;
mod figure;
mod left_out;
mod matrix;

pub(super) use claims::verdict_totals;
pub use claims::{claims_text, summary};
pub use compared::{ENOUGH, Wording, agreement, compared, over_the_file, smallest, tally, undecided};
pub use comparison::{Machines, comparison_table, machine_labels, system_table};
pub(super) use comparison::{found_value, oddities, on_page, row_cell, versions};
pub use figure::{Drawn, bar_plot, drawn, line_plot};
pub(super) use figure::{drawn_cases, pictures};
pub use left_out::LeftOut;
pub(super) use left_out::{
    Lacks, absence, columns_left_out, counts_table, lacking_of, left_out_of, nothing_of, sampled,
};
pub(super) use matrix::{shown_rows, system as matrix_system};
