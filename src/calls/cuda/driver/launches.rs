//! Launches, and settings of the context.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use cudarc::driver::sys::{
    self, CUfunc_cache, CUfunction, CUlaunchAttribute, CUlaunchAttributeID, CUlaunchAttributeValue, CUlaunchConfig,
    CUlimit, CUstream,
};

use super::{Calls, LEGACY};
use crate::Result;
use crate::catalogue::Launch;
use crate::made::plain;
use crate::{Made, Steps};

/// Fewer launches than a stream's queue takes, and then more than it takes.
const BEFORE: usize = 1000;
const THEN: usize = 200;

pub(super) fn steps(calls: &Arc<Calls>, call: Launch) -> Result<Box<dyn Steps>> {
    let (c, own) = (Arc::clone(calls), calls.own.get()?);
    Ok(match call {
        Launch::Plain => plain(move || c.launch(own, Duration::ZERO)),
        Launch::Legacy => plain(move || c.launch(LEGACY, Duration::ZERO)),
        Launch::Programmatic => {
            has_programmatic_launches(calls)?;
            plain(move || extended(&c, c.kernel, own, Duration::ZERO, true))
        }
        Launch::Cooperative => plain(move || {
            let mut nanoseconds = 0u64;
            let mut arguments = [(&raw mut nanoseconds).cast::<c_void>()];
            // Safety: the kernel takes one word, which the driver copies before it returns.
            let status =
                unsafe { sys::cuLaunchCooperativeKernel(c.kernel, 1, 1, 1, 1, 1, 1, 0, own, arguments.as_mut_ptr()) };
            c.check("cuLaunchCooperativeKernel", status)
        }),
        Launch::FullQueue => {
            let before = Arc::clone(calls);
            let many = move |c: &Calls, count: usize| (0..count).try_for_each(|_| c.launch(own, Duration::ZERO));
            Made::new(|| Ok(()), move |()| many(&c, THEN)).behind(move |()| many(&before, BEFORE)).boxed()
        }
        Launch::GetLimit => plain(move || limit(&c, CUlimit::CU_LIMIT_STACK_SIZE).map(drop)),
        Launch::SetStack => set_limit(calls, CUlimit::CU_LIMIT_STACK_SIZE)?,
        Launch::SetPrintf => set_limit(calls, CUlimit::CU_LIMIT_PRINTF_FIFO_SIZE)?,
        Launch::SetHeap => set_limit(calls, CUlimit::CU_LIMIT_MALLOC_HEAP_SIZE)?,
        Launch::SetCache => plain(move || {
            let none = CUfunc_cache::CU_FUNC_CACHE_PREFER_NONE;
            // Safety: the context is current.
            c.check("cuCtxSetCacheConfig", unsafe { sys::cuCtxSetCacheConfig(none) })
        }),
        Launch::ResetL2 => plain(move || {
            // Safety: as above.
            c.check("cuCtxResetPersistingL2Cache", unsafe { sys::cuCtxResetPersistingL2Cache() })
        }),
        Launch::SetFlags => {
            c.require("cuCtxSetFlags")?;
            let flags = calls.flags;
            plain(move || {
                // Safety: as above. They are what they were.
                c.check("cuCtxSetFlags", unsafe { sys::cuCtxSetFlags(flags) })
            })
        }
    })
}

/// Fails where no kernel may start while the one before it ends.
pub(super) fn has_programmatic_launches(calls: &Calls) -> Result<()> {
    match calls.context.architecture()? {
        (9.., _) => Ok(()),
        _ => Err(calls.missing("a programmatic launch", "it takes a GPU of architecture 9.0 or newer")),
    }
}

/// Launches a kernel of one argument by the extended call, with one attribute: whether it may start while the one before it
/// ends.
#[inline]
pub(super) fn extended(
    calls: &Calls,
    kernel: CUfunction,
    stream: CUstream,
    duration: Duration,
    programmatic: bool,
) -> Result<()> {
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
    let mut nanoseconds = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    let mut arguments = [(&raw mut nanoseconds).cast::<c_void>()];
    // Safety: the kernel takes one word; the driver copies configuration and arguments before it returns.
    let status = unsafe { sys::cuLaunchKernelEx(&config, kernel, arguments.as_mut_ptr(), ptr::null_mut()) };
    calls.check("cuLaunchKernelEx", status)
}

fn limit(calls: &Calls, limit: CUlimit) -> Result<usize> {
    let mut value = 0;
    // Safety: the context is current; writes one size.
    calls.check("cuCtxGetLimit", unsafe { sys::cuCtxGetLimit(&mut value, limit) }).map(|()| value)
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

    fn set(&self, value: usize) -> Result<()> {
        // Safety: the context is current.
        self.calls.check("cuCtxSetLimit", unsafe { sys::cuCtxSetLimit(self.which, value) })
    }
}

impl Drop for Limit {
    /// A drop cannot return an error.
    fn drop(&mut self) {
        let _ = self.calls.bind().and_then(|()| self.set(self.before));
    }
}

/// Raises a limit, which is set back each time.
fn set_limit(calls: &Arc<Calls>, which: CUlimit) -> Result<Box<dyn Steps>> {
    let (before, calls) = (limit(calls, which)?, Arc::clone(calls));
    let made = move || Ok(Limit { calls: calls.clone(), which, before });
    Ok(Made::new(made, move |limit: &mut Limit| limit.set(before + Limit::MORE)).boxed())
}
