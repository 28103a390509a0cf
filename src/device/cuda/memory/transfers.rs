//! Copies between host and device.
//!
//! Small borrowed bytes go through a pinned slot: an upload then never waits for the device, and a read of a scalar
//! takes the fast path of the hardware. Large uploads go from the caller's own memory, which the driver stages; large
//! downloads are staged here (see `staging`).

use std::mem::MaybeUninit;
use std::sync::Arc;

use cudarc::driver::sys;

use crate::device::cuda::memory::device::CudaMemory;
use crate::device::cuda::memory::host::CudaHostMemory;
use crate::device::cuda::memory::pinned::{SLOT_BYTES, Slot};
use crate::device::cuda::memory::staging;
use crate::device::cuda::stream::inner::StreamInner;
use crate::device::engine::{HostMemory, Region, Result};
use crate::error::DeviceError;

/// Enqueues a copy of a whole host buffer.
pub(crate) fn enqueue_upload(queue: &Arc<StreamInner>, source: &dyn HostMemory, target: Region<'_>) -> Result<()> {
    let source = CudaHostMemory::of(source, queue.context.primary.name())?;
    let bytes = same_size("upload", source.size(), target)?;
    if bytes == 0 {
        return Ok(());
    }
    let to = CudaMemory::of(target, queue)?;
    // Safety: both sides hold `bytes` bytes; the caller keeps the source alive and unwritten.
    let status = unsafe { sys::cuMemcpyHtoDAsync_v2(to, source.start(), bytes, queue.raw()) };
    queue.check("cuMemcpyHtoDAsync", status)
}

/// Enqueues a copy into a whole host buffer.
pub(crate) fn enqueue_download(queue: &Arc<StreamInner>, source: Region<'_>, target: &dyn HostMemory) -> Result<()> {
    let target = CudaHostMemory::of(target, queue.context.primary.name())?;
    let bytes = same_size("download", target.size(), source)?;
    if bytes == 0 {
        return Ok(());
    }
    let from = CudaMemory::of(source, queue)?;
    // Safety: both sides hold `bytes` bytes; the caller keeps the target alive and untouched.
    let status = unsafe { sys::cuMemcpyDtoHAsync_v2(target.start(), from, bytes, queue.raw()) };
    queue.check("cuMemcpyDtoHAsync", status)
}

/// Copies borrowed bytes: up to [`SLOT_BYTES`] without waiting for the device, more as a barrier.
pub(crate) fn upload(queue: &Arc<StreamInner>, source: &[u8], target: Region<'_>) -> Result<()> {
    let bytes = same_size("upload", source.len(), target)?;
    if bytes == 0 {
        return Ok(());
    }
    let to = CudaMemory::of(target, queue)?;
    if bytes > SLOT_BYTES {
        // Safety: both sides hold `bytes` bytes; the source is borrowed until the copy is over, see below.
        let status = unsafe { sys::cuMemcpyHtoDAsync_v2(to, source.as_ptr().cast(), bytes, queue.raw()) };
        let copied = queue.check("cuMemcpyHtoDAsync", status);
        // Also after an error: the borrow ends here.
        return queue.synchronize().and(copied);
    }
    let (pinned, primary) = (&queue.context.pinned, &queue.context.primary);
    let mut slot = pinned.take_slot(primary)?;
    // Safety: the slot is free and holds `bytes` bytes; it is held until the copy is over.
    let status = unsafe {
        slot.memory().as_ptr().copy_from_nonoverlapping(source.as_ptr(), bytes);
        sys::cuMemcpyHtoDAsync_v2(to, slot.memory().as_ptr().cast(), bytes, queue.raw())
    };
    let copied = queue.check("cuMemcpyHtoDAsync", status);
    let held = slot.hold(primary, queue.raw());
    if held.is_ok() {
        pinned.return_slot(slot);
    }
    // A slot that could not be held is never handed out again: a copy may still read it.
    copied.and(held)
}

/// Copies into borrowed bytes: a barrier for the stream.
pub(crate) fn download(queue: &Arc<StreamInner>, source: Region<'_>, target: &mut [MaybeUninit<u8>]) -> Result<()> {
    let bytes = same_size("download", target.len(), source)?;
    if bytes == 0 {
        return queue.synchronize();
    }
    let from = CudaMemory::of(source, queue)?;
    if bytes > SLOT_BYTES {
        // Safety: both sides hold `bytes` bytes.
        return unsafe { staging::download(queue, from, target) };
    }
    if let Some(slot) = CudaMemory::in_host(source) {
        return receive(queue, slot, target);
    }
    let (pinned, primary) = (&queue.context.pinned, &queue.context.primary);
    let slot = pinned.take_slot(primary)?;
    slot.expect();
    // Safety: the slot is free and holds `bytes` bytes.
    let status = unsafe { sys::cuMemcpyDtoHAsync_v2(slot.memory().as_ptr().cast(), from, bytes, queue.raw()) };
    queue.check("cuMemcpyDtoHAsync", status)?;
    // On an error of the device the slot is dropped and its memory not handed out again.
    receive(queue, &slot, target)?;
    pinned.return_slot(slot);
    Ok(())
}

/// Waits for what the stream writes into a slot, and takes it.
fn receive(queue: &StreamInner, slot: &Slot, target: &mut [MaybeUninit<u8>]) -> Result<()> {
    let in_one = matches!(target.len(), 1 | 2 | 4 | 8);
    if in_one && slot.has_arrived(target.len()) {
        queue.check_fault()?;
    } else {
        queue.synchronize()?;
    }
    // Safety: the slot holds as many bytes, and they have been written.
    unsafe { target.as_mut_ptr().cast::<u8>().copy_from_nonoverlapping(slot.memory().as_ptr(), target.len()) };
    Ok(())
}

/// The size of both sides in bytes. Checked here too: the driver would copy past the shorter one.
fn same_size(operation: &'static str, host: usize, region: Region<'_>) -> Result<usize> {
    let device = region.len * region.dtype().size();
    if host == device {
        return Ok(host);
    }
    Err(DeviceError::InvalidArgument {
        operation,
        reason: format!("{host} bytes on the host and {device} on the device"),
    })
}
