//! All that belongs to one opened device: what streams, events, gates and memory hold on to.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use cudarc::driver::sys::{self, CUdeviceptr, CUresult, CUstream};

use crate::device::cuda::driver::handles::{EventHandle, StreamHandle};
use crate::device::cuda::driver::primary::Primary;
use crate::device::cuda::kernels::Kernels;
use crate::device::cuda::matmul::Matmul;
use crate::device::cuda::memory::pinned::Pinned;
use crate::device::cuda::memory::pool::Pool;
use crate::device::cuda::stream::inner::StreamInner;
use crate::device::engine::Result;
use crate::error::DeviceError;

/// One opened device. Fields are dropped in this order, with the context last.
pub(crate) struct Context {
    pub(crate) kernels: Kernels,
    pub(crate) matmul: Matmul,
    pub(crate) pinned: Pinned,
    queues: Mutex<Vec<Weak<StreamInner>>>,
    release: Release,
    /// What is to be freed once its streams no longer capture.
    deferred: Mutex<Vec<(CUdeviceptr, Vec<Arc<StreamInner>>)>>,
    captures: AtomicUsize,
    pub(crate) pool: Pool,
    pub(crate) primary: Primary,
}

impl Context {
    /// Opens device `index`; the driver has been initialized.
    pub(crate) fn open(index: usize) -> Result<Self> {
        let primary = Primary::retain(index)?;
        let pool = Pool::new(&primary)?;
        let release = Release::new(&primary)?;
        let pinned = Pinned::new(&primary)?;
        let kernels = Kernels::new(&primary)?;
        let (matmul, queues, deferred, captures) = Default::default();
        Ok(Self { kernels, matmul, pinned, queues, release, deferred, captures, pool, primary })
    }

    /// A new stream, remembered as long as it lives.
    pub(crate) fn queue(self: &Arc<Self>) -> Result<Arc<StreamInner>> {
        let queue = Arc::new(StreamInner::new(self.clone())?);
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        queues.retain(|queue| queue.strong_count() > 0);
        queues.push(Arc::downgrade(&queue));
        Ok(queue)
    }

    /// Blocks until all work of the device has completed, and fails if some of it did.
    pub(crate) fn synchronize(&self) -> Result<()> {
        // The driver would refuse, and give up the capture.
        if self.captures.load(Ordering::SeqCst) > 0 {
            return Err(DeviceError::Capturing { call: "Device::synchronize" });
        }
        // Safety: the context is current.
        self.check("cuCtxSynchronize", unsafe { sys::cuCtxSynchronize() })?;
        self.live_queues().iter().try_for_each(|queue| queue.check_fault())
    }

    /// To be used without the lock: the last handle of a stream may be dropped with them.
    fn live_queues(&self) -> Vec<Arc<StreamInner>> {
        let queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        queues.iter().filter_map(Weak::upgrade).collect()
    }

    /// Memory in the order of `stream`; `bytes` is more than 0. Where there is no room, what the streams keep spare goes
    /// back first.
    #[cold]
    pub(crate) fn allocate(&self, bytes: usize, stream: CUstream) -> Result<CUdeviceptr> {
        let first = self.pool.allocate(&self.primary, bytes, stream);
        if !matches!(first, Err(DeviceError::OutOfMemory { .. })) || !self.give_back_spare() {
            return first;
        }
        // What was given back is free once its stream has come to it: on an idle one, soon.
        let tries = std::iter::repeat_with(|| {
            std::thread::sleep(Duration::from_micros(100));
            self.pool.allocate(&self.primary, bytes, stream)
        });
        tries.take(100).find(Result::is_ok).unwrap_or(first)
    }

    /// Memory that is in no stream's order: for use while a stream's work is captured, which no allocation may be a part
    /// of.
    pub(crate) fn allocate_apart(&self, bytes: usize) -> Result<CUdeviceptr> {
        let stream = StreamHandle::new(&self.primary)?;
        let pointer = self.allocate(bytes, stream.raw())?;
        // Safety: the stream is live. Nothing but the allocation is on it.
        self.check("cuStreamSynchronize", unsafe { sys::cuStreamSynchronize(stream.raw()) }).map(|()| pointer)
    }

