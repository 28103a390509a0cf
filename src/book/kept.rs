//! The results of a real GPU that come with the program, for a reader who has none: measured by this program and by PyTorch on
//! another machine, and shown as that machine's.

use std::path::Path;
use std::sync::LazyLock;

use crate::error::{BookError, FileError};
use crate::results::Results;

/// Where the file lies in the repository, and what is in it.
const PLACE: &str = "book/results/nvidia-h200.json";
const TEXT: &str = include_str!("../../book/results/nvidia-h200.json");

/// The results, which are read once.
///
/// # Errors
/// The file is none that this program can read.
pub(crate) fn results() -> Result<&'static Results, BookError> {
    static READ: LazyLock<Result<Results, FileError>> = LazyLock::new(|| Results::parse(TEXT, Path::new(PLACE)));
    READ.as_ref().map_err(|error| BookError::Build { message: error.to_string() })
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
