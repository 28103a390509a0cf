//! A lock between processes: a file that one of them holds.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Held until it is dropped or its process ends, however that ends.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
    path: PathBuf,
}

impl Lock {
    /// Takes the lock at `path`, a file of its own; `None` where another process holds it for longer than `wait`.
    pub(crate) fn take(path: &Path, wait: Duration) -> io::Result<Option<Self>> {
        let begun = Instant::now();
        loop {
            let file = File::options().create(true).truncate(false).write(true).open(path)?;
            match file.try_lock() {
                // Its last holder removed the file after it was opened here: the lock of that name is another file.
                Ok(()) if !is_at(&file, path) => continue,
                Ok(()) => return Ok(Some(Self { file, path: path.to_owned() })),
                Err(TryLockError::WouldBlock) if begun.elapsed() < wait => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                Err(TryLockError::WouldBlock) => return Ok(None),
                // A file system without locks: what else is there does without.
                Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {
                    return Ok(Some(Self { file, path: path.to_owned() }));
                }
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
    }
}

impl Drop for Lock {
    /// The file goes while it is held: whoever opened it in between sees that it is gone.
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
        let _ = self.file.unlock();
    }
}

#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (file.metadata(), std::fs::metadata(path)) {
        (Ok(file), Ok(path)) => (file.dev(), file.ino()) == (path.dev(), path.ino()),
        _ => false,
    }
}

/// An open file cannot be removed.
#[cfg(not(unix))]
fn is_at(_: &File, _: &Path) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_holds_it_at_a_time_and_it_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let first = Lock::take(&path, Duration::ZERO).unwrap().unwrap();
        assert!(Lock::take(&path, Duration::ZERO).unwrap().is_none());
        drop(first);
        assert!(!path.exists());
        assert!(Lock::take(&path, Duration::ZERO).unwrap().is_some());
    }
}
