//! Experiments: what runs, and what it leaves behind.
//!
//! An experiment is one file here and one line in the list below. It is a struct of its parameters, which a suite
//! states, and declares each row where it measures it. It knows devices, measuring and what a row is, and nothing of
//! suites, files or books.

/// Evaluates an expression with a Rust type in the place of a [`FloatType`]: `with_float!(dtype, T => f::<T>())`.
macro_rules! with_float {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            $crate::device::FloatType::F16 => {
                type $T = ::half::f16;
                $body
            }
            $crate::device::FloatType::BF16 => {
                type $T = ::half::bf16;
                $body
            }
            $crate::device::FloatType::F32 => {
                type $T = f32;
                $body
            }
        }
    };
}

mod bench;
pub mod counts;
mod each_round;
mod group;
mod host_copy;
mod recorder;
mod registry;

use std::num::NonZeroUsize;

pub use bench::{Bench, RunObserver};
pub use group::{Formula, Group, GroupBuilder, Part};
pub use recorder::{Pass, TraceRecorder, has_scenarios, record_scenarios};
pub use registry::{AnyExperiment, Experiment, Registry, RegistryEntry};

/// The experiments that come with the library, in the order of the texts: a file and its struct.
macro_rules! experiments {
    ($($file:ident::$type:ident,)+) => {
        $(
            mod $file;
            pub use $file::$type;
        )+

        fn builtin(registry: Registry) -> Registry {
            registry$(.with::<$type>())+
        }
    };
}

pub use cold_start::start_anew;

experiments! {
    self_audit::SelfAudit,
    idle_device::IdleDevice,
    async_frontend::AsyncFrontend,
    synchronize::Synchronize,
    overlap::Overlap,
    sync_points::SyncPoints,
    launch_path::LaunchPath,
    implementation::Implementation,
    driver_calls::DriverCalls,
    wait_modes::WaitModes,
    cold_start::ColdStart,
    layers::Layers,
    memory_ways::MemoryWays,
    multi_device::MultiDevice,
    wait_parts::WaitParts,
    pytorch_calls::PytorchCalls,
    ceilings::Ceilings,
}

/// A count that is known not to be 0.
const fn count(value: usize) -> NonZeroUsize {
    match NonZeroUsize::new(value) {
        Some(value) => value,
        None => NonZeroUsize::MIN,
    }
}
