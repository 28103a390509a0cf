//! The files of the mdBook: prose by hand, chapters and pages from templates, the configuration with the title.

use std::collections::BTreeMap;
use std::path::PathBuf;

use include_dir::{Dir, include_dir};

use super::templates::{TEMPLATES, Templates};
use super::{chapter, claims, machine, notebooks, recorded};
use crate::document::Document;
use crate::error::BookError;
use crate::present::escape;
use crate::run::Run;

static BOOK: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/book/src");
const BOOK_TOML: &str = include_str!("../../book/book.toml");
/// The style sheet: its name among the templates, and where `book.toml` looks for it.
const STYLE: (&str, &str) = ("syncscope.css", "theme/syncscope.css");

/// The files of an mdBook, by their path within it.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    files: BTreeMap<PathBuf, Vec<u8>>,
    config: String,
}

impl Source {
    /// The book of `runs` and `documents`. Its title is that of the first run's suite.
    ///
    /// # Errors
    /// [`BookError::NoRuns`] without runs; otherwise what a template, a plot or an embedded file reports.
    pub fn of(runs: &[Run], documents: &[Document]) -> Result<Self, BookError> {
        let first = runs.first().ok_or(BookError::NoRuns)?;
        let templates = Templates::embedded()?;
        let mut files: BTreeMap<PathBuf, Vec<u8>> = BTreeMap::new();
        collect(&BOOK, &mut files);
        for document in documents {
            let listing = document.listing.as_deref().map(listing).transpose()?;
            let shown = holding(runs, document);
            let text = chapter::render(&templates, document, listing, &shown)?;
            for (path, trace) in recorded::traces(document, &shown) {
                files.insert(PathBuf::from("src").join(path), trace);
            }
            files.insert(format!("src/{}.md", document.id).into(), text.into_bytes());
        }
        files.insert("src/claims.md".into(), claims::render(&templates, documents, runs)?.into_bytes());
        files.insert("src/machine.md".into(), machine::render(&templates, runs)?.into_bytes());
        files.insert("src/SUMMARY.md".into(), (summary(documents) + &notebooks::summary()?).into_bytes());
        files.extend(notebooks::files()?.into_iter().map(|(path, content)| (format!("src/{path}").into(), content)));

        let style = TEMPLATES.get_file(STYLE.0).ok_or_else(|| BookError::Embedded { name: STYLE.0.to_owned() })?;
        files.insert(STYLE.1.into(), style.contents().to_vec());
        let config = config(&first.suite.title);
        files.insert("book.toml".into(), config.clone().into_bytes());
        Ok(Self { files, config })
    }

    /// The files, in the order of their paths.
    pub fn files(&self) -> impl Iterator<Item = (&PathBuf, &[u8])> {
        self.files.iter().map(|(path, content)| (path, content.as_slice()))
    }

    /// The text of `book.toml`.
    pub fn config(&self) -> &str {
        &self.config
    }
}

/// The runs that ran the document's experiment; all where none did, so that the chapter says so.
fn holding(runs: &[Run], document: &Document) -> Vec<Run> {
    let ran = |run: &&Run| run.experiments.iter().any(|experiment| experiment.name == document.id);
    let holding: Vec<Run> = runs.iter().filter(ran).cloned().collect();
    if holding.is_empty() { runs.to_vec() } else { holding }
}

/// All files below an embedded folder, as files of the book's `src`.
fn collect(folder: &Dir<'_>, files: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for file in folder.files() {
        files.insert(PathBuf::from("src").join(file.path()), file.contents().to_vec());
    }
    for folder in folder.dirs() {
        collect(folder, files);
    }
}

fn listing(name: &str) -> Result<&'static str, BookError> {
    let text = BOOK.get_file(name).and_then(include_dir::File::contents_utf8);
    text.ok_or_else(|| BookError::Embedded { name: format!("book/src/{name}") })
}

fn summary(documents: &[Document]) -> String {
    let mut out = "# Summary\n\n[How to read this book](README.md)\n\n".to_owned();
    for document in documents {
        out.push_str(&format!("- [{}]({}.md)\n", escape(&document.title), document.id));
    }
    out.push_str("- [Claims and verdicts](claims.md)\n");
    out.push_str("- [The machine and the method](machine.md)\n");
    out
}

/// `book.toml` with the title in its first table.
fn config(title: &str) -> String {
    let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
    let title: String = title.chars().filter(|c| !c.is_control()).collect();
    // A JSON string without control characters is a basic string of TOML.
    let title = serde_json::Value::String(title);
    BOOK_TOML.replacen("[book]\n", &format!("[book]\ntitle = {title}\n"), 1)
}
