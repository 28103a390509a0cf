//! Streams: what is enqueued on them, and what waits for them.

use std::fmt;
use std::mem::MaybeUninit;
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use std::{ptr, slice};

use super::engine::{DeviceMemory, EngineStream, Operation, Region, Result, Transfer};
use super::graph::Capture;
use super::tracer::{self, Activity, CallInfo, Scope, Site, Tracer, Waits};
use super::{DType, Device, Element, Event, Gate};

/// An ordered queue of work on a device. Cheap to clone; all clones are the same stream.
///
/// Dropping the last handle does not wait: what was enqueued still runs.
#[derive(Clone)]
pub struct Stream {
    device: Device,
    raw: Arc<dyn EngineStream>,
    pub(super) own: Arc<Own>,
}

/// What a stream's handles share: its number on the device, the device's tracer, and where it stands in its random
/// numbers.
pub(super) struct Own {
    number: u32,
    tracer: Arc<Tracer>,
    pub(super) capture: Capture,
    seed: AtomicU64,
    next: AtomicU64,
}

impl Stream {
    /// The stream `number` of a device.
    pub(super) fn new(device: &Device, number: u32) -> Result<Self> {
        let raw = device.engine().create_stream(number)?;
        let (tracer, capture) = (Arc::clone(device.engine().tracer()), Capture::default());
        let own = Own { number, tracer, capture, seed: AtomicU64::new(0), next: AtomicU64::new(0) };
        Ok(Self { device: device.clone(), raw, own: Arc::new(own) })
    }

    /// The device of this stream.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Sets the seed of [`normal`](Self::normal) and starts its sequences anew.
    pub fn set_seed(&self, seed: u64) {
        self.own.seed.store(seed, Ordering::Relaxed);
        self.own.next.store(0, Ordering::Relaxed);
    }

    pub(crate) fn next_sequence(&self) -> (u64, u64) {
        (self.own.seed.load(Ordering::Relaxed), self.own.next.fetch_add(1, Ordering::Relaxed))
    }

    /// Enqueues the recording of `event` behind the work enqueued so far.
    #[track_caller]
    pub fn record(&self, event: &Event) -> Result<()> {
        self.own.capture.forbids("record")?;
        let call = self.call(CallInfo::enqueue("record", None), Some(Location::caller()));
        if self.own.tracer.is_on() {
            let correlation = call.as_ref().map(tracer::OpenCall::correlation);
            let correlation = correlation.or_else(|| self.own.tracer.correlation());
            event.recorded.by.store(correlation.unwrap_or(0), Ordering::Relaxed);
        }
        self.raw.record(&*event.raw)
    }

    /// Enqueues a wait: later work on this stream runs after what `event` last recorded. The host goes on.
    #[track_caller]
    pub fn wait(&self, event: &Event) -> Result<()> {
        self.own.capture.forbids("wait")?;
        let _call = self.call(CallInfo::enqueue("wait", None), Some(Location::caller()));
        self.raw.wait_event(&*event.raw)
    }

    /// Enqueues a wait: later work on this stream runs once `gate` is open. The host goes on.
    #[track_caller]
    pub fn wait_gate(&self, gate: &Gate) -> Result<()> {
        self.own.capture.forbids("wait_gate")?;
        let _call = self.call(CallInfo::enqueue("wait_gate", None), Some(Location::caller()));
        self.raw.wait_gate(&*gate.raw)
    }

    /// Enqueues work that keeps this stream busy for `duration`.
    #[track_caller]
    pub fn spin(&self, duration: Duration) -> Result<()> {
        self.enqueue(&Operation::Spin { duration })
    }

    /// Whether everything enqueued so far has completed. Never blocks.
    pub fn is_complete(&self) -> Result<bool> {
        self.own.capture.forbids("is_complete")?;
        self.raw.is_complete()
    }

    /// Barrier: waits until everything enqueued on this stream so far has completed.
    ///
    /// # Errors
    /// A failure of work enqueued earlier.
    #[track_caller]
    pub fn synchronize(&self) -> Result<()> {
        self.own.capture.forbids("synchronize")?;
        let _call = self.call(CallInfo::barrier("Stream::synchronize", Waits::Stream), Some(Location::caller()));
        self.raw.synchronize()
    }

    /// Its number among the streams of its device, from 0, in the order in which they were made: what timelines name
    /// it by.
    pub fn number(&self) -> u32 {
        self.own.number
    }

