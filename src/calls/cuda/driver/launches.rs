//! Launches, and settings of the context.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use cudarc::driver::sys::{
    self, CUfunc_cache, CUfunction, CUlaunchAttribute, CUlaunchAttributeID, CUlaunchAttributeValue, CUlaunchConfig,
    CUlimit, CUresult, CUstream,
};

use super::{Calls, LEGACY, Status, call, nanoseconds, plain, provided, start};
use crate::On;
use crate::catalogue::Call;

/// Fewer launches than a stream's queue takes, and then more than it takes.
const BEFORE: usize = 1000;
const THEN: usize = 200;

pub(super) fn calls() -> Vec<Call> {
    vec![
        plain("cuLaunchKernel", On::Stream, |c| Ok(start(c.kernel, c.own.get()?))),
        plain("cuLaunchKernel", On::Legacy, |c| Ok(start(c.kernel, LEGACY))).way("legacy default stream"),
        programmatic(|c| Ok(extended(c.kernel, c.own.get()?, Duration::ZERO, true))).way("programmatic"),
        plain("cuLaunchCooperativeKernel", On::Stream, |c| {
            let mut nanoseconds = 0u64;
            let mut arguments = [(&raw mut nanoseconds).cast::<c_void>()];
            let (own, arguments) = (c.own.get()?, arguments.as_mut_ptr());
            // Safety: the kernel takes one word, which the driver copies before it returns.
            Ok(unsafe { sys::cuLaunchCooperativeKernel(c.kernel, 1, 1, 1, 1, 1, 1, 0, own, arguments) })
        }),
        call("cuLaunchKernel", On::Stream, |calls| {
            let before = Arc::clone(calls);
            let launches = calls.made("cuLaunchKernel", |_| Ok(()), |c, ()| many(c, THEN));
            Ok(launches.behind(move |()| before.check("cuLaunchKernel", many(&before, BEFORE)?)).boxed())
        })
        .way("full queue"),
        plain("cuCtxGetLimit", On::Nothing, |_| Ok(limit(CUlimit::CU_LIMIT_STACK_SIZE, &mut 0))),
        set_limit(CUlimit::CU_LIMIT_STACK_SIZE).way("stack"),
        set_limit(CUlimit::CU_LIMIT_PRINTF_FIFO_SIZE).way("printf buffer"),
        set_limit(CUlimit::CU_LIMIT_MALLOC_HEAP_SIZE).way("heap"),
        plain("cuCtxSetCacheConfig", On::Nothing, |_| {
            // Safety: the context is current.
            Ok(unsafe { sys::cuCtxSetCacheConfig(CUfunc_cache::CU_FUNC_CACHE_PREFER_NONE) })
        }),
        // Safety: as above.
        plain("cuCtxResetPersistingL2Cache", On::Nothing, |_| Ok(unsafe { sys::cuCtxResetPersistingL2Cache() })),
        provided(
            |c| c.require("cuCtxSetFlags"),
            // Safety: as above. They are what they were.
            plain("cuCtxSetFlags", On::Nothing, |c| Ok(unsafe { sys::cuCtxSetFlags(c.flags) })),
        ),
    ]
}

/// Makes so many launches, up to the first that fails.
pub(super) fn first_failure(count: usize, mut launch: impl FnMut() -> CUresult) -> Status {
    let failed = (0..count).map(|_| launch()).find(|status| *status != CUresult::CUDA_SUCCESS);
    Ok(failed.unwrap_or(CUresult::CUDA_SUCCESS))
}

fn many(calls: &Calls, count: usize) -> Status {
    let own = calls.own.get()?;
    first_failure(count, || start(calls.kernel, own))
}

/// Launches by the extended call, where a kernel may start while the one before it ends.
pub(super) fn programmatic(run: impl Fn(&Calls) -> Status + Copy + 'static) -> Call {
    let may_start = |c: &Calls| match c.context.architecture()? {
        (9.., _) => Ok(()),
        _ => Err(c.missing("a programmatic launch", "it takes a GPU of architecture 9.0 or newer")),
    };
    provided(may_start, plain("cuLaunchKernelEx", On::Stream, run))
}

/// Launches a kernel of one argument by the extended call, with one attribute: whether it may start while the one before it
/// ends.
#[inline]
pub(super) fn extended(kernel: CUfunction, stream: CUstream, duration: Duration, programmatic: bool) -> CUresult {
    let mut attribute = CUlaunchAttribute {
        id: CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
        pad: [0; 4],
        value: CUlaunchAttributeValue { programmaticStreamSerializationAllowed: programmatic.into() },
    };
    let config = CUlaunchConfig {
        gridDimX: 1,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: 1,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: 0,
        hStream: stream,
        attrs: &raw mut attribute,
        numAttrs: 1,
    };
    let mut nanoseconds = nanoseconds(duration);
    let mut arguments = [(&raw mut nanoseconds).cast::<c_void>()];
    // Safety: the kernel takes one word; the driver copies configuration and arguments before it returns.
    unsafe { sys::cuLaunchKernelEx(&config, kernel, arguments.as_mut_ptr(), ptr::null_mut()) }
}

fn limit(limit: CUlimit, value: &mut usize) -> CUresult {
    // Safety: the context is current; writes one size.
    unsafe { sys::cuCtxGetLimit(value, limit) }
}

/// What a limit was, and is again when all is over.
struct Limit {
    calls: Arc<Calls>,
    which: CUlimit,
    before: usize,
}

impl Limit {
    /// By how much the limit is raised.
    const MORE: usize = 1024;

    fn set(&self, value: usize) -> CUresult {
        // Safety: the context is current.
        unsafe { sys::cuCtxSetLimit(self.which, value) }
    }
}

impl Drop for Limit {
    /// A drop cannot return an error.
    fn drop(&mut self) {
        let _ = self.calls.bind().map(|()| self.set(self.before));
    }
}

/// Raises a limit, which is set back each time.
fn set_limit(which: CUlimit) -> Call {
    call("cuCtxSetLimit", On::Nothing, move |calls| {
        let (mut before, c) = (0, Arc::clone(calls));
        calls.check("cuCtxGetLimit", limit(which, &mut before))?;
        let made = move |_: &Calls| Ok(Limit { calls: c.clone(), which, before });
        Ok(calls.made("cuCtxSetLimit", made, move |_, limit| Ok(limit.set(before + Limit::MORE))).boxed())
    })
}
