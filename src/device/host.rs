//! Host buffers: memory of the host that devices copy from and to without blocking it.
//!
//! A buffer remembers which copies of it are pending. The host's own access ([`HostBuffer::read`],
//! [`HostBuffer::write`]) is a barrier for them, and the borrow rules do the rest: a copy into the buffer takes it
//! exclusively, so that the host never looks at memory that a device is changing.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::panic::Location;
use std::sync::{Mutex, PoisonError};

use super::engine::{HostKind, HostMemory, Region, Result, Transfer};
use super::tracer::{Activity, CallInfo, Site, Waits};
use super::{Device, Element, Event, Stream};

/// Host memory of `len` elements that copies to and from a device can use while the host goes on.
pub struct HostBuffer<T: Element> {
    device: Device,
    kind: HostKind,
    len: usize,
    memory: Box<dyn HostMemory>,
    from_host: Mutex<Pending>,
    to_host: Mutex<Pending>,
    element: PhantomData<T>,
}

/// The last copy on each stream that used the buffer: earlier ones on the same stream are over when it is.
#[derive(Default)]
struct Pending(Vec<(Stream, Event)>);

impl Pending {
    /// Has `copy` enqueued on `stream` and remembers it. A copy that cannot be remembered is waited for, so that none is
    /// ever pending unknown.
    fn enqueue(&mut self, stream: &Stream, copy: impl FnOnce() -> Result<()>) -> Result<()> {
        let known = self.0.iter().position(|(s, _)| s.is_same(stream));
        let event = match known {
            Some(place) => self.0[place].1.clone(),
            None => {
                // What is over, and did not fail, need not be remembered: a stream must not live on in here.
                self.0.retain(|(stream, event)| !(event.is_complete() == Ok(true) && stream.is_complete().is_ok()));
                stream.device().event()?
            }
        };
        copy()?;
        if let Err(error) = stream.record(&event) {
            let _ = stream.synchronize();
            return Err(error);
        }
        if known.is_none() {
            self.0.push((stream.clone(), event));
        }
        Ok(())
    }

    /// Waits for all of them; then the first failure, if one of their streams has failed.
    fn wait(&mut self) -> Result<()> {
        let outcomes: Vec<Result<()>> =
            self.0.iter().map(|(stream, event)| event.synchronize().and(stream.is_complete().map(drop))).collect();
        self.0.clear();
        outcomes.into_iter().collect()
    }
}

impl<T: Element> HostBuffer<T> {
    pub(super) fn new(device: &Device, kind: HostKind, len: usize) -> Result<Self> {
        let memory = device.engine().allocate_host(kind, T::DTYPE, len)?;
        Ok(Self {
            device: device.clone(),
            kind,
            len,
            memory,
            from_host: Mutex::default(),
            to_host: Mutex::default(),
            element: PhantomData,
        })
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the buffer has no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Where the memory lies.
    pub fn kind(&self) -> HostKind {
        self.kind
    }

    /// The device it was allocated for.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The content. Barrier: waits for pending copies into the buffer.
    ///
    /// # Errors
    /// A failure of a pending copy.
    #[track_caller]
    pub fn read(&self) -> Result<HostSlice<'_, T>> {
        let _scope = self.device.engine().tracer().scope("HostBuffer::read", Some(Location::caller()));
        lock(&self.to_host).wait()?;
        Ok(HostSlice { bytes: self.memory.bytes(), element: PhantomData })
    }

    /// The content, to change. Barrier: waits for pending copies into and out of the buffer.
    ///
    /// # Errors
    /// A failure of a pending copy.
    #[track_caller]
    pub fn write(&mut self) -> Result<HostSliceMut<'_, T>> {
        let _scope = self.device.engine().tracer().scope("HostBuffer::write", Some(Location::caller()));
        lock(&self.to_host).wait()?;
        lock(&self.from_host).wait()?;
        Ok(HostSliceMut { bytes: self.memory.bytes_mut(), element: PhantomData })
    }

    /// Enqueues a copy of the whole buffer into `target`.
    pub(crate) fn enqueue_upload(&self, stream: &Stream, target: Region<'_>, site: Site) -> Result<()> {
        stream.own.capture.forbids("copy_from")?;
        let note = CallInfo { bytes: Some(self.bytes()), ..CallInfo::enqueue("copy_from", Some(Activity::Copy)) };
        stream.noted(note, site, || {
            lock(&self.from_host).enqueue(stream, || stream.raw().enqueue_upload(&*self.memory, target))
        })
    }

    /// Enqueues a copy of `source` into the whole buffer.
    pub(crate) fn enqueue_download(&mut self, stream: &Stream, source: Region<'_>, site: Site) -> Result<()> {
        stream.own.capture.forbids("copy_to")?;
        let note = match stream.raw().waits(Transfer::ToHost(self.kind)) {
            true => CallInfo { enqueues: Some(Activity::Copy), ..CallInfo::barrier("copy_to", Waits::Implicit) },
            false => CallInfo::enqueue("copy_to", Some(Activity::Copy)),
        };
        stream.noted(CallInfo { bytes: Some(self.bytes()), ..note }, site, || {
            lock(&self.to_host).enqueue(stream, || stream.raw().enqueue_download(source, &*self.memory))
        })
    }

    fn bytes(&self) -> u64 {
        (self.len * size_of::<T>()) as u64
    }
}

impl<T: Element> Drop for HostBuffer<T> {
    /// Waits for pending copies: their memory must outlive them. A failed copy is over too.
    fn drop(&mut self) {
        let _scope = self.device.engine().tracer().scope("HostBuffer::drop", None);
        for pending in [&self.to_host, &self.from_host] {
            let _ = lock(pending).wait();
        }
    }
}

impl<T: Element> std::fmt::Debug for HostBuffer<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HostBuffer<{}>({:?}, {} elements)", T::DTYPE, self.kind, self.len)
    }
}

/// The content of a [`HostBuffer`], borrowed.
pub struct HostSlice<'a, T> {
    bytes: Box<dyn Deref<Target = [u8]> + 'a>,
    element: PhantomData<T>,
}

impl<T: Element> Deref for HostSlice<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        bytemuck::cast_slice(&self.bytes)
    }
}

/// The content of a [`HostBuffer`], borrowed to change.
pub struct HostSliceMut<'a, T> {
    bytes: Box<dyn DerefMut<Target = [u8]> + 'a>,
    element: PhantomData<T>,
}

impl<T: Element> Deref for HostSliceMut<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        bytemuck::cast_slice(&self.bytes)
    }
}

impl<T: Element> DerefMut for HostSliceMut<'_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        bytemuck::cast_slice_mut(&mut self.bytes)
    }
}

/// A poisoned list is still a list: a panic elsewhere does not make a pending copy less pending.
fn lock(pending: &Mutex<Pending>) -> std::sync::MutexGuard<'_, Pending> {
    pending.lock().unwrap_or_else(PoisonError::into_inner)
}
