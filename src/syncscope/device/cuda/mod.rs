//! The CUDA engine, over the driver's own interface.
//!
//! The driver, NVRTC and cuBLASLt are loaded at run time; what is missing is an error that says so, and only the
//! driver is needed to open a device. Nothing stands between a call and the driver that would show in a measurement:
//! no event tracking, no implied order between streams, no pageable detours for small transfers.
//!
//! | room | holds |
//! |---|---|
//! | `driver` | safe wrappers of the driver, the only `unsafe` besides the recorder |
//! | `gpu`, `opened` | what opened devices of one GPU share; one opened device |
//! | `memory` | device memory, host memory, copies |
//! | `stream` | streams, events, gates, graphs, and what is enqueued |
//! | `kernels` | the kernels, from source to handle |
//! | `lend` | streams and memory of other libraries, in and out |
//! | `loaded` | kernels of the user's |
//! | `matmul` | matrix multiplications and the search for their plans |
//! | `raw` | what is lent to code that calls the driver itself |
//! | `profiling` | records of what the device did, and sensors |
//!
//! Threads: every object may be used from any thread. The driver synchronizes its own calls, and each call here
//! makes the context current on the calling thread first.

#[allow(unsafe_code)]
mod driver;
mod engine;
mod gpu;
pub mod kernels;
mod lend;
mod loaded;
mod matmul;
mod memory;
mod opened;
mod profiling;
pub mod raw;
mod stream;

use std::sync::Arc;

use super::Listing;
use super::engine::{Engine, Result};
use driver::context;

/// The engine's name, as in a device name.
const ENGINE: &str = "cuda";

/// Opens device `index`.
pub(crate) fn open(index: usize) -> Result<Arc<dyn Engine>> {
    context::device_count()?;
    Ok(Arc::new(engine::CudaEngine::open(index)?))
}

/// The devices of this machine, at least one; or why there is none.
pub(crate) fn list() -> Result<Vec<Listing>> {
    let listing = |index| Ok(Listing { name: context::name(index), model: context::model(index)? });
    (0..context::device_count()?).map(listing).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::DeviceError;

    #[test]
    fn a_machine_without_a_device_says_why_and_one_with_a_device_names_it() {
        match list() {
            Ok(devices) => assert_eq!(devices.first().map(|device| device.name.as_str()), Some("cuda:0")),
            Err(DeviceError::EngineUnavailable { engine, reason }) => {
                assert_eq!(engine, "cuda");
                assert!(!reason.is_empty());
            }
            Err(other) => panic!("{other}"),
        }
    }
}
