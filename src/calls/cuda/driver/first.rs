//! The first kernel of a process: what loading and launching it takes, step by step.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cudarc::driver::sys;

use super::{KERNEL, function, module, start, stream};
use crate::Result;
use syncscope::device::raw::Context;

/// Loads a module with the kernel [`KERNEL`], finds the kernel, and launches it twice, each time until it is over: what each
/// step takes. The driver may load the kernel with the module or with its first launch.
pub(crate) fn first_kernel(context: &Arc<Context>, image: &[u8]) -> Result<[Duration; 4]> {
    context.bind()?;
    let stream = stream(context, sys::CUstream_flags::CU_STREAM_NON_BLOCKING)?;
    let (module, load) = timed(|| module(context, image))?;
    let (kernel, find) = timed(|| function(context, module.get()?, KERNEL))?;
    let once = || {
        context.check("cuLaunchKernel", start(kernel, stream.get()?))?;
        // Safety: the stream is live.
        context.check("cuStreamSynchronize", unsafe { sys::cuStreamSynchronize(stream.get()?) })
    };
    let ((), first) = timed(once)?;
    let ((), second) = timed(once)?;
    Ok([load, find, first, second])
}

fn timed<T>(step: impl FnOnce() -> Result<T>) -> Result<(T, Duration)> {
    let start = Instant::now();
    let made = step()?;
    Ok((made, start.elapsed()))
}
