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

/// Declares the parameters of an experiment, each with its default.
macro_rules! parameters {
    ($(#[$about:meta])* pub struct $name:ident {
        $($(#[$what:meta])* $field:ident: $type:ty = $default:expr,)+
    }) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        pub struct $name {
            $($(#[$what])* pub $field: $type,)+
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default,)+ }
            }
        }
    };
}

mod bench;
pub mod counts;
mod each_round;
mod formula;
mod group;
mod host_copy;
mod recorder;
mod registry;

pub(crate) use bench::Bench;
pub use bench::RunObserver;
pub use formula::Formula;
pub use group::{Group, GroupBuilder, Part, RowId};
pub use recorder::{Pass, TraceRecorder, has_scenarios, record_scenarios};
pub use registry::{AnyExperiment, Experiment, Registry, RegistryEntry, WrongParameters};

use crate::error::DeviceError;

/// What came of work on a device.
type Result<T, E = DeviceError> = std::result::Result<T, E>;

/// What experiments are written with.
mod prelude {
    pub(super) use std::cell::RefCell;
    pub(super) use std::hint::black_box;
    pub(super) use std::rc::Rc;
    pub(super) use std::time::Duration;

    pub(super) use schemars::JsonSchema;
    pub(super) use serde::{Deserialize, Serialize};

    pub(super) use super::bench::{matmul_flops, null_device, print_to, random_matmul};
    pub(super) use super::counts::{Bounded, Count, Factor, Length, Size, count};
    pub(super) use super::each_round::EachRound;
    pub(super) use super::host_copy::{Direction, HostCopy, TO_DEVICE, TO_HOST, fastest_memory, room_for};
    pub(super) use super::{Experiment, Formula, Group, GroupBuilder, Part, Result, RowId, TraceRecorder};
    pub(super) use crate::device::{Device, Event, Float, FloatType, HostKind, Stream};
    pub(super) use crate::error::DeviceError;
    pub(super) use crate::measure::{Clock, Stopwatch};
    pub(super) use crate::results::{Derivation, Parameter, Parameters, Work};
    pub(super) use crate::tensor::Tensor;
    pub(super) use crate::timeline::{Kind, Timeline};
    pub(super) use crate::units::{Seconds, Unit};
}

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
    crate_calls::CrateCalls,
    kernel::Kernel,
    ceilings::Ceilings,
}
