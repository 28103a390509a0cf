//! A stream with what belongs to it alone, and its guard: the one way to enqueue on it.
//!
//! A guard holds the stream's lock over check and call, so that nothing comes between them. It knows what state the stream
//! is in: normal, capturing, or failed. While a stream captures, operations go to a stream of the capture's own; the
//! driver's stream of the user is never in capture mode, so that what other threads do (drop, free, wait for the device)
//! meets no capture.
//!
//! This file has a stream's state and what does not enqueue; `enqueue` has what the guard enqueues, `given_up` what becomes of memory
//! that is not used any more.
//!
//! What a drop does takes no guard, and neither does a question or a wait: a thread may hold it while the driver blocks in
//! it, because the stream's queue is full and a gate holds it. So what they need lies beside what the guard locks.

mod enqueue;
mod given_up;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use crate::device::cuda::driver::{Allocation, CUstream, Capture, CudaStream, Foreign, Stream, exit};
use crate::device::cuda::gpu::{Gpu, now, within};
use crate::device::cuda::memory::free_list::{self, FreeList};
use crate::device::cuda::opened::Opened;
use crate::device::cuda::stream::fault::Fault;
use crate::device::cuda::stream::limbo::Limbo;
use crate::device::engine::{Captured, Result};
use crate::device::injection::{self, Injected};
use crate::device::lock;
use crate::error::DeviceError;

use enqueue::Pieces;
pub(crate) use enqueue::{Scratch, WORKSPACE_BYTES};

/// Behind so many guards a queue surely has room: it holds a thousand entries, and hardly a guard enqueues ten.
const ROOM: u64 = 32;

/// A stream. It is ended by [`Gpu::sweep`](crate::device::cuda::gpu::Gpu::sweep) when nobody has a handle and its work is
/// over.
pub(crate) struct StreamInner {
    raw: Stream,
    pub(crate) device: Arc<Opened>,
    fault: Arc<Fault>,
    /// Each call says so from now on.
    failed: OnceLock<DeviceError>,
    /// Whether a capture is in progress.
    captures: AtomicBool,
    /// Whether its user has dropped the last handle of it.
    closed: AtomicBool,
    /// How many guards have ended, each with its work enqueued, and how many of them are known to have nothing pending any
    /// more.
    left: AtomicU64,
    idle_since: AtomicU64,
    state: Mutex<State>,
    scratch: Mutex<Pieces>,
    free: Mutex<FreeList>,
    limbo: Mutex<Limbo>,
    /// Whether the next elementwise kernel goes through its data backward.
    backward: AtomicBool,
}

#[derive(Default)]
struct State {
    capturing: Option<Capturing>,
    /// How many launches that can report a fault there were.
    tickets: u64,
}

struct Capturing {
    capture: Capture,
    captured: Captured,
}

/// The right to enqueue on a stream; see the module.
pub(crate) struct StreamGuard<'a> {
    stream: &'a Arc<StreamInner>,
    state: MutexGuard<'a, State>,
    /// While a gate is closed.
    enqueueing: Option<MutexGuard<'a, ()>>,
}

impl Drop for StreamGuard<'_> {
    /// Locked, so that no count is lost.
    #[inline]
    fn drop(&mut self) {
        self.stream.count();
    }
}

/// A stream of the driver, while a gate is closed one of those at hand, or of those that are about to end.
fn stream_of(gpu: &Gpu) -> Result<Stream> {
    gpu.patiently("streams", || {
        // A loop that makes streams must not keep those that are over.
        gpu.sweep();
        if let Some(stream) = Stream::at_hand(&gpu.context) {
            return Ok(Some(stream));
        }
        match gpu.may_make() {
            Some(_making) => Stream::new(&gpu.context).map(Some),
            None if gpu.has_ending_streams() => Ok(None),
            None => Err(gpu.used_up("streams")),
        }
    })
}

