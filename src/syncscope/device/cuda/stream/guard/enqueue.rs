//! What the guard of a stream enqueues: each call goes to the stream, or to that of a capture in progress.

use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::{Capturing, StreamGuard, StreamInner, stream_of};
use crate::device::HostKind;
use crate::device::code::Launch;
use crate::device::cuda::driver::blas::{Algorithm, Descriptors};
use crate::device::cuda::driver::{
    Allocation, Argument, Capture, Event, Executable, Function, HostBlock, HostPiece, PoolSpan, Stream,
};
use crate::device::cuda::kernels::Kernel;
use crate::device::cuda::memory::free_list;
use crate::device::cuda::stream::event::CudaEvent;
use crate::device::cuda::stream::fault::Recorded;
use crate::device::engine::{Captured, Result};
use crate::device::injection::Injected;
use crate::device::lock;
use crate::device::operation::{Operation, Region};
use crate::error::DeviceError;

/// So much of a pageable block the driver copies aside at once; with more it may wait for the stream (driver 580 does with 40 MB).
const ASIDE_BYTES: usize = 1 << 20;

/// How long a copy first waits with the guard for what others enqueued meanwhile, and how long it does so between two looks.
const FIRST_WAIT: Duration = Duration::from_millis(10);
const LOOK_AGAIN: Duration = Duration::from_micros(50);

/// Room for the intermediate results of a matrix multiplication: what cuBLAS takes by itself on current devices.
pub(crate) const WORKSPACE_BYTES: usize = 32 << 20;

/// What a stream's scratch memory is for: kernels of one stream follow each other and share it, those of two do not.
#[derive(Clone, Copy)]
pub(crate) enum Scratch {
    /// Of reductions: zero before and after each (see `kernels/reduce.cu`).
    Reduce,
    /// Of the search for non-zeros: zero before and after each (see `kernels/compact.cu`).
    Groups,
    /// Of matrix multiplications, of any content.
    Workspace,
}

/// Scratch memory.
#[derive(Default)]
pub(super) struct Pieces {
    /// By [`Scratch`]: none until it is needed.
    current: [Option<Allocation>; 3],
    /// What became too small; a captured graph may still use it.
    outgrown: Vec<Allocation>,
}

impl Pieces {
    /// All of it: the stream is over.
    pub(super) fn into_all(self) -> impl Iterator<Item = Allocation> {
        self.current.into_iter().flatten().chain(self.outgrown)
    }
}

