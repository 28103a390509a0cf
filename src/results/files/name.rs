//! What a file is called in the names of those beside it.

use std::fs;
use std::io;
use std::path::Path;

use sha2::{Digest, Sha256};

use super::target::folder_of;

/// The most bytes: with what stands around it, a name has fewer than the least that a file system takes (143, of encrypted
/// folders; 255 of others).
const LONGEST: usize = 100;
/// How many digits of a digest a name holds.
const DIGITS: usize = 16;

/// The name of the file at `path`; one that is longer, or no text, by its beginning and a digest. The same of what it gives.
pub(super) fn name_beside(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    if let Some(name) = name.to_str().filter(|name| name.len() <= LONGEST) {
        return name.to_owned();
    }
    let mut begin = String::new();
    for character in name.to_string_lossy().chars() {
        if begin.len() + character.len_utf8() > LONGEST - DIGITS - 1 {
            break;
        }
        begin.push(character);
    }
    let digest = Sha256::digest(name.as_encoded_bytes());
    digest.iter().take(DIGITS / 2).fold(begin + "~", |name, byte| name + &format!("{byte:02x}"))
}

/// Refuses a name that the file system does not take, before a folder is made for it.
pub(super) fn refuse_name(path: &Path) -> io::Result<()> {
    let there = folder_of(path).ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("."));
    match fs::symlink_metadata(there.join(path.file_name().unwrap_or_default())) {
        Err(error) if error.kind() == io::ErrorKind::InvalidFilename => Err(error),
        _ => Ok(()),
    }
}