/// A stream on which nobody enqueues, until it is dropped.
pub(crate) struct Paused<'a> {
    _state: MutexGuard<'a, State>,
}

impl StreamInner {
    /// A new stream of an opened device.
    pub(crate) fn new(device: &Arc<Opened>) -> Result<Arc<Self>> {
        Self::over(device, || stream_of(&device.gpu))
    }

    /// A stream of another library.
    pub(crate) fn wrap(device: &Arc<Opened>, stream: Foreign) -> Result<Arc<Self>> {
        Self::over(device, || Stream::wrap(&device.gpu.context, stream))
    }

    fn over(device: &Arc<Opened>, raw: impl FnOnce() -> Result<Stream>) -> Result<Arc<Self>> {
        device.check()?;
        exit::note_thread();
        let (scratch, free, limbo) = Default::default();
        let stream = Arc::new(Self {
            raw: raw()?,
            fault: Arc::new(Fault::new(&device.gpu)?),
            failed: OnceLock::new(),
            captures: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            left: AtomicU64::new(0),
            idle_since: AtomicU64::new(0),
            state: Mutex::default(),
            scratch,
            free,
            limbo,
            backward: AtomicBool::new(false),
            device: device.clone(),
        });
        device.gpu.remember(&stream);
        Ok(stream)
    }

