//! The book that the program carries: its pages, documents, templates, suites and notebooks, and the results of a real GPU for a
//! reader who has none. An edit of one of these files compiles this crate alone.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use include_dir::{Dir, include_dir};

use crate::book::{BookProject, KeptResults};
use crate::results::Results;

static FOLDERS: [(&str, Dir<'_>); 5] = [
    ("src", include_dir!("$CARGO_MANIFEST_DIR/../../book/src")),
    ("documents", include_dir!("$CARGO_MANIFEST_DIR/../../book/documents")),
    ("templates", include_dir!("$CARGO_MANIFEST_DIR/../../report-templates")),
    ("suites", include_dir!("$CARGO_MANIFEST_DIR/../../book/suites")),
    ("notebooks", include_dir!("$CARGO_MANIFEST_DIR/../../notebooks")),
];

const FILES: [(&str, &str); 4] = [
    ("book.toml", include_str!("../../book/book.toml")),
    ("hardware.yaml", include_str!("../../book/hardware.yaml")),
    ("texts.yaml", include_str!("../../book/texts.yaml")),
    ("lessons.yaml", include_str!("../../book/lessons.yaml")),
];

/// The style of the book's pages, and of the pages of audits.
pub(super) const STYLE: &str = include_str!("../../report-templates/syncscope.css");

/// Measured by this program and by PyTorch on another machine: the suite of the course, and the reference suite.
static KEPT: [KeptResults; 2] = [
    LazyLock::new(|| kept("book/results/one-gpu.json.gz", include_bytes!("../../book/results/one-gpu.json.gz"))),
    LazyLock::new(|| kept("book/results/calls.json.gz", include_bytes!("../../book/results/calls.json.gz"))),
];

/// The book's project.
pub fn book() -> BookProject {
    let mut files: Vec<_> = FILES.map(|(name, text)| (PathBuf::from(name), text.as_bytes().to_vec())).into();
    FOLDERS.iter().for_each(|(name, folder)| collect(Path::new(name), folder, &mut files));
    BookProject::of_program(files, &KEPT)
}

fn kept(place: &str, content: &[u8]) -> Result<Results, crate::error::FileError> {
    Results::of_content(content, Path::new(place))
}

/// All files below an embedded folder.
fn collect(name: &Path, folder: &Dir<'_>, files: &mut Vec<(PathBuf, Vec<u8>)>) {
    files.extend(folder.files().map(|file| (name.join(file.path()), file.contents().to_vec())));
    folder.dirs().for_each(|folder| collect(name, folder, files));
}