    fn give_back_spare(&self) -> bool {
        // All of them, not only up to the first that had something.
        self.live_queues().iter().filter(|queue| queue.give_back_spare()).count() > 0
    }

    /// Makes the context current on this thread.
    #[inline]
    pub(crate) fn bind(&self) -> Result<()> {
        self.primary.bind()
    }

    /// Turns a status into a result that names the call and the device.
    #[inline]
    pub(crate) fn check(&self, call: &'static str, status: CUresult) -> Result<()> {
        self.primary.check(call, status)
    }

    /// Frees memory after the work enqueued so far on all of `users`, without ordering them among each other; where one
    /// of them captures, after the capture, of which neither the marks nor the free must become a part.
    ///
    /// Runs in drops: an error has nobody to tell, and the memory returns with the pool.
    pub(crate) fn free_after(&self, pointer: CUdeviceptr, users: Vec<Arc<StreamInner>>) {
        if users.iter().any(|queue| queue.is_capturing()) {
            return self.deferred.lock().unwrap_or_else(PoisonError::into_inner).push((pointer, users));
        }
        let _ = self.bind();
        self.release.free_after(pointer, users.iter().map(|queue| queue.raw()));
    }

    /// A stream begins to capture.
    pub(crate) fn capture_begins(&self) {
        self.captures.fetch_add(1, Ordering::SeqCst);
    }

    /// A stream no longer captures: what waited for that is freed.
    pub(crate) fn capture_ended(&self) {
        self.captures.fetch_sub(1, Ordering::SeqCst);
        let deferred = std::mem::take(&mut *self.deferred.lock().unwrap_or_else(PoisonError::into_inner));
        deferred.into_iter().for_each(|(pointer, users)| self.free_after(pointer, users));
    }

    /// Lets the device close only after the work enqueued so far on `stream`, which is about to be destroyed.
    pub(crate) fn close_after(&self, stream: CUstream) {
        self.release.wait_for(std::iter::once(stream));
    }
}

impl Drop for Context {
    /// Waits for what the streams, all dropped by now, left unfinished, since the driver would tear it down. No gate
    /// can hold it: gates keep their context, and open when they are dropped.
    ///
    /// Not for the whole of the driver's context, which another opened device of this process may share.
    fn drop(&mut self) {
        // The drops of the fields need the context current. A drop cannot return an error.
        let _ = self.primary.bind();
        // Safety: the stream is live.
        unsafe { sys::cuStreamSynchronize(self.release.stream.raw()) };
    }
}

/// An internal stream that memory used by several streams is freed on.
///
/// To free it on one of them would make that stream wait for the others, an order that nobody asked for.
struct Release {
    stream: StreamHandle,
    mark: Mutex<EventHandle>,
}

impl Release {
    fn new(primary: &Primary) -> Result<Self> {
        Ok(Self { stream: StreamHandle::new(primary)?, mark: Mutex::new(EventHandle::new(primary, false)?) })
    }

    /// Orders what comes here behind the work enqueued so far on `streams`.
    fn wait_for(&self, streams: impl Iterator<Item = CUstream>) {
        let mark = self.mark.lock().unwrap_or_else(PoisonError::into_inner);
        for stream in streams {
            // Safety: all handles are live; a wait keeps the recording that it was enqueued for, so that one event
            // does for all.
            unsafe {
                sys::cuEventRecord(mark.raw(), stream);
                sys::cuStreamWaitEvent(self.stream.raw(), mark.raw(), 0);
            }
        }
    }

    fn free_after(&self, pointer: CUdeviceptr, streams: impl Iterator<Item = CUstream>) {
        self.wait_for(streams);
        // Safety: allocated in stream order on one of the streams, freed once.
        unsafe { sys::cuMemFreeAsync(pointer, self.stream.raw()) };
    }
}
