//! Copies between host and device.
//!
//! Small borrowed bytes go through a pinned slot: an upload then never waits for the device, and a read of a scalar
//! takes the fast path of the hardware. Where a gate is closed and the slots are in use, the driver copies the bytes aside.
//! What is larger goes from or to ordinary memory, which the driver stages.

use std::any::Any;
use std::sync::Arc;

use half::{bf16, f16};

use super::device::CudaMemory;
use super::host::CudaHostMemory;
use super::pinned::{SLOT_BYTES, Slot};
use crate::device::cuda::driver::{PoolSpan, filled_vec};
use crate::device::cuda::stream::event::CudaEvent;
use crate::device::cuda::stream::guard::StreamInner;
use crate::device::cuda::stream::limbo::Kept;
use crate::device::engine::{HostMemory, Result};
use crate::device::operation::Region;
use crate::device::{DType, Element};
use crate::error::DeviceError;

/// How many slots of a size uploads leave to reads while a gate is closed, when no more are made.
const SLOTS_OF_READS: usize = 8;

/// Enqueues a copy of a whole host buffer.
pub(crate) fn enqueue_upload(
    stream: &Arc<StreamInner>,
    source: &dyn HostMemory,
    target: Region<'_>,
    done: &CudaEvent,
) -> Result<()> {
    let source = CudaHostMemory::of(source, &stream.device)?;
    let guard = stream.enter_uncaptured("copy_from")?;
    if same_size("upload", source.size(), target)? == 0 {
        return done.record(&guard);
    }
    guard.upload(source, CudaMemory::of(target, stream)?, done)
}

/// Enqueues a copy into a whole host buffer.
pub(crate) fn enqueue_download(
    stream: &Arc<StreamInner>,
    source: Region<'_>,
    target: &dyn HostMemory,
    done: &CudaEvent,
) -> Result<()> {
    let target = CudaHostMemory::of(target, &stream.device)?;
    let guard = stream.enter_uncaptured("copy_to")?;
    if same_size("download", target.size(), source)? == 0 {
        return done.record(&guard);
    }
    guard.download(CudaMemory::of(source, stream)?, target, done)
}

/// Copies borrowed bytes: up to [`SLOT_BYTES`] without waiting for the device, more as a synchronization point.
pub(crate) fn upload(stream: &Arc<StreamInner>, source: &[u8], target: Region<'_>) -> Result<()> {
    let guard = stream.enter_uncaptured("upload")?;
    let bytes = same_size("upload", source.len(), target)?;
    if bytes == 0 {
        return Ok(());
    }
    let to = CudaMemory::of(target, stream)?;
    if bytes > SLOT_BYTES {
        guard.upload_and_wait(source, to)?;
        return stream.check_failure();
    }
    guard.let_go();
    let Some(mut slot) = stream.device.gpu.slot(bytes, SLOTS_OF_READS)? else { return guard.upload_aside(source, to) };
    slot.write(source);
    let copied = guard.upload_piece(&slot, to);
    // Also after an error, of which nobody knows how far the copy came.
    stream.keep(Kept::Slot { _slot: slot });
    copied
}

/// Copies into at most [`SLOT_BYTES`] borrowed bytes: a synchronization point.
pub(crate) fn download(stream: &Arc<StreamInner>, source: Region<'_>, target: &mut [u8]) -> Result<()> {
    let bytes = same_size("download", target.len(), source)?;
    let Some(from) = prepared(stream, source, bytes)? else { return stream.synchronize() };
    through_slot(stream, from, bytes, |slot| {
        wait_for(stream, slot, bytes)?;
        slot.read(target);
        Ok(())
    })
}

/// The elements of `source`, as a vector of their type: a synchronization point.
pub(crate) fn download_all(stream: &Arc<StreamInner>, source: Region<'_>) -> Result<Box<dyn Any>> {
    fn vec<T: Element>(stream: &Arc<StreamInner>, source: Region<'_>) -> Result<Box<dyn Any>> {
        let bytes = source.len * T::DTYPE.size();
        let Some(from) = prepared(stream, source, bytes)? else {
            return stream.synchronize().map(|()| Box::new(Vec::<T>::new()) as Box<dyn Any>);
        };
        let values: Vec<T> = filled_vec(source.len, |target| match bytes {
            0..=SLOT_BYTES => through_slot(stream, from, bytes, |slot| {
                wait_for(stream, slot, bytes)?;
                slot.drain(target);
                Ok(())
            }),
            _ => stream
                .enter_uncaptured("download")?
                .download_and_wait(from, target)
                .and_then(|()| stream.check_failure()),
        })?;
        Ok(Box::new(values))
    }
    match source.dtype() {
        DType::F16 => vec::<f16>(stream, source),
        DType::BF16 => vec::<bf16>(stream, source),
        DType::F32 => vec::<f32>(stream, source),
        DType::I64 => vec::<i64>(stream, source),
        DType::U8 => vec::<u8>(stream, source),
    }
}

/// Where `source` lies, or `None` where it has no bytes; refused while the stream captures. Without a guard: what lies in
/// the host's memory already is read although a thread may be stuck behind it.
fn prepared(stream: &Arc<StreamInner>, source: Region<'_>, bytes: usize) -> Result<Option<PoolSpan>> {
    stream.check_uncaptured("download")?;
    if bytes == 0 { Ok(None) } else { CudaMemory::of(source, stream).map(Some) }
}

/// Has `bytes` copied into a slot, from which `take` takes them.
fn through_slot(
    stream: &Arc<StreamInner>,
    from: PoolSpan,
    bytes: usize,
    take: impl FnOnce(&Slot) -> Result<()>,
) -> Result<()> {
    let slot = stream.device.gpu.for_a_read(stream, || stream.device.gpu.slot(bytes, 0))?;
    slot.expect();
    let copied = stream.enter_uncaptured("download").and_then(|guard| guard.download_piece(from, &slot));
    let taken = copied.and_then(|left| take(&slot).map(|()| stream.note_idle(left)));
    if taken.is_err() {
        // The copy may yet come.
        stream.keep(Kept::Slot { _slot: slot });
    }
    taken
}

fn wait_for(stream: &StreamInner, slot: &Slot, bytes: usize) -> Result<()> {
    let in_one = matches!(bytes, 1 | 2 | 4 | 8);
    if in_one && slot.has_arrived(bytes) { stream.check_failure() } else { stream.synchronize() }
}

/// The size of both sides in bytes. Checked here too: the driver would copy past the shorter one.
fn same_size(operation: &'static str, host: usize, region: Region<'_>) -> Result<usize> {
    let device = region.len * region.dtype().size();
    if host == device {
        return Ok(host);
    }
    Err(DeviceError::invalid(operation, format!("{host} bytes on the host and {device} on the device")))
}
