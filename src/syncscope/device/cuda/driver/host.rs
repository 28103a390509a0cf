//! Host memory that the device reads and writes: pageable or page-locked.
//!
//! The device changes it behind Rust's back, so that it is reached through pointers, and a slice of it is given out only
//! where the caller has waited for the device (see the invariants of this room).

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering, fence};

use cudarc::driver::sys::{
    self, CU_MEMHOSTALLOC_DEVICEMAP, CU_MEMHOSTALLOC_PORTABLE, CU_MEMHOSTALLOC_WRITECOMBINED, CUdeviceptr, CUresult,
};

use super::{Context, PoolSpan, exit};
use crate::device::engine::Result;
use crate::device::{Element, HostKind};
use crate::error::DeviceError;

/// Zeroed host memory.
pub(crate) struct HostBlock {
    /// Dangling where there are no bytes.
    start: NonNull<u8>,
    bytes: usize,
    /// As the device sees it; 0 where it does not.
    device: CUdeviceptr,
    kind: HostKind,
    context: Arc<Context>,
}

// Safety: plain bytes; who may touch them when is the contract of this room.
unsafe impl Send for HostBlock {}
// Safety: as above.
unsafe impl Sync for HostBlock {}

impl HostBlock {
    /// `bytes` zeroed bytes, aligned for every element type. Page-locking may wait for the device.
    pub(crate) fn allocate(context: &Arc<Context>, kind: HostKind, bytes: usize) -> Result<Self> {
        let (start, device) = match kind {
            _ if bytes == 0 => (NonNull::<u64>::dangling().cast(), 0),
            HostKind::Pageable => (pageable(bytes)?, 0),
            HostKind::Pinned => page_locked(context, bytes, 0)?,
            HostKind::WriteCombined => page_locked(context, bytes, CU_MEMHOSTALLOC_WRITECOMBINED)?,
        };
        Ok(Self { start, bytes, device, kind, context: context.clone() })
    }

    /// Its size.
    pub(crate) fn size(&self) -> usize {
        self.bytes
    }

    /// Where it lies.
    pub(crate) fn kind(&self) -> HostKind {
        self.kind
    }

    /// The content; no copy into it is pending.
    pub(crate) fn bytes(&self) -> &[u8] {
        // Safety: that long and initialised; the caller waited for copies into it.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }

    /// The content, to change; no copy from or into it is pending.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // Safety: that long and initialised; the caller waited for copies, and has it exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }

    /// The first byte, for copies.
    pub(crate) fn start(&self) -> *mut c_void {
        self.start.as_ptr().cast()
    }

    /// Gives page-locked memory back to the system, which may wait for the device. No copy of it is pending.
    pub(crate) fn release(self) {
        if self.kind != HostKind::Pageable && self.bytes > 0 {
            let _ = self.context.bind();
            let _inside = exit::enter();
            // Safety: allocated by `page_locked`, and `self` ends here. An error leaves the memory allocated.
            unsafe { sys::cuMemFreeHost(self.start()) };
        }
    }

    /// A part of page-locked memory.
    pub(crate) fn piece(self: &Arc<Self>, offset: usize, bytes: usize) -> Option<HostPiece> {
        if self.kind == HostKind::Pageable || offset.checked_add(bytes)? > self.bytes {
            return None;
        }
        // Safety: within the block.
        let start = unsafe { self.start.add(offset) };
        Some(HostPiece { start, bytes, device: self.device + offset as u64, block: Arc::clone(self) })
    }
}

impl Drop for HostBlock {
    /// Pageable memory is freed: no copy of the driver uses it once the call has returned that enqueued it. Page-locked
    /// memory stays: to give it back can wait for the device, which a drop must not.
    fn drop(&mut self) {
        if self.kind == HostKind::Pageable && self.bytes > 0 {
            let words = ptr::slice_from_raw_parts_mut(self.start.as_ptr().cast::<u64>(), self.bytes.div_ceil(8));
            // Safety: leaked by `pageable` with this length, taken back once.
            drop(unsafe { Box::from_raw(words) });
        }
    }
}

fn pageable(bytes: usize) -> Result<NonNull<u8>> {
    let words = bytemuck::allocation::try_zeroed_slice_box::<u64>(bytes.div_ceil(8));
    // A pointer, not a box: the host's slices and the copies' addresses come from one place.
    words.map(|words| NonNull::from(Box::leak(words)).cast()).map_err(|()| no_room(bytes))
}

#[cold]
pub(crate) fn no_room(requested: usize) -> DeviceError {
    DeviceError::OutOfMemory { device: "the host".to_owned(), requested, free: None }
}

fn page_locked(context: &Context, bytes: usize, flags: u32) -> Result<(NonNull<u8>, CUdeviceptr)> {
    context.bind()?;
    let failed = |error: String| {
        DeviceError::call_failed(context.name(), "cuMemHostAlloc", format!("{bytes} bytes of pinned memory: {error}"))
    };
    let (_inside, mut start, mut device) = (exit::enter(), ptr::null_mut(), 0);
    // Safety: writes one address.
    let status =
        unsafe { sys::cuMemHostAlloc(&mut start, bytes, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | flags) };
    if status == CUresult::CUDA_ERROR_OUT_OF_MEMORY {
        return Err(no_room(bytes));
    }
    context.check("cuMemHostAlloc", status).map_err(|error| failed(error.to_string()))?;
    let start = NonNull::new(start).ok_or_else(|| failed("no address".to_owned()))?.cast::<u8>();
    // Safety: the memory is new and that long; it is mapped, and the call writes one address.
    let status = unsafe {
        start.write_bytes(0, bytes);
        sys::cuMemHostGetDevicePointer_v2(&mut device, start.as_ptr().cast(), 0)
    };
    context.check("cuMemHostGetDevicePointer", status).map(|()| (start, device))
}

/// A part of a page-locked block, which it keeps.
pub(crate) struct HostPiece {
    start: NonNull<u8>,
    bytes: usize,
    device: CUdeviceptr,
    block: Arc<HostBlock>,
}

// Safety: the memory is kept by the block; access is by volatile or atomic operations, or while nothing is pending.
unsafe impl Send for HostPiece {}
// Safety: as above.
unsafe impl Sync for HostPiece {}

impl HostPiece {
    /// Its size.
    pub(crate) fn size(&self) -> usize {
        self.bytes
    }

