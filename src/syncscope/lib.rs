//! Benchmark primitives for GPUs: where do a host and a device wait for each other, and what does it cost?
//!
//! ```no_run
//! use syncscope::prelude::*;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let stream = Device::open("cuda:0")?.stream()?;
//! let code = Code::cuda("scale.cu", r#"
//!     extern "C" __global__ void scale(float* x, float by, unsigned n) {
//!         unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
//!         if (i < n) x[i] *= by;
//!     }
//! "#);
//! let scale = stream.device().load(&code)?.kernel("scale")?;
//! let n = 1 << 20;
//! let x = stream.ones::<f32>([n])?;
//! let launch = || scale.launch(&stream, Launch::over(n, 256), (&x, 1.5_f32, n as u32));
//!
//! // On the device, by three stopwatches; on the host; where the host waits for the device.
//! println!("{}", Sampler::default().stopwatches(&DeviceClock::new(&stream)?, launch)?);
//! println!("{}", Sampler::default().time(("launch", launch))?);
//! println!("{}", stream.device().audit(launch)?.1);
//! # Ok(())
//! # }
//! ```
//!
//! | task | with |
//! |---|---|
//! | open a device, enqueue work, hold it | [`Device`](device::Device), [`Stream`](device::Stream), [`Gate`](device::Gate), [`Graph`](device::Graph) |
//! | launch a kernel of one's own | [`Code`](device::Code), [`Kernel`](device::Kernel) |
//! | take the stream or the memory of another library | [`Device::wrap`](device::Device::wrap), [`Tensor::of_slice`](tensor::Tensor::of_slice) |
//! | time and compare functions | [`Sampler`](measure::Sampler), [`Case`](measure::Case) |
//! | time work on a device | [`DeviceClock`](measure::DeviceClock), [`Sampler::stopwatches`](measure::Sampler::stopwatches) |
//! | hold a rate to what the device can do | [`Peaks`](measure::Peaks) |
//! | see host and device on one clock, and what waits | [`Device::record`](device::Device::record), [`Device::audit`](device::Device::audit), [`assert_no_sync!`] |
//! | plot in a notebook | `notebook`, by the feature of that name |
//!
//! [`prelude`] has what most programs need. The modules, each of which imports only from those before it: `error`, `affinity`,
//! [`device`], [`tensor`], [`measure`], [`timeline`], `notebook`. Units, tables and plots are those of the crate
//! `syncscope-present`.
//!
//! Of the features, `cupti` takes the device's times and other libraries' calls from CUPTI, `sensors` reads clocks and their reasons
//! from NVML, `notebook` shows results in cells, `pinned` keeps the thread that measures on one processor, and `serde` writes and
//! reads what was measured.

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
        Case, Compared, Comparison, DeviceClock, Estimate, Peaks, Protocol, Rounds, Sampler, Samples, Verdict, axis,
        device_time, host_time, judge,
    };
    #[cfg(feature = "notebook")]
    pub use crate::notebook;
    pub use crate::tensor::Tensor;
    pub use crate::timeline::{Audit, Timeline};
    pub use half::{bf16, f16};
    pub use std::time::Duration;
}
