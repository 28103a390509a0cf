//! Puts a folder in the place of another.

use std::fs;
use std::io;
use std::path::Path;

use super::made::made;

/// Puts `new` in the place of `place`; what was there lies at `old` then, or where `new` was.
///
/// The two change places in one step where the system can do that. Where it cannot, a kill between two steps leaves the
/// old one at `old`.
pub fn replace(new: &Path, place: &Path, old: &Path) -> io::Result<()> {
    moved(new, place, old).inspect(|()| made())
}

fn moved(new: &Path, place: &Path, old: &Path) -> io::Result<()> {
    if fs::symlink_metadata(place).is_err() {
        return fs::rename(new, place);
    }
    match exchange(new, place) {
        Err(error) if cannot(&error) => {
            fs::rename(place, old)?;
            fs::rename(new, place).inspect_err(|_| {
                // The first error is the one to report.
                let _ = fs::rename(old, place);
            })
        }
        other => other,
    }
}

#[cfg(any(target_os = "linux", target_vendor = "apple"))]
fn exchange(a: &Path, b: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    Ok(renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE)?)
}

#[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
fn exchange(_: &Path, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Whether the file system or the kernel has no such step.
fn cannot(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Unsupported | io::ErrorKind::InvalidInput)
}
