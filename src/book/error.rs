//! What can go wrong while a book is made.

use std::path::PathBuf;

pub use syncscope::error::DeviceError;
pub use syncscope_present::{FileError, PlotError};

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
    /// A file of a course's folder is none that a book is made of: a link that leads out of it, a device.
    #[error("{}: {reason}", path.display())]
    Outside {
        /// The file or folder.
        path: PathBuf,
        /// Why it is refused.
        reason: String,
    },
    /// What stands in the place of the book was not made by this program.
    #[error("{}: this was not made by report, so it is not replaced; move it away or give another folder by --out", path.display())]
    NotOurs {
        /// The folder or file.
        path: PathBuf,
    },
    /// Another process makes a book in the same place.
    #[error("{}: another report is writing there; wait for it to end", path.display())]
    Busy {
        /// The folder.
        path: PathBuf,
    },
    /// A course is to be written where something is.
    #[error("{}: the folder is not empty; name one that is, or one that is not there", path.display())]
    NotEmpty {
        /// The folder.
        path: PathBuf,
    },
    /// What is to be a notebook is none.
    #[error("{name}: {message}")]
    Notebook {
        /// The notebook's file.
        name: String,
        /// What is wrong with it.
        message: String,
    },
    /// A template failed.
    #[error("{name}: {message}")]
    Template {
        /// The template.
        name: String,
        /// The template engine's message, with an excerpt of the template.
        message: String,
    },
    /// A page is larger than one may be.
    #[error(
        "the page that {template} makes would be longer than 32 MB, which none may be; its longest text has {longest}: shorten it in the results, the audit or the course"
    )]
    TooLarge {
        /// The template.
        template: String,
        /// How long the longest text of the page is, and how it begins.
        longest: String,
    },
    /// A plot could not be drawn.
    #[error("plot `{id}`: {cause}")]
    Plot {
        /// The plot's identifier.
        id: String,
        /// Why.
        cause: PlotError,
    },
    /// The data of a plot could not be written.
    #[error("the data of a plot: {message}")]
    Data {
        /// What went wrong.
        message: String,
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
