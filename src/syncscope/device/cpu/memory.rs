//! Memory of a CPU device and host buffers for it.
//!
//! Streams that nobody ordered may read and write the same memory at the same time. On a GPU that gives stale or
//! mixed values; here it must give values of before or after, and no undefined behaviour. So the content is behind a
//! lock and an [`Arc`]: a reader takes a snapshot, a writer changes the content in place if there is no snapshot of
//! it and a copy otherwise. A worker holds one lock at a time, so that workers cannot wait for each other in a ring.

use std::any::Any;
use std::ops::{Deref, DerefMut, Range};
use std::sync::{Arc, Mutex, PoisonError};

use bytemuck::allocation::try_zeroed_vec;
use half::{bf16, f16};

use super::CpuDevice;
use super::kernels::Fault;
use crate::device::engine::{DeviceMemory, HostMemory, Result, own};
use crate::device::host::available_memory;
use crate::device::lock;
use crate::device::operation::Region;
use crate::device::reserved::{NoRoom, copied};
use crate::device::{DType, Element};
use crate::error::DeviceError;

/// Below this many bytes nobody asks what is free.
const SMALL: usize = 256 << 20;

/// Elements of one of the types, in words, so that they are aligned for each.
#[derive(Debug)]
pub(super) struct Cells {
    dtype: DType,
    words: Vec<u64>,
    bytes: usize,
}

impl Cells {
    /// Zeros; `None` where there is no room for them.
    fn zeros(dtype: DType, bytes: usize) -> Option<Self> {
        try_zeroed_vec(bytes.div_ceil(size_of::<u64>())).ok().map(|words| Self { dtype, words, bytes })
    }

    /// A copy.
    fn copied(&self) -> std::result::Result<Self, NoRoom> {
        copied(&self.words).map(|words| Self { words, ..*self })
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.bytes]
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.words)[..self.bytes]
    }

    /// Fails where the elements are not of type `T`.
    fn are<T: Element>(&self) -> std::result::Result<(), Fault> {
        if self.dtype == T::DTYPE {
            return Ok(());
        }
        Err(Fault::Reason(format!("expected {} and found {}", T::DTYPE, self.dtype)))
    }
}

/// Content that host and workers share. A worker that panicked in the middle of a write has failed its stream; the content is
/// still initialised.
#[derive(Clone)]
pub(super) struct Shared(Arc<Mutex<Arc<Cells>>>);

impl Shared {
    fn zeros(device: &str, dtype: DType, len: usize) -> Result<Self> {
        let requested = len.saturating_mul(dtype.size());
        let no_room = |free| DeviceError::OutOfMemory { device: device.to_owned(), requested, free };
        // The system gives more than it has, and ends a process that writes it. A tensor takes a quarter of what is free at
        // most: a stream copies what the host reads, and others lie beside it.
        let free = if requested > SMALL { available_memory() } else { None };
        if free.is_some_and(|free| requested > free / 4) {
            return Err(no_room(free));
        }
        let cells = Cells::zeros(dtype, requested).ok_or_else(|| no_room(free))?;
        Ok(Self(Arc::new(Mutex::new(Arc::new(cells)))))
    }

    /// The content as it is now.
    pub(super) fn snapshot(&self) -> Arc<Cells> {
        Arc::clone(&lock(&self.0))
    }

    /// Changes the content.
    ///
    /// # Errors
    /// There is a snapshot, and no room for a copy.
    pub(super) fn write<R>(&self, change: impl FnOnce(&mut Cells) -> R) -> std::result::Result<R, NoRoom> {
        let mut content = lock(&self.0);
        if let Some(cells) = Arc::get_mut(&mut content) {
            return Ok(change(cells));
        }
        let mut cells = content.copied()?;
        let result = change(&mut cells);
        *content = Arc::new(cells);
        Ok(result)
    }

    /// Has the content in one pair of hands. Where a job still has a handle, which could only be one that nobody waits for, or
    /// somebody a snapshot, they keep the content of before.
    fn own(&mut self) -> std::result::Result<(), NoRoom> {
        if self.owned().is_none() {
            let cells = self.snapshot().copied()?;
            self.0 = Arc::new(Mutex::new(Arc::new(cells)));
        }
        Ok(())
    }

