//! A folder among temporary files, for what this process and another program tell each other, or beside the place that what is
//! made in it goes to.
//!
//! It goes with the process that made it, which holds a lock on it, as others may. What one that was killed left goes when the
//! next one is made and nobody holds it. Where a file system keeps no locks, it stays.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

const PREFIX: &str = ".syncscope-";
const SUFFIX: &str = ".part";
/// How many letters stand between them.
const RANDOM: usize = 6;

/// The folder, removed when it is dropped.
#[derive(Debug)]
pub struct Scratch {
    folder: tempfile::TempDir,
    /// The folder, opened: let go of after it is removed.
    _lock: Option<File>,
}

impl Scratch {
    /// Makes one, and removes those that killed processes of this user left.
    pub fn new() -> io::Result<Self> {
        // Another program may be told the path, and be elsewhere.
        Self::within(&std::path::absolute(std::env::temp_dir())?)
    }

    /// The same in another folder.
    pub fn within(place: &Path) -> io::Result<Self> {
        clear(place);
        loop {
            let folder = tempfile::Builder::new().prefix(PREFIX).suffix(SUFFIX).rand_bytes(RANDOM).tempdir_in(place)?;
            let lock = File::open(folder.path()).and_then(|lock| lock.lock_shared().map(|()| lock)).ok();
            // Before its lock was held, another process may have taken it for one that was left.
            if folder.path().exists() {
                return Ok(Self { folder, _lock: lock });
            }
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Removes the folders of processes that were killed.
fn clear(place: &Path) {
    let user = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let random = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX));
        let is_named = random.is_some_and(|random| random.len() == RANDOM);
        if is_named && entry.metadata().is_ok_and(|there| there.is_dir() && there.uid() == user) {
            let is_left = |folder: File| folder.try_lock().is_ok().then_some(folder);
            if let Some(_lock) = File::open(entry.path()).ok().and_then(is_left) {
                // What cannot be removed is in nobody's way.
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_killed_processs_folder_goes_with_the_next_and_a_living_ones_stays() {
        let place = tempfile::tempdir().unwrap();
        let living = Scratch::within(place.path()).unwrap();
        let [left, mine] = [".syncscope-dead42.part", ".syncscope-mine"].map(|name| place.path().join(name));
        for folder in [&left, &mine] {
            fs::create_dir(folder).unwrap();
            fs::write(folder.join("records"), "half").unwrap();
        }
        let next = Scratch::within(place.path()).unwrap();
        assert!(!left.exists() && mine.join("records").exists() && living.path().exists());
        drop((living, next));
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
    }
}
