//! A book of a run that measured nothing: what is wrong with a course shows in it before anything is measured.

use super::project::BookProject;
use super::source::Source;
use crate::error::BookError;
use crate::results::{Catalog, Machine, Results, SYNCSCOPE, System};

/// Makes the book's pages of no measurement at all, and writes nothing.
///
/// # Errors
/// As of rendering: a document, a template, an included file or a setting is wrong.
pub fn check(project: &BookProject, catalog: &Catalog) -> Result<(), BookError> {
    Source::of(&[nothing()], project, catalog).map(drop)
}

/// A run without rows on an unknown machine.
pub(super) fn nothing() -> Results {
    let unknown = || "unknown".to_owned();
    let machine = Machine { model: unknown(), fingerprint: None, driver: None, cpu: None };
    let (name, started, versions) = (SYNCSCOPE.to_owned(), unknown(), Vec::new());
    let system = System { schema_version: 0, name, started, versions, machine, code: None, rows: Vec::new() };
    let mut results = system.into_results(&Catalog::default());
    results.suite = serde_json::json!({ "title": "Nothing measured" });
    results
}
