//! A lock between processes: a file that one of them holds.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

use super::fill::make_folder;

/// Held until it is dropped or its process ends, however that ends.
#[derive(Debug)]
pub struct Lock {
    file: File,
    path: PathBuf,
}

impl Lock {
    /// Makes a folder where it is not there, and takes the lock of this name in it; `None` where another process holds that
    /// for longer than `wait`.
    pub fn of_folder(folder: &Path, name: &str, wait: Duration) -> io::Result<Option<Self>> {
        make_folder(folder)?;
        Self::take(&folder.join(name), wait)
    }

    /// Takes the lock at `path`, a file of its own; `None` where another process holds it for longer than `wait`.
    pub fn take(path: &Path, wait: Duration) -> io::Result<Option<Self>> {
        let begun = Instant::now();
        loop {
            let file = open(path)?;
            match file.try_lock() {
                // Its last holder removed the file after it was opened here: the lock of that name is another file.
                Ok(()) if !is_at(&file, path) => {}
                Err(TryLockError::WouldBlock) if begun.elapsed() >= wait => return Ok(None),
                Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(20)),
                tried => {
                    // From here on the file goes where the lock cannot be had.
                    let lock = Self { file, path: path.to_owned() };
                    return match tried {
                        Err(TryLockError::Error(error)) if !is_without_locks(&error) => Err(error),
                        // What else is there does without.
                        _ => Ok(Some(lock)),
                    };
                }
            }
        }
    }
}

fn is_at(file: &File, path: &Path) -> bool {
    let of = |there: io::Result<fs::Metadata>| there.ok().map(|there| (there.dev(), there.ino()));
    of(file.metadata()).is_some_and(|own| of(fs::metadata(path)) == Some(own))
}

impl Drop for Lock {
    /// The file goes while it is held: whoever opened it in between sees that it is gone. One that holds anything is
    /// somebody's own.
    fn drop(&mut self) {
        if self.file.metadata().is_ok_and(|file| file.len() == 0) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Whether it is the file system that has no locks: none at all, or, where it is another machine's, nobody who keeps them.
fn is_without_locks(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::NOLCK.raw_os_error()) || error.kind() == io::ErrorKind::Unsupported
}

/// Opens the file of a lock, or makes it. A link is not followed, and a pipe is not waited for: what is neither a plain file
/// nor nothing is refused.
fn open(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = File::options().read(true).write(true).create(true).truncate(false).custom_flags(flags).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other(format!("{} cannot be used as a lock: it is not a plain file", path.display()))),
    }
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
    fn a_file_system_that_keeps_no_locks_is_written_without_and_other_errors_are_told() {
        use rustix::io::Errno;
        let is_without = |error: Errno| is_without_locks(&error.into());
        assert!([Errno::NOLCK, Errno::NOSYS, Errno::OPNOTSUPP].into_iter().all(is_without));
        assert!(![Errno::IO, Errno::INTR, Errno::BADF].into_iter().any(is_without));
    }

    #[test]
    fn a_file_of_the_users_with_the_name_of_the_lock_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        fs::write(&path, "mine").unwrap();
        drop(Lock::take(&path, Duration::ZERO).unwrap().unwrap());
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    }

    #[test]
    fn a_link_and_a_pipe_with_the_name_of_the_lock_are_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let [link, pipe, made] = ["link", "pipe", "made"].map(|name| folder.path().join(name));
        std::os::unix::fs::symlink(&made, &link).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert!([&link, &pipe].into_iter().all(|path| Lock::take(path, Duration::ZERO).is_err()));
        assert!(!made.exists());
    }
}
