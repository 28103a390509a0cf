//! The results in the repository, for tests.

use std::fs;

use super::project::BookProject;
use crate::results::{Catalog, Results};

pub(crate) fn project() -> BookProject {
    BookProject::of_source_tree().unwrap()
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
