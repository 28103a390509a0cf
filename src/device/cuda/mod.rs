//! The CUDA engine, over the driver's own interface.
//!
//! The driver, NVRTC and cuBLASLt are loaded at run time; what is missing is an error that says so, and only the
//! driver is needed to open a device. Nothing stands between a call and the driver that would show in a measurement:
//! no event tracking, no implied order between streams, no pageable detours for small transfers.
//!
//! | file | holds |
//! |---|---|
//! | `libraries`, `primary` | what is loaded; the device's context |
//! | `context` | all that belongs to one opened device |
//! | `queue`, `stream`, `operations`, `transfers` | a stream; its calls; work; copies |
//! | `event`, `gate`, `fault` | marks, holds, and what kernels report |
//! | `pool`, `memory`, `pinned`, `host` | device memory and host memory |
//! | `kernels`, `compiler`, `cache` | the kernels, from source to handle |
//! | `matmul`, `plan` | matrix products |
//! | `telemetry` | sensors |
//! | `activity`, `cupti` | records of what the device did |
//!
//! Threads: every object may be used from any thread. The driver synchronizes its own calls, and each call here
//! makes the context current on the calling thread first.

#[cfg(feature = "cupti")]
mod activity;
mod cache;
mod compiler;
mod context;
#[cfg_attr(not(feature = "cupti"), path = "no_cupti.rs")]
mod cupti;
mod engine;
mod event;
mod fault;
mod gate;
mod graph;
mod handles;
mod host;
pub mod kernels;
mod libraries;
mod matmul;
mod memory;
mod operations;
mod pinned;
mod plan;
mod pool;
mod primary;
mod queue;
mod spare;
mod staging;
mod stream;
#[cfg_attr(not(feature = "sensors"), path = "no_telemetry.rs")]
mod telemetry;
mod transfers;
mod trial;

use std::sync::Arc;

use super::Listing;
use super::engine::{Engine, Result};

/// The engine's name, as in a device name.
const ENGINE: &str = "cuda";

/// Opens device `index`.
pub(crate) fn open(index: usize) -> Result<Arc<dyn Engine>> {
    primary::device_count()?;
    Ok(Arc::new(engine::CudaEngine::open(index)?))
}

/// The devices of this machine, at least one; or why there is none.
pub(crate) fn list() -> Result<Vec<Listing>> {
    let listing = |index| Ok(Listing { name: primary::name(index), model: primary::model(index)? });
    (0..primary::device_count()?).map(listing).collect()
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
