//! Host buffers: memory of the host that devices copy from and to without blocking it.
//!
//! A buffer remembers which copies of it are pending. The host's own access ([`HostBuffer::read`],
//! [`HostBuffer::write`]) waits for them, and the borrow rules do the rest: a copy into the buffer takes it
//! exclusively, so that the host never looks at memory that a device is changing. To drop a buffer waits for nothing: its
//! memory is kept until its copies are over.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::panic::Location;

use super::engine::{HostKind, HostMemory, Result, Transfer};
use super::operation::Region;
use super::pending::Pending;
use super::tracer::{CallInfo, Site};
use super::{Device, Element, Stream};
use crate::error::DeviceError;
use crate::units::counted;

/// Host memory of `len` elements that copies to and from a device can use while the host goes on.
///
/// A buffer that a copy into it has failed keeps the failure, which each access returns, until another copy has filled it.
///
/// ```
/// use syncscope::prelude::*;
///
/// let device = Device::open("cpu:0")?;
/// let mut buffer = device.host_buffer::<f32>(HostKind::Pageable, 2)?;
/// device.stream()?.ones::<f32>([2])?.copy_to(&mut buffer)?;
/// assert_eq!(buffer.read()?[..], [1.0, 1.0]);
/// # Ok::<(), syncscope::error::DeviceError>(())
/// ```
pub struct HostBuffer<T: Element> {
    device: Device,
    kind: HostKind,
    len: usize,
    /// Gone in the drop alone.
    memory: Option<Box<dyn HostMemory>>,
    from_host: Pending,
    to_host: Pending,
    element: PhantomData<T>,
}

impl<T: Element> HostBuffer<T> {
    pub(crate) fn new(device: &Device, kind: HostKind, len: usize) -> Result<Self> {
        if len.checked_mul(size_of::<T>()).is_none() {
            let reason = format!("{len} elements of {} are more than a machine can address", T::DTYPE);
            return Err(DeviceError::invalid("host buffer", reason));
        }
        let memory = device.engine().allocate_host(kind, T::DTYPE, len)?;
        Ok(Self {
            device: device.clone(),
            kind,
            len,
            memory: Some(memory),
            from_host: Pending::default(),
            to_host: Pending::default(),
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

    /// The content. Synchronization point: waits for pending copies into the buffer.
    ///
    /// # Errors
    /// A failure of a copy into it.
    #[track_caller]
    pub fn read(&self) -> Result<HostSlice<'_, T>> {
        let _scope = self.device.engine().tracer().scope("HostBuffer::read", Some(Location::caller()));
        self.to_host.wait()?;
        Ok(HostSlice { bytes: self.memory().bytes(), element: PhantomData })
    }

    /// The content, to change. Synchronization point: waits for pending copies into and out of the buffer.
    ///
    /// # Errors
    /// A failure of a copy into it, or of one out of it since the last write; no room for a copy where a content that was read
    /// before is never given back.
    #[allow(clippy::missing_panics_doc, reason = "the memory is taken by the drop alone")]
    #[track_caller]
    pub fn write(&mut self) -> Result<HostSliceMut<'_, T>> {
        let _scope = self.device.engine().tracer().scope("HostBuffer::write", Some(Location::caller()));
        self.to_host.wait()?;
        let sent = self.from_host.wait();
        // The buffer itself is as good as before.
        self.from_host.forget_failure();
        sent?;
        #[allow(clippy::expect_used, reason = "the memory is taken by the drop alone")]
        let memory = self.memory.as_mut().expect("a buffer has its memory until it is dropped");
        memory.own()?;
        Ok(HostSliceMut { bytes: memory.bytes_mut(), element: PhantomData })
    }

    /// Enqueues a copy of the whole buffer into `target`.
    ///
    /// # Errors
    /// A failure of a copy into the buffer that is known.
    pub(crate) fn enqueue_upload(&self, stream: &Stream, target: Region<'_>, site: Site) -> Result<()> {
        self.to_host.failure()?;
        let may_wait = stream.raw().may_wait(Transfer::FromHost(self.kind));
        let note = CallInfo { may_wait, ..CallInfo::copy("copy_from", false, self.bytes()) };
        stream.noted(note, site, || {
            self.from_host.enqueue(stream, |done| stream.raw().enqueue_upload(self.memory(), target, done))
        })
    }

    /// Enqueues a copy of `source` into the whole buffer.
    pub(crate) fn enqueue_download(&mut self, stream: &Stream, source: Region<'_>, site: Site) -> Result<()> {
        let waits = stream.raw().waits(Transfer::ToHost(self.kind));
        stream.noted(CallInfo::copy("copy_to", waits, self.bytes()), site, || {
            self.to_host.enqueue(stream, |done| stream.raw().enqueue_download(source, self.memory(), done))?;
            // All of it is written anew.
            self.to_host.forget_failure();
            Ok(())
        })
    }

    #[allow(clippy::expect_used, reason = "the memory is taken by the drop alone")]
    fn memory(&self) -> &dyn HostMemory {
        &**self.memory.as_ref().expect("a buffer has its memory until it is dropped")
    }

    fn bytes(&self) -> usize {
        self.len * size_of::<T>()
    }
}

impl<T: Element> Drop for HostBuffer<T> {
    /// Waits for nothing: the engine keeps the memory until pending copies are over.
    fn drop(&mut self) {
        let mut pending = self.to_host.take();
        pending.extend(self.from_host.take());
        if let Some(memory) = self.memory.take() {
            self.device.engine().retire_host(memory, pending);
        }
    }
}

impl<T: Element> std::fmt::Debug for HostBuffer<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HostBuffer<{}>({:?}, {})", T::DTYPE, self.kind, counted(self.len, "element"))
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

/// The memory that the system can still give, in bytes, where it tells.
pub fn available_memory() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<usize>().ok()?.checked_mul(1024)
}
