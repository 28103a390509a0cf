//! What a reader of a rendered book relies on.
//!
//! `tests/fixtures/results-v1.json` is written by `fixture::run`: after a change of the schema, run the tests
//! once with `SYNCSCOPE_REGENERATE=1`.
#![cfg(feature = "report")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod courses;
mod figures;
#[path = "../fixtures/run.rs"]
mod fixture;
mod pages;
mod sentences;
mod values;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use syncscope::book::{BookProject, render};
use syncscope::document::Document;
use syncscope::experiment::{Derivation, Outcome};
use syncscope::run::Run;
use tempfile::TempDir;

/// All files below a folder, by their path within it.
fn tree(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
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

fn rendered(run: Run) -> BTreeMap<PathBuf, Vec<u8>> {
    rendered_as(&BookProject::embedded().unwrap(), &[run])
}

fn rendered_as(course: &BookProject, runs: &[Run]) -> BTreeMap<PathBuf, Vec<u8>> {
    let out = TempDir::new().unwrap();
    render(runs, course, out.path()).unwrap();
    tree(out.path())
}

/// The documents that have a chapter in the fixture's book: those beyond the texts only where it measured their rows.
fn documents() -> Vec<Document> {
    let (mut documents, run) = (Document::embedded().unwrap(), fixture::run());
    let measured =
        |document: &Document| run.experiments.iter().any(|left| document.experiments().contains(&left.name.as_str()));
    documents.retain(|document| document.source.is_some() || measured(document));
    documents
}

/// A results file that is kept with the program.
fn kept(name: &str) -> Run {
    Run::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("book/results").join(name)).unwrap()
}

/// The fixture's book, rendered once for all tests that only look at it.
fn fixture_book() -> &'static BTreeMap<PathBuf, Vec<u8>> {
    static FILES: LazyLock<BTreeMap<PathBuf, Vec<u8>>> = LazyLock::new(|| rendered(fixture::run()));
    &FILES
}

fn page<'a>(files: &'a BTreeMap<PathBuf, Vec<u8>>, name: &str) -> &'a str {
    std::str::from_utf8(&files[Path::new(name)]).unwrap()
}

fn pages(files: &BTreeMap<PathBuf, Vec<u8>>) -> impl Iterator<Item = (&PathBuf, &str)> {
    let html = files.iter().filter(|(path, _)| path.extension().is_some_and(|e| e == "html"));
    html.map(|(path, bytes)| (path, std::str::from_utf8(bytes).unwrap()))
}

#[test]
fn the_results_fixture_is_the_run_that_the_tests_build() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/results-v1.json");
    let text = serde_json::to_string_pretty(&fixture::run()).unwrap() + "\n";
    if std::env::var_os("SYNCSCOPE_REGENERATE").is_some() {
        fs::write(&path, &text).unwrap();
    }
    let run: Run = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    assert!(run == fixture::run(), "run once with SYNCSCOPE_REGENERATE=1");
}

#[test]
fn the_fixture_has_every_outcome() {
    let run = fixture::run();
    let names = run.rows().map(|row| match row.outcome {
        Outcome::Measured { .. } => "measured",
        Outcome::Derived { derivation: Derivation::Difference, .. } => "difference",
        Outcome::Derived { .. } => "derived",
        Outcome::NotApplicable { .. } => "not applicable",
        Outcome::Interrupted => "interrupted",
        Outcome::Skipped { .. } => "skipped",
        Outcome::Failed { .. } => "failed",
    });
    assert_eq!(names.collect::<std::collections::BTreeSet<_>>().len(), 7);
}
