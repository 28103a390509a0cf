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
            let file = open(path)?;
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
    /// The file goes while it is held: whoever opened it in between sees that it is gone. One that holds anything is
    /// somebody's own, which had the name before.
    fn drop(&mut self) {
        if self.file.metadata().is_ok_and(|file| file.len() == 0) {
            let _ = std::fs::remove_file(&self.path);
        }
        let _ = self.file.unlock();
    }
}

/// Opens the file of a lock, or makes it. A link is not followed, and a pipe is not waited for: what is neither a plain file
/// nor nothing is refused.
fn open(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.create(true).truncate(false).write(true);
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        use std::os::unix::fs::OpenOptionsExt;
        options.custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed());
    }
    let refused = |why: String| io::Error::other(format!("{} cannot be used as a lock: {why}", path.display()));
    match options.open(path) {
        Ok(file) if file.metadata()?.is_file() => Ok(file),
        Ok(_) => Err(refused("it is not a plain file".to_owned())),
        Err(error) if std::fs::symlink_metadata(path).is_ok_and(|there| !there.is_file()) => {
            Err(refused(error.to_string()))
        }
        Err(error) => Err(error),
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

    #[test]
    fn a_file_of_the_users_with_the_name_of_the_lock_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        std::fs::write(&path, "mine").unwrap();
        drop(Lock::take(&path, Duration::ZERO).unwrap().unwrap());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
    }

    #[test]
    #[cfg(unix)]
    fn a_link_and_a_pipe_with_the_name_of_the_lock_are_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let [link, pipe, made] = ["link", "pipe", "made"].map(|name| folder.path().join(name));
        std::os::unix::fs::symlink(&made, &link).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for path in [&link, &pipe] {
            let refusal = Lock::take(path, Duration::ZERO).unwrap_err().to_string();
            assert!(refusal.contains("cannot be used as a lock"), "{refusal}");
        }
        assert!(!made.exists());
    }
}
