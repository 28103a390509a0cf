//! Putting files and folders in place so that a kill at any moment leaves the old or the new, and never neither.

mod lock;
mod replace;

pub(crate) use lock::Lock;
pub(crate) use replace::replace;
