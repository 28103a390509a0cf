//! Work whose end the host sees by itself, the device's clock, and a function of the host that a stream calls.

use std::ffi::c_void;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use cudarc::driver::sys::{self, CUresult};

use super::owned::Block;
use super::{Calls, launch, nanoseconds};
use crate::catalogue::Memory;
use crate::{Result, StreamRole};
use syncscope::device::raw::Flag;

/// A flag of 32 bits and, 8 bytes behind it, a time that the device tells: page-locked memory that both sides see.
pub(in crate::cuda) struct Cell(Block);

impl Cell {
    /// The time's place, in words of 8 bytes.
    const TIME: usize = 1;

    pub(in crate::cuda) fn new(calls: &Calls) -> Result<Self> {
        Block::new(&calls.context, Memory::Pinned, 64).map(Self)
    }

    /// As a stream waits for it.
    pub(in crate::cuda) fn is(&self, target: u32) -> Result<Flag> {
        self.0.on_device().map(|address| Flag { address, target })
    }

    pub(in crate::cuda) fn flag(&self) -> Result<&AtomicU32> {
        // Safety: aligned, and kept as long as the cell; the host touches it through here alone.
        self.0.start().map(|start| unsafe { AtomicU32::from_ptr(start.cast()) })
    }

    pub(in crate::cuda) fn time(&self) -> Result<u64> {
        // Safety: within the block and aligned; the device writes it in one.
        self.0.start().map(|start| unsafe { start.cast::<u64>().add(Self::TIME).read_volatile() })
    }
}

// Safety: the driver's memory is not bound to a thread; it is changed by atomic operations, or by the device alone.
unsafe impl Send for Cell {}
// Safety: as above.
unsafe impl Sync for Cell {}

impl Calls {
    /// Enqueues a kernel that takes this long and whose last action makes the word of `flag` its target. The second 8 bytes
    /// become the device's time just before.
    ///
    /// The caller keeps the cell until the stream is past it.
    pub(in crate::cuda) fn mark(&self, line: StreamRole, duration: Duration, flag: Flag) -> Result<()> {
        let (context, stream) = self.stream(line)?;
        context.bind()?;
        let (mut nanoseconds, Flag { mut address, mut target }) = (nanoseconds(duration), flag);
        let mut arguments =
            [(&raw mut nanoseconds).cast::<c_void>(), (&raw mut address).cast(), (&raw mut target).cast()];
        // Safety: the kernel takes these three words; the cell is mapped for the device, aligned, and kept by the caller.
        let status = unsafe { launch(self.instruments.marker, [1, 1], stream, &mut arguments) };
        context.check("cuLaunchKernel", status)
    }

    /// Enqueues a kernel that tells the device's time as often as the host asks: the second 8 bytes of the cell of `first` become
    /// the step of the device's clock, and then the time, each time that its flag comes to the next number from the target on.
    /// It ends after `questions`, or when none comes for as long as `limit`.
    ///
    /// The caller keeps the cell until the stream is past it.
    pub(in crate::cuda) fn tell_time(
        &self,
        line: StreamRole,
        first: Flag,
        mut questions: u32,
        limit: Duration,
    ) -> Result<()> {
        let (context, stream) = self.stream(line)?;
        context.bind()?;
        let (mut nanoseconds, Flag { mut address, mut target }) = (nanoseconds(limit), first);
        let mut arguments = [
            (&raw mut address).cast::<c_void>(),
            (&raw mut target).cast(),
            (&raw mut questions).cast(),
            (&raw mut nanoseconds).cast(),
        ];
        // Safety: the kernel takes these four words; the cell is mapped for the device, aligned, and kept by the caller.
        let status = unsafe { launch(self.instruments.clock, [1, 1], stream, &mut arguments) };
        context.check("cuLaunchKernel", status)
    }

    /// Whether a stream is idle, as the driver says.
    pub(in crate::cuda) fn is_idle(&self, line: StreamRole) -> Result<bool> {
        let (context, stream) = self.stream(line)?;
        context.bind()?;
        // Safety: the stream is live.
        match unsafe { sys::cuStreamQuery(stream) } {
            CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            status => context.check("cuStreamQuery", status).map(|()| true),
        }
    }

    /// Enqueues a function of the host that wakes whoever waits by `wake`.
    pub(in crate::cuda) fn wake(&self, line: StreamRole, wake: &Arc<Wake>) -> Result<()> {
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
pub(in crate::cuda) struct Wake {
    woken: Mutex<bool>,
    changed: Condvar,
}

impl Wake {
    /// Waits until the stream has come to it; whether that was within the limit.
    pub(in crate::cuda) fn wait(&self, limit: Duration) -> bool {
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
