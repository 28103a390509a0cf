//! The book on disk: `book/`, what mdBook reads, and `site/`, what a browser reads.
//!
//! A render that fails leaves what was there.

use std::fs;
use std::path::{Component, Path, PathBuf};

use mdbook_driver::MDBook;
use mdbook_driver::book::BookItem;
use mdbook_driver::builtin_preprocessors::IndexPreprocessor;
use mdbook_summary::{Link, SummaryItem, parse_summary};

use super::includes;
use super::place::{FOLDERS, Place};
use super::policy;
use super::project::{BookProject, at};
use super::source::Source;
use crate::error::BookError;
use crate::results::{Catalog, Results};

/// Where a rendered book lies.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rendered {
    /// The folder with the book's source.
    pub source: PathBuf,
    /// The first page of the site.
    pub index: PathBuf,
}

/// Renders the results, one file a machine, as `project` has it into `out/book` and `out/site`. Documents may name the rows
/// of `catalog` and those that are in the results.
///
/// # Errors
/// What went wrong and where; `out/book` and `out/site` are then as they were.
pub fn render(
    results: &[Results],
    project: &BookProject,
    catalog: &Catalog,
    out: &Path,
) -> Result<Rendered, BookError> {
    Source::of(results, project, catalog)?.write(out)
}

impl Source {
    /// Writes the book into `out/book` and has mdBook build the site into `out/site`.
    ///
    /// # Errors
    /// As [`render`].
    pub fn write(&self, out: &Path) -> Result<Rendered, BookError> {
        write(self, out)
    }
}

fn write(source: &Source, out: &Path) -> Result<Rendered, BookError> {
    let place = Place::claim(out)?;
    let [book, site] = FOLDERS.map(|name| place.working(name));
    for (path, content) in source.files() {
        // Names come from documents and results, which may be anybody's.
        if !path.components().all(|part| matches!(part, Component::Normal(_))) {
            let message = "a file of this name would lie outside of the book".to_owned();
            return Err(BookError::Reference { page: path.display().to_string(), message });
        }
        let path = book.join(path);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(at(folder))?;
        }
        fs::write(&path, content).map_err(at(&path))?;
    }
    build(source, &book, &site)?;
    policy::apply(&site)?;
    let [source, site] = place.put()?;
    Ok(Rendered { source, index: site.join("index.html") })
}

/// Has mdBook build the site. Its `load` would let `MDBOOK_` variables of the environment in, and its own preprocessor
/// would include any file of this machine; this does neither.
fn build(source: &Source, book: &Path, site: &Path) -> Result<(), BookError> {
    let message = |error| BookError::Build { message: format!("{error:#}") };
    let summary = source.text("src/SUMMARY.md")?;
    let summary = parse_summary(summary).map_err(message)?;
    let chapters = [&summary.prefix_chapters, &summary.numbered_chapters, &summary.suffix_chapters];
    chapters.into_iter().flatten().try_for_each(|item| check_chapter(item, source))?;

    let mut config = source.config().clone();
    config.build.build_dir = site.to_owned();
    let mut book = MDBook::load_with_config_and_summary(book, config, summary).map_err(message)?;
    book.with_preprocessor(IndexPreprocessor::new());
    let mut failed = Ok(());
    book.book.for_each_mut(|item| {
        let BookItem::Chapter(chapter) = item else { return };
        let Some(path) = chapter.path.as_ref() else { return };
        let page = Path::new("src").join(path);
        match includes::resolved(&chapter.content, &page, source.all()) {
            Ok(content) => chapter.content = content,
            Err(message) => failed = Err(BookError::Reference { page: page.display().to_string(), message }),
        }
        // An edit link leads to what a page is made of.
        chapter.source_path = source.origin(path).or(chapter.source_path.take());
    });
    failed?;
    book.build().map_err(message)
}

/// Refuses a chapter that is not a page of the book: mdBook would read any file.
fn check_chapter(item: &SummaryItem, source: &Source) -> Result<(), BookError> {
    let SummaryItem::Link(Link { location, nested_items, .. }) = item else { return Ok(()) };
    if let Some(location) = location {
        let page = includes::within(Path::new("src"), location);
        if !page.is_some_and(|page| source.all().contains_key(&page)) {
            let message = format!("`{}` is not a page of the book", location.display());
            return Err(BookError::Reference { page: "SUMMARY.md".to_owned(), message });
        }
    }
    nested_items.iter().try_for_each(|item| check_chapter(item, source))
}
