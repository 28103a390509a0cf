//! A lock between processes: a file that one of them holds.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The mode of a lock's file: nobody reads it. An empty file of another mode may be somebody's own and stays.
#[cfg(unix)]
const MODE: u32 = 0o222;

/// Held until it is dropped or its process ends, however that ends.
#[derive(Debug)]
pub struct Lock {
    file: File,
    path: PathBuf,
    /// Whether this process made the file.
    is_made: bool,
}

impl Lock {
    /// Takes the lock at `path`, a file of its own; `None` where another process holds it for longer than `wait`.
    pub fn take(path: &Path, wait: Duration) -> io::Result<Option<Self>> {
        let begun = Instant::now();
        loop {
            let (file, is_made) = open(path)?;
            let tried = file.try_lock();
            if matches!(tried, Err(TryLockError::WouldBlock)) {
                if begun.elapsed() >= wait {
                    return Ok(None);
                }
                std::thread::sleep(Duration::from_millis(20));
                continue;
            }
            // Its last holder removed the file after it was opened here: the lock of that name is another file.
            if tried.is_ok() && !is_at(&file, path) {
                continue;
            }
            // From here on the file goes where the lock cannot be had.
            let lock = Self { file, path: path.to_owned(), is_made };
            return match tried {
                Err(TryLockError::Error(error)) if !is_without_locks(&error) => Err(error),
                // What else is there does without.
                _ => Ok(Some(lock)),
            };
        }
    }
}

/// Whether it is the file system that has no locks: none at all, or, where it is another machine's, nobody who keeps them.
fn is_without_locks(error: &io::Error) -> bool {
    #[cfg(unix)]
    if error.raw_os_error() == Some(rustix::io::Errno::NOLCK.raw_os_error()) {
        return true;
    }
    error.kind() == io::ErrorKind::Unsupported
}

impl Lock {
    /// Takes the lock at `path` that a process which was killed left there; `None` where there is none of such a process.
    pub(super) fn of_killed(path: &Path) -> io::Result<Option<Self>> {
        let is_lock = std::fs::symlink_metadata(path).is_ok_and(|file| file.is_file() && is_left(&file));
        if is_lock { Self::take(path, Duration::ZERO) } else { Ok(None) }
    }

    /// Leaves one as a process that is killed does: the file is there, and nobody holds it.
    #[cfg(test)]
    pub(super) fn abandoned(path: &Path) {
        let held = Self::take(path, Duration::ZERO).unwrap().unwrap();
        held.file.unlock().unwrap();
        std::mem::forget(held);
    }
}

impl Drop for Lock {
    /// The file goes while it is held: whoever opened it in between sees that it is gone. One that was there before and
    /// was not left by a process that was killed is somebody's own.
    fn drop(&mut self) {
        if self.file.metadata().is_ok_and(|file| file.len() == 0 && (self.is_made || is_left(&file))) {
            let _ = std::fs::remove_file(&self.path);
        }
        let _ = self.file.unlock();
    }
}

/// Opens the file of a lock, or makes it, and says which. A link is not followed, and a pipe is not waited for: what is
/// neither a plain file nor nothing is refused.
fn open(path: &Path) -> io::Result<(File, bool)> {
    let mut options = File::options();
    options.write(true);
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        use std::os::unix::fs::OpenOptionsExt;
        options.custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed()).mode(MODE);
    }
    match options.clone().create_new(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        made => return made.map(|file| (file, true)),
    }
    let refused = |why: String| io::Error::other(format!("{} cannot be used as a lock: {why}", path.display()));
    match options.open(path) {
        Ok(file) if file.metadata()?.is_file() => Ok((file, false)),
        Ok(_) => Err(refused("it is not a plain file".to_owned())),
        // Its holder removed it meanwhile.
        Err(error) if error.kind() == io::ErrorKind::NotFound => open(path),
        Err(error) if std::fs::symlink_metadata(path).is_ok_and(|there| !there.is_file()) => {
            Err(refused(error.to_string()))
        }
        Err(error) => Err(error),
    }
}

/// Whether it has the mode of a lock's file, which no other has by chance.
#[cfg(unix)]
fn is_left(file: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.permissions().mode() & 0o7777 & !MODE == 0
}

#[cfg(not(unix))]
fn is_left(_: &std::fs::Metadata) -> bool {
    false
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
    #[cfg(unix)]
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
        for content in ["mine", ""] {
            std::fs::write(&path, content).unwrap();
            drop(Lock::take(&path, Duration::ZERO).unwrap().unwrap());
            assert_eq!(std::fs::read_to_string(&path).unwrap(), content);
        }
    }

    #[test]
    #[cfg(unix)]
    fn the_file_that_a_killed_process_left_goes_with_the_next_lock() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        Lock::abandoned(&path);
        drop(Lock::take(&path, Duration::ZERO).unwrap().unwrap());
        assert!(!path.exists());
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
