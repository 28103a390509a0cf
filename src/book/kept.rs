//! The results of a real GPU that come with the program, for a reader who has none: measured by this program and by PyTorch on
//! another machine, and shown as that machine's. One file is of the suite of the course, the other of the reference suite.

use std::path::Path;
use std::sync::LazyLock;

use crate::error::{BookError, FileError};
use crate::results::Results;

/// Where the files lie in the repository, and what is in them.
const COURSE: (&str, &[u8]) = ("book/results/one-gpu.json.gz", include_bytes!("../../book/results/one-gpu.json.gz"));
const REFERENCE: (&str, &[u8]) = ("book/results/calls.json.gz", include_bytes!("../../book/results/calls.json.gz"));

fn read((place, content): (&str, &[u8])) -> Result<Results, FileError> {
    Results::of_content(content, Path::new(place))
}

fn unreadable(error: impl ToString) -> BookError {
    BookError::Build { message: error.to_string() }
}

/// The results of the course, which are read once.
///
/// # Errors
/// The file is none that this program can read.
pub(crate) fn results() -> Result<&'static Results, BookError> {
    static READ: LazyLock<Result<Results, FileError>> = LazyLock::new(|| read(COURSE));
    READ.as_ref().map_err(unreadable)
}

/// The results of both suites, those of the course first.
///
/// # Errors
/// A file is none that this program can read.
pub(super) fn of_all_suites() -> Result<Vec<Results>, BookError> {
    Ok(vec![results()?.clone(), read(REFERENCE).map_err(unreadable)?])
}

/// The rows of all results in the repository, which documents may name. The rows of one run stand together.
#[cfg(test)]
pub(super) fn catalog() -> crate::results::Catalog {
    let files = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../book/results")).unwrap();
    let kept = files.map(|entry| Results::read(&entry.unwrap().path()).unwrap()).collect::<Vec<_>>();
    let systems = kept.iter().flat_map(|results| results.systems().into_iter().map(move |own| (results, own)));
    systems.fold(crate::results::Catalog::default(), |catalog, (results, system)| {
        catalog.with_together(results.lookup_of(system).specs().cloned())
    })
}

#[cfg(test)]
mod tests {
    use super::super::emulation::is_emulated;
    use super::*;

    #[test]
    fn what_a_reader_without_a_gpu_is_shown_is_of_a_gpu_in_several_runs_with_pytorch_beside_it() {
        let results = results().unwrap();
        assert!(!is_emulated(results) && results.systems().contains(&"PyTorch"));
        assert!(results.runs_of(&results.run().system).count() > 2);
    }
}
