//! A folder that one process at a time changes.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::fill::make_folder;
use super::lock::Lock;
use super::read::is_missing;

/// A folder with a lock in it. One that was made for the lock goes with it, where nothing was put there.
#[derive(Debug)]
pub struct LockedFolder {
    _lock: Lock,
    /// Dropped behind what is in them.
    _made: Made,
}

impl LockedFolder {
    /// Makes the folder where it is not there, and takes the lock of this name in it; `None` where another process holds that for
    /// longer than `wait`.
    pub fn take(folder: &Path, name: &str, wait: Duration) -> io::Result<Option<Self>> {
        const TRIES: usize = 100;
        let mut tries = 1..TRIES;
        // Another process that had made the folder, or one that it is in, put nothing into it, and took it away.
        let mut is_taken = |error: &io::Error| error.kind() == ErrorKind::NotFound && tries.next().is_some();
        loop {
            let made = match Made::of(folder) {
                Err(error) if is_taken(&error) => continue,
                made => made?,
            };
            match Lock::take(&folder.join(name), wait) {
                Err(error) if is_taken(&error) => {}
                lock => return Ok(lock?.map(|lock| Self { _lock: lock, _made: made })),
            }
        }
    }
}

/// The folders that were made, the innermost first.
#[derive(Debug)]
struct Made(Vec<PathBuf>);

impl Made {
    fn of(folder: &Path) -> io::Result<Self> {
        let is_new = |folder: &&Path| !folder.as_os_str().is_empty() && is_missing(folder);
        let made = Self(folder.ancestors().take_while(is_new).map(Path::to_owned).collect());
        make_folder(folder).map(|()| made)
    }
}

impl Drop for Made {
    /// Those that nothing was put into go again.
    fn drop(&mut self) {
        self.0.iter().all(|folder| fs::remove_dir(folder).is_ok());
    }
}
