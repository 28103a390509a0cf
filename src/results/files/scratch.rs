//! A folder among temporary files, for what this process and another program tell each other, or beside the place that what is
//! made in it goes to.
//!
//! It goes with the process that made it. What one that was killed left goes when the next one is made: nobody holds its lock.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use super::lock::Lock;

const PREFIX: &str = "syncscope-";
const SUFFIX: &str = ".part";
const LOCK: &str = ".lock";

/// The folder, removed when it is dropped.
#[derive(Debug)]
pub struct Scratch {
    folder: tempfile::TempDir,
    /// Let go of after the folder.
    _lock: Lock,
}

impl Scratch {
    /// Makes one, and removes those that killed processes of this user left.
    pub fn new() -> io::Result<Self> {
        Self::within(&std::env::temp_dir())
    }

    /// The same in another folder.
    pub fn within(place: &Path) -> io::Result<Self> {
        clear(place);
        // Before its lock is held, another process may take a new folder for one that was left.
        const TRIES: usize = 5;
        let mut last = io::Error::other("no lock can be had");
        for _ in 0..TRIES {
            let folder = tempfile::Builder::new().prefix(PREFIX).suffix(SUFFIX).tempdir_in(place)?;
            match Lock::take(&folder.path().join(LOCK), Duration::ZERO) {
                Ok(Some(lock)) => return Ok(Self { folder, _lock: lock }),
                Ok(None) => {}
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Removes the folders of processes that were killed.
fn clear(place: &Path) {
    let user = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let is_named = name.starts_with(PREFIX) && name.ends_with(SUFFIX);
        let is_own = || entry.metadata().is_ok_and(|there| there.is_dir() && there.uid() == user);
        if is_named
            && is_own()
            && let Ok(Some(_lock)) = Lock::of_killed(&entry.path().join(LOCK))
        {
            // What cannot be removed is in nobody's way.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_of_a_killed_process_goes_with_the_next_one_and_that_of_a_living_one_stays() {
        let place = tempfile::tempdir().unwrap();
        let living = Scratch::within(place.path()).unwrap();
        let left = place.path().join("syncscope-dead42.part");
        let users = place.path().join("syncscope-mine");
        for folder in [&left, &users] {
            fs::create_dir(folder).unwrap();
            fs::write(folder.join("records"), "half").unwrap();
        }
        Lock::abandoned(&left.join(LOCK));
        // Called as one of ours, and somebody's own: without a lock, or with a file of that name of another kind.
        let [named, locked] = ["syncscope-thesis.part", "syncscope-locked.part"].map(|name| place.path().join(name));
        for folder in [&named, &locked] {
            fs::create_dir(folder).unwrap();
        }
        fs::write(locked.join(LOCK), "").unwrap();
        let next = Scratch::within(place.path()).unwrap();
        assert!(!left.exists() && users.join("records").exists() && living.path().exists());
        assert!(named.exists() && locked.join(LOCK).exists());
        drop((living, next));
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 3);
    }
}
