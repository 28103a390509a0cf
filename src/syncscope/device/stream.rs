//! Streams: what is enqueued on them, and what waits for them.

use std::fmt;
use std::panic::Location;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::engine::{DeviceMemory, EngineStream, Result, Transfer};
use super::operation::{Operation, Region};
use super::recording;
use super::tracer::{self, CallInfo, Kind, Scope, Site, SyncKind, Tracer};
use super::{DType, Device, Element, Event, Gate};
use crate::device::lock;
use crate::error::DeviceError;

/// An ordered queue of work on a device. Cheap to clone; all clones are the same stream.
///
/// Dropping the last handle does not wait: what was enqueued still runs.
///
/// ```
/// use syncscope::prelude::*;
///
/// let stream = Device::open("cpu:0")?.stream()?;
/// let x = stream.ones::<f32>([4])?; // enqueued
/// stream.synchronize()?;
/// assert_eq!(x.to_vec()?, [1.0; 4]);
/// # Ok::<(), syncscope::error::DeviceError>(())
/// ```
#[derive(Clone)]
pub struct Stream {
    device: Device,
    raw: Arc<dyn EngineStream>,
    pub(super) shared: Arc<StreamShared>,
}

/// What a stream's handles share: its number on the device, the device's tracer, and where it stands in its random
/// numbers.
pub(super) struct StreamShared {
    number: u32,
    tracer: Arc<Tracer>,
    /// The seed of the next random numbers, and how many sequences of it are used up.
    sequence: Mutex<(u64, u64)>,
}

impl Stream {
    /// The stream `number` of a device.
    pub(crate) fn new(device: &Device, number: u32) -> Result<Self> {
        Ok(Self::numbered(device, device.engine().create_stream(number)?, number))
    }

    /// A stream of a device's engine.
    #[cfg(feature = "cuda")]
    pub(crate) fn of(device: &Device, raw: Arc<dyn EngineStream>) -> Self {
        Self::numbered(device, raw, device.engine().tracer().next_stream())
    }

    fn numbered(device: &Device, raw: Arc<dyn EngineStream>, number: u32) -> Self {
        let tracer = Arc::clone(device.engine().tracer());
        let shared = StreamShared { number, tracer, sequence: Mutex::default() };
        Self { device: device.clone(), raw, shared: Arc::new(shared) }
    }

    /// The device of this stream.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Sets the seed of [`normal`](Self::normal) and starts its sequences anew.
    ///
    /// ```
    /// use syncscope::prelude::*;
    ///
    /// let stream = Device::open("cpu:0")?.stream()?;
    /// let first = stream.normal::<f32>([4])?.to_vec()?;
    /// stream.set_seed(0);
    /// assert_eq!(stream.normal::<f32>([4])?.to_vec()?, first);
    /// # Ok::<(), syncscope::error::DeviceError>(())
    /// ```
    pub fn set_seed(&self, seed: u64) {
        *lock(&self.shared.sequence) = (seed, 0);
    }

    pub(crate) fn next_sequence(&self) -> (u64, u64) {
        let mut sequence = lock(&self.shared.sequence);
        let next = *sequence;
        sequence.1 = sequence.1.wrapping_add(1);
        next
    }

    /// Enqueues the recording of `event` behind the work enqueued so far.
    ///
    /// # Errors
    /// [`DeviceError::ForeignObject`] for one of another device; [`DeviceError::Capturing`] while the stream's work is captured; a
    /// failure of the stream; no room for more work.
    #[track_caller]
    pub fn record(&self, event: &Event) -> Result<()> {
        let call = self.call(CallInfo::enqueue("record", None), Some(Location::caller()));
        self.notes_recording(event, call.as_ref());
        self.raw.record(&*event.raw)
    }

