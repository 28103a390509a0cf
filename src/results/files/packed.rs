//! Files that gzip packed. Whatever reads a file unpacks it; what is written is packed where the name says so.

use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;

use super::read::read_up_to;

/// How what gzip packed begins.
const MAGIC: [u8; 2] = [0x1f, 0x8b];
/// How its name ends.
const ENDING: &str = "gz";

/// What comes from a reader, unpacked where gzip packed it: `most` bytes of that at most.
///
/// # Errors
/// As of reading; [`io::ErrorKind::FileTooLarge`] where it is longer, however long.
pub fn unpacked(mut from: impl BufRead, most: usize) -> io::Result<Vec<u8>> {
    match from.fill_buf()?.starts_with(&MAGIC) {
        // Packed it is hardly ever longer. Parts of which nothing comes out could go on without end.
        true => read_up_to(MultiGzDecoder::new(from.take(most as u64)), most),
        false => read_up_to(from, most),
    }
}

/// A file's content: packed where its name ends in `.gz`. No time and no name is put in, so that the same content is the same
/// bytes.
///
/// # Errors
/// As of writing into memory.
pub fn packed_as(path: &Path, content: Vec<u8>) -> io::Result<Vec<u8>> {
    if path.extension().is_none_or(|ending| ending != ENDING) {
        return Ok(content);
    }
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed.write_all(&content)?;
    packed.finish()
}

/// A name without the ending of a packed file.
pub fn without_gz(path: &Path) -> PathBuf {
    match path.extension().is_some_and(|ending| ending == ENDING) {
        true => path.with_extension(""),
        false => path.to_owned(),
    }
}

/// Whether a file is JSON by its name, packed or not.
pub fn is_json(path: &Path) -> bool {
    without_gz(path).extension().is_some_and(|ending| ending == "json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_of_a_packed_file_is_of_its_unpacked_text() {
        let packed = packed_as(Path::new("x.gz"), vec![b'x'; 2 << 20]).unwrap();
        assert!(packed.len() < 1 << 14 && packed == packed_as(Path::new("y.gz"), vec![b'x'; 2 << 20]).unwrap());
        assert_eq!(unpacked(&packed[..], 2 << 20).unwrap(), vec![b'x'; 2 << 20]);
        let error = unpacked(&packed[..], 1 << 20).unwrap_err();
        assert_eq!(error.to_string(), "longer than 1 MB, the most that is read");
        assert!(unpacked(&packed[..packed.len() / 2], 2 << 20).is_err());
    }
}
