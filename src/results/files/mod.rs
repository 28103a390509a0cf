//! Putting files and folders in place so that a kill at any moment leaves the old or the new, and never neither.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod fill;
mod lock;
mod locked;
mod made;
mod packed;
mod read;
mod replace;
mod scratch;
mod target;

pub use fill::{fill, make_folder};
pub use lock::Lock;
pub use locked::LockedFolder;
pub use made::has_made_any;
pub use packed::{is_json, packed_as, unpacked, without_gz};
pub use read::{
    begins_with, is_kind, is_missing, is_same, kind_of, open_inside, open_plain, read_bytes, read_text, text_of,
};
pub use replace::replace;
pub use scratch::Scratch;
pub use target::{Target, refuse_links};
