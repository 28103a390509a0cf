//! A stream of the driver: each call that enqueues or asks, checked and named. Streams are used again after their drop: to
//! make or to end one can wait for other streams.
//!
//! Only the guard of a stream (`stream::guard`) enqueues through here, and what gives memory back. A user's stream is never
//! put into the driver's capture mode: what is captured is enqueued on a stream of its own ([`Capture`]), so that no call of
//! another thread can meet a capture.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cudarc::driver::sys::{
    self, CUlaunchAttribute, CUlaunchAttributeID, CUlaunchAttributeValue, CUlaunchConfig, CUresult, CUstream,
    CUstream_flags, CUstreamCaptureMode, CUstreamCaptureStatus, CUstreamWaitValue_flags,
};
use cudarc::driver::{CudaContext, CudaStream, DriverError};

use super::apart::CaptureInProgress;
use super::graph::Graph;
use super::{Allocation, Argument, Context, Event, Executable, Function, HostBlock, HostPiece, Pool, PoolSpan, exit};
use crate::device::code::Launch;
use crate::device::engine::Result;
use crate::error::DeviceError;

/// A stream: of this library, used again after its drop, or of another.
pub(crate) struct Stream {
    raw: CUstream,
    context: Arc<Context>,
    /// Whether others enqueue on it, too. It is not used again then.
    shared: AtomicBool,
    /// What keeps a stream of another library.
    owner: Option<Arc<CudaStream>>,
}

/// A stream of another library.
pub(crate) struct Foreign {
    raw: CUstream,
    owner: Option<Arc<CudaStream>>,
}

/// `CU_STREAM_PER_THREAD`, which the driver takes for the default stream of the thread that calls.
const PER_THREAD: usize = 2;

impl Foreign {
    /// One of `cudarc`.
    pub(crate) fn of(stream: &Arc<CudaStream>) -> Result<Self> {
        Self::new(stream.cu_stream(), Some(stream.clone()))
    }

    /// One that its owner keeps, who has promised so.
    pub(crate) fn raw(raw: CUstream) -> Result<Self> {
        Self::new(raw, None)
    }

    fn new(raw: CUstream, owner: Option<Arc<CudaStream>>) -> Result<Self> {
        if raw.addr() == PER_THREAD {
            let reason = "the per-thread default stream is another one on each thread: wrap a stream that was created (in \
                          candle, that of `Device::new_cuda_with_stream`)";
            return Err(DeviceError::invalid("wrap", reason));
        }
        Ok(Self { raw, owner })
    }
}

// Safety: a stream may be used from any thread; the driver synchronizes its own calls.
unsafe impl Send for Stream {}
// Safety: as above.
unsafe impl Sync for Stream {}

impl Stream {
    /// A stream that is ordered against no other, also not against the legacy default stream.
    pub(crate) fn new(context: &Arc<Context>) -> Result<Self> {
        match Self::at_hand(context) {
            Some(stream) => Ok(stream),
            None => Ok(Self::own(context, create(context)?)),
        }
    }

    fn own(context: &Arc<Context>, raw: CUstream) -> Self {
        Self { raw, context: context.clone(), shared: AtomicBool::new(false), owner: None }
    }

    /// A stream of another library.
    ///
    /// # Errors
    /// It is one of another context.
    pub(crate) fn wrap(context: &Arc<Context>, Foreign { raw, owner }: Foreign) -> Result<Self> {
        let of = match &owner {
            // Of a default stream the driver tells the context that is current, whichever it was made for.
            Some(owner) => owner.context().cu_ctx(),
            None => {
                context.bind()?;
                let mut of = ptr::null_mut();
                // Safety: the stream is live, as the caller of `wrap_raw` has promised.
                context.check("cuStreamGetCtx", unsafe { sys::cuStreamGetCtx(raw, &mut of) })?;
                of
            }
        };
        if of != context.raw() {
            return Err(DeviceError::ForeignObject { what: "a stream", device: context.name().to_owned() });
        }
        Ok(Self { raw, context: context.clone(), shared: AtomicBool::new(true), owner })
    }

    /// Whether `cudarc` has it as `other`: the default streams of all contexts have one handle.
    pub(crate) fn is(&self, other: &CudaStream) -> bool {
        other.cu_stream() == self.raw && other.context().cu_ctx() == self.context.raw()
    }