    /// Has `event` know which call records it: `call`, or the one that is open on this thread.
    pub(super) fn notes_recording(&self, event: &Event, call: Option<&tracer::OpenCall<'_>>) {
        if self.shared.tracer.is_on() {
            let correlation = call.map(tracer::OpenCall::correlation).or_else(|| self.shared.tracer.correlation());
            event.recorded.by.store(correlation.unwrap_or(0), Ordering::Relaxed);
        }
    }

    /// Enqueues a wait: later work on this stream runs after what `event` last recorded. The host goes on. A failure of the
    /// stream that recorded it is no failure of this one.
    ///
    /// # Errors
    /// [`DeviceError::ForeignObject`] for one of another device; [`DeviceError::Capturing`] while the stream's work is captured; a
    /// failure of the stream; no room for more work.
    #[track_caller]
    pub fn wait(&self, event: &Event) -> Result<()> {
        let _call = self.call(CallInfo::enqueue("wait", None), Some(Location::caller()));
        self.raw.wait_event(&*event.raw)
    }

    /// Enqueues a wait: later work on this stream runs once `gate` is open. The host goes on.
    ///
    /// # Errors
    /// [`DeviceError::ForeignObject`] for one of another device; [`DeviceError::Capturing`] while the stream's work is captured; a
    /// failure of the stream; no room for more work.
    #[track_caller]
    pub fn wait_gate(&self, gate: &Gate) -> Result<()> {
        let _call = self.call(CallInfo::enqueue("wait_gate", None), Some(Location::caller()));
        self.raw.wait_gate(&*gate.raw)
    }

    /// Enqueues work that keeps this stream busy for `duration`.
    ///
    /// # Errors
    /// A failure of the stream; no room for more work.
    #[track_caller]
    pub fn spin(&self, duration: Duration) -> Result<()> {
        self.enqueue(&Operation::Spin { duration })
    }

    /// Whether everything enqueued so far has completed. Never blocks, but on a stream that another library uses: while that waits for
    /// room in the stream's full queue, the driver has the question wait with it.
    ///
    /// So it has after a read, such as [`item`](crate::tensor::Tensor::item), until more is enqueued. The driver's own query
    /// (`cuStreamQuery`) can say otherwise for some microseconds: it counts the copy's end, the read its value. Of a stream that
    /// another library uses, too, this is what the driver says.
    ///
    /// # Errors
    /// [`DeviceError::Capturing`] while the stream's work is captured; a failure of work enqueued earlier.
    pub fn is_complete(&self) -> Result<bool> {
        self.raw.is_complete()
    }

    /// Synchronization point: waits until everything enqueued on this stream so far has completed.
    ///
    /// # Errors
    /// [`DeviceError::Capturing`] while the stream's work is captured; a failure of work enqueued earlier.
    #[track_caller]
    pub fn synchronize(&self) -> Result<()> {
        let _call = self.call(CallInfo::barrier("Stream::synchronize", SyncKind::Stream), Some(Location::caller()));
        self.raw.synchronize()
    }

    /// Its number among the streams of its device, from 0, in the order in which they were made: what timelines name
    /// it by.
    pub fn number(&self) -> u32 {
        self.shared.number
    }

    /// Whether both handles are the same stream: clones of one. Two that were made of one stream of another library are not, though
    /// that puts their work in order: a tensor of the one is used on the other by [`on`](crate::tensor::Tensor::on), without an event.
    #[inline]
    pub fn is_same(&self, other: &Stream) -> bool {
        Arc::ptr_eq(&self.raw, &other.raw)
    }

    #[inline]
    #[track_caller]
    pub(crate) fn enqueue(&self, operation: &Operation<'_>) -> Result<()> {
        self.enqueue_all(std::slice::from_ref(operation))
    }

