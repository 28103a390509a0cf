//! Work whose end the host sees by itself, the device's clock, and a function of the host that a stream calls.

use std::ffi::c_void;
use std::ptr;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use cudarc::driver::sys::{self, CUresult};

use super::{Calls, RigStream};
use crate::device::cuda::driver::PoolSpan;
use crate::device::engine::Result;

impl Calls {
    /// Enqueues a kernel that takes this long and whose last action makes the word at the head of `flag` this value. The second
    /// 8 bytes become the device's time just before.
    ///
    /// The caller keeps the word until the stream is past it.
    pub(crate) fn mark(&self, line: RigStream, duration: Duration, flag: PoolSpan, mut value: u32) -> Result<()> {
        let (context, stream) = self.stream(line)?;
        context.bind()?;
        let mut nanoseconds = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let mut address = flag.address();
        let mut arguments =
            [(&raw mut nanoseconds).cast::<c_void>(), (&raw mut address).cast(), (&raw mut value).cast()];
        // Safety: the kernel takes these three words, which the driver copies before it returns; the flag is mapped for the
        // device, aligned, and kept by the caller.
        let status = unsafe {
            sys::cuLaunchKernel(
                self.instruments.marker,
                1,
                1,
                1,
                1,
                1,
                1,
                0,
                stream,
                arguments.as_mut_ptr(),
                ptr::null_mut(),
            )
        };
        context.check("cuLaunchKernel", status)
    }

    /// Enqueues a kernel that tells the device's time as often as the host asks: the second 8 bytes of `flag` become the step of
    /// the device's clock, and then the time, each time that its first word comes to the next number from `first` on. It ends
    /// after `questions`, or when none comes for as long as `limit`.
    ///
    /// The caller keeps the flag until the stream is past it.
    pub(crate) fn tell_time(
        &self,
        line: RigStream,
        flag: PoolSpan,
        mut first: u32,
        mut questions: u32,
        limit: Duration,
    ) -> Result<()> {
        let (context, stream) = self.stream(line)?;
        context.bind()?;
        let mut address = flag.address();
        let mut nanoseconds = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        let mut arguments = [
            (&raw mut address).cast::<c_void>(),
            (&raw mut first).cast(),
            (&raw mut questions).cast(),
            (&raw mut nanoseconds).cast(),
        ];
        // Safety: the kernel takes these four words, which the driver copies before it returns; the flag is mapped for the
        // device, aligned, as long as a cell, and kept by the caller.
        let status = unsafe {
            sys::cuLaunchKernel(
                self.instruments.clock,
                1,
                1,
                1,
                1,
                1,
                1,
                0,
                stream,
                arguments.as_mut_ptr(),
                ptr::null_mut(),
            )
        };
        context.check("cuLaunchKernel", status)
    }

    /// Whether a stream is idle, as the driver says.
    pub(crate) fn is_idle(&self, line: RigStream) -> Result<bool> {
        let (context, stream) = self.stream(line)?;
        context.bind()?;
        // Safety: the stream is live.
        match unsafe { sys::cuStreamQuery(stream) } {
            CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            status => context.check("cuStreamQuery", status).map(|()| true),
        }
    }

    /// Enqueues a function of the host that wakes whoever waits by `wake`.
    pub(crate) fn wake(&self, line: RigStream, wake: &Arc<Wake>) -> Result<()> {
        let (context, stream) = self.stream(line)?;
        context.bind()?;
        let data = Arc::into_raw(Arc::clone(wake)).cast_mut().cast::<c_void>();
        // Safety: the function takes a share of a `Wake`, which is its own.
        let status = unsafe { sys::cuLaunchHostFunc(stream, Some(woken), data) };
        if status != CUresult::CUDA_SUCCESS {
            // Safety: the share that the function was not given.
            drop(unsafe { Arc::from_raw(data.cast_const().cast::<Wake>()) });
        }
        context.check("cuLaunchHostFunc", status)
    }
}

/// What a thread waits for that a stream wakes.
#[derive(Default)]
pub(crate) struct Wake {
    woken: Mutex<bool>,
    changed: Condvar,
}

impl Wake {
    /// Waits until the stream has come to it; whether that was within the limit.
    pub(crate) fn wait(&self, limit: Duration) -> bool {
        let woken = self.woken.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(woken, limit, |woken| !*woken);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Called by a thread of the driver.
unsafe extern "C" fn woken(data: *mut c_void) {
    // Safety: the share that was given to the driver; it calls the function once.
    let wake = unsafe { Arc::from_raw(data.cast_const().cast::<Wake>()) };
    *wake.woken.lock().unwrap_or_else(PoisonError::into_inner) = true;
    wake.changed.notify_all();
}