    /// What it is a part of.
    pub(crate) fn block(&self) -> &Arc<HostBlock> {
        &self.block
    }

    /// Where the device finds it.
    pub(crate) fn span(&self) -> PoolSpan {
        PoolSpan::new(self.device, self.bytes)
    }

    pub(crate) fn start(&self) -> *mut c_void {
        self.start.as_ptr().cast()
    }

    /// Fills the head of the piece; no copy of it is pending.
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        let bytes = &bytes[..bytes.len().min(self.bytes)];
        // Safety: within the piece, which the caller has exclusively.
        unsafe { self.start.as_ptr().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }

    /// Copies the head of the piece out, all of `target`; no copy into it is pending.
    ///
    /// # Panics
    /// `target` is longer than the piece.
    pub(crate) fn read(&self, target: &mut [u8]) {
        assert!(target.len() <= self.bytes, "a piece of {} bytes", self.bytes);
        // Safety: within both; the target is borrowed exclusively.
        unsafe { target.as_mut_ptr().copy_from_nonoverlapping(self.start.as_ptr(), target.len()) };
    }

    /// As [`read`](Self::read), into memory that was not written yet and is afterwards.
    ///
    /// # Panics
    /// As `read`.
    pub(crate) fn drain(&self, target: &mut [MaybeUninit<u8>]) {
        assert!(target.len() <= self.bytes, "a piece of {} bytes", self.bytes);
        // Safety: as above.
        unsafe { target.as_mut_ptr().cast::<u8>().copy_from_nonoverlapping(self.start.as_ptr(), target.len()) };
    }

    /// Writes the first word, which the device may look at.
    pub(crate) fn store(&self, word: u64) {
        // Safety: a piece is larger than a word and aligned for it.
        unsafe { self.start.cast::<u64>().write_volatile(word) };
    }

    /// The first 1, 2, 4 or 8 bytes, which the device writes in one; what it wrote before them can be seen once they can.
    pub(crate) fn load(&self, bytes: usize) -> u64 {
        // Safety: as above.
        let word = unsafe {
            match bytes {
                1 => self.start.read_volatile().into(),
                2 => self.start.cast::<u16>().read_volatile().into(),
                4 => self.start.cast::<u32>().read_volatile().into(),
                _ => self.start.cast::<u64>().read_volatile(),
            }
        };
        fence(Ordering::Acquire);
        word
    }

    /// Word `index` of the piece, of 8 bytes.
    pub(crate) fn word(&self, index: usize) -> u64 {
        assert!(8 * (index + 1) <= self.bytes, "a piece of {} bytes", self.bytes);
        // Safety: within the piece and aligned.
        unsafe { self.start.cast::<u64>().add(index).read_volatile() }
    }

    /// The first word as a flag that the host sets and streams wait for.
    pub(crate) fn flag(&self) -> &AtomicU32 {
        // Safety: aligned, and kept as long as the piece; the host touches it through here alone.
        unsafe { self.start.cast::<AtomicU32>().as_ref() }
    }
}

/// A vector of `len` elements that `fill` writes, every byte of them where it succeeds.
pub(crate) fn filled_vec<T: Element>(
    len: usize,
    fill: impl FnOnce(&mut [MaybeUninit<u8>]) -> Result<()>,
) -> Result<Vec<T>> {
    let mut values = Vec::<T>::new();
    values.try_reserve_exact(len).map_err(|_| no_room(len.saturating_mul(size_of::<T>())))?;
    let bytes = values.spare_capacity_mut().as_mut_ptr().cast();
    // Safety: that many bytes of the capacity, not initialised yet.
    fill(unsafe { std::slice::from_raw_parts_mut(bytes, len * size_of::<T>()) })?;
    // Safety: all of them have been written, and any bits are an element.
    unsafe { values.set_len(len) };
    Ok(values)
}
