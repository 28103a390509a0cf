//! The languages of listings.

use std::path::Path;

/// The language of a listing.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Language {
    /// What its files end with.
    ending: &'static str,
    /// What a reader calls it.
    pub(crate) name: &'static str,
    /// What stands behind the fence of its code in Markdown.
    pub(crate) fence: &'static str,
}

const ALL: [Language; 3] = [
    Language { ending: "py", name: "PyTorch", fence: "python" },
    Language { ending: "cu", name: "CUDA C++", fence: "cpp" },
    Language { ending: "rs", name: "Rust", fence: "rust,noplayground" },
];

impl Language {
    /// The language of a file by the ending of its name.
    pub(crate) fn of(file: &str) -> Option<&'static Self> {
        let ending = Path::new(file).extension()?;
        ALL.iter().find(|language| language.ending == ending)
    }

    /// What a file may end with, in words.
    pub(super) fn endings() -> String {
        let each = ALL.each_ref().map(|Self { ending, name, .. }| format!(".{ending} ({name})"));
        format!("ending of a language: {}", each.join(", "))
    }
}
