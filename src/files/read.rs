//! Reading what may be anybody's, up to a limit.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The text of a file of `most` bytes at most.
///
/// # Errors
/// As of reading; [`io::ErrorKind::FileTooLarge`] where it is longer, however long.
pub(crate) fn read_text(path: &Path, most: usize) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(most as u64 + 1).read_to_string(&mut text)?;
    if text.len() > most {
        let message = match most >> 20 {
            0 => format!("longer than {} KB, the most that is read", most >> 10),
            megabytes => format!("longer than {megabytes} MB, the most that is read"),
        };
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(text)
}

/// Whether a file begins with `text`, as all of its kind do.
pub(crate) fn begins_with(text: &str) -> impl FnOnce(&Path) -> bool {
    move |path| {
        let mut begin = Vec::new();
        let read = File::open(path).and_then(|file| file.take(text.len() as u64).read_to_end(&mut begin));
        read.is_ok() && begin == text.as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_end_is_refused_by_its_limit() {
        let error = read_text(Path::new("/dev/zero"), 1 << 20).unwrap_err();
        assert_eq!(error.to_string(), "longer than 1 MB, the most that is read");
    }
}
