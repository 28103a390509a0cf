//! The pages of a book before mdBook reads them: which there are, and what they include.
//!
//! mdBook would read any file for a page. What is wrong is said here, before anything is measured or written.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use mdbook_summary::{Link, Summary, SummaryItem, parse_summary};

use super::folder::has_ending;
use super::includes::{self, place};
use super::project::BookProject;
use super::source::Source;
use crate::error::{BookError, FileError};
use crate::results::nearest;

/// The template of the table of contents.
const SUMMARY: &str = "templates/summary.md.j2";

/// The table of contents.
pub(super) fn summary_of(source: &Source) -> Result<Summary, BookError> {
    let summary = parse_summary(source.text("src/SUMMARY.md")?);
    summary.map_err(|error| BookError::Build { message: error.root_cause().to_string() })
}

/// What is wrong with the table of contents where an entry leads to `location`, at the last one that does.
fn wrong_entry(project: &BookProject, location: &Path, message: String) -> BookError {
    let text = project.text(SUMMARY).unwrap_or_default();
    let found = text.rfind(&format!("]({})", location.display())).map(|at| place(text, at + "](".len()));
    let (origin, (line, column)) = (project.name(Path::new(SUMMARY)), found.unwrap_or_default());
    FileError::Invalid { origin, line, column, message, hint: String::new() }.into()
}

/// What mdBook finds wrong with the table of contents. The places that it names are of what the template makes.
fn not_a_summary(project: &BookProject, message: &str) -> BookError {
    const TWICE: &str = "Duplicate file in SUMMARY.md: ";
    if let Some(location) = message.strip_prefix(TWICE) {
        let location = Path::new(location.trim_matches('"'));
        return wrong_entry(project, location, twice(location));
    }
    let why = message.split_once("column ").and_then(|(_, rest)| rest.split_once(": ")).map_or(message, |(_, why)| why);
    FileError::whole(project.name(Path::new(SUMMARY)), format!("what it makes is no table of contents: {why}")).into()
}

fn twice(location: &Path) -> String {
    format!("two entries lead to the page of `{}`: leave one", location.display())
}

/// Refuses an entry of the table of contents that leads to no page, and a page with a directive that cannot be followed.
pub(super) fn check(source: &Source, project: &BookProject) -> Result<(), BookError> {
    let summary = summary_of(source).map_err(|error| match error {
        BookError::Build { message } => not_a_summary(project, &message),
        other => other,
    })?;
    let mut pages = BTreeSet::new();
    for location in locations(&summary) {
        let wrong = |message| wrong_entry(project, &location, message);
        if !pages.insert(page_at(&location, source).map_err(wrong)?) {
            return Err(wrong(twice(&location)));
        }
    }
    let all = source.all().keys().filter(|path| path.starts_with("src") && has_ending(path, "md"));
    let name = |path: &Path| project.name(&source.written(path.strip_prefix("src").unwrap_or(path), project));
    for page in all {
        includes::check(page, source.all(), &name)?;
    }
    Ok(())
}

/// Where the entries of the table of contents lead.
fn locations(summary: &Summary) -> Vec<PathBuf> {
    fn add(items: &[SummaryItem], found: &mut Vec<PathBuf>) {
        for item in items {
            if let SummaryItem::Link(Link { location, nested_items, .. }) = item {
                found.extend(location.clone());
                add(nested_items, found);
            }
        }
    }
    let mut found = Vec::new();
    let parts = [&summary.prefix_chapters, &summary.numbered_chapters, &summary.suffix_chapters];
    parts.into_iter().for_each(|items| add(items, &mut found));
    found
}

/// The page that an entry leads to.
fn page_at(location: &Path, source: &Source) -> Result<PathBuf, String> {
    let is_page = |path: &PathBuf| path.starts_with("src") && has_ending(path, "md") && source.all().contains_key(path);
    let found = includes::within(Path::new("src"), location).filter(is_page);
    found.ok_or_else(|| {
        let pages = source.all().keys().filter_map(|path| path.strip_prefix("src").ok()?.to_str());
        let hint = nearest(&location.to_string_lossy(), pages.filter(|page| page.ends_with(".md")));
        format!("`{}` is not a page of the book{hint}", location.display())
    })
}
