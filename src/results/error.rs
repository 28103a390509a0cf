//! What can go wrong with a device, a measurement, and a file.

pub use syncscope::error::{CaseError, DeviceError, MeasureError, panic_message};
pub use syncscope_present::{FileError, in_plain_words};

/// That a file cannot be read, or claimed.
pub fn at(path: &std::path::Path) -> impl Fn(std::io::Error) -> FileError + '_ {
    |cause| FileError::Io { path: path.to_owned(), cause }
}