    /// The guard, for work on the device: it runs, or becomes a part of a capture.
    ///
    /// # Errors
    /// The device is lost; work of this stream has failed.
    #[inline]
    pub(crate) fn enter(self: &Arc<Self>) -> Result<StreamGuard<'_>> {
        self.enter_inlined()
    }

    /// As [`enter`](Self::enter), for the shortest of calls.
    #[inline(always)]
    pub(crate) fn enter_inlined(self: &Arc<Self>) -> Result<StreamGuard<'_>> {
        let gpu = &self.device.gpu;
        let enqueueing = if gpu.is_held() { gpu.lock_enqueue() } else { None };
        let state = lock(&self.state);
        self.is_there()?;
        self.check_failure()?;
        self.raw.bind()?;
        Ok(StreamGuard { stream: self, state, enqueueing })
    }

    /// The guard, for memory: also of a stream that has failed.
    fn enter_for_memory(self: &Arc<Self>) -> Result<StreamGuard<'_>> {
        let state = lock(&self.state);
        self.is_there()?;
        self.raw.bind()?;
        Ok(StreamGuard { stream: self, state, enqueueing: None })
    }

    /// Something was enqueued; the caller holds the state.
    #[inline]
    fn count(&self) {
        self.count_more(1);
    }

    /// As much was enqueued as by so many guards; the caller holds the state.
    #[inline]
    fn count_more(&self, guards: u64) {
        self.left.store(self.left.load(Ordering::Relaxed) + guards, Ordering::Release);
    }

    /// How many guards have ended.
    pub(crate) fn left(&self) -> u64 {
        self.left.load(Ordering::Acquire)
    }

    /// As [`left`](Self::left); nothing where others enqueue, too.
    pub(crate) fn enqueued(&self) -> Option<u64> {
        (!self.raw.is_shared()).then(|| self.left())
    }

    #[inline]
    fn is_there(&self) -> Result<()> {
        if self.device.injection.strikes(Injected::DeviceLoss) {
            self.device.lose(self.injected("DeviceLoss"));
        }
        self.device.check()
    }

    /// The guard, for what cannot be captured.
    ///
    /// # Errors
    /// As [`enter`](Self::enter); [`DeviceError::Capturing`] names `call` while the stream captures.
    #[inline]
    pub(crate) fn enter_uncaptured(self: &Arc<Self>, call: &'static str) -> Result<StreamGuard<'_>> {
        let guard = self.enter()?;
        if guard.is_capturing() { Err(DeviceError::Capturing { call }) } else { Ok(guard) }
    }

    /// Whether a capture is in progress.
    pub(crate) fn is_capturing(&self) -> bool {
        self.captures.load(Ordering::Acquire)
    }

    /// What [`enter_uncaptured`](Self::enter_uncaptured) finds, for a call that enqueues nothing.
    pub(crate) fn check_uncaptured(&self, call: &'static str) -> Result<()> {
        self.is_there()?;
        self.check_failure()?;
        if self.is_capturing() { Err(DeviceError::Capturing { call }) } else { Ok(()) }
    }

    /// Ends a capture in progress, whose work is forgotten.
    pub(crate) fn give_up_capture(&self) {
        let given_up = self.take_capture(&mut lock(&self.state));
        // Without the lock.
        drop(given_up);
    }

    fn take_capture(&self, state: &mut State) -> Option<Capturing> {
        self.captures.store(false, Ordering::Release);
        state.capturing.take()
    }

    /// The state, of who asks the driver about the stream or marks what is kept. Nothing while another thread is in a call that
    /// enqueues: it may wait for room, and the driver lets a question about that stream wait with it.
    fn undisturbed(&self) -> Option<MutexGuard<'_, State>> {
        now(&self.state)
    }

    /// Whether its queue surely has room for a few entries more; the caller holds the state.
    fn has_room(&self) -> bool {
        self.is_nearly_idle() || self.is_idle()
    }

    /// Whether hardly anything was enqueued since it was last known to be idle.
    fn is_nearly_idle(&self) -> bool {
        !self.raw.is_shared() && self.left() - self.idle_since.load(Ordering::Acquire) <= ROOM
    }

    /// As [`Stream::is`].
    pub(crate) fn is(&self, other: &CudaStream) -> bool {
        self.raw.is(other)
    }

    /// As [`Stream::is_captured`].
    pub(crate) fn is_captured(&self) -> bool {
        self.raw.is_captured()
    }

    /// As [`Stream::lend`].
    pub(crate) fn lend(&self) -> Result<Arc<CudaStream>> {
        self.device.check()?;
        self.raw.lend()
    }

    /// As [`Stream::lend_raw`].
    pub(crate) fn lend_raw(&self) -> CUstream {
        self.raw.lend_raw()
    }

    /// As [`is_over`](Self::is_over), and notes it; the caller holds the state.
    fn is_idle(&self) -> bool {
        let (left, is_over) = (self.left(), self.is_over());
        if is_over {
            self.note_idle(left);
        }
        is_over
    }

    /// Keeps others from enqueueing here; nothing where one does so until the end of the time.
    pub(crate) fn pause(&self, time: Duration) -> Option<Paused<'_>> {
        within(time, &self.state).map(|state| Paused { _state: state })
    }

    /// Fails once work has failed, and from then on. Without the state, which a thread may have that is stuck.
    #[inline]
    pub(crate) fn check_failure(&self) -> Result<()> {
        if let Some(failure) = self.failed.get() {
            return Err(failure.clone());
        }
        self.reported().map_err(|failure| self.failed.get_or_init(|| failure).clone())
    }

    /// Fails if kernels have reported a failure.
    #[inline]
    fn reported(&self) -> Result<()> {
        self.fault.check(u64::MAX, self.device.name())
    }

    /// Leaves a failure that nobody was told of with the device, which tells it: the last handle is gone.
    pub(crate) fn leave_failure(&self) {
        if self.failed.get().is_none()
            && let Err(failure) = self.reported()
        {
            self.device.orphaned.leave_if(failure.clone(), || self.failed.set(failure).is_ok());
        }
    }

    /// Blocks until all work enqueued so far has completed, without the lock.
    ///
    /// # Errors
    /// Work of this stream has failed.
    pub(crate) fn synchronize(&self) -> Result<()> {
        self.device.check()?;
        self.wait()?;
        self.check_failure()
    }

    /// Blocks until all work enqueued so far has completed, and says nothing of its failure.
    fn wait(&self) -> Result<()> {
        let left = self.left();
        self.raw.synchronize()?;
        self.note_idle(left);
        Ok(())
    }

    /// What was enqueued up to the end of a guard has completed.
    pub(crate) fn note_idle(&self, left: u64) {
        self.idle_since.fetch_max(left, Ordering::Release);
    }

    /// Whether nothing was enqueued since it was last known to be idle.
    fn is_known_idle(&self) -> bool {
        !self.raw.is_shared() && self.idle_since.load(Ordering::Acquire) >= self.left()
    }

    /// As [`wait`](Self::wait), without a call of the driver where nothing was enqueued since the last.
    pub(crate) fn wait_unless_idle(&self) -> Result<()> {
        if self.is_known_idle() { Ok(()) } else { self.wait() }
    }

    /// Whether all work enqueued so far has completed. Never blocks.
    ///
    /// # Errors
    /// As [`enter_uncaptured`](Self::enter_uncaptured).
    pub(crate) fn is_complete(&self) -> Result<bool> {
        self.check_uncaptured("is_complete")?;
        // A read has its value some microseconds before the driver says that the copy is over.
        let complete = self.is_known_idle() || self.asked().unwrap_or(Ok(false))?;
        // Once more: it may have failed meanwhile.
        if complete { self.check_failure().map(|()| true) } else { Ok(false) }
    }

    /// Whether all work enqueued so far has completed, of a stream that others may use; true for one that the driver has given
    /// up, and not where another thread is in a call that enqueues. Never blocks.
    pub(crate) fn is_over_for_others(&self) -> bool {
        self.asked().is_some_and(|complete| complete.unwrap_or(true))
    }

    /// As [`is_over_for_others`](Self::is_over_for_others), of who holds the state, or has the last handle of the stream.
    pub(crate) fn is_over(&self) -> bool {
        self.raw.is_complete().unwrap_or(true)
    }

    /// What the driver says of its work; nothing while another thread is in a call that enqueues.
    fn asked(&self) -> Option<Result<bool>> {
        self.undisturbed().map(|_state| self.raw.is_complete())
    }

    /// 0 and 1 in turn: whether a kernel goes through its data backward (see `kernels/elementwise.cu`).
    #[inline]
    pub(crate) fn direction(&self) -> u32 {
        self.backward.fetch_xor(true, Ordering::Relaxed).into()
    }

    /// The address of the fault words, for kernels.
    pub(crate) fn fault(&self) -> u64 {
        self.fault.address()
    }

    /// Memory in this stream's order; `bytes` is more than 0.
    #[inline]
    pub(crate) fn allocate(self: &Arc<Self>, bytes: usize) -> Result<Allocation> {
        match self.recycled(bytes)? {
            Some(allocation) => Ok(allocation),
            None => self.enter_for_memory()?.new_memory(bytes),
        }
    }

    /// What this stream freed, if it has the size.
    #[inline]
    fn recycled(&self, bytes: usize) -> Result<Option<Allocation>> {
        self.device.check()?;
        if self.device.injection.strikes(Injected::Allocation) {
            let (device, requested) = (self.device.name().to_owned(), bytes);
            return Err(DeviceError::OutOfMemory { device, requested, free: None });
        }
        Ok(lock(&self.free).take(free_list::rounded(bytes)))
    }

    /// Its user has no handle of it any more.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    /// Whether its user has no handle of it.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Ends a stream whose work is over and that nobody has a handle of.
    pub(crate) fn end(self: Arc<Self>) {
        let kept = lock(&self.limbo).all();
        drop(kept);
        let scratch = std::mem::take(&mut *lock(&self.scratch)).into_all();
        scratch.chain(lock(&self.free).take_all()).for_each(|allocation| self.raw.free(allocation));
    }

    fn injected(&self, call: &'static str) -> DeviceError {
        DeviceError::call_failed(self.device.name(), call, injection::REASON)
    }
}