    /// Whether others enqueue on it, too.
    #[inline]
    pub(crate) fn is_shared(&self) -> bool {
        self.shared.load(Ordering::Acquire)
    }

    /// Whether another library captures it: then the driver has a question fail, and the capture with it. It does not with this one.
    pub(crate) fn is_captured(&self) -> bool {
        if !self.is_shared() || self.bind().is_err() {
            return false;
        }
        let mut status = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        // Safety: the stream is live; writes one number.
        match unsafe { sys::cuStreamIsCapturing(self.raw, &mut status) } {
            CUresult::CUDA_SUCCESS => status != CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE,
            // Of the legacy default stream, while one that is ordered against it is captured.
            failed => failed == CUresult::CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
        }
    }

    /// Its handle, for others.
    pub(crate) fn lend_raw(&self) -> CUstream {
        self.shared.store(true, Ordering::Release);
        self.raw
    }

    /// It for `cudarc`, and for what is built on it; one of `cudarc` as its owner has it.
    pub(crate) fn lend(&self) -> Result<Arc<CudaStream>> {
        if let Some(owner) = &self.owner {
            return Ok(owner.clone());
        }
        let context = self.context.lending()?;
        // Safety: streams of a context are never destroyed, and one that was lent is not used again.
        Ok(unsafe { context.wrap_borrowed_stream(self.lend_raw()) })
    }

    /// A stream of an earlier owner, or of the reserve.
    pub(crate) fn at_hand(context: &Arc<Context>) -> Option<Self> {
        let raw = context.given_up().streams.pop_front()?;
        Some(Self::own(context, raw))
    }

    /// Its context.
    #[inline]
    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    #[inline]
    pub(super) fn raw(&self) -> CUstream {
        self.raw
    }

    /// Makes the context current on this thread: the head of every call.
    #[inline]
    pub(crate) fn bind(&self) -> Result<()> {
        self.context.bind()
    }

