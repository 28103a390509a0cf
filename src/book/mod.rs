//! Runs and documents into an mdBook and its site.
//!
//! [`Source::of`] is a pure function from runs, documents and the files that come with the program to the files of an
//! mdBook; [`render`] writes them, has mdBook build the site beside them, and puts both in place only when both are
//! whole. Neither looks at the clock, the working folder, the locale or the environment, so that equal results make
//! equal bytes.

mod caution;
mod chapter;
mod claims;
mod machine;
mod notebooks;
mod recorded;
mod site;
mod source;
mod templates;

pub use caution::Caution;
pub use site::{Rendered, render};
pub use source::Source;
