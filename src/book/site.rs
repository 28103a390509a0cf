//! The book on disk: `book/`, what mdBook reads, and `site/`, what a browser reads.
//!
//! Both are made in a temporary folder beside their place and moved there when both are whole. A render that fails
//! leaves what was there.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use mdbook_driver::MDBook;
use mdbook_driver::book::BookItem;
use mdbook_driver::config::Config;
use tempfile::TempDir;

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
    fs::create_dir_all(out).map_err(at(out))?;
    // Beside its place, so that moving it there is a rename within one file system.
    let work = tempfile::Builder::new().prefix(".render-").tempdir_in(out).map_err(at(out))?;
    let (book, site) = (work.path().join("book"), work.path().join("site"));
    for (path, content) in source.files() {
        let path = book.join(path);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(at(folder))?;
        }
        fs::write(&path, content).map_err(at(&path))?;
    }
    build(source, &book, &site)?;

    let (book_place, site_place) = (out.join("book"), out.join("site"));
    swap(&work, &[(&book, &book_place), (&site, &site_place)])?;
    Ok(Rendered { source: book_place, index: site_place.join("index.html") })
}

/// Has mdBook build the site. Its `load` would let `MDBOOK_` variables of the environment in; this does not.
fn build(source: &Source, book: &Path, site: &Path) -> Result<(), BookError> {
    let message = |error| BookError::Build { message: format!("{error:#}") };
    let mut config = Config::from_str(source.config()).map_err(message)?;
    config.build.build_dir = site.to_owned();
    let mut book = MDBook::load_with_config(book, config).map_err(message)?;
    // An edit link leads to what a page is made of.
    book.book.for_each_mut(|item| {
        if let BookItem::Chapter(chapter) = item {
            let origin = chapter.path.as_ref().and_then(|path| source.origin(path));
            chapter.source_path = origin.or(chapter.source_path.take());
        }
    });
    book.build().map_err(message)
}

/// Moves each new folder to its place. What was there goes into `work`, and comes back if a later move fails.
fn swap(work: &TempDir, moves: &[(&Path, &Path)]) -> Result<(), BookError> {
    let mut done: Vec<(&Path, &Path, PathBuf)> = Vec::new();
    for (index, (new, place)) in moves.iter().copied().enumerate() {
        let old = work.path().join(format!("old-{index}"));
        let moved = rename_if_there(place, &old).and_then(|()| {
            fs::rename(new, place).inspect_err(|_| {
                // The first error is the one to report.
                let _ = rename_if_there(&old, place);
            })
        });
        if let Err(source) = moved {
            for (new, place, old) in done.iter().rev() {
                let _ = fs::rename(place, new);
                let _ = rename_if_there(old, place);
            }
            return Err(BookError::Io { path: place.to_owned(), source });
        }
        done.push((new, place, old));
    }
    Ok(())
}

fn rename_if_there(from: &Path, to: &Path) -> io::Result<()> {
    match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
