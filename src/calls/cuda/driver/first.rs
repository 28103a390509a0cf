//! The first kernel of a process: what loading and launching it takes, step by step.

use std::sync::Arc;

use cudarc::driver::sys;

use super::{KERNEL, function, module, start, stream};
use crate::Result;
use syncscope::device::raw::Context;
use syncscope::measure::host_time;

/// Loads a module with the kernel [`KERNEL`], finds the kernel, and launches it twice, each time until it is over: the seconds
/// of each step. The driver may load the kernel with the module or with its first launch.
pub(crate) fn first_kernel(context: &Arc<Context>, image: &[u8]) -> Result<[f64; 4]> {
    context.bind()?;
    let stream = stream(context, sys::CUstream_flags::CU_STREAM_NON_BLOCKING)?;
    let (module, load) = host_time(|| module(context, image))?;
    let (kernel, find) = host_time(|| function(context, module.get()?, KERNEL))?;
    let once = || {
        context.check("cuLaunchKernel", start(kernel, stream.get()?))?;
        // Safety: the stream is live.
        context.check("cuStreamSynchronize", unsafe { sys::cuStreamSynchronize(stream.get()?) })
    };
    let ((), first) = host_time(once)?;
    let ((), second) = host_time(once)?;
    Ok([load, find, first, second])
}
