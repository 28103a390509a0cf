//! What can go wrong while a book is made.

use std::path::{Path, PathBuf};

pub use syncscope::error::DeviceError;
pub use syncscope_present::FileError;

/// What can go wrong while a book is made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BookError {
    /// There is nothing to publish.
    #[error("a book needs the results of at least one run")]
    NoRuns,
    /// A file of the book's project is wrong.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file of the course is missing or is not text.
    #[error("there is no text file `{name}`, which the book needs")]
    Missing {
        /// The file, of the program's own course by its name in the source tree.
        name: String,
    },
    /// Another process makes a book in the same place.
    #[error("{}: another report is writing there; wait for it to end", path.display())]
    Busy {
        /// The folder.
        path: PathBuf,
    },
    /// A file or folder of the book cannot be read or written.
    #[error("{}: {cause}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        cause: std::io::Error,
    },
    /// mdBook did not build the site.
    #[error("mdBook: {message}")]
    Build {
        /// Its message and the causes.
        message: String,
    },
}

impl BookError {
    /// Something is wrong with a file or folder as a whole, or with what stands in its place.
    pub fn of_path(path: &Path, reason: impl Into<String>) -> Self {
        FileError::whole(path.display().to_string(), reason).into()
    }

    /// Something is to be written where something is.
    pub fn not_empty(folder: &Path) -> Self {
        Self::of_path(folder, "the folder is not empty; name one that is, or one that is not there")
    }
}

/// An error with its causes, each said once: a message may hold its cause's already.
pub fn explained(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if !text.contains(&cause) {
            text = if text.is_empty() { cause } else { format!("{text}: {cause}") };
        }
    }
    text
}
