//! A stream of the driver with what belongs to it alone: fault words, scratch memory, and spare memory.
//!
//! Separate from [`CudaStream`](super::CudaStream) because memory holds on to the streams it was used on.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cudarc::driver::sys::{
    self, CUdeviceptr, CUfunction, CUlaunchAttribute, CUlaunchAttributeID, CUlaunchAttributeValue, CUlaunchConfig,
    CUresult, CUstream,
};

use crate::device::cuda::context::Context;
use crate::device::cuda::driver::handles::StreamHandle;
use crate::device::cuda::kernels::Kernel;
use crate::device::cuda::memory::free_list::{self, FreeList};
use crate::device::cuda::memory::pinned::Purpose;
use crate::device::cuda::stream::fault::Fault;
use crate::device::engine::Result;

/// Room for a matrix product's intermediate results: what cuBLAS takes by itself on current devices.
pub(crate) const WORKSPACE_BYTES: usize = 32 << 20;

/// What a stream's scratch memory is for: kernels of one stream follow each other and share it, those of two do not.
#[derive(Clone, Copy)]
pub(crate) enum Scratch {
    /// Of reductions: zero before and after each (see `kernels/reduce.cu`).
    Reduce,
    /// Of the search for non-zeros: zero before and after each (see `kernels/compact.cu`).
    Groups,
    /// Of matrix products, of any content.
    Workspace,
}

/// Scratch memory.
#[derive(Default)]
struct Pieces {
    /// By [`Scratch`], with its size: none until it is needed.
    current: [(CUdeviceptr, usize); 3],
    /// What became too small, and another thread may be about to launch with.
    outgrown: Vec<CUdeviceptr>,
}

/// A stream, destroyed on drop without waiting.
pub(crate) struct StreamInner {
    handle: StreamHandle,
    fault: Fault,
    scratch: Mutex<Pieces>,
    spare: Mutex<FreeList>,
    /// Whether what is enqueued becomes a graph.
    capturing: AtomicBool,
    /// Whether the next elementwise kernel goes through its data backward.
    backward: AtomicBool,
    // Last: the stream is destroyed before its context can be.
    pub(crate) context: Arc<Context>,
}

impl StreamInner {
    /// A new stream; the context is current.
    pub(crate) fn new(context: Arc<Context>) -> Result<Self> {
        let handle = StreamHandle::new(&context.primary)?;
        let fault = Fault::new(context.pinned.take_cell(&context.primary, Purpose::Fault)?);
        let (scratch, spare) = (Mutex::default(), Mutex::default());
        Ok(Self { context, handle, fault, scratch, spare, capturing: false.into(), backward: false.into() })
    }

    #[inline]
    pub(crate) fn raw(&self) -> CUstream {
        self.handle.raw()
    }

    /// The head of every call: makes the context current and fails if enqueued work has failed.
    #[inline]
    pub(crate) fn begin(&self) -> Result<()> {
        self.check_fault()?;
        self.context.bind()
    }

    /// Fails once a kernel of this stream has reported a fault.
    #[inline]
    pub(crate) fn check_fault(&self) -> Result<()> {
        self.fault.check(self.context.primary.name())
    }

    /// The fault words, for kernels.
    pub(crate) fn fault(&self) -> CUdeviceptr {
        self.fault.device()
    }

    /// Turns a status into a result that names the call and the device.
    #[inline]
    pub(crate) fn check(&self, call: &'static str, status: CUresult) -> Result<()> {
        self.context.check(call, status)
    }

    /// Blocks until all work enqueued so far has completed, and fails if some of it did.
    pub(crate) fn synchronize(&self) -> Result<()> {
        // Safety: the stream is live.
        self.check("cuStreamSynchronize", unsafe { sys::cuStreamSynchronize(self.raw()) })?;
        self.check_fault()
    }

    /// The handle of a kernel.
    #[inline]
    pub(crate) fn function(&self, kernel: Kernel) -> Result<CUfunction> {
        self.context.kernels.function(&self.context.primary, kernel)
    }

    /// Enqueues a kernel, which may start while the one before it ends (see `wait_for_previous` in
    /// `kernels/types.cuh`).
    ///
    /// # Safety
    /// `arguments` point to values of the types that the kernel declares, in its order; the memory they name is
    /// allocated in this stream's order and large enough for what the kernel does with it.
    #[inline]
    pub(crate) unsafe fn launch(
        &self,
        kernel: Kernel,
        blocks: u32,
        threads: u32,
        arguments: &mut [*mut c_void],
    ) -> Result<()> {
        let function = self.function(kernel)?;
        let mut early = CUlaunchAttribute {
            id: CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
            pad: [0; 4],
            value: CUlaunchAttributeValue { programmaticStreamSerializationAllowed: 1 },
        };
        let config = CUlaunchConfig {
            gridDimX: blocks,
            gridDimY: 1,
            gridDimZ: 1,
            blockDimX: threads,
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: 0,
            hStream: self.raw(),
            attrs: &raw mut early,
            numAttrs: self.context.kernels.start_early().into(),
        };
        // Safety: the caller's promise; the driver copies configuration and arguments before it returns.
        let status = unsafe { sys::cuLaunchKernelEx(&config, function, arguments.as_mut_ptr(), ptr::null_mut()) };
        self.check("cuLaunchKernelEx", status)
    }

