//! Launches through the layers above the driver, and in the ways that the driver offers.

use std::ffi::c_int;
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use cudarc::driver::sys::{self, CUstream, CUstream_flags};
use cudarc::driver::{CudaContext, CudaFunction, CudaStream, DriverError, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::Ptx;

use super::owned::Owned;
use super::{Calls, KERNEL, launches};
use crate::Result;
use crate::layer::Layer;
use crate::{Made, Steps};
use syncscope::device::raw::Context;
use syncscope::error::DeviceError;

/// The kernel that has the device: many more blocks than run at a time, and how long each of them takes.
const BLOCKS: u32 = 4096;
const THREADS: u32 = 1024;
const LENGTH: Duration = Duration::from_micros(20);

pub(super) fn steps(calls: &Arc<Calls>, layer: Layer) -> Result<Box<dyn Steps>> {
    // Ordered against no other, as those of `cudarc` and of this library are.
    let (c, own) = (Arc::clone(calls), calls.non_blocking.get()?);
    Ok(match layer {
        Layer::Driver(count) => {
            Made::new(|| Ok(()), move |()| (0..count).try_for_each(|_| c.launch(own, Duration::ZERO))).boxed()
        }
        Layer::Extended(count) => {
            launches::has_programmatic_launches(calls)?;
            let launch = move || launches::extended(&c, c.kernel, own, Duration::ZERO, true);
            Made::new(|| Ok(()), move |()| (0..count).try_for_each(|_| launch())).boxed()
        }
        Layer::Wrapper(count) => {
            let through = Through::new(&calls.context, &calls.image)?;
            Made::new(|| Ok(()), move |()| through.launch(count)).boxed()
        }
        Layer::Chain { launches: count, length, programmatic } => {
            launches::has_programmatic_launches(calls)?;
            let call = move || {
                let kernel = c.instruments.halves;
                (0..count).try_for_each(|_| launches::extended(&c, kernel, own, length, programmatic))?;
                // Safety: the stream is live.
                c.check("cuStreamSynchronize", unsafe { sys::cuStreamSynchronize(own) })
            };
            Made::new(|| Ok(()), move |()| call()).boxed()
        }
        Layer::Priority { highest } => {
            let stream = of_priority(calls, highest)?;
            let other = calls.other.get()?;
            let call = move || {
                // Here and not before the call, which is timed with nothing pending.
                occupy(&c, other)?;
                c.launch(stream.get()?, Duration::ZERO)?;
                // Safety: the stream is live.
                c.check("cuStreamSynchronize", unsafe { sys::cuStreamSynchronize(stream.get()?) })
            };
            Made::new(|| Ok(()), move |()| call()).boxed()
        }
    })
}

/// Enqueues a kernel that has the whole device for some hundred microseconds.
fn occupy(calls: &Calls, stream: CUstream) -> Result<()> {
    let mut nanoseconds = u64::try_from(LENGTH.as_nanos()).unwrap_or(0);
    let mut arguments = [(&raw mut nanoseconds).cast()];
    // Safety: the kernel takes one word, which the driver copies before it returns, and touches no memory.
    let status = unsafe {
        sys::cuLaunchKernel(
            calls.kernel,
            BLOCKS,
            1,
            1,
            THREADS,
            1,
            1,
            0,
            stream,
            arguments.as_mut_ptr(),
            ptr::null_mut(),
        )
    };
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
    let (mut raw, apart) = (ptr::null_mut(), CUstream_flags::CU_STREAM_NON_BLOCKING as u32);
    let priority = if highest { greatest } else { least };
    // Safety: writes one handle.
    let status = unsafe { sys::cuStreamCreateWithPriority(&mut raw, apart, priority) };
    calls.check("cuStreamCreateWithPriority", status)?;
    Ok(Owned::of(&calls.context, raw, sys::cuStreamDestroy_v2))
}

/// The kernel in the safe interface of `cudarc`, as a program that uses it has it.
struct Through {
    stream: Arc<CudaStream>,
    kernel: CudaFunction,
    context: Arc<Context>,
}

impl Through {
    fn new(context: &Arc<Context>, image: &[u8]) -> Result<Self> {
        let ordinal = context.name().rsplit(':').next().and_then(|index| index.parse().ok()).unwrap_or(0);
        let made = || {
            let context = CudaContext::new(ordinal)?;
            let kernel = context.load_module(Ptx::from_binary(image.to_vec()))?.load_function(KERNEL)?;
            Ok((context.new_stream()?, kernel))
        };
        let made: std::result::Result<_, DriverError> = made();
        let (stream, kernel) = checked(context, made)?;
        Ok(Self { stream, kernel, context: context.clone() })
    }

    fn launch(&self, count: usize) -> Result<()> {
        const ONE: LaunchConfig = LaunchConfig { grid_dim: (1, 1, 1), block_dim: (1, 1, 1), shared_mem_bytes: 0 };
        let nanoseconds = 0u64;
        let launch = || {
            let mut launch = self.stream.launch_builder(&self.kernel);
            launch.arg(&nanoseconds);
            // Safety: the kernel takes one word and touches no memory.
            unsafe { launch.launch(ONE) }.map(drop)
        };
        checked(&self.context, (0..count).try_for_each(|_| launch()))
    }
}

/// What `cudarc` has returned, whose status no other call of this crate has seen.
fn checked<T>(context: &Context, result: std::result::Result<T, DriverError>) -> Result<T> {
    result.map_err(|DriverError(code)| match context.check("cudarc", code) {
        Err(error) => error,
        // An error of the driver is no success.
        Ok(()) => DeviceError::InvalidArgument { operation: "cudarc", reason: format!("{code:?}") },
    })
}

impl Drop for Through {
    /// Nothing of it may run when the module is unloaded. A drop cannot return an error.
    fn drop(&mut self) {
        let _ = self.stream.synchronize();
    }
}
