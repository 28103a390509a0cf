//! Puts a folder in the place of another.

use std::fs;
use std::io;
use std::path::Path;

use rustix::fs::{CWD, RenameFlags, renameat_with};

/// Puts `new` in the place of `place`; what was there lies at `old` then, or where `new` was.
///
/// The two change places in one step where the file system can do that. Where it cannot, a kill between two steps leaves the
/// old one at `old`.
pub fn replace(new: &Path, place: &Path, old: &Path) -> io::Result<()> {
    let is_there = fs::symlink_metadata(place).is_ok();
    let exchanged = if is_there { renameat_with(CWD, new, CWD, place, RenameFlags::EXCHANGE) } else { Ok(()) };
    match exchanged.map_err(io::Error::from) {
        Ok(()) if !is_there => fs::rename(new, place)?,
        Err(error) if matches!(error.kind(), io::ErrorKind::Unsupported | io::ErrorKind::InvalidInput) => {
            fs::rename(place, old)?;
            // The first error is the one to report.
            fs::rename(new, place).inspect_err(|_| _ = fs::rename(old, place))?;
        }
        other => other?,
    }
    super::made();
    Ok(())
}