    /// 0 and 1 in turn: whether a kernel goes through its data backward (see `kernels/elementwise.cu`).
    #[inline]
    pub(crate) fn direction(&self) -> u32 {
        self.backward.fetch_xor(true, Ordering::Relaxed).into()
    }

    /// Memory in this stream's order; `bytes` is more than 0.
    #[inline]
    pub(crate) fn allocate(&self, bytes: usize) -> Result<CUdeviceptr> {
        let bytes = free_list::rounded(bytes);
        // Not in the head of the match: the lock would be held to its end, and to make room takes it again.
        let spare = self.spare().take(bytes);
        match spare {
            Some(pointer) => Ok(pointer),
            None if self.is_capturing() => self.context.allocate_apart(bytes),
            None => self.context.allocate(bytes, self.raw()),
        }
    }

    /// Frees what [`allocate`](Self::allocate) gave for `bytes`, after the work enqueued so far.
    #[inline]
    pub(crate) fn free(&self, pointer: CUdeviceptr, bytes: usize) {
        let mut spare = self.spare();
        spare.keep(free_list::rounded(bytes), pointer);
        // A free of the driver would become a part of a graph.
        while !self.is_capturing()
            && let Some(pointer) = spare.excess()
        {
            self.give_back(pointer);
        }
    }

    /// Gives what is spare back to the pool; whether there was anything.
    pub(crate) fn give_back_spare(&self) -> bool {
        let (mut spare, mut any) = (self.spare(), false);
        while !self.is_capturing()
            && let Some(pointer) = spare.oldest()
        {
            self.give_back(pointer);
            any = true;
        }
        any
    }

    /// Runs in drops and on the way out of errors: its own error has nobody to tell.
    #[cold]
    fn give_back(&self, pointer: CUdeviceptr) {
        let _ = self.context.bind();
        // Safety: allocated by `allocate`, given back once.
        unsafe { sys::cuMemFreeAsync(pointer, self.raw()) };
    }

    fn spare(&self) -> MutexGuard<'_, FreeList> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether what is enqueued becomes a graph instead of running.
    #[inline]
    pub(crate) fn is_capturing(&self) -> bool {
        self.capturing.load(Ordering::Relaxed)
    }

    /// Begins a capture by `begin`. No memory is given back to the driver meanwhile: that would become a part of it.
    pub(crate) fn capture(&self, begin: impl FnOnce() -> Result<()>) -> Result<()> {
        let _nothing_is_freed = self.spare();
        self.context.capture_begins();
        self.capturing.store(true, Ordering::Relaxed);
        begin().inspect_err(|_| self.capture_ended())
    }

    /// The capture is over.
    pub(crate) fn capture_ended(&self) {
        self.capturing.store(false, Ordering::Relaxed);
        self.context.capture_ended();
    }

    /// Enqueues zeroing memory.
    ///
    /// # Safety
    /// `pointer` names at least `bytes` bytes, allocated in this stream's order.
    pub(crate) unsafe fn clear(&self, pointer: CUdeviceptr, bytes: usize) -> Result<()> {
        // Safety: the caller's promise.
        self.check("cuMemsetD8Async", unsafe { sys::cuMemsetD8Async(pointer, 0, bytes, self.raw()) })
    }

    /// At least `bytes` of this stream's scratch memory for `purpose`; zero at first where it must be.
    pub(crate) fn scratch(&self, purpose: Scratch, bytes: usize) -> Result<CUdeviceptr> {
        let mut scratch = self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        let (old, known) = scratch.current[purpose as usize];
        if known >= bytes {
            return Ok(old);
        }
        let size = bytes.next_power_of_two();
        let pointer = self.allocate(size)?;
        if !matches!(purpose, Scratch::Workspace) {
            // Safety: just allocated, that long.
            unsafe { self.clear(pointer, size) }.inspect_err(|_| self.free(pointer, size))?;
        }
        scratch.current[purpose as usize] = (pointer, size);
        if known > 0 {
            scratch.outgrown.push(old);
        }
        Ok(pointer)
    }
}

impl Drop for StreamInner {
    /// Does not wait. A drop cannot return an error.
    fn drop(&mut self) {
        let _ = self.context.bind();
        let scratch = std::mem::take(self.scratch.get_mut().unwrap_or_else(PoisonError::into_inner));
        let current = scratch.current.into_iter().filter(|&(_, size)| size > 0).map(|(pointer, _)| pointer);
        for pointer in current.chain(scratch.outgrown) {
            self.give_back(pointer);
        }
        self.give_back_spare();
        // Safety: the stream is live.
        match unsafe { sys::cuStreamQuery(self.raw()) } {
            CUresult::CUDA_SUCCESS => self.context.pinned.return_cell(self.fault.cell(), Purpose::Fault),
            // A kernel to come may yet write the fault words: they stay taken until the device closes.
            _ => self.context.close_after(self.raw()),
        }
    }
}
