//! Compiled kernels on disk, so that a program compiles them once a machine and not once a run.
//!
//! A file is found by the hash of all that decides its content: sources, options, architecture and compiler version.
//! It ends in a checksum of itself. The cache only ever saves time: a folder that cannot be written and a file that
//! is damaged are as good as none.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// The ending of every file's content, behind the checksum; changes with the layout.
const MAGIC: &[u8; 8] = b"ssccub01";
const TRAILER: usize = 16 + MAGIC.len();

/// A folder of compiled kernels, or none.
#[derive(Clone, Debug)]
pub(crate) struct Cache(Option<PathBuf>);

impl Cache {
    /// `$SYNCSCOPE_CACHE`, else `$XDG_CACHE_HOME/syncscope`, else `$HOME/.cache/syncscope`, else none.
    pub(crate) fn from_environment() -> Self {
        let folder = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        Self(
            folder("SYNCSCOPE_CACHE")
                .or_else(|| folder("XDG_CACHE_HOME").map(|path| path.join("syncscope")))
                .or_else(|| folder("HOME").map(|path| path.join(".cache/syncscope"))),
        )
    }

    /// What was stored under `key`, if it is whole.
    pub(crate) fn load(&self, key: u128) -> Option<Vec<u8>> {
        let mut content = fs::read(self.file(key)?).ok()?;
        let len = content.len().checked_sub(TRAILER)?;
        let (cubin, trailer) = content.split_at(len);
        if trailer != seal(cubin) {
            return None;
        }
        content.truncate(len);
        Some(content)
    }

    /// Stores under `key`. Another process may do the same: a file appears whole or not at all.
    pub(crate) fn store(&self, key: u128, cubin: &[u8]) {
        let Some(file) = self.file(key) else { return };
        let partial = file.with_extension(format!("{}.partial", std::process::id()));
        // Not storing costs time, not correctness.
        if write(&partial, &file, cubin).is_err() {
            let _ = fs::remove_file(&partial);
        }
    }

    fn file(&self, key: u128) -> Option<PathBuf> {
        Some(self.0.as_ref()?.join(format!("{key:032x}.cubin")))
    }
}

fn write(partial: &Path, file: &Path, cubin: &[u8]) -> std::io::Result<()> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut content = cubin.to_vec();
    content.extend(seal(cubin));
    fs::write(partial, content)?;
    fs::rename(partial, file)
}

fn seal(cubin: &[u8]) -> Vec<u8> {
    let mut trailer = hash([cubin]).to_le_bytes().to_vec();
    trailer.extend(MAGIC);
    trailer
}

/// FNV-1a over 128 bits (G. Fowler, L. C. Noll, K.-P. Vo; draft-eastlake-fnv). The same on every machine and in every
/// version of Rust, unlike the standard hasher.
///
/// Each part is followed by its length, so that moving a byte from one part to the next gives another hash.
pub(crate) fn hash<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> u128 {
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    let mut hash = BASIS;
    for part in parts {
        for &byte in part.iter().chain(&(part.len() as u64).to_le_bytes()) {
            hash = (hash ^ u128::from(byte)).wrapping_mul(PRIME);
        }
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_the_same_on_every_machine_and_tells_its_parts_apart() {
        assert_eq!(hash([]), 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
        let key = hash([b"source".as_slice(), b"sm_90"]);
        assert_eq!(key, hash([b"source".as_slice(), b"sm_90"]));
        assert_ne!(key, hash([b"sources".as_slice(), b"m_90"]));
        assert_ne!(key, hash([b"source".as_slice(), b"sm_80"]));
    }

    #[test]
    fn a_damaged_or_cut_file_is_as_good_as_none() -> std::io::Result<()> {
        let folder = tempfile::tempdir()?;
        let cache = Cache(Some(folder.path().join("new")));
        cache.store(7, b"a cubin");
        assert_eq!(cache.load(7).as_deref(), Some(b"a cubin".as_slice()));
        assert_eq!(cache.load(8), None);

        let file = folder.path().join("new").join(format!("{:032x}.cubin", 7));
        let mut content = fs::read(&file)?;
        content[0] ^= 1;
        fs::write(&file, &content)?;
        assert_eq!(cache.load(7), None);
        fs::write(&file, &content[..3])?;
        assert_eq!(cache.load(7), None);
        cache.store(7, b"again");
        assert_eq!(cache.load(7).as_deref(), Some(b"again".as_slice()));
        Ok(())
    }

    #[test]
    fn a_folder_that_cannot_be_made_fails_nothing() -> std::io::Result<()> {
        let file = tempfile::NamedTempFile::new()?;
        let cache = Cache(Some(file.path().join("below a file")));
        cache.store(7, b"a cubin");
        assert_eq!(cache.load(7), None);
        Ok(())
    }
}