    /// Enqueues a kernel; where `early` is set, it may start while the one before it ends (see `wait_for_previous` in
    /// `kernels/types.cuh`).
    ///
    /// # Errors
    /// The kernel takes another number of arguments.
    #[inline]
    pub(crate) fn launch(
        &self,
        function: Function,
        blocks: u32,
        threads: u32,
        early: bool,
        arguments: &mut [Argument<'_>],
    ) -> Result<()> {
        self.counted(function, arguments)?;
        let mut attribute = CUlaunchAttribute {
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
            hStream: self.raw,
            attrs: &raw mut attribute,
            numAttrs: early.into(),
        };
        // Safety: as many arguments as the kernel reads, each borrowed; the driver copies configuration and arguments
        // before it returns.
        let status =
            unsafe { sys::cuLaunchKernelEx(&config, function.raw(), arguments.as_mut_ptr().cast(), ptr::null_mut()) };
        self.context.check("cuLaunchKernelEx", status)
    }

    /// Enqueues a kernel of one block by the plainest call there is.
    #[inline]
    pub(crate) fn launch_bare(&self, function: Function, threads: u32, arguments: &mut [Argument<'_>]) -> Result<()> {
        self.counted(function, arguments)?;
        self.launch_plainly(function, &Launch::new([1; 3], [threads, 1, 1]), arguments)
    }

    /// Enqueues a kernel of the user's.
    #[inline]
    pub(crate) fn launch_own(&self, function: Function, launch: &Launch, arguments: &mut [Argument<'_>]) -> Result<()> {
        self.counted(function, arguments)?;
        self.launch_plainly(function, launch, arguments)
    }

    #[inline]
    fn launch_plainly(&self, function: Function, launch: &Launch, arguments: &mut [Argument<'_>]) -> Result<()> {
        let (&Launch { grid: [x, y, z], block: [i, j, k], shared_bytes }, raw) = (launch, function.raw());
        let (arguments, none) = (arguments.as_mut_ptr().cast(), ptr::null_mut());
        // Safety: as above.
        let status = unsafe { sys::cuLaunchKernel(raw, x, y, z, i, j, k, shared_bytes, self.raw, arguments, none) };
        self.context.check("cuLaunchKernel", status)
    }

    #[inline]
    fn counted(&self, function: Function, arguments: &[Argument<'_>]) -> Result<()> {
        if function.parameters() == arguments.len() { Ok(()) } else { Err(self.miscounted(function, arguments.len())) }
    }

    #[cold]
    fn miscounted(&self, function: Function, given: usize) -> DeviceError {
        let reason = format!("a kernel of {} parameters was given {given}", function.parameters());
        DeviceError::call_failed(self.context.name(), "cuLaunchKernel", reason)
    }

    /// Enqueues setting every byte of `span`.
    pub(crate) fn fill(&self, span: PoolSpan, byte: u8) -> Result<()> {
        // Safety: the span holds as many bytes.
        let status = unsafe { sys::cuMemsetD8Async(span.address(), byte, span.size(), self.raw) };
        self.context.check("cuMemsetD8Async", status)
    }

    /// Enqueues a copy within the device.
    pub(crate) fn copy(&self, from: PoolSpan, to: PoolSpan) -> Result<()> {
        let bytes = from.size().min(to.size());
        // Safety: both spans hold as many bytes.
        let status = unsafe { sys::cuMemcpyDtoDAsync_v2(to.address(), from.address(), bytes, self.raw) };
        self.context.check("cuMemcpyDtoDAsync", status)
    }

    /// Enqueues a copy of `size` bytes at `from`, or as many as `to` holds.
    ///
    /// # Safety
    /// There are so many bytes, and they stay until the copy is over, or are pageable.
    unsafe fn copy_in(&self, from: *const c_void, size: usize, to: PoolSpan) -> Result<()> {
        // Safety: both sides hold as many bytes. Of pageable memory the driver keeps a copy and no address (*API
        // synchronization behavior* of its manual).
        let status = unsafe { sys::cuMemcpyHtoDAsync_v2(to.address(), from, size.min(to.size()), self.raw) };
        self.context.check("cuMemcpyHtoDAsync", status)
    }

    /// As [`copy_in`](Self::copy_in), the other way.
    ///
    /// # Safety
    /// As there.
    unsafe fn copy_out(&self, from: PoolSpan, to: *mut c_void, size: usize) -> Result<()> {
        // Safety: both sides hold as many bytes.
        let status = unsafe { sys::cuMemcpyDtoHAsync_v2(to, from.address(), size.min(from.size()), self.raw) };
        self.context.check("cuMemcpyDtoHAsync", status)
    }

    /// Enqueues a copy of a whole block into `to`, of the same size.
    pub(crate) fn upload(&self, from: &HostBlock, to: PoolSpan) -> Result<()> {
        let _inside = exit::enter();
        // Safety: the caller keeps the block.
        unsafe { self.copy_in(from.start(), from.size(), to) }
    }

    /// Enqueues a copy of the head of a piece into all of `to`.
    pub(crate) fn upload_piece(&self, from: &HostPiece, to: PoolSpan) -> Result<()> {
        // Safety: the caller keeps the piece.
        unsafe { self.copy_in(from.start(), from.size(), to) }
    }

    /// Enqueues a copy of borrowed bytes into `to`, which have been read when it returns.
    pub(crate) fn upload_aside(&self, from: &[u8], to: PoolSpan) -> Result<()> {
        // The caller's may be page-locked.
        let pageable = from.to_vec();
        // Safety: pageable memory.
        unsafe { self.copy_in(pageable.as_ptr().cast(), pageable.len(), to) }
    }

    /// Copies borrowed bytes into `to` and waits until they have been read, also where that fails. The wait is without `lock`.
    pub(crate) fn upload_and_wait(&self, from: &[u8], to: PoolSpan, lock: impl Sized) -> Result<()> {
        let _inside = exit::enter();
        // Safety: the borrow outlives the copy, which is waited for.
        let copied = unsafe { self.copy_in(from.as_ptr().cast(), from.len(), to) };
        drop(lock);
        self.synchronize().and(copied)
    }

    /// Enqueues a copy of `from` into a whole block, of the same size.
    pub(crate) fn download(&self, from: PoolSpan, to: &HostBlock) -> Result<()> {
        let _inside = exit::enter();
        // Safety: the caller keeps the block.
        unsafe { self.copy_out(from, to.start(), to.size()) }
    }

    /// Copies `from` into borrowed memory and waits until it has arrived, also where that fails. The wait is without `lock`.
    pub(crate) fn download_and_wait(&self, from: PoolSpan, to: &mut [MaybeUninit<u8>], lock: impl Sized) -> Result<()> {
        let _inside = exit::enter();
        // Safety: the borrow outlives the copy, which is waited for.
        let copied = unsafe { self.copy_out(from, to.as_mut_ptr().cast(), to.len()) };
        drop(lock);
        self.synchronize().and(copied)
    }

    /// Enqueues a copy of all of `from` into the head of a piece.
    pub(crate) fn download_piece(&self, from: PoolSpan, to: &HostPiece) -> Result<()> {
        // Safety: the caller keeps the piece.
        unsafe { self.copy_out(from, to.start(), to.size()) }
    }

    /// Enqueues a recording of `event`.
    #[inline]
    pub(crate) fn record(&self, event: &Event) -> Result<()> {
        // Safety: both handles are live and of one context.
        self.context.check("cuEventRecord", unsafe { sys::cuEventRecord(event.raw(), self.raw) })
    }

    /// Enqueues a wait for the latest recording of `event`; one never recorded holds nothing.
    #[inline]
    pub(crate) fn wait(&self, event: &Event) -> Result<()> {
        // Safety: both handles are live and of one context.
        self.context.check("cuStreamWaitEvent", unsafe { sys::cuStreamWaitEvent(self.raw, event.raw(), 0) })
    }

    /// Enqueues a wait until the flag at the head of `flag` is at least `target`, compared around its 32 bits.
    pub(crate) fn wait_flag(&self, flag: PoolSpan, target: u32) -> Result<()> {
        let flags = CUstreamWaitValue_flags::CU_STREAM_WAIT_VALUE_GEQ as u32;
        // Safety: the word is mapped and aligned, and lives as long as the context.
        let status = unsafe { sys::cuStreamWaitValue32_v2(self.raw, flag.address(), target, flags) };
        self.context.check("cuStreamWaitValue32", status)
    }

    /// Whether everything enqueued has completed. Never blocks.
    pub(crate) fn is_complete(&self) -> Result<bool> {
        is_complete(&self.context, self.raw)
    }

    /// Blocks until everything enqueued so far has completed.
    pub(crate) fn synchronize(&self) -> Result<()> {
        self.bind()?;
        let _inside = exit::enter();
        // Safety: the stream is live, and never captures.
        self.context.check("cuStreamSynchronize", unsafe { sys::cuStreamSynchronize(self.raw) })
    }

    /// Memory of `pool` for work enqueued here from now on; `bytes` is more than 0.
    #[inline]
    pub(crate) fn allocate(&self, pool: &Pool, bytes: usize) -> Result<Allocation> {
        pool.allocate(bytes, self.raw)
    }

    /// Frees memory after the work enqueued here so far. An error leaves it allocated.
    pub(crate) fn free(&self, allocation: Allocation) {
        let _ = self.bind();
        // Safety: allocated from a pool, freed once, as the allocation ends here.
        unsafe { sys::cuMemFreeAsync(allocation.span().address(), self.raw) };
    }

    /// Enqueues captured work.
    #[inline]
    pub(crate) fn launch_graph(&self, graph: &Executable) -> Result<()> {
        // Safety: both handles are live; what the graph uses is kept by its owner.
        self.context.check("cuGraphLaunch", unsafe { sys::cuGraphLaunch(graph.raw(), self.raw) })
    }
}

impl Context {
    /// Whether nothing is pending on the streams at hand, of what their last owners freed. Never blocks.
    pub(crate) fn is_idle_at_hand(&self) -> bool {
        self.given_up().streams.iter().all(|stream| is_complete(self, *stream).unwrap_or(true))
    }

    /// Has at least so many streams at hand.
    pub(crate) fn reserve_streams(&self, count: usize) -> Result<()> {
        let missing = count.saturating_sub(self.given_up().streams.len());
        for _ in 0..missing {
            let raw = create(self)?;
            self.given_up().streams.push_back(raw);
        }
        Ok(())
    }

    /// The context of `cudarc` whose streams are lent. It has a stream of its own: `cudarc` orders memory between streams, by events,
    /// from the first that a context makes. That can wait for a closed gate, so one is made before any closes.
    pub(crate) fn lending(&self) -> Result<&Arc<CudaContext>> {
        if self.lending.get().is_none() {
            let made = self.checked("cuDevicePrimaryCtxRetain", self.new_lending())?;
            let _ = self.lending.set(made);
        }
        let made = self.lending.get().map(|stream| stream.context());
        made.ok_or_else(|| DeviceError::call_failed(self.name(), "cuStreamCreate", "no stream was made".to_owned()))
    }

    fn new_lending(&self) -> std::result::Result<Arc<CudaStream>, DriverError> {
        let context = CudaContext::new(usize::try_from(self.device()).unwrap_or_default())?;
        // Safety: no memory is of the context yet. With events on, its first stream waits for the whole device.
        unsafe { context.disable_event_tracking() };
        let stream = context.new_stream();
        // Safety: as above.
        unsafe { context.enable_event_tracking() };
        stream
    }
}

fn is_complete(context: &Context, stream: CUstream) -> Result<bool> {
    context.bind()?;
    // Safety: streams of a context are never destroyed.
    match unsafe { sys::cuStreamQuery(stream) } {
        CUresult::CUDA_ERROR_NOT_READY => Ok(false),
        status => context.check("cuStreamQuery", status).map(|()| true),
    }
}

fn create(context: &Context) -> Result<CUstream> {
    context.bind()?;
    let _ = context.take_room();
    let mut raw = ptr::null_mut();
    // Safety: writes one handle, which is never destroyed, but used again.
    let status = unsafe { sys::cuStreamCreate(&mut raw, CUstream_flags::CU_STREAM_NON_BLOCKING as u32) };
    context.check("cuStreamCreate", status).map(|()| raw)
}

impl Context {
    /// Lets go of streams of other libraries, which their last owner ends by a call that may wait for all of the GPU.
    pub(crate) fn release_owners(&self) {
        let owners = std::mem::take(&mut self.given_up().owners);
        if !owners.is_empty() {
            // No call of the driver while the process ends.
            let _ = self.bind();
            drop(owners);
        }
    }
}

impl Drop for Stream {
    /// What was enqueued runs to its end: before the work of the next owner, so that nothing may be pending that a gate holds.
    fn drop(&mut self) {
        let mut given_up = self.context.given_up();
        if !self.is_shared() {
            given_up.streams.push_back(self.raw);
        }
        given_up.owners.extend(self.owner.take());
    }
}

/// A stream on which everything is captured, until this is ended or dropped.
pub(crate) struct Capture {
    onto: Stream,
    ended: bool,
    /// Given up last.
    _in_progress: CaptureInProgress,
}

impl Capture {
    /// Begins a capture, in the relaxed mode, which forbids no other calls meanwhile, once the context is not waited for.
    pub(crate) fn begin(onto: Stream) -> Result<Self> {
        onto.bind()?;
        let in_progress = onto.context.begin_capture();
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        // Safety: the stream is live.
        let status = unsafe { sys::cuStreamBeginCapture_v2(onto.raw, mode) };
        onto.context.check("cuStreamBeginCapture", status)?;
        Ok(Self { onto, ended: false, _in_progress: in_progress })
    }

    /// Where to enqueue what is captured.
    #[inline]
    pub(crate) fn onto(&self) -> &Stream {
        &self.onto
    }

    /// Ends the capture and makes its graph ready to launch. That is enqueued on the stream of the capture, where no gate can
    /// hold it: behind a gate it would keep back what makes other graphs ready.
    pub(crate) fn end(mut self) -> Result<Executable> {
        let graph = self.graph()?;
        let made = Executable::instantiate(&self.onto.context, &graph)?;
        // So that the first launch costs what the others do.
        // Safety: both handles are live.
        let status = unsafe { sys::cuGraphUpload(made.raw(), self.onto.raw) };
        self.onto.context.check("cuGraphUpload", status).map(|()| made)
    }

    /// Ends the capture: what was captured.
    pub(super) fn graph(&mut self) -> Result<Graph> {
        self.ended = true;
        self.onto.bind()?;
        let mut raw = ptr::null_mut();
        // Safety: writes one handle; null where the capture went wrong.
        let status = unsafe { sys::cuStreamEndCapture(self.onto.raw, &mut raw) };
        self.onto.context.check("cuStreamEndCapture", status).map(|()| Graph::of(raw))
    }
}

impl Drop for Capture {
    /// The next owner of the stream finds it as any other.
    fn drop(&mut self) {
        if !self.ended {
            let _ = self.graph();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_stream_of_each_thread_is_refused_with_what_to_use_instead() {
        let wrap =
            |handle| Foreign::raw(ptr::without_provenance_mut(handle)).map(drop).map_err(|error| error.to_string());
        assert_eq!([wrap(0), wrap(1)], [Ok(()), Ok(())]);
        assert!(wrap(PER_THREAD).is_err_and(|error| error.contains("new_cuda_with_stream")));
    }
}
