//! Putting files and folders in place so that a kill at any moment leaves the old or the new, and never neither.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod fill;
mod lock;
mod packed;
mod read;
mod replace;
mod scratch;
mod target;

use std::sync::atomic::{AtomicBool, Ordering};

pub use fill::{fill, make_folder};
pub use lock::Lock;
pub use packed::{is_json, packed_as, unpacked, without_gz};
pub use read::{
    begins_with, is_kind, is_missing, is_same, kind_of, open_inside, open_plain, read_bytes, read_text, text_of,
};
pub use replace::replace;
pub use scratch::Scratch;
pub use target::Target;

/// Whether this process has put anything in place, for those who say how it ended: what has done nothing may be refused.
static MADE: AtomicBool = AtomicBool::new(false);

/// Notes that a file or a folder is in its place.
fn made() {
    MADE.store(true, Ordering::Relaxed);
}

/// Whether any file or folder has been put in its place.
pub fn has_made_any() -> bool {
    MADE.load(Ordering::Relaxed)
}
