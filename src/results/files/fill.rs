//! Writing many files into a folder of the user's.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::made::made;
use crate::error::FileError;

/// Makes a folder with those above it.
pub fn make_folder(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            io::Error::new(io::ErrorKind::NotADirectory, "something stands there that is no folder")
        }
        _ => error,
    })
}

/// Writes files, by their path in a folder that is empty, that is not there, or that a process was killed in as it wrote the
/// same files. `false` where anything else is there; nothing is written then.
pub fn fill(folder: &Path, files: &BTreeMap<PathBuf, Vec<u8>>) -> Result<bool, FileError> {
    let at = |path: &Path| {
        let path = path.to_owned();
        move |cause| FileError::Io { path, cause }
    };
    make_folder(folder).map_err(at(folder))?;
    if !is_begun(folder, Path::new(""), files).map_err(at(folder))? {
        return Ok(false);
    }
    for (path, content) in files {
        let path = folder.join(path);
        let parent = path.parent().unwrap_or(folder);
        let written = make_folder(parent).and_then(|()| fs::write(&path, content));
        written.map_err(at(&path))?;
        made();
    }
    Ok(true)
}

/// Whether the folder `below` holds nothing but what one that is killed leaves: a part of the files, each as far as it came.
fn is_begun(folder: &Path, below: &Path, files: &BTreeMap<PathBuf, Vec<u8>>) -> io::Result<bool> {
    // All of them are there when the last one is.
    let is_whole = |(path, content): (&PathBuf, &Vec<u8>)| {
        fs::metadata(folder.join(path)).is_ok_and(|there| there.len() == content.len() as u64)
    };
    if below.as_os_str().is_empty() && files.iter().next_back().is_some_and(is_whole) {
        return Ok(false);
    }
    for entry in fs::read_dir(folder.join(below))? {
        let entry = entry?;
        let (path, kind) = (below.join(entry.file_name()), entry.file_type()?);
        let is_ours = match files.get(&path) {
            Some(content) => {
                let is_short = kind.is_file() && entry.metadata()?.len() <= content.len() as u64;
                is_short && content.starts_with(&fs::read(entry.path())?)
            }
            None => {
                kind.is_dir() && files.keys().any(|file| file.starts_with(&path)) && is_begun(folder, &path, files)?
            }
        };
        if !is_ours {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_a_killed_process_began_is_filled_and_one_of_the_users_is_not() {
        let files: BTreeMap<PathBuf, Vec<u8>> =
            [("a", "one"), ("b/c", "two"), ("d", "")].map(|(path, text)| (path.into(), text.into())).into();
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("new");
        fs::create_dir_all(folder.join("b")).unwrap();
        fs::write(folder.join("a"), "o").unwrap();
        assert!(fill(&folder, &files).unwrap());
        assert_eq!(fs::read_to_string(folder.join("b/c")).unwrap(), "two");
        // It is whole, and the user's.
        assert!(!fill(&folder, &files).unwrap());
        fs::remove_file(folder.join("d")).unwrap();
        for (path, text) in [("a", "own"), ("b/own", ""), ("own", "")] {
            let was = fs::read(folder.join(path)).ok();
            fs::write(folder.join(path), text).unwrap();
            assert!(!fill(&folder, &files).unwrap(), "{path}");
            assert_eq!(fs::read_to_string(folder.join(path)).unwrap(), text);
            match was {
                Some(was) => fs::write(folder.join(path), was).unwrap(),
                None => fs::remove_file(folder.join(path)).unwrap(),
            }
        }
    }
}
