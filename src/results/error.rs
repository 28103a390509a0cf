//! What can go wrong with a device, a measurement, and a file.

pub use syncscope::error::{CaseError, DeviceError, MeasureError, panic_message};
pub use syncscope_present::{FileError, in_plain_words};
