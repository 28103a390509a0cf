//! A file that a user names for output: a plain file, a link to one, a pipe or a device.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::fill::make_folder;
use super::lock::Lock;

/// How long another process may take to write the same file.
const WAIT: Duration = Duration::from_secs(10);
/// What the working file beside a plain file is called: `.NAME.syncscope-part`.
const PART: &str = ".syncscope-part";
/// What a lock beside it is called: `.NAME.lock`.
const LOCK: &str = ".lock";

/// Where output goes.
#[derive(Debug)]
pub enum Target {
    /// A plain file, there or not: it is replaced as a whole, and no other process writes it meanwhile.
    File {
        /// The file itself, links followed.
        path: PathBuf,
        /// Held from the claim on.
        _lock: Lock,
    },
    /// A pipe or a device: it is written into.
    Stream(PathBuf),
}

impl Target {
    /// Claims what `path` names for this process, to replace it. A file with content is replaced only where `is_own` says that
    /// it is of the same kind as what is to be written. What another process is writing there is not waited for: it would be
    /// lost as soon as it is whole.
    ///
    /// # Errors
    /// It is a folder, a socket, a disk, a read-only file or one of another kind, its folder cannot be written, or another
    /// process holds it.
    pub fn claim(path: &Path, is_own: impl FnOnce(&Path) -> io::Result<bool>) -> io::Result<Self> {
        Self::claim_within(path, is_own, Duration::ZERO)
    }

    /// Claims what `path` names, to read it and add to it: another process that does the same is waited for.
    ///
    /// # Errors
    /// As [`claim`](Self::claim).
    pub fn claim_to_add(path: &Path) -> io::Result<Self> {
        Self::claim_within(path, |_| Ok(true), WAIT)
    }

