//! Benchmark primitives for GPUs: where do a host and a device wait for each other, and what does it cost?
//!
//! A [`Device`](device::Device) runs what a host enqueues on its streams. A [`Sampler`](measure::Sampler) times it, a
//! [`Gate`](device::Gate) holds it, and [`Device::record`](device::Device::record) shows both sides on one clock.
//!
//! Begin with [`prelude`]. The modules, each of which imports only from those before it: `error`, `affinity`, [`device`],
//! [`tensor`], [`measure`], [`timeline`], `notebook`. Units, tables and plots are those of the crate `syncscope-present`.

// Allowed in the wrappers of the driver, `device::cuda::driver`, and in the CUPTI recorder alone.
#![deny(unsafe_code)]
#![warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]

pub mod affinity;
pub mod device;
pub mod error;
pub mod measure;
#[cfg(feature = "notebook")]
pub mod notebook;
pub mod tensor;
pub mod timeline;

pub use syncscope_present as present;
pub use syncscope_present::units;

use syncscope_present::clean;

/// What a program or a notebook needs most.
pub mod prelude {
    pub use crate::assert_no_sync;
    pub use crate::device::{Code, Device, Event, Gate, Graph, HostBuffer, HostKind, Launch, Stream};
    pub use crate::error::{DeviceError, MeasureError};
    pub use crate::measure::{
        Case, Compared, Comparison, DeviceClock, Estimate, Protocol, Rounds, Sampler, Samples, Verdict, device_time,
        host_time, judge,
    };
    #[cfg(feature = "notebook")]
    pub use crate::notebook;
    pub use crate::tensor::Tensor;
    pub use crate::timeline::{Audit, Timeline};
    pub use half::{bf16, f16};
    pub use std::time::Duration;
}
