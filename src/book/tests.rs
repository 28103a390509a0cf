//! The results in the repository, for tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use super::folder::Folder;
use super::project::{BookProject, KeptResults};
use crate::results::{Catalog, Results};

/// The program's own project as it lies in the source tree.
pub(crate) fn project() -> BookProject {
    static KEPT: [KeptResults; 2] = [
        LazyLock::new(|| Results::read(&in_tree("book/results/one-gpu.json.gz"))),
        LazyLock::new(|| Results::read(&in_tree("book/results/calls.json.gz"))),
    ];
    let (tree, book) = (in_tree(""), in_tree("book"));
    let (mut tree, mut book) = (Folder::open(&tree).unwrap(), Folder::open(&book).unwrap());
    for name in ["book.toml", "hardware.yaml", "texts.yaml", "lessons.yaml"] {
        book.file(Path::new(name)).unwrap();
    }
    ["src", "documents", "suites"].iter().for_each(|name| book.all_below(Path::new(name)).unwrap());
    ["report-templates", "notebooks"].iter().for_each(|name| tree.all_below(Path::new(name)).unwrap());
    let place = |(path, content): (PathBuf, Vec<u8>)| match path.strip_prefix("report-templates") {
        Ok(rest) => (Path::new("templates").join(rest), content),
        Err(_) => (path, content),
    };
    BookProject::of_program(book.into_files().into_iter().chain(tree.into_files().into_iter().map(place)), &KEPT)
}

/// A file or folder of the source tree.
fn in_tree(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

/// The results of the course.
pub(crate) fn results() -> &'static Results {
    project().kept().next().unwrap().unwrap()
}

/// The rows of all results in the repository, which documents may name. The rows of one run stand together.
pub(super) fn catalog() -> Catalog {
    let files = fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../book/results")).unwrap();
    let kept = files.map(|entry| Results::read(&entry.unwrap().path()).unwrap()).collect::<Vec<_>>();
    let systems = kept.iter().flat_map(|results| results.systems().into_iter().map(move |own| (results, own)));
    systems.fold(Catalog::default(), |catalog, (results, system)| {
        catalog.with_together(results.lookup_of(system).specs().cloned())
    })
}

#[test]
fn the_kept_results_are_of_a_gpu_in_several_runs_with_pytorch_beside_it() {
    let results = results();
    assert!(!super::emulation::is_emulated(results) && results.systems().contains(&"PyTorch"));
    assert!(results.runs_of(&results.run().system).count() > 2);
}
