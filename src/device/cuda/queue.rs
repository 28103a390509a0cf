//! A stream of the driver with what belongs to it alone: fault words and scratch memory.
//!
//! Separate from [`CudaStream`](super::stream::CudaStream) because memory holds on to the streams it was used on.

use std::ffi::c_void;
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::sys::{self, CUdeviceptr, CUfunction, CUresult, CUstream};

use super::context::Context;
use super::fault::Fault;
use super::handles::StreamHandle;
use super::kernels::Kernel;
use super::pinned::Purpose;
use crate::device::engine::Result;

/// What the reductions of one stream share: two words and a result a block, at most 1024 (see `kernels/reduce.cu`).
const REDUCE_BYTES: usize = 4 * (2 + REDUCE_BLOCKS as usize);

/// The largest grid of a reduction. The same on every device, so that sums are too.
pub(super) const REDUCE_BLOCKS: u32 = 1024;

/// Room for a matrix product's intermediate results: what cuBLAS takes by itself on current devices.
pub(super) const WORKSPACE_BYTES: usize = 32 << 20;

/// A stream, destroyed on drop without waiting.
pub(super) struct Queue {
    handle: StreamHandle,
    fault: Fault,
    scratch: Mutex<Scratch>,
    // Last: the stream is destroyed before its context can be.
    pub(super) context: Arc<Context>,
}

/// Allocated at first use; 0 until then.
#[derive(Default)]
struct Scratch {
    reduce: CUdeviceptr,
    workspace: CUdeviceptr,
}

impl Queue {
    /// A new stream; the context is current.
    pub(super) fn new(context: Arc<Context>) -> Result<Self> {
        let handle = StreamHandle::new(&context.primary)?;
        let fault = Fault::new(context.pinned.take_cell(&context.primary, Purpose::Fault)?);
        Ok(Self { context, handle, fault, scratch: Mutex::default() })
    }

    #[inline]
    pub(super) fn raw(&self) -> CUstream {
        self.handle.raw()
    }

    /// The head of every call: makes the context current and fails if enqueued work has failed.
    #[inline]
    pub(super) fn begin(&self) -> Result<()> {
        self.check_fault()?;
        self.context.bind()
    }

    /// Fails once a kernel of this stream has reported a fault.
    #[inline]
    pub(super) fn check_fault(&self) -> Result<()> {
        self.fault.check(self.context.primary.name())
    }

    /// The fault words, for kernels.
    pub(super) fn fault(&self) -> CUdeviceptr {
        self.fault.device()
    }

    /// Turns a status into a result that names the call and the device.
    #[inline]
    pub(super) fn check(&self, call: &'static str, status: CUresult) -> Result<()> {
        self.context.check(call, status)
    }

    /// Blocks until all work enqueued so far has completed, and fails if some of it did.
    pub(super) fn synchronize(&self) -> Result<()> {
        // Safety: the stream is live.
        self.check("cuStreamSynchronize", unsafe { sys::cuStreamSynchronize(self.raw()) })?;
        self.check_fault()
    }

    /// The handle of a kernel.
    #[inline]
    pub(super) fn function(&self, kernel: Kernel) -> Result<CUfunction> {
        self.context.kernels.function(&self.context.primary, kernel)
    }

    /// Enqueues a kernel.
    ///
    /// # Safety
    /// `arguments` point to values of the types that the kernel declares, in its order; the memory they name is
    /// allocated in this stream's order and large enough for what the kernel does with it.
    #[inline]
    pub(super) unsafe fn launch(
        &self,
        kernel: Kernel,
        blocks: u32,
        threads: u32,
        arguments: &mut [*mut c_void],
    ) -> Result<()> {
        let function = self.function(kernel)?;
        // Safety: the caller's promise; the driver copies the arguments before it returns.
        unsafe { self.launch_function(function, blocks, threads, arguments) }
    }

    /// As [`launch`](Self::launch), with a handle in hand.
    ///
    /// # Safety
    /// As `launch`.
    #[inline]
    pub(super) unsafe fn launch_function(
        &self,
        function: CUfunction,
        blocks: u32,
        threads: u32,
        arguments: &mut [*mut c_void],
    ) -> Result<()> {
        // Safety: the caller's promise.
        let status = unsafe {
            let (parameters, stream, none) = (arguments.as_mut_ptr(), self.raw(), std::ptr::null_mut());
            sys::cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, stream, parameters, none)
        };
        self.check("cuLaunchKernel", status)
    }

    /// Memory in this stream's order; `bytes` is more than 0.
    pub(super) fn allocate(&self, bytes: usize) -> Result<CUdeviceptr> {
        self.context.pool.allocate(&self.context.primary, bytes, self.raw())
    }

    /// Frees what [`allocate`](Self::allocate) gave, after the work enqueued so far.
    ///
    /// Runs in drops and on the way out of errors: its own error has nobody to tell.
    pub(super) fn free(&self, pointer: CUdeviceptr) {
        // Safety: allocated by `allocate`, freed once.
        unsafe { sys::cuMemFreeAsync(pointer, self.raw()) };
    }

    /// Enqueues zeroing memory.
    ///
    /// # Safety
    /// `pointer` names at least `bytes` bytes, allocated in this stream's order.
    pub(super) unsafe fn clear(&self, pointer: CUdeviceptr, bytes: usize) -> Result<()> {
        // Safety: the caller's promise.
        self.check("cuMemsetD8Async", unsafe { sys::cuMemsetD8Async(pointer, 0, bytes, self.raw()) })
    }

    /// The scratch memory of reductions, zeroed when it was made and by every reduction after itself.
    pub(super) fn reduce_scratch(&self) -> Result<CUdeviceptr> {
        let mut scratch = self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        if scratch.reduce == 0 {
            let pointer = self.allocate(REDUCE_BYTES)?;
            // Safety: just allocated, that long.
            unsafe { self.clear(pointer, REDUCE_BYTES) }.inspect_err(|_| self.free(pointer))?;
            scratch.reduce = pointer;
        }
        Ok(scratch.reduce)
    }

    /// [`WORKSPACE_BYTES`] for matrix products: one a stream, as products on two streams must not share it.
    pub(super) fn workspace(&self) -> Result<CUdeviceptr> {
        let mut scratch = self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        if scratch.workspace == 0 {
            scratch.workspace = self.allocate(WORKSPACE_BYTES)?;
        }
        Ok(scratch.workspace)
    }
}

impl Drop for Queue {
    /// Does not wait. Errors have nobody to tell.
    fn drop(&mut self) {
        let _ = self.context.bind();
        let scratch = self.scratch.get_mut().unwrap_or_else(PoisonError::into_inner);
        let pointers = [scratch.reduce, scratch.workspace];
        for pointer in pointers.into_iter().filter(|&pointer| pointer != 0) {
            self.free(pointer);
        }
        // Safety: the stream is live.
        match unsafe { sys::cuStreamQuery(self.raw()) } {
            CUresult::CUDA_SUCCESS => self.context.pinned.return_cell(self.fault.cell(), Purpose::Fault),
            // A kernel to come may yet write the fault words: they stay taken until the device closes.
            _ => self.context.close_after(self.raw()),
        }
    }
}