    /// Enqueues the operations of one call, one behind the other, which then has the name of the first.
    #[inline]
    #[track_caller]
    pub(crate) fn enqueue_all(&self, operations: &[Operation<'_>]) -> Result<()> {
        // What is captured is enqueued by the graph's launch.
        let Some(first) = operations.first().filter(|_| self.shared.tracer.is_on() && !self.raw.is_capturing()) else {
            return self.raw.enqueue(operations);
        };
        let kind = if matches!(first, Operation::Copy { .. }) { Kind::Copy } else { Kind::Kernel };
        let note = CallInfo::enqueue(first.name(), Some(kind));
        self.noted(note, Some(Location::caller()), || self.raw.enqueue(operations))
    }

    pub(crate) fn allocate(&self, dtype: DType, len: usize) -> Result<Arc<dyn DeviceMemory>> {
        self.raw.allocate(dtype, len)
    }

    #[track_caller]
    pub(crate) fn upload(&self, source: &[u8], target: Region<'_>) -> Result<()> {
        let waits = self.raw.waits(Transfer::Borrowed { bytes: source.len() });
        self.noted(CallInfo::copy("upload", waits, source.len()), Some(Location::caller()), || {
            self.raw.upload(source, target)
        })
    }

    #[track_caller]
    pub(crate) fn download_one<T: Element>(&self, source: Region<'_>) -> Result<T> {
        let _call = self.download_call(size_of::<T>(), Some(Location::caller()));
        let mut value = T::zeroed();
        self.raw.download(source, bytemuck::bytes_of_mut(&mut value))?;
        Ok(value)
    }

    #[track_caller]
    pub(crate) fn download_all<T: Element>(&self, source: Region<'_>) -> Result<Vec<T>> {
        let _call = self.download_call(source.len * size_of::<T>(), Some(Location::caller()));
        match self.raw.download_all(source)?.downcast::<Vec<T>>() {
            Ok(values) => Ok(*values),
            Err(_) => {
                let reason = format!("the elements are not of type {}", T::DTYPE);
                Err(DeviceError::invalid("download", reason))
            }
        }
    }

    fn download_call(&self, bytes: usize, site: Site) -> Option<tracer::OpenCall<'_>> {
        let note = CallInfo::barrier("download", SyncKind::Implicit);
        self.call(CallInfo { bytes: Some(bytes as u64), ..note }, site)
    }

    /// Names the calls until it is dropped, while somebody records.
    #[inline]
    pub(crate) fn scope(&self, name: &'static str, site: Site) -> Option<Scope<'_>> {
        self.shared.tracer.scope(name, site)
    }

    /// Opens a call on this stream, while somebody records.
    #[inline]
    pub(crate) fn call(&self, note: CallInfo, site: Site) -> Option<tracer::OpenCall<'_>> {
        self.shared.tracer.call(CallInfo { stream: Some(self.shared.number), ..note }, site)
    }

    /// Runs a call that enqueues work.
    #[inline]
    pub(crate) fn noted<R>(&self, note: CallInfo, site: Site, run: impl FnOnce() -> Result<R>) -> Result<R> {
        match self.call(note, site) {
            Some(call) => recording::enqueued(&call, &self.raw, self.device.engine(), run),
            None => run(),
        }
    }

    #[inline]
    pub(crate) fn raw(&self) -> &dyn EngineStream {
        &*self.raw
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stream({}, {})", self.device.name(), self.number())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::atomic::AtomicBool;
    use std::thread;

    use super::*;

    #[test]
    fn no_random_numbers_come_again_beside_a_thread_that_sets_seeds() -> Result<()> {
        let stream = Device::open("cpu:0")?.stream()?;
        let (mut seen, is_over) = (HashSet::new(), AtomicBool::new(false));
        thread::scope(|scope| {
            scope.spawn(|| {
                (1..=1_000_000).for_each(|seed| stream.set_seed(seed));
                is_over.store(true, Ordering::Relaxed);
            });
            while !is_over.load(Ordering::Relaxed) {
                let next = stream.next_sequence();
                assert!(seen.insert(next), "{next:?}");
            }
        });
        Ok(())
    }
}
