//! Putting files and folders in place so that a kill at any moment leaves the old or the new, and never neither.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod fill;
mod lock;
mod made;
mod read;
mod replace;
mod scratch;
mod target;

pub(crate) use fill::{fill, make_folder};
pub(crate) use lock::Lock;
pub(crate) use made::has_made_any;
pub(crate) use read::{begins_with, is_same, open_inside, open_plain, read_packed, read_text, text_of, text_up_to};
pub(crate) use replace::replace;
pub(crate) use scratch::Scratch;
pub(crate) use target::{Target, refuse_links};