    /// Whether both handles are the same stream.
    pub fn is_same(&self, other: &Stream) -> bool {
        Arc::ptr_eq(&self.raw, &other.raw)
    }

    #[inline]
    #[track_caller]
    pub(crate) fn enqueue(&self, operation: &Operation<'_>) -> Result<()> {
        if self.own.capture.is_on() {
            self.own.capture.take(operation);
            return self.raw.enqueue(operation);
        }
        if !self.own.tracer.is_on() {
            return self.raw.enqueue(operation);
        }
        let note = CallInfo::enqueue(operation.name(), Some(Activity::of(operation)));
        self.noted(note, Some(Location::caller()), || self.raw.enqueue(operation))
    }

    pub(crate) fn allocate(&self, dtype: DType, len: usize) -> Result<Arc<dyn DeviceMemory>> {
        self.raw.allocate(dtype, len)
    }

    /// An error while the work of this stream is captured.
    pub(crate) fn not_captured(&self, call: &'static str) -> Result<()> {
        self.own.capture.forbids(call)
    }

    pub(crate) fn allocate_host_scalar(&self, dtype: DType) -> Result<Arc<dyn DeviceMemory>> {
        self.raw.allocate_host_scalar(dtype)
    }

    #[track_caller]
    pub(crate) fn upload(&self, source: &[u8], target: Region<'_>) -> Result<()> {
        self.own.capture.forbids("upload")?;
        let note = match self.raw.waits(Transfer::Borrowed { bytes: source.len() }) {
            true => CallInfo { enqueues: Some(Activity::Copy), ..CallInfo::barrier("upload", Waits::Implicit) },
            false => CallInfo::enqueue("upload", Some(Activity::Copy)),
        };
        let note = CallInfo { bytes: Some(source.len() as u64), ..note };
        self.noted(note, Some(Location::caller()), || self.raw.upload(source, target))
    }

    #[track_caller]
    pub(crate) fn download_one<T: Element>(&self, source: Region<'_>) -> Result<T> {
        let mut value = T::zeroed();
        let bytes = ptr::from_mut(&mut value).cast();
        // Safety: the bytes of the value, which an engine never leaves uninitialised; any bits are an element.
        self.download(source, unsafe { slice::from_raw_parts_mut(bytes, size_of::<T>()) })?;
        Ok(value)
    }

    #[track_caller]
    pub(crate) fn download_all<T: Element>(&self, source: Region<'_>) -> Result<Vec<T>> {
        let mut values = Vec::<T>::with_capacity(source.len);
        let bytes = values.spare_capacity_mut().as_mut_ptr().cast();
        // Safety: that many bytes of the capacity, not initialised yet.
        self.download(source, unsafe { slice::from_raw_parts_mut(bytes, source.len * size_of::<T>()) })?;
        // Safety: all of them have been written, and any bits are an element.
        unsafe { values.set_len(source.len) };
        Ok(values)
    }

    #[track_caller]
    fn download(&self, source: Region<'_>, target: &mut [MaybeUninit<u8>]) -> Result<()> {
        self.own.capture.forbids("download")?;
        let note = CallInfo { bytes: Some(target.len() as u64), ..CallInfo::barrier("download", Waits::Implicit) };
        let _call = self.call(note, Some(Location::caller()));
        self.raw.download(source, target)
    }

    /// Names the calls until it is dropped, while somebody records.
    #[inline]
    pub(crate) fn scope(&self, name: &'static str, site: Site) -> Option<Scope<'_>> {
        self.own.tracer.scope(name, site)
    }

    /// Opens a call on this stream, while somebody records.
    #[inline]
    pub(crate) fn call(&self, note: CallInfo, site: Site) -> Option<tracer::OpenCall<'_>> {
        self.own.tracer.call(CallInfo { stream: Some(self.own.number), ..note }, site)
    }

    /// Runs a call that enqueues work.
    pub(crate) fn noted<R>(&self, note: CallInfo, site: Site, run: impl FnOnce() -> Result<R>) -> Result<R> {
        match self.call(note, site) {
            Some(call) => call.run(&self.raw, &self.device, run),
            None => run(),
        }
    }

    pub(crate) fn raw(&self) -> &dyn EngineStream {
        &*self.raw
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stream({}, {:p})", self.device.name(), Arc::as_ptr(&self.raw))
    }
}
