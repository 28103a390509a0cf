//! Results and documents into an mdBook and its site.
//!
//! [`Source::of`] is a pure function from results and a [`BookProject`] (documents, prose, templates) to the files of an
//! mdBook; [`render`] writes them, has mdBook build the site beside them, and puts both in place only when both are whole.
//! Neither looks at the clock, the working folder, the locale or the environment, so that equal results make equal bytes.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod chapter;
mod claims;
mod classroom;
mod config;
mod data;
pub mod document;
mod emulation;
pub mod error;
mod folder;
mod glossary;
mod in_order;
mod includes;
mod landing;
mod machine;
mod notebooks;
mod place;
mod placeholders;
mod policy;
pub mod predicate;
mod project;
mod render_text;
mod site;
mod slides;
mod source;
mod syllabus;
mod tables;
mod templates;
#[cfg(test)]
mod tests;
mod warning;

use syncscope::timeline;
use syncscope_present::{self as present, clean, units};
use syncscope_results::{self as results, files, yaml};

/// What one run says, and what several do.
mod measure {
    pub(crate) use syncscope::measure::*;
    pub(crate) use syncscope_results::statistics::*;
}

pub use notebooks::check as check_notebook;
pub use place::{BOOK, SLIDES, check_place};
pub use project::{AuditPage, BookProject, KeptResults};
pub use render_text::takeaways;
pub use site::{Rendered, render};
pub use slides::render_slides;
pub use source::{Source, check};
pub use tables::{
    Drawn, ENOUGH, LeftOut, Machines, Wording, agreement, bar_plot, claims_text, compared, comparison_table, drawn,
    line_plot, machine_labels, over_the_file, smallest, summary, system_table, tally, undecided,
};
pub use warning::{Warning, WarningSubject};
