//! Runs and documents into an mdBook and its site.
//!
//! [`Source::of`] is a pure function from runs and a [`Course`] (documents, prose, templates) to the files of an mdBook; [`render`] writes them, has mdBook build the site beside them, and puts both in place only when both are
//! whole. Neither looks at the clock, the working folder, the locale or the environment, so that equal results make
//! equal bytes.

mod caution;
mod chapter;
mod claims;
mod course;
mod data;
mod glossary;
mod landing;
mod machine;
mod notebooks;
mod phrase;
mod recorded;
mod site;
mod source;
mod sources;
mod templates;

pub use caution::Caution;
pub use course::Course;
pub use site::{Rendered, render};
pub use source::Source;
