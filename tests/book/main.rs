//! What a reader of a rendered book relies on.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod audits;
mod documents;
mod figures;
#[path = "../fixtures/run.rs"]
mod fixture;
mod foreign;
mod intervals;
mod pages;
mod probe;
mod projects;
mod prose;
mod readability;
mod runs;
mod sentences;
mod unknown;
mod values;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use syncscope_book::document::Document;
use syncscope_book::{BookProject, Source, render};
use syncscope_report::carried_book;
use syncscope_results::{Catalog, Results};
use syncscope_suite::experiment::Registry;
use tempfile::TempDir;

/// Files by their path.
type Files = BTreeMap<PathBuf, Vec<u8>>;

/// All files below a folder, by their path within it.
fn tree(root: &Path) -> Files {
    let mut files = Files::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.insert(path.strip_prefix(root).unwrap().to_owned(), fs::read(&path).unwrap());
            }
        }
    }
    files
}

/// The rows that the built-in experiments and the tests' own declare.
fn catalog() -> Catalog {
    Registry::builtin().with::<probe::Probe>().catalog("cuda")
}

/// The book of the program's own project, with its site.
fn rendered(results: &Results) -> Files {
    rendered_as(&carried_book(), std::slice::from_ref(results))
}

fn rendered_as(project: &BookProject, results: &[Results]) -> Files {
    let out = TempDir::new().unwrap();
    render(results, project, &catalog(), out.path()).unwrap();
    tree(out.path())
}

/// The pages of the program's own book as Markdown: without the site, which takes the longest.
fn source(results: &Results) -> Files {
    source_as(&carried_book(), std::slice::from_ref(results))
}

fn source_as(project: &BookProject, results: &[Results]) -> Files {
    let source = Source::of(results, project, &catalog()).unwrap();
    source.files().map(|(path, content)| (Path::new("book").join(path), content.to_vec())).collect()
}

/// The pages of a book whose rows were all measured, made once for all tests that only look at them.
fn whole_source() -> &'static Files {
    static FILES: LazyLock<Files> = LazyLock::new(|| source(&fixture::run()));
    &FILES
}

/// The documents of the program's own project.
fn documents() -> Vec<Document> {
    carried_book().documents(&catalog()).unwrap()
}

/// The fixture's book, rendered once for all tests that only look at it.
fn fixture_book() -> &'static Files {
    static FILES: LazyLock<Files> = LazyLock::new(|| rendered(&fixture::run_with_every_outcome()));
    &FILES
}

fn page<'a>(files: &'a Files, name: &str) -> &'a str {
    let content = files.get(Path::new(name)).unwrap_or_else(|| panic!("there is no {name}"));
    std::str::from_utf8(content).unwrap()
}

/// A page of the book's source as it is read: with characters in the place of entities.
fn read(files: &Files, name: &str) -> String {
    let mut parts = page(files, &format!("book/src/{name}.md")).split('&');
    let mut text = parts.next().unwrap().to_owned();
    for part in parts {
        let decoded = part.split_once(';').and_then(|(entity, rest)| Some((character(entity)?, rest)));
        let (character, rest) = decoded.unwrap_or(('&', part));
        text.push(character);
        text.push_str(rest);
    }
    text
}

fn character(entity: &str) -> Option<char> {
    match entity {
        "lt" => Some('<'),
        "gt" => Some('>'),
        "amp" => Some('&'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        number => char::from_u32(number.strip_prefix('#')?.parse().ok()?),
    }
}

fn pages(files: &Files) -> impl Iterator<Item = (&PathBuf, &str)> {
    let html = files.iter().filter(|(path, _)| path.extension().is_some_and(|e| e == "html"));
    html.map(|(path, bytes)| (path, std::str::from_utf8(bytes).unwrap()))
}
