//! Reading what may be anybody's, up to a limit.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

use super::packed::unpacked;
use crate::error::FileError;

/// The text of a file, which may be packed by gzip: `most` bytes at most, unpacked.
///
/// # Errors
/// As of reading; [`io::ErrorKind::FileTooLarge`] where it is longer, however long.
pub fn read_text(path: &Path, most: usize) -> io::Result<String> {
    text_of(read_bytes(path, most)?)
}

/// What is in a file, which may be packed by gzip.
///
/// # Errors
/// As of [`read_text`].
pub fn read_bytes(path: &Path, most: usize) -> io::Result<Vec<u8>> {
    unpacked(BufReader::new(File::open(path)?), most)
}

/// What was read as text.
///
/// # Errors
/// [`io::ErrorKind::InvalidData`] where it is no UTF-8.
pub fn text_of(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "stream did not contain valid UTF-8"))
}

pub(super) fn read_up_to(from: impl Read, most: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(most as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > most {
        let message = match most >> 20 {
            0 => format!("longer than {} KB, the most that is read", most >> 10),
            megabytes => format!("longer than {megabytes} MB, the most that is read"),
        };
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(bytes)
}

/// Opens a plain file: no link, which may lead to what is not for the reader, and no pipe, which would be waited for.
///
/// # Errors
/// As of opening; [`io::ErrorKind::InvalidInput`] where it is no plain file.
pub fn open_plain(path: &Path) -> io::Result<File> {
    opened(path, OFlags::NONBLOCK | OFlags::NOFOLLOW)
}

fn opened(path: &Path, how: OFlags) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let file = options.read(true).custom_flags(how.bits().cast_signed()).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a plain file")),
    }
}

/// Opens a plain file that lies in the folder `root`, whose path leads through no links.
///
/// Where the file is, is asked of what was opened: between a look at a path and its opening, a link can come to stand there.
///
/// # Errors
/// As of opening; [`io::ErrorKind::PermissionDenied`] where it lies elsewhere, [`io::ErrorKind::InvalidInput`] where it is no
/// plain file.
pub fn open_inside(root: &Path, path: &Path) -> io::Result<File> {
    let file = opened(path, OFlags::NONBLOCK)?;
    let place = fs::read_link(Path::new("/proc/self/fd").join(file.as_raw_fd().to_string()))?;
    if !place.starts_with(root) {
        let message = format!("it lies outside of the folder, at {}", place.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
    }
    Ok(file)
}

/// Whether two paths lead to one file.
pub fn is_same(a: &Path, b: &Path) -> bool {
    let of = |path| fs::metadata(path).map(|there| (there.dev(), there.ino()));
    matches!((of(a), of(b)), (Ok(a), Ok(b)) if a == b)
}

/// Whether a file begins with `text`, as all of its kind do.
pub fn begins_with(text: &str) -> impl Fn(&Path) -> io::Result<bool> {
    move |path| {
        let mut begin = Vec::new();
        File::open(path)?.take(text.len() as u64).read_to_end(&mut begin)?;
        Ok(begin == text.as_bytes())
    }
}

/// Whether a file is of the kind as which it was read: it is not where something in it is wrong.
///
/// # Errors
/// What kept it from being read, and says nothing of what it is.
pub fn is_kind<T>(read: Result<T, FileError>) -> io::Result<bool> {
    match read {
        // An error that is not the system's is about the content.
        Err(FileError::Io { cause, .. }) if cause.raw_os_error().is_some() => Err(cause),
        read => Ok(read.is_ok()),
    }
}

/// What stands at a path, links not followed; `None` where nothing does.
///
/// # Errors
/// It cannot be looked at.
pub fn kind_of(path: &Path) -> io::Result<Option<fs::FileType>> {
    match fs::symlink_metadata(path) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
        there => there.map(|there| Some(there.file_type())),
    }
}

/// Whether nothing stands at a path. What cannot be looked at may: reading it says why not.
pub fn is_missing(path: &Path) -> bool {
    matches!(kind_of(path), Ok(None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_that_came_to_stand_behind_a_path_after_it_was_looked_at_leads_nowhere() {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap().join("site");
        fs::create_dir_all(root.join("data")).unwrap();
        fs::write(root.join("data/page"), "page").unwrap();
        fs::write(root.with_file_name("secret"), "secret").unwrap();
        assert!(open_inside(&root, &root.join("data/page")).is_ok());
        let kind = |path: &str| open_inside(&root, &root.join(path)).unwrap_err().kind();
        fs::remove_file(root.join("data/page")).unwrap();
        std::os::unix::fs::symlink(root.with_file_name("secret"), root.join("data/page")).unwrap();
        assert_eq!(kind("data/page"), io::ErrorKind::PermissionDenied);
        fs::remove_dir_all(root.join("data")).unwrap();
        std::os::unix::fs::symlink(folder.path(), root.join("data")).unwrap();
        assert_eq!(kind("data/secret"), io::ErrorKind::PermissionDenied);
        assert!(std::process::Command::new("mkfifo").arg(root.join("pipe")).status().unwrap().success());
        assert_eq!(kind("pipe"), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn what_has_no_end_is_refused_by_its_limit() {
        let error = read_text(Path::new("/dev/zero"), 1 << 20).unwrap_err();
        assert_eq!(error.to_string(), "longer than 1 MB, the most that is read");
    }
}
