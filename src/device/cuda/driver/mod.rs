//! The CUDA driver: its libraries, the device's context, and owned handles.

pub(crate) mod handles;
pub(crate) mod libraries;
pub(crate) mod primary;
