#![doc = include_str!("../README.md")]
// Allowed in the wrappers of the driver, `device::cuda::driver`, and in the CUPTI recorder alone. The library that
// `report audit` puts into a program, `src/audit/injected`, is a crate of its own.
#![deny(unsafe_code)]
#![warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]

mod affinity;
pub mod device;
pub mod error;
#[cfg(feature = "report")]
pub mod experiment;
pub mod measure;
pub mod tensor;
pub mod timeline;
pub mod units;

#[cfg(feature = "present")]
pub mod audit;
#[cfg(feature = "report")]
pub mod book;
mod clean;
#[cfg(feature = "report")]
pub mod cli;
#[cfg(feature = "report")]
mod files;
#[cfg(feature = "report")]
pub mod fleet;
#[cfg(feature = "report")]
pub mod history;
#[cfg(feature = "notebook")]
pub mod notebook;
#[cfg(feature = "present")]
pub mod present;
#[cfg(feature = "report")]
pub mod results;
#[cfg(feature = "report")]
pub mod runner;
#[cfg(feature = "report")]
pub mod store;
#[cfg(feature = "report")]
mod yaml;

/// What a program or a notebook needs most.
pub mod prelude {
    pub use crate::assert_no_sync;
    pub use crate::device::{Device, Event, Gate, Graph, HostBuffer, HostKind, Stream};
    pub use crate::error::{DeviceError, MeasureError};
    pub use crate::measure::{
        Case, Comparison, Estimate, Protocol, Rounds, Sampler, Samples, Verdict, device_time, host_time, judge,
    };
    #[cfg(feature = "notebook")]
    pub use crate::notebook;
    pub use crate::tensor::Tensor;
    pub use crate::timeline::{Audit, Timeline};
    pub use half::{bf16, f16};
}
