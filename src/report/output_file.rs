//! A file that a command writes when its work is done.

use std::io;
use std::path::{Path, PathBuf};

use super::{failed, output};
use crate::error::{FileError, at};
use crate::files::Target;

/// The file, claimed before the work: a place where nothing can be put is known then, and costs none.
pub(super) struct OutputFile {
    path: PathBuf,
    target: Target,
}

impl OutputFile {
    /// Claims the file at `path`, in place of one of its kind alone, which `is_own` knows.
    pub(super) fn claim(path: &Path, is_own: impl FnOnce(&Path) -> io::Result<bool>) -> Result<Self, FileError> {
        let target = Target::claim(path, is_own).map_err(at(path))?;
        output::give_way(path);
        Ok(Self { path: path.to_owned(), target })
    }

    /// The same for a file that may not be asked for.
    pub(super) fn asked(
        path: Option<&PathBuf>,
        is_own: impl FnOnce(&Path) -> io::Result<bool>,
    ) -> Result<Option<Self>, FileError> {
        path.map(|path| Self::claim(path, is_own)).transpose()
    }

    pub(super) fn write(&self, content: &[u8]) -> Result<(), FileError> {
        self.target.write(content).map_err(FileError::unwritten(&self.path))
    }
}

/// What came of writing several files, each whatever came of the others: the first error, and the others said.
pub(super) fn each<const N: usize>(written: [anyhow::Result<()>; N]) -> anyhow::Result<()> {
    let mut errors = written.into_iter().filter_map(Result::err);
    let Some(first) = errors.next() else { return Ok(()) };
    errors.for_each(|error| _ = failed(&error));
    Err(first)
}
