//! What the CUDA engine lends to code that calls the driver itself: low-level, and for measuring the driver alone.
//!
//! Nothing here is needed to run work. It is a door to what the engine keeps to itself, for calls which the engine does not
//! make. Its types are those of `cudarc`, and change with its version.
//!
//! Who calls the driver beside the engine
//! * uses streams, events and memory of its own: the engine puts its own work in order by guards that it alone has;
//! * [binds](Context::bind) the context on its thread before it calls, and has [`Context::check`] see every status, so that
//!   no thread calls the driver while the process ends, and a lost device is known by its first cause;
//! * ends and resets no context, and leaves its settings as they were;
//! * closes a [gate](super::super::Gate) by [`flag`] alone, so that the engine makes nothing meanwhile that could wait for it.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

pub use super::driver::context::{Context, device_count};
pub use super::driver::libraries::driver_function;
pub use super::driver::nccl::library as nccl;
use super::engine::CudaEngine;
use super::kernels::Kernels;
use super::stream::gate::CudaGate;
use crate::device::engine::Result;
use crate::device::tracer::{CallInfo, Kind};
use crate::device::{Device, Gate, Stream};
use crate::error::DeviceError;

/// The context of a device of this engine; `None` for a device of another one.
///
/// # Errors
/// The device is lost.
pub fn context(device: &Device) -> Result<Option<Arc<Context>>> {
    let engine: &dyn Any = &**device.engine();
    engine.downcast_ref::<CudaEngine>().map(CudaEngine::context).transpose()
}

/// The machine code of a file of the library's kernels, such as `spin.cu`: compiled, or from the folder of compiled kernels.
///
/// # Errors
/// There is no NVRTC, or no such file.
pub fn image(context: &Arc<Context>, file: &str) -> Result<Vec<u8>> {
    Kernels::new(context)?.image_of(file)
}

/// Host time of `launches` bare launches of a small kernel with prepared arguments, by the driver's own call: the floor of what a
/// launch can cost.
///
/// # Errors
/// [`NotApplicable`](DeviceError::NotApplicable) for a stream of another engine; [`Capturing`](DeviceError::Capturing) while the
/// stream is captured; those of every launch.
pub fn launch_loop(stream: &Stream, launches: usize) -> Result<Duration> {
    let device = stream.device();
    let engine: &dyn Any = &**device.engine();
    let Some(engine) = engine.downcast_ref::<CudaEngine>() else {
        let why = "the engine's queue is its lowest level";
        return Err(DeviceError::not_applicable("a bare kernel launch", device.name(), why));
    };
    let note = CallInfo::enqueue("raw_launch_loop", Some(Kind::Kernel));
    stream.noted(note, None, || engine.launch_loop(stream.raw(), launches))
}

/// What holds a stream that is not the engine's: an aligned word of page-locked memory, mapped for all devices.
#[derive(Clone, Copy, Debug)]
pub struct Flag {
    /// The word's address, as a device finds it.
    pub address: u64,
    /// The stream goes on when the word is at least this, compared around its 32 bits.
    pub target: u32,
}

/// What a stream waits for that `gate` is to hold; `None` for a gate of another engine. From now on until the gate opens, the
/// engine makes nothing that could wait for it. Keep the gate until the stream is past the word.
///
/// # Errors
/// [`NotApplicable`](DeviceError::NotApplicable) where the driver has no wait of a stream for a word of memory.
pub fn flag(gate: &Gate) -> Result<Option<Flag>> {
    let gate: &dyn Any = gate.raw();
    gate.downcast_ref::<CudaGate>().map(CudaGate::lend).transpose()
}
