//! A store of results files, which is a folder of files and nothing else.
//!
//! ```text
//! results/node7-gpu3/20261120T093000Z-0a1b2c3d4e5f-5f6e7d8c.json
//!         machine    time            commit       samples
//! ```
//!
//! One folder a machine, as `asv` and MLPerf have it. A file is called by when its first run began, by the commit that
//! measured it, and by the first digits of the digest of its samples: so two stores merge by copying one into the other, and
//! nothing that was measured is written over. What else is found in a store ([`Index`]) is derived from the files and can be
//! thrown away. A file of a store may be packed by gzip; its name then ends in `.json.gz`.
//!
//! | file | what |
//! |---|---|
//! | `reading` | reads many files by several threads, in their order |
//! | `place` | which machine a file is of, and where it lies |
//! | `collect` | puts files into a store; what does not belong there is refused with the reason |
//! | `index` | all files of a store, one after the other: a list of them, and what does not belong there |
//! | `medians` | all rows as CSV |
//!
//! A few files are read at a time: the memory that a store takes does not grow with it.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod collect;
mod index;
mod medians;
mod place;
mod reading;

use collect::without_name;
pub use collect::{Added, Collected, Duplicate, Refused, collect};
pub use index::{Index, Listed, files};
pub use medians::Medians;
pub use place::{described, machine_of, place_of};

use std::path::Path;
use std::time::Duration;

use crate::Results;
use crate::error::{FileError, at};
use crate::files::Lock;

/// The lock of those that put files into a store. The suite of the first of them is that of all others.
const LOCK: &str = ".collect.lock";

/// Holds a store, which is made where it is not there, while files are put into it and listed; `None` where another process holds
/// it for longer than `wait`.
///
/// # Errors
/// The folder cannot be written.
pub fn held(store: &Path, wait: Duration) -> Result<Option<Lock>, FileError> {
    Lock::of_folder(store, LOCK, wait).map_err(at(store))
}

/// Reads a results file, in several threads at a time.
pub type Reader<'a> = &'a (dyn Fn(&Path) -> Result<Results, FileError> + Sync);

/// Reads a file that was found in a folder. One that is not plain is refused: a pipe that nobody writes into would be waited
/// for.
fn plain(path: &Path, read: Reader<'_>) -> Result<Results, FileError> {
    ask_plain(path).map_err(at(path))?;
    read(path)
}

fn ask_plain(path: &Path) -> std::io::Result<()> {
    match std::fs::metadata(path)?.is_file() {
        true => Ok(()),
        false => Err(std::io::Error::other("it is no plain file")),
    }
}

/// What all files of a store share: the suite as it was read, and which of its rows were measured.
fn suite_of(results: &Results) -> String {
    serde_json::json!([results.suite, results.selection]).to_string()
}

/// Why a file cannot stand beside those of the suite `title`.
fn other_suite(title: &str) -> String {
    format!("it measured another suite than the store's `{title}`, or other rows of it, or with other parameters")
}
