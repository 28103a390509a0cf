//! Whether this process has put anything in place, for those who say how it ended: what has done nothing may be refused.

use std::sync::atomic::{AtomicBool, Ordering};

static MADE: AtomicBool = AtomicBool::new(false);

/// Notes that a file or a folder is in its place.
pub(super) fn made() {
    MADE.store(true, Ordering::Relaxed);
}

/// Whether any file or folder has been put in its place.
pub fn has_made_any() -> bool {
    MADE.load(Ordering::Relaxed)
}
