//! Writing many files into a folder of the user's.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::scratch::Scratch;
use super::target::folder_of;
use crate::error::{FileError, at};

/// Makes a folder with those above it.
pub fn make_folder(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            io::Error::new(io::ErrorKind::NotADirectory, "something stands there that is no folder")
        }
        _ => error,
    })
}

/// Writes files, by their path in a folder that is empty or not there. `false` where anything is there; nothing is written
/// then.
pub fn fill(folder: &Path, files: &BTreeMap<PathBuf, Vec<u8>>) -> Result<bool, FileError> {
    filled(folder, files).map_err(at(folder))
}

fn filled(folder: &Path, files: &BTreeMap<PathBuf, Vec<u8>>) -> io::Result<bool> {
    let is_there = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        entries => match entries?.next() {
            Some(_) => return Ok(false),
            None => true,
        },
    };
    let beside = if is_there { folder } else { folder_of(folder) };
    make_folder(beside)?;
    let scratch = Scratch::within(beside)?;
    let new = scratch.path().join("new");
    for (path, content) in files {
        let path = new.join(path);
        make_folder(folder_of(&path))?;
        fs::write(path, content)?;
    }
    match is_there {
        false => fs::rename(new, folder)?,
        // Somebody may be in it: it stays the folder that it is.
        true => fs::read_dir(new)?.try_for_each(|entry| {
            let entry = entry?;
            fs::rename(entry.path(), folder.join(entry.file_name()))
        })?,
    }
    super::made();
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_is_empty_or_not_there_is_filled_and_one_of_the_users_is_not() {
        let files: BTreeMap<PathBuf, Vec<u8>> =
            [("a", "one"), ("b/c", "two"), ("d", "")].map(|(path, text)| (path.into(), text.into())).into();
        let place = tempfile::tempdir().unwrap();
        let [new, empty] = ["above/new", "empty"].map(|name| place.path().join(name));
        fs::create_dir(&empty).unwrap();
        for folder in [&new, &empty] {
            assert!(fill(folder, &files).unwrap());
            assert_eq!(fs::read_to_string(folder.join("b/c")).unwrap(), "two");
            assert_eq!(fs::read_dir(folder).unwrap().count(), 3);
            fs::write(folder.join("a"), "own").unwrap();
            assert!(!fill(folder, &files).unwrap());
            assert_eq!(fs::read_to_string(folder.join("a")).unwrap(), "own");
        }
        assert_eq!(fs::read_dir(place.path().join("above")).unwrap().count(), 1);
    }
}
