//! Reads the folder of a project that may be somebody else's: plain files in it, and nothing that lies outside of it.
//!
//! A link that leads out of the folder, a pipe or a device is refused, as is more than a book is made of.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::error::BookError;
use crate::files::open_inside;

/// The most bytes that all files of a project may hold, and the most files and folders in it, each counted as often as a
/// link leads to it.
const MAX_BYTES: u64 = 256 << 20;
const MAX_ENTRIES: usize = 20_000;
/// How deep folders may lie in each other: each is looked for from the root.
const MAX_DEEP: usize = 40;

/// A project's folder, read file by file.
pub(super) struct Folder<'a> {
    /// As the user named it.
    named: &'a Path,
    /// Where it is.
    root: PathBuf,
    left: u64,
    entries: usize,
    /// The folders that are being read, each in the one before.
    above: Vec<PathBuf>,
    files: BTreeMap<PathBuf, Vec<u8>>,
}

impl<'a> Folder<'a> {
    pub(super) fn open(named: &'a Path) -> Result<Self, BookError> {
        let root = fs::canonicalize(named).map_err(at(named))?;
        Ok(Self { named, root, left: MAX_BYTES, entries: 0, above: Vec::new(), files: BTreeMap::new() })
    }

    /// What was read, by the path within the folder.
    pub(super) fn into_files(self) -> BTreeMap<PathBuf, Vec<u8>> {
        self.files
    }

    /// Reads one file.
    pub(super) fn file(&mut self, name: &Path) -> Result<(), BookError> {
        let path = self.inside(name)?;
        let full = self.named.join(name);
        let file = open_inside(&self.root, &path).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidInput | io::ErrorKind::PermissionDenied if error.raw_os_error().is_none() => {
                BookError::of_path(&full, error.to_string())
            }
            _ => at(&full)(error),
        })?;
        let mut content = Vec::new();
        let read = file.take(self.left + 1).read_to_end(&mut content).map_err(at(&full))? as u64;
        let most = MAX_BYTES >> 20;
        let reason = format!("the files of a book hold {most} MB at most, and with this one they hold more");
        self.left = self.left.checked_sub(read).ok_or_else(|| BookError::of_path(&full, reason))?;
        self.files.insert(name.to_owned(), content);
        Ok(())
    }

    /// Reads all files below a folder but for hidden ones.
    pub(super) fn all_below(&mut self, name: &Path) -> Result<(), BookError> {
        let place = self.inside(name)?;
        let full = self.named.join(name);
        if self.above.contains(&place) {
            return Err(BookError::of_path(&full, "the link leads to a folder that it is in"));
        }
        if self.above.len() == MAX_DEEP {
            let reason = format!("the folders of a book lie {MAX_DEEP} deep in each other at most");
            return Err(BookError::of_path(&full, reason));
        }
        self.above.push(place.clone());
        for entry in fs::read_dir(&place).map_err(at(&full))? {
            let entry = entry.map_err(at(&full))?;
            if entry.file_name().to_string_lossy().starts_with('.') {
                continue;
            }
            self.entries += 1;
            if self.entries > MAX_ENTRIES {
                let reason = format!("a book has {MAX_ENTRIES} files and folders at most");
                return Err(BookError::of_path(self.named, reason));
            }
            let name = name.join(entry.file_name());
            if self.inside(&name)?.is_dir() {
                self.all_below(&name)?;
            } else {
                self.file(&name)?;
            }
        }
        self.above.pop();
        Ok(())
    }

    /// Where a file of the folder is, links followed; refuses one that is elsewhere.
    fn inside(&self, name: &Path) -> Result<PathBuf, BookError> {
        let full = self.named.join(name);
        let place = fs::canonicalize(&full).map_err(at(&full))?;
        if place.starts_with(&self.root) {
            return Ok(place);
        }
        let reason = format!("the link leads out of the folder, to {}; put a copy in its place", place.display());
        Err(BookError::of_path(&full, reason))
    }
}

/// Whether a file has this ending.
pub(super) fn has_ending(path: &Path, ending: &str) -> bool {
    path.extension().is_some_and(|own| own == ending)
}

/// An error of reading or writing a file, with its path.
pub(super) fn at(path: &Path) -> impl Fn(io::Error) -> BookError + '_ {
    move |cause| BookError::Io { path: path.to_owned(), cause }
}
