//! The book on disk: `book/`, what mdBook reads, and `site/`, what a browser reads.
//!
//! A render that fails leaves what was there.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use mdbook_driver::MDBook;
use mdbook_driver::book::BookItem;
use mdbook_driver::builtin_preprocessors::{IndexPreprocessor, LinkPreprocessor};
use mdbook_preprocessor::{Preprocessor, PreprocessorContext};
use mdbook_summary::{Summary, SummaryItem};

use super::folder::at;
use super::includes::summary_of;
use super::place::{BOOK, OutputPlace};
use super::placeholders::Placeholders;
use super::policy;
use super::project::BookProject;
use super::source::Source;
use crate::error::{BookError, explained};
use crate::present::styled_once;
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
        let place = OutputPlace::claim(out, BOOK)?;
        let [book, site] = ["book", "site"].map(|name| place.working(name));
        for (path, content) in self.files() {
            let path = book.join(path);
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder).map_err(at(folder))?;
            }
            fs::write(&path, content).map_err(at(&path))?;
        }
        build(self, &book, &site, &place.working("print"))?;
        policy::apply(&site, |path| self.is_copied(path))?;
        place.put()?;
        Ok(Rendered { source: out.join("book"), index: out.join("site/index.html") })
    }
}

/// The part of the table of contents that is printed, beside the pages that stand in no part.
const PRINTED: &str = "Course";

/// Has mdBook build the site, with the pages of the course alone on the page to print. Its `load` would let `MDBOOK_` variables
/// of the environment in; this does not.
fn build(source: &Source, book: &Path, site: &Path, print: &Path) -> Result<(), BookError> {
    let left_out = not_printed(&summary_of(source)?);
    build_without(&BTreeSet::new(), source, book, site)?;
    let path = site.join(PRINT);
    // An author may have switched it off.
    if left_out.is_empty() || !path.is_file() {
        return Ok(());
    }
    build_without(&left_out, source, book, print)?;
    let [whole, course] = [&path, &print.join(PRINT)].map(|path| fs::read_to_string(path).map_err(at(path)));
    fs::write(&path, printed(&whole?, &course?)).map_err(at(&path))
}

/// The page to print.
const PRINT: &str = "print.html";

/// The pages of all parts but the one that is printed; none where there is no such part.
fn not_printed(summary: &Summary) -> BTreeSet<PathBuf> {
    let (mut part, mut found, mut is_there) = (None, BTreeSet::new(), false);
    for item in &summary.numbered_chapters {
        match item {
            SummaryItem::PartTitle(title) => {
                is_there |= title == PRINTED;
                part = Some(title.as_str());
            }
            SummaryItem::Link(link) if part.is_some_and(|part| part != PRINTED) => {
                found.extend(link.location.clone());
            }
            _ => {}
        }
    }
    if is_there { found } else { BTreeSet::new() }
}

/// The page to print of the whole book with the content of that of the course, and everything in it unfolded.
fn printed(whole: &str, course: &str) -> String {
    let parts = |page: &str| {
        let (start, end) = (page.find("<main>")?, page.rfind("</main>")?);
        Some((page[..start].to_owned(), page[start..end].to_owned(), page[end..].to_owned()))
    };
    match (parts(whole), parts(course)) {
        (Some((before, _, behind)), Some((_, main, _))) => {
            before + &without_hints(&main.replace("<details", "<details open")) + &behind
        }
        _ => whole.to_owned(),
    }
}

/// A page whose values, tables and timelines are without what a pointer or a script finds there: there is neither on paper.
fn without_hints(page: &str) -> String {
    let without = |tag: String, name: &str| match tag.split_once(&format!(" {name}=\"")) {
        Some((before, behind)) => behind.split_once('"').map_or(tag.clone(), |(_, behind)| before.to_owned() + behind),
        None => tag,
    };
    let piece = |piece: &str| {
        let (text, tag) = piece.split_at(piece.rfind('<').unwrap_or(piece.len()));
        let has_hints = ["<tr ", "<th ", "<td ", "<span ", "<div "].iter().any(|kind| tag.starts_with(kind));
        let names: &[&str] = if has_hints { &["title", "data-id", "data-spans"] } else { &[] };
        text.to_owned() + &names.iter().fold(tag.to_owned(), |tag, name| without(tag, name))
    };
    page.split_inclusive('>').map(piece).collect()
}

/// Has mdBook build the pages but for some.
fn build_without(left_out: &BTreeSet<PathBuf>, source: &Source, book: &Path, site: &Path) -> Result<(), BookError> {
    let message = |error: anyhow::Error| BookError::Build { message: explained(&error) };
    let summary = summary_of(source)?;
    let mut config = source.config.clone();
    config.build.build_dir = site.to_owned();
    if !left_out.is_empty() {
        // Of this build the page to print alone is taken. What is said of single chapters' search may be of one left out.
        config.set("output.html.search", BTreeMap::from([("enable", false)])).map_err(message)?;
    }
    let mut book = MDBook::load_with_config_and_summary(book, config, summary).map_err(message)?;
    book.with_preprocessor(IndexPreprocessor::new());
    let is_left_out = |item: &BookItem| match item {
        BookItem::Chapter(chapter) => chapter.path.as_ref().is_some_and(|path| left_out.contains(path)),
        _ => false,
    };
    book.book.items.retain(|item| !is_left_out(item));
    // Each directive was found to lead to a file of the book. What is taken out of a page comes after: the words on its two sides
    // could make one.
    let context = PreprocessorContext::new(book.root.clone(), book.config.clone(), "html".to_owned());
    book.book = LinkPreprocessor::new().run(&context, std::mem::take(&mut book.book)).map_err(message)?;
    let mut placeholders = Placeholders::default();
    book.book.for_each_mut(|item| {
        let BookItem::Chapter(chapter) = item else { return };
        let Some(path) = chapter.path.as_ref() else { return };
        chapter.content = placeholders.taken_from(&styled_once(&chapter.content));
        // An edit link leads to what a page is made of.
        chapter.source_path = source.origins.get(path).cloned().or(chapter.source_path.take());
    });
    book.build().map_err(message)?;
    placeholders.put_back(source, site)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_on_paper_has_no_hints() {
        let page = "a title=\"b\" <tr data-id=\"x\"><td class=\"c\" title=\"1 &#62; 0\" colspan=\"2\">v</td><td title=\"a>b\"> \
                    <span class=\"measured\" title=\"n = 3\" data-interval=\"1 … 2\">v</span>";
        let paper = "a title=\"b\" <tr><td class=\"c\" colspan=\"2\">v</td><td title=\"a>b\"> \
                     <span class=\"measured\" data-interval=\"1 … 2\">v</span>";
        assert_eq!(without_hints(page), paper);
        assert_eq!(without_hints("<a title=\"b\">1 < 2"), "<a title=\"b\">1 < 2");
    }
}
