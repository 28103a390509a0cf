//! Launches through the layers above the driver, and in the ways that the driver offers: calls for the experiment about them.

use std::ffi::c_int;
use std::sync::Arc;
use std::time::Duration;

use cudarc::driver::sys::{self, CUresult, CUstream, CUstream_flags};
use cudarc::driver::{CudaContext, CudaFunction, CudaStream, DriverError, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::Ptx;

use syncscope::error::DeviceError;

pub use super::graphs::{set_parameters as graph_parameters, update as graph_update};
use super::owned::Owned;
use super::{Calls, KERNEL, Status, call, launch, launches, plain, start};
use crate::catalogue::Call;
use crate::{On, Result};

/// The kernel that has the device: many more blocks than run at a time, and how long each of them takes.
const BLOCKS: u32 = 4096;
const THREADS: u32 = 1024;
const LENGTH: Duration = Duration::from_micros(20);

/// So many launches by the driver's own call. All of these are on a stream that is ordered against no other, as those of
/// `cudarc` and of this library are.
pub fn driver(count: usize) -> Call {
    plain("cuLaunchKernel", On::Stream, move |c| {
        let own = c.non_blocking.get()?;
        launches::first_failure(count, || start(c.kernel, own))
    })
}

/// So many launches by the driver's extended call, each of which may start while the one before it ends: as the library
/// launches.
pub fn extended(count: usize) -> Call {
    launches::programmatic(move |c| {
        let own = c.non_blocking.get()?;
        launches::first_failure(count, || launches::extended(c.kernel, own, Duration::ZERO, true))
    })
}

/// So many launches by the safe interface of `cudarc`, on a stream of its own.
pub fn wrapper(count: usize) -> Call {
    call("LaunchArgs::launch", On::Stream, move |calls| {
        let through = Through::new(calls)?;
        Ok(calls.plain("cudarc", move |_| Ok(through.launch(count))))
    })
}

/// So many launches behind each other by the driver's extended call, and the wait for them. A kernel takes the length, half of
/// which needs nothing of the one before it; `programmatic` says whether it may start while that one ends.
pub fn chain(count: usize, length: Duration, programmatic: bool) -> Call {
    launches::programmatic(move |c| {
        let (own, kernel) = (c.non_blocking.get()?, c.instruments.halves);
        let launched = launches::first_failure(count, || launches::extended(kernel, own, length, programmatic))?;
        then_wait(c, launched, own)
    })
}

/// A launch on a stream of the highest or lowest priority and the wait for it, while a kernel of many blocks has the device.
pub fn priority(highest: bool) -> Call {
    call("cuLaunchKernel", On::Stream, move |calls| {
        let stream = of_priority(calls, highest)?;
        Ok(calls.plain("cuLaunchKernel", move |c| {
            let stream = stream.get()?;
            // Here and not before the call, which is timed with nothing pending.
            occupy(c)?;
            then_wait(c, start(c.kernel, stream), stream)
        }))
    })
}

fn then_wait(calls: &Calls, launched: CUresult, stream: CUstream) -> Status {
    calls.check("cuLaunchKernel", launched)?;
    // Safety: the stream is live.
    Ok(unsafe { sys::cuStreamSynchronize(stream) })
}

/// Enqueues a kernel that has the whole device for some hundred microseconds.
fn occupy(calls: &Calls) -> Result<()> {
    let mut nanoseconds = super::nanoseconds(LENGTH);
    let mut arguments = [(&raw mut nanoseconds).cast()];
    // Safety: the kernel takes one word and touches no memory.
    let status = unsafe { launch(calls.kernel, [BLOCKS, THREADS], calls.other.get()?, &mut arguments) };
    calls.check("cuLaunchKernel", status)
}

/// A stream of the highest or the lowest priority that there is.
fn of_priority(calls: &Calls, highest: bool) -> Result<Owned<CUstream>> {
    calls.require("cuCtxGetStreamPriorityRange")?;
    let (mut least, mut greatest): (c_int, c_int) = (0, 0);
    // Safety: writes two integers; the context is current.
    let status = unsafe { sys::cuCtxGetStreamPriorityRange(&mut least, &mut greatest) };
    calls.check("cuCtxGetStreamPriorityRange", status)?;
    if least == greatest {
        return Err(calls.missing("priorities of streams", "streams of this device have no priorities"));
    }
    let priority = if highest { greatest } else { least };
    let apart = CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
    // Safety: writes one handle.
    let create = |stream: &mut CUstream| unsafe { sys::cuStreamCreateWithPriority(stream, apart, priority) };
    Owned::new(&calls.context, "cuStreamCreateWithPriority", sys::cuStreamDestroy_v2, create)
}

/// The kernel in the safe interface of `cudarc`, as a program that uses it has it.
struct Through {
    stream: Arc<CudaStream>,
    kernel: CudaFunction,
}

impl Through {
    fn new(calls: &Calls) -> Result<Self> {
        let ordinal = usize::try_from(calls.context.device()).unwrap_or(0);
        let made = || {
            let context = CudaContext::new(ordinal)?;
            let kernel = context.load_module(Ptx::from_binary(calls.image.to_vec()))?;
            Ok(Self { stream: context.new_stream()?, kernel: kernel.load_function(&KERNEL.to_string_lossy())? })
        };
        made()
            .map_err(|DriverError(code)| DeviceError::call_failed(calls.context.name(), "cudarc", format!("{code:?}")))
    }

    fn launch(&self, count: usize) -> CUresult {
        const ONE: LaunchConfig = LaunchConfig { grid_dim: (1, 1, 1), block_dim: (1, 1, 1), shared_mem_bytes: 0 };
        let nanoseconds = 0u64;
        let launch = || {
            let mut launch = self.stream.launch_builder(&self.kernel);
            launch.arg(&nanoseconds);
            // Safety: the kernel takes one word and touches no memory.
            unsafe { launch.launch(ONE) }.map(drop)
        };
        (0..count).try_for_each(|_| launch()).map_or_else(|DriverError(code)| code, |()| CUresult::CUDA_SUCCESS)
    }
}

impl Drop for Through {
    /// Nothing of it may run when the module is unloaded. A drop cannot return an error.
    fn drop(&mut self) {
        let _ = self.stream.synchronize();
    }
}