    /// The content, to change by its one owner, where nobody else has it. A borrow and no lock: who is given it may never give
    /// it back.
    fn owned(&mut self) -> Option<&mut Cells> {
        Arc::get_mut(Arc::get_mut(&mut self.0)?.get_mut().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Memory of a CPU device.
pub(super) struct CpuMemory {
    device: Arc<CpuDevice>,
    dtype: DType,
    content: Shared,
}

impl CpuMemory {
    pub(super) fn new(device: &Arc<CpuDevice>, dtype: DType, len: usize) -> Result<Self> {
        Ok(Self { device: device.clone(), dtype, content: Shared::zeros(&device.name, dtype, len)? })
    }

    /// A region of memory of this opened device, as a job takes it along.
    pub(super) fn slice(region: &Region<'_>, device: &Arc<CpuDevice>) -> Result<Slice> {
        let memory = own(&**region.memory, |memory: &Self| &memory.device, (device, &device.name), "a tensor")?;
        Ok(Slice { content: memory.content.clone(), range: region.offset..region.offset + region.len })
    }
}

impl DeviceMemory for CpuMemory {
    fn dtype(&self) -> DType {
        self.dtype
    }
}

/// A host buffer for a CPU device.
pub(super) struct CpuHostMemory {
    device: Arc<CpuDevice>,
    content: Shared,
}

impl CpuHostMemory {
    pub(super) fn new(device: &Arc<CpuDevice>, dtype: DType, len: usize) -> Result<Self> {
        device.check()?;
        Ok(Self { device: device.clone(), content: Shared::zeros(&device.name, dtype, len)? })
    }

    /// The content of the buffer behind the interface, if it is one of this opened device.
    pub(super) fn content(memory: &dyn HostMemory, device: &Arc<CpuDevice>) -> Result<Shared> {
        own(memory, |memory: &Self| &memory.device, (device, &device.name), "a host buffer")
            .map(|memory| memory.content.clone())
    }
}

impl HostMemory for CpuHostMemory {
    fn bytes(&self) -> Box<dyn Deref<Target = [u8]> + '_> {
        Box::new(Snapshot(self.content.snapshot()))
    }

    fn own(&mut self) -> Result<()> {
        self.content.own().map_err(|none| none.on(&self.device.name))
    }

    #[allow(clippy::expect_used, reason = "the content is its own since the call before")]
    fn bytes_mut(&mut self) -> Box<dyn DerefMut<Target = [u8]> + '_> {
        Box::new(self.content.owned().expect("a buffer has its content to itself before it is changed").bytes_mut())
    }
}

struct Snapshot(Arc<Cells>);

impl Deref for Snapshot {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.bytes()
    }
}

/// A run of elements of shared content, owned, as a job takes it along.
#[derive(Clone)]
pub(super) struct Slice {
    pub(crate) content: Shared,
    pub(super) range: Range<usize>,
}

impl Slice {
    /// These elements of a snapshot of the content, as bytes.
    pub(super) fn bytes_of<'a>(&self, cells: &'a Cells) -> &'a [u8] {
        &cells.bytes()[self.bytes(cells.dtype)]
    }

    fn bytes(&self, dtype: DType) -> Range<usize> {
        self.range.start * dtype.size()..self.range.end * dtype.size()
    }

    /// These elements of the content as it is now, as a `Vec` of their type.
    pub(super) fn to_vec(&self) -> std::result::Result<Box<dyn Any>, NoRoom> {
        fn vec<T: Element>(bytes: &[u8]) -> std::result::Result<Box<dyn Any>, NoRoom> {
            Ok(Box::new(copied::<T>(bytemuck::cast_slice(bytes))?))
        }
        let cells = self.content.snapshot();
        let bytes = self.bytes_of(&cells);
        match cells.dtype {
            DType::F16 => vec::<f16>(bytes),
            DType::BF16 => vec::<bf16>(bytes),
            DType::F32 => vec::<f32>(bytes),
            DType::I64 => vec::<i64>(bytes),
            DType::U8 => vec::<u8>(bytes),
        }
    }

    /// Replaces these elements by `bytes`, of the same size.
    ///
    /// # Errors
    /// As [`Shared::write`].
    pub(super) fn write_bytes(&self, bytes: &[u8]) -> std::result::Result<(), NoRoom> {
        self.content.write(|cells| {
            let range = self.bytes(cells.dtype);
            cells.bytes_mut()[range].copy_from_slice(bytes);
        })
    }

    /// Changes these elements.
    ///
    /// # Errors
    /// They are not of type `T`; as [`Shared::write`].
    pub(super) fn write<T: Element>(&self, change: impl FnOnce(&mut [T])) -> std::result::Result<(), Fault> {
        self.content.write(|cells| {
            cells.are::<T>()?;
            change(&mut bytemuck::cast_slice_mut(cells.bytes_mut())[self.range.clone()]);
            Ok(())
        })?
    }

    /// These elements of a snapshot.
    ///
    /// # Errors
    /// They are not of type `T`.
    pub(super) fn of<'a, T: Element>(&self, cells: &'a Cells) -> std::result::Result<&'a [T], Fault> {
        cells.are::<T>()?;
        Ok(&bytemuck::cast_slice(cells.bytes())[self.range.clone()])
    }
}

#[cfg(all(test, target_os = "linux"))]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_tensor_that_would_fill_the_memory_is_refused_with_what_is_free() {
        let half = available_memory().unwrap() / 2;
        let refused = Shared::zeros("cpu:0", DType::U8, half.max(SMALL + 1)).err();
        assert!(matches!(refused, Some(DeviceError::OutOfMemory { free: Some(_), .. })), "{refused:?}");
        assert!(Shared::zeros("cpu:0", DType::F32, 1024).is_ok());
    }
}
