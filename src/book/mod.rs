//! Runs and documents into an mdBook and its site.
//!
//! [`Source::of`] is a pure function from runs and a [`BookProject`] (documents, prose, templates) to the files of an mdBook; [`render`] writes them, has mdBook build the site beside them, and puts both in place only when both are
//! whole. Neither looks at the clock, the working folder, the locale or the environment, so that equal results make
//! equal bytes.

mod chapter;
mod claims;
mod course;
mod data;
mod glossary;
mod landing;
mod machine;
mod notebooks;
mod recorded;
mod render_text;
mod site;
mod source;
mod sources;
mod templates;
mod warning;

pub use course::BookProject;
pub use site::{Rendered, render};
pub use source::Source;
pub use warning::Warning;