    fn claim_within(path: &Path, is_own: impl FnOnce(&Path) -> io::Result<bool>, wait: Duration) -> io::Result<Self> {
        match fs::metadata(path) {
            Ok(there) if there.file_type().is_fifo() => return Ok(Self::Stream(path.to_owned())),
            Ok(there) if there.file_type().is_char_device() => {
                // A device that takes nothing refuses this, too, and no other notices it. To open a pipe waits for its reader.
                let _none = fs::File::options().write(true).open(path)?.write(b"")?;
                return Ok(Self::Stream(path.to_owned()));
            }
            Ok(there) if there.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(there) if !there.is_file() => {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "neither a file, a pipe nor a terminal"));
            }
            // Links that lead in a circle, or a name that is too long.
            Err(error) if !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Err(error);
            }
            _ => {}
        }
        let text = path.as_os_str().as_encoded_bytes();
        if path.file_name().is_none() || text.ends_with(b"/") || text.ends_with(b"/.") {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "the name of a folder, where a file is to be"));
        }
        // What a link leads to need not be there.
        let path = match fs::read_link(path) {
            Ok(to) => fs::canonicalize(path).unwrap_or_else(|_| folder_of(path).join(to)),
            Err(_) => path.to_owned(),
        };
        let busy =
            || io::Error::new(io::ErrorKind::ResourceBusy, "another report is writing it, or it is named twice here");
        let lock = lock(&path, wait)?.ok_or_else(busy)?;
        check_replaced(&path, is_own)?;
        Self::ready(path, lock)
    }

    /// Claims a name that no file has; `None` where one has it, or another process is about to make one of it.
    pub fn claim_new(path: &Path) -> io::Result<Option<Self>> {
        let is_there = || fs::symlink_metadata(path).is_ok();
        match lock(path, Duration::ZERO) {
            Ok(Some(lock)) if !is_there() => Self::ready(path.to_owned(), lock).map(Some),
            Ok(Some(_lock)) => {
                // A process that was killed as it wrote may have left what nobody claims this name to clear any more.
                let _ = fs::remove_file(beside(path, PART));
                Ok(None)
            }
            Ok(None) => Ok(None),
            Err(_) if is_there() => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn ready(path: PathBuf, lock: Lock) -> io::Result<Self> {
        // Who holds the lock knows that nobody else writes: what is there was left by a process that was killed.
        let _ = fs::remove_file(beside(&path, PART));
        // A folder that lets no file be made in it is found out now.
        working(&path).map_err(|error| closed(&path, error))?;
        Ok(Self::File { path, _lock: lock })
    }

    /// Writes the whole content. Of a plain file, whoever reads it sees the old content or the whole new one.
    pub fn write(&self, content: &[u8]) -> io::Result<()> {
        match self {
            Self::Stream(path) => {
                let mut stream = fs::File::options().write(true).open(path)?;
                super::made();
                stream.write_all(content)?;
                stream.flush()
            }
            Self::File { path, .. } => {
                let mut file = working(path)?;
                file.write_all(content).map_err(limited)?;
                file.as_file().sync_all()?;
                file.persist(path).map_err(|error| error.error)?;
                super::made();
                Ok(())
            }
        }
    }

    /// Adds to what is there. Where the process ends meanwhile, a plain file has a beginning of `content` more; where it cannot
    /// be added, or the file would be longer than `most`, nothing.
    pub fn append(&self, content: &[u8], most: usize) -> io::Result<()> {
        let Self::File { path, .. } = self else { return self.write(content) };
        let mut file = fs::File::options().append(true).open(path)?;
        let before = file.metadata()?.len();
        if before.saturating_add(content.len() as u64) > most as u64 {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let added = file.write_all(content).and_then(|()| file.sync_all()).map_err(limited);
        if added.is_err() {
            // What cannot be cut off stays as a part of a line, which readers leave out.
            let _ = file.set_len(before);
        }
        added
    }
}

/// Refuses to replace a file that is read-only, or that holds anything that is not this program's.
fn check_replaced(path: &Path, is_own: impl FnOnce(&Path) -> io::Result<bool>) -> io::Result<()> {
    let refused = |why: &str| {
        let message = format!("{why}, so it is not replaced; move it away or name another file");
        Err(io::Error::new(io::ErrorKind::AlreadyExists, message))
    };
    match fs::metadata(path) {
        Ok(there) if there.permissions().readonly() => refused("it is read-only"),
        Ok(there) if there.len() > 0 && !is_own(path)? => {
            refused("this is not a file that report wrote for such a purpose")
        }
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The lock of a plain file, whose folder is made; `None` where another process holds it for longer than `wait`.
fn lock(path: &Path, wait: Duration) -> io::Result<Option<Lock>> {
    make_folder(folder_of(path))?;
    Lock::take(&beside(path, LOCK), wait).map_err(|error| closed(path, error))
}

/// The error of a folder that lets no file be made in it, which a file that can be written does not explain.
fn closed(path: &Path, error: io::Error) -> io::Error {
    use io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    if !matches!(error.kind(), PermissionDenied | ReadOnlyFilesystem) {
        return error;
    }
    let folder = folder_of(path).display();
    let why = "a file is written beside it and takes its place when it is whole";
    io::Error::new(error.kind(), format!("no file can be made in its folder, {folder} ({error}): {why}; name another"))
}

/// The error of a write that the user's limit on files ends.
fn limited(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::FileTooLarge => io::Error::new(error.kind(), "longer than a file may be here (see `ulimit -f`)"),
        _ => error,
    }
}

/// A file beside `path`, gone if it is not put there. Temporary files are their owner's alone; this one is for whoever the
/// user's mask lets read it, or as the file that it replaces.
fn working(path: &Path) -> io::Result<tempfile::NamedTempFile> {
    let name = beside(path, PART);
    let mut builder = tempfile::Builder::new();
    builder.prefix(name.file_name().unwrap_or_default()).rand_bytes(0).permissions(fs::Permissions::from_mode(0o666));
    let file = builder.tempfile_in(folder_of(path))?;
    if let Ok(there) = fs::metadata(path) {
        // Where it cannot be done, the file is the mask's.
        let _ = file.as_file().set_permissions(there.permissions());
    }
    Ok(file)
}

/// The hidden file beside `path` that has its name and `ending`.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(ending);
    path.with_file_name(name)
}

/// The folder that a file is in or is to be in.
pub(super) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &Path, text: &str) -> io::Result<()> {
        Target::claim(path, |_| Ok(true))?.write(text.as_bytes())
    }

    #[test]
    fn a_plain_file_is_replaced_and_nothing_is_left_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/file.json");
        write(&path, "first").unwrap();
        fs::write(folder.path().join("new/.file.json.syncscope-part"), "half").unwrap();
        write(&path, "second").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "second");
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn what_another_process_is_writing_beside_it_and_what_is_the_users_stay() {
        let folder = tempfile::tempdir().unwrap();
        let [other, own] = [".file.json.syncscope-part", ".file.backup.part"].map(|name| folder.path().join(name));
        fs::write(&other, "of file.json").unwrap();
        fs::write(&own, "mine").unwrap();
        write(&folder.path().join("file"), "first").unwrap();
        assert!(other.exists() && own.exists());
    }

    #[test]
    fn leftovers_of_a_killed_process_go_and_those_of_a_living_one_stay() {
        let folder = tempfile::tempdir().unwrap();
        let [path, part, left] =
            ["a.json", ".a.json.syncscope-part", ".a.json.lock"].map(|name| folder.path().join(name));
        fs::write(&path, "whole").unwrap();
        let writer = Target::claim(&path, |_| Ok(true)).unwrap();
        fs::write(&part, "half").unwrap();
        assert!(Target::claim_new(&path).unwrap().is_none() && part.exists());
        drop(writer);
        assert!(Target::claim_new(&path).unwrap().is_none() && !part.exists() && !left.exists());
        assert_eq!(fs::read_to_string(&path).unwrap(), "whole");
    }

    #[test]
    fn a_file_is_added_to_up_to_its_limit_and_not_beyond() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let target = Target::claim(&path, |_| Ok(true)).unwrap();
        target.write(b"12").unwrap();
        target.append(b"34", 4).unwrap();
        assert_eq!(target.append(b"5", 4).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(fs::read(&path).unwrap(), b"1234");
    }

    #[test]
    fn the_name_of_a_folder_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["none/", "none/.", "none/.."] {
            assert!(Target::claim(&folder.path().join(name), |_| Ok(true)).is_err(), "{name}");
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_file_that_is_read_only_or_of_another_kind_is_not_replaced_and_an_empty_one_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "mine").unwrap();
        let refusal = Target::claim(&path, |_| Ok(false)).unwrap_err().to_string();
        assert!(refusal.contains("is not replaced"), "{refusal}");
        fs::write(&path, "").unwrap();
        assert!(Target::claim(&path, |_| Ok(false)).is_ok());
        let mut mode = fs::metadata(&path).unwrap().permissions();
        mode.set_readonly(true);
        fs::set_permissions(&path, mode).unwrap();
        let refusal = Target::claim(&path, |_| Ok(true)).unwrap_err().to_string();
        assert!(refusal.contains("read-only"), "{refusal}");
    }

    #[test]
    fn a_new_name_is_claimed_once_and_not_where_a_file_has_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let first = Target::claim_new(&path).unwrap().unwrap();
        assert!(Target::claim_new(&path).unwrap().is_none());
        first.write(b"first").unwrap();
        drop(first);
        assert!(Target::claim_new(&path).unwrap().is_none());
    }

    #[test]
    fn a_link_stays_and_what_it_leads_to_is_written() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("a")).unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("a/file", &link).unwrap();
        for text in ["first", "second"] {
            write(&link, text).unwrap();
            assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
            assert_eq!(fs::read_to_string(folder.path().join("a/file")).unwrap(), text);
        }
        std::os::unix::fs::symlink("round", folder.path().join("round")).unwrap();
        assert!(write(&folder.path().join("round"), "x").is_err());
    }

    #[test]
    fn a_pipe_and_a_device_are_written_into_and_a_socket_and_a_folder_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::read_to_string(pipe).unwrap()
        });
        write(&pipe, "through").unwrap();
        assert_eq!(reader.join().unwrap(), "through");
        assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
        write(Path::new("/dev/null"), "x").unwrap();
        #[cfg(target_os = "linux")]
        assert_eq!(Target::claim(Path::new("/dev/full"), |_| Ok(true)).unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
        let _socket = std::os::unix::net::UnixListener::bind(folder.path().join("socket")).unwrap();
        assert!(write(&folder.path().join("socket"), "x").is_err());
        assert!(write(folder.path(), "x").is_err());
    }
}