impl<'a> StreamGuard<'a> {
    /// Its stream.
    #[inline]
    pub(crate) fn stream(&self) -> &'a Arc<StreamInner> {
        self.stream
    }

    /// Enqueues a copy of a whole block and the recording of `done` behind it.
    fn copy_block(self, done: &CudaEvent, copy: impl FnOnce(&Stream) -> Result<()>) -> Result<()> {
        let stream = self.stream;
        copy(&stream.raw)?;
        let recorded = done.record(&self);
        if recorded.is_err() {
            // The driver's own failure: where it still waits for anything, it is for this copy.
            drop(self);
            let _ = stream.raw.synchronize();
        }
        recorded
    }

    /// The guard again, once no closed gate holds the stream: for a call that waits for the stream in the driver, which keeps
    /// others from it as long. One of them may be the thread that is to open the gate. The guard is kept over that call, so
    /// that no gate comes between.
    ///
    /// Where others enqueue all the time, the stream is never found without work. So what came while the work before was waited
    /// for is waited for with the guard, each time for twice as long as the last.
    fn once_free(mut self, call: &'static str) -> Result<Self> {
        let (stream, mut time) = (self.stream, FIRST_WAIT);
        while stream.device.gpu.is_held() && !stream.is_over() {
            drop(self);
            stream.raw.synchronize()?;
            self = stream.enter()?;
            let until = Instant::now() + time;
            while !stream.is_over() && Instant::now() < until {
                std::thread::sleep(LOOK_AGAIN);
            }
            time *= 2;
        }
        if self.is_capturing() { Err(DeviceError::Capturing { call }) } else { Ok(self) }
    }

    /// Where operations go.
    #[inline]
    fn target(&self) -> &Stream {
        self.state.capturing.as_ref().map_or(&self.stream.raw, |capturing| capturing.capture.onto())
    }

    #[inline]
    pub(crate) fn is_capturing(&self) -> bool {
        self.state.capturing.is_some()
    }

    /// Has a capture in progress hold on to what `operation`, which came to `outcome`, uses.
    #[inline]
    pub(crate) fn keep(&mut self, operation: &Operation<'_>, outcome: &Result<()>) {
        self.keep_all(operation.regions(), outcome);
    }

    /// As [`keep`](Self::keep), of what a call that came to `outcome` uses.
    #[inline]
    pub(crate) fn keep_all<'r>(&mut self, regions: impl Iterator<Item = Region<'r>>, outcome: &Result<()>) {
        if let Some(capturing) = &mut self.state.capturing {
            capturing.captured.take(regions, outcome.is_ok());
        }
    }

    #[inline]
    fn may_fail(&self, what: Injected, call: &'static str) -> Result<()> {
        if self.stream.device.injection.strikes(what) { Err(self.stream.injected(call)) } else { Ok(()) }
    }

    /// The handle of a kernel.
    #[inline]
    pub(crate) fn function(&self, kernel: Kernel) -> Result<Function> {
        self.stream.device.gpu.kernels.function(kernel)
    }

    /// Enqueues a kernel.
    #[inline]
    pub(crate) fn launch(
        &self,
        kernel: Kernel,
        blocks: u32,
        threads: u32,
        arguments: &mut [Argument<'_>],
    ) -> Result<()> {
        let function = self.function(kernel)?;
        self.may_fail(Injected::Launch, "launch")?;
        let early = self.stream.device.gpu.kernels.start_early;
        self.target().launch(function, blocks, threads, early, arguments)
    }

    /// Enqueues a kernel of the user's, whose arguments and bounds are checked.
    #[inline(always)]
    pub(crate) fn launch_own(&self, function: Function, launch: &Launch, arguments: &mut [Argument<'_>]) -> Result<()> {
        self.may_fail(Injected::Launch, "launch")?;
        self.target().launch_own(function, launch, arguments)
    }

    /// Enqueues a kernel of one block by the plainest call there is; not captured.
    #[inline]
    pub(crate) fn launch_bare(&self, function: Function, threads: u32, arguments: &mut [Argument<'_>]) -> Result<()> {
        self.stream.raw.launch_bare(function, threads, arguments)
    }

    /// As much was enqueued as by so many guards.
    #[inline]
    pub(crate) fn count_more(&self, guards: usize) {
        self.stream.count_more(guards as u64);
    }

    /// The ticket of a launch that can report a fault.
    pub(crate) fn ticket(&mut self) -> u64 {
        self.state.tickets += 1;
        self.state.tickets
    }

    /// Enqueues setting every byte of `span`.
    pub(crate) fn fill(&self, span: PoolSpan, byte: u8) -> Result<()> {
        self.may_fail(Injected::Launch, "fill")?;
        self.target().fill(span, byte)
    }

    /// Enqueues a copy within the device.
    pub(crate) fn copy(&self, from: PoolSpan, to: PoolSpan) -> Result<()> {
        self.may_fail(Injected::Launch, "copy")?;
        self.target().copy(from, to)
    }

    /// Enqueues a matrix multiplication.
    #[inline]
    pub(crate) fn multiply(
        &self,
        descriptors: &Descriptors,
        algorithm: &Algorithm,
        workspace: Option<PoolSpan>,
        operands: [PoolSpan; 3],
    ) -> Result<()> {
        self.may_fail(Injected::Launch, "matmul")?;
        let blas = self.stream.device.gpu.blas()?;
        self.target().multiply(blas, descriptors, algorithm, workspace, operands)
    }

    /// Enqueues captured work.
    #[inline]
    pub(crate) fn launch_graph(&self, graph: &Executable) -> Result<()> {
        self.may_fail(Injected::Launch, "launch_graph")?;
        self.stream.raw.launch_graph(graph)
    }

    /// Enqueues a copy of a whole block into `to`, and behind it the recording of `done`.
    pub(crate) fn upload(self, from: &HostBlock, to: PoolSpan, done: &CudaEvent) -> Result<()> {
        self.may_fail(Injected::Copy, "upload")?;
        let waits = from.kind() == HostKind::Pageable && from.size() > ASIDE_BYTES;
        let guard = if waits { self.once_free("copy_from")? } else { self };
        guard.copy_block(done, |stream| stream.upload(from, to))
    }

    /// Enqueues a copy of the head of a piece into all of `to`.
    pub(crate) fn upload_piece(&self, from: &HostPiece, to: PoolSpan) -> Result<()> {
        self.may_fail(Injected::Copy, "upload")?;
        self.stream.raw.upload_piece(from, to)
    }

    /// Enqueues a copy of a few borrowed bytes, which the driver copies aside before it returns: up to 64 KiB it waits for
    /// nothing (*API synchronization behavior* of its manual).
    pub(crate) fn upload_aside(&self, from: &[u8], to: PoolSpan) -> Result<()> {
        self.may_fail(Injected::Copy, "upload")?;
        self.stream.raw.upload_aside(from, to)
    }

    /// Copies borrowed bytes, and waits for that without the lock.
    pub(crate) fn upload_and_wait(self, from: &[u8], to: PoolSpan) -> Result<()> {
        self.may_fail(Injected::Copy, "upload")?;
        let guard = self.once_free("upload")?;
        let stream = guard.stream;
        stream.raw.upload_and_wait(from, to, guard)
    }

    /// Enqueues a copy of `from` into a whole block; as [`upload`](Self::upload).
    pub(crate) fn download(self, from: PoolSpan, to: &HostBlock, done: &CudaEvent) -> Result<()> {
        self.may_fail(Injected::Copy, "download")?;
        let guard = if to.kind() == HostKind::Pageable { self.once_free("copy_to")? } else { self };
        guard.copy_block(done, |stream| stream.download(from, to))
    }

    /// Copies into borrowed memory, and waits until it has arrived.
    pub(crate) fn download_and_wait(self, from: PoolSpan, to: &mut [MaybeUninit<u8>]) -> Result<()> {
        self.may_fail(Injected::Copy, "download")?;
        let guard = self.once_free("download")?;
        let stream = guard.stream;
        stream.raw.download_and_wait(from, to, guard)
    }

    /// Enqueues a copy of all of `from` into the head of a piece; how many guards have ended with this one.
    pub(crate) fn download_piece(self, from: PoolSpan, to: &HostPiece) -> Result<u64> {
        self.may_fail(Injected::Copy, "download")?;
        self.stream.raw.download_piece(from, to)?;
        Ok(self.stream.left() + 1)
    }

    /// Enqueues a recording of `event`.
    #[inline]
    pub(crate) fn record(&self, event: &Event) -> Result<()> {
        self.stream.raw.record(event)
    }

    /// Enqueues a wait for the latest recording of `event`.
    pub(crate) fn wait(&self, event: &Event) -> Result<()> {
        self.stream.raw.wait(event)
    }

    /// The point of the stream behind what was enqueued so far.
    pub(crate) fn recorded(&self) -> Recorded {
        Recorded { fault: self.stream.fault.clone(), ticket: self.state.tickets }
    }

    /// Enqueues what begins to hold the stream, while no other enqueues: see [`Gpu::lock_enqueue`](crate::device::cuda::gpu::Gpu::lock_enqueue).
    /// Where the queue may be full, the call may wait for room, and the others do not wait with it.
    pub(crate) fn begin_to_hold<R>(&self, enqueue: impl FnOnce() -> R) -> R {
        let gpu = &self.stream.device.gpu;
        if !self.stream.has_room() {
            return enqueue();
        }
        let _enqueueing = if self.enqueueing.is_none() { gpu.lock_enqueue() } else { None };
        gpu.pause_all(Some(self.stream), enqueue)
    }

    /// Enqueues a wait until a flag is set.
    pub(crate) fn wait_flag(&self, flag: PoolSpan, target: u32) -> Result<()> {
        self.stream.raw.wait_flag(flag, target)
    }

    /// From now on operations are captured.
    pub(crate) fn begin_capture(&mut self) -> Result<()> {
        let capture = Capture::begin(stream_of(&self.stream.device.gpu)?)?;
        self.state.capturing = Some(Capturing { capture, captured: Captured::default() });
        self.stream.captures.store(true, Ordering::Release);
        Ok(())
    }

    /// Ends a capture: the work, ready to launch here, and what it uses.
    pub(crate) fn end_capture(&mut self) -> Result<(Executable, Captured)> {
        match self.stream.take_capture(&mut self.state) {
            Some(Capturing { capture, captured }) => {
                let _making = self.stream.device.gpu.may_make_graph()?;
                Ok((capture.end()?, captured))
            }
            None => Err(DeviceError::invalid("capture", "none is in progress")),
        }
    }

    /// Memory in this stream's order; `bytes` is more than 0.
    #[inline]
    pub(crate) fn allocate(&self, bytes: usize) -> Result<Allocation> {
        match self.stream.recycled(bytes)? {
            Some(allocation) => Ok(allocation),
            None => self.new_memory(bytes),
        }
    }

    /// Memory that this stream has not freed: what others are past, or the pool's.
    #[cold]
    pub(super) fn new_memory(&self, bytes: usize) -> Result<Allocation> {
        let (stream, bytes) = (self.stream, free_list::rounded(bytes));
        self.let_go();
        stream.device.gpu.reclaim();
        if let Some(allocation) = lock(&stream.free).take(bytes) {
            return Ok(allocation);
        }
        let excess = lock(&stream.free).take_excess();
        for allocation in excess {
            stream.raw.free(allocation);
            stream.count();
        }
        let gpu = &stream.device.gpu;
        let allocate = || stream.raw.allocate(&gpu.pool, bytes);
        match allocate() {
            Err(DeviceError::OutOfMemory { .. }) => gpu.make_room(stream, allocate),
            outcome => outcome,
        }
    }

    /// Lets go of what the stream is past, and marks the rest where that is due.
    pub(crate) fn let_go(&self) {
        let due = lock(&self.stream.limbo).due();
        self.stream.mark(due);
        let reached = lock(&self.stream.limbo).reached();
        drop(reached);
    }

    /// At least `bytes` of this stream's scratch memory for `purpose`; zero at first where it must be.
    pub(crate) fn scratch(&self, purpose: Scratch, bytes: usize) -> Result<PoolSpan> {
        let mut scratch = lock(&self.stream.scratch);
        let known = scratch.current.get(purpose as usize).and_then(Option::as_ref);
        if let Some(known) = known.filter(|known| known.size() >= bytes) {
            return Ok(known.span());
        }
        let piece = self.allocate(bytes.next_power_of_two())?;
        let span = piece.span();
        if !matches!(purpose, Scratch::Workspace) {
            // At once, also while a capture is in progress: each launch of the graph needs it zero.
            if let Err(error) = self.stream.raw.fill(span, 0) {
                self.stream.free(piece);
                return Err(error);
            }
        }
        let outgrown = scratch.current.get_mut(purpose as usize).and_then(|place| place.replace(piece));
        scratch.outgrown.extend(outgrown);
        Ok(span)
    }
}
