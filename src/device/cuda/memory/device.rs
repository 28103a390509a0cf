//! Device memory that is freed in stream order, whichever streams used it.
//!
//! Memory belongs to the stream it was allocated on, its home, and is freed there: no event, no call of the driver,
//! one pointer comparison a use. Another stream that uses it is remembered, and held on to. If there were others, the memory is
//! freed on an internal stream that waits for all of them: no user's stream is ordered behind another by a drop.

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::sys::CUdeviceptr;

use crate::device::DType;
use crate::device::cuda::memory::pinned::Slot;
use crate::device::cuda::stream::inner::StreamInner;
use crate::device::engine::{DeviceMemory, Region, Result};
use crate::error::DeviceError;

/// Memory of a CUDA device.
pub(crate) struct CudaMemory {
    /// 0 for no elements, which take no memory.
    pointer: CUdeviceptr,
    dtype: DType,
    len: usize,
    home: Arc<StreamInner>,
    guests: Mutex<Vec<Arc<StreamInner>>>,
    /// The host's memory where it lies, if it lies there.
    slot: Option<Slot>,
}

impl CudaMemory {
    /// Memory for `len` elements, usable by work on `home` from now on.
    pub(crate) fn new(home: Arc<StreamInner>, dtype: DType, len: usize) -> Result<Self> {
        let pointer = match len.checked_mul(dtype.size()) {
            Some(0) => 0,
            Some(bytes) => home.allocate(bytes)?,
            None => {
                let device = home.context.primary.name().to_owned();
                return Err(DeviceError::OutOfMemory { device, requested: usize::MAX, free: None });
            }
        };
        Ok(Self { pointer, dtype, len, home, guests: Mutex::default(), slot: None })
    }

    /// Memory of the host for one element that the device writes and the host reads once the stream has come so far:
    /// cheaper than a copy of it.
    pub(crate) fn host_scalar(home: Arc<StreamInner>, dtype: DType) -> Result<Self> {
        let slot = home.context.pinned.take_slot(&home.context.primary)?;
        slot.expect();
        Ok(Self { pointer: slot.device(), dtype, len: 1, home, guests: Mutex::default(), slot: Some(slot) })
    }

    /// Where the host finds the element, if it lies in its memory.
    pub(crate) fn in_host(region: Region<'_>) -> Option<&Slot> {
        let memory: &dyn Any = &**region.memory;
        memory.downcast_ref::<Self>()?.slot.as_ref()
    }

    /// The address of a region for work on `queue`, which is remembered as a user.
    #[inline]
    pub(crate) fn of(region: Region<'_>, queue: &Arc<StreamInner>) -> Result<CUdeviceptr> {
        let memory: &dyn Any = &**region.memory;
        let Some(memory) = memory.downcast_ref::<Self>() else { return Err(foreign(queue)) };
        // The layers above keep every region inside; a slip there must not become an access outside.
        if region.offset.checked_add(region.len).is_none_or(|end| end > memory.len) {
            return Err(outside(queue));
        }
        if !Arc::ptr_eq(&memory.home, queue) {
            memory.remember(queue)?;
        }
        Ok(memory.pointer + (region.offset * memory.dtype.size()) as u64)
    }

    #[cold]
    fn remember(&self, queue: &Arc<StreamInner>) -> Result<()> {
        if !self.home.context.primary.is_same(&queue.context.primary) {
            return Err(foreign(queue));
        }
        let mut guests = self.guests.lock().unwrap_or_else(PoisonError::into_inner);
        if !guests.iter().any(|guest| Arc::ptr_eq(guest, queue)) {
            guests.push(queue.clone());
        }
        Ok(())
    }
}

#[cold]
fn outside(queue: &StreamInner) -> DeviceError {
    let reason = format!("a region lies outside of its memory on {}", queue.context.primary.name());
    DeviceError::InvalidArgument { operation: "region", reason }
}

fn foreign(queue: &StreamInner) -> DeviceError {
    DeviceError::ForeignObject { what: "memory", device: queue.context.primary.name().to_owned() }
}

impl DeviceMemory for CudaMemory {
    fn dtype(&self) -> DType {
        self.dtype
    }
}

impl Drop for CudaMemory {
    /// Enqueues the free and goes on. A drop cannot return an error.
    fn drop(&mut self) {
        if self.pointer == 0 {
            return;
        }
        if let Some(mut slot) = self.slot.take() {
            let (pinned, primary) = (&self.home.context.pinned, &self.home.context.primary);
            // A slot that could not be held is never handed out again: a kernel may still write it.
            if slot.hold(primary, self.home.raw()).is_ok() {
                pinned.return_slot(slot);
            }
            return;
        }
        let guests = self.guests.get_mut().unwrap_or_else(PoisonError::into_inner);
        if guests.is_empty() {
            self.home.free(self.pointer, self.len * self.dtype.size());
        } else {
            let users = guests.drain(..).chain([self.home.clone()]).collect();
            self.home.context.free_after(self.pointer, users);
        }
    }
}
