//! The languages of listings.

use std::path::Path;

/// The language of a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    PyTorch,
    CudaCpp,
    Rust,
}

impl Language {
    const ALL: [Self; 3] = [Self::PyTorch, Self::CudaCpp, Self::Rust];

    /// The language of a file by the ending of its name.
    pub(crate) fn of(file: &str) -> Option<Self> {
        let ending = Path::new(file).extension()?;
        Self::ALL.into_iter().find(|language| language.ending() == ending)
    }

    /// What a file may end with, in words.
    pub(super) fn endings() -> String {
        let each = Self::ALL.map(|language| format!(".{} ({})", language.ending(), language.name()));
        format!("ending of a language: {}", each.join(", "))
    }

    fn ending(self) -> &'static str {
        match self {
            Self::PyTorch => "py",
            Self::CudaCpp => "cu",
            Self::Rust => "rs",
        }
    }

    /// What a reader calls it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::PyTorch => "PyTorch",
            Self::CudaCpp => "CUDA C++",
            Self::Rust => "Rust",
        }
    }

    /// What stands behind the fence of its code in Markdown.
    pub(crate) fn fence(self) -> &'static str {
        match self {
            Self::PyTorch => "python",
            Self::CudaCpp => "cpp",
            Self::Rust => "rust,noplayground",
        }
    }
}
