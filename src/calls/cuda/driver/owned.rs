//! Handles and memory that end with their owner.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::Arc;

use cudarc::driver::sys::{
    self, CU_MEMHOSTALLOC_DEVICEMAP, CU_MEMHOSTALLOC_PORTABLE, CU_MEMHOSTREGISTER_DEVICEMAP,
    CU_MEMHOSTREGISTER_PORTABLE, CUdeviceptr, CUmemAttach_flags, CUresult,
};
use syncscope::device::raw::Context;
use syncscope::error::DeviceError;

use super::Status;
use crate::Result;
use crate::catalogue::Memory;
use crate::ways::no_room;

/// What the driver names its objects by.
pub(super) trait Handle: Copy {
    /// What is there before a call has written it.
    const NONE: Self;
}

impl<T> Handle for *mut T {
    const NONE: Self = ptr::null_mut();
}

impl Handle for CUdeviceptr {
    const NONE: Self = 0;
}

impl Handle for c_int {
    const NONE: Self = 0;
}

/// A handle, or the place for one, that is ended with its owner.
pub(super) struct Owned<H: Handle> {
    raw: Option<H>,
    end: unsafe fn(H) -> CUresult,
    context: Arc<Context>,
}

impl<H: Handle> Owned<H> {
    /// A place for a handle that a call makes, and that `end` ends.
    pub(super) fn empty(context: &Arc<Context>, end: unsafe fn(H) -> CUresult) -> Self {
        Self { raw: None, end, context: context.clone() }
    }

    /// A handle that this call makes.
    pub(super) fn new(
        context: &Arc<Context>,
        call: &'static str,
        end: unsafe fn(H) -> CUresult,
        make: impl FnOnce(&mut H) -> CUresult,
    ) -> Result<Self> {
        let mut place = Self::empty(context, end);
        let status = place.make(|raw| Ok(make(raw)))?;
        context.check(call, status).map(|()| place)
    }

    /// Takes what a call writes, where it succeeds.
    #[inline]
    pub(super) fn make(&mut self, call: impl FnOnce(&mut H) -> Status) -> Status {
        let mut raw = H::NONE;
        let status = call(&mut raw)?;
        self.raw = (status == CUresult::CUDA_SUCCESS).then_some(raw);
        Ok(status)
    }

    /// The handle.
    #[inline]
    pub(super) fn get(&self) -> Result<H> {
        self.raw.ok_or_else(|| DeviceError::invalid("call", "what it is about has been ended"))
    }

    /// The handle, which another call ends.
    #[inline]
    pub(super) fn take(&mut self) -> Result<H> {
        self.get().inspect(|_| self.raw = None)
    }

    /// Ends the handle by the call that is measured.
    #[inline]
    pub(super) fn end(&mut self) -> Status {
        let raw = self.take()?;
        // Safety: the handle is live, and not used again.
        Ok(unsafe { (self.end)(raw) })
    }
}

impl<H: Handle> Drop for Owned<H> {
    /// A drop cannot return an error, and nothing is left to undo.
    fn drop(&mut self) {
        if self.raw.is_some() {
            let _ = self.context.bind();
            let _ = self.end();
        }
    }
}

/// Memory of some kind.
pub(super) struct Block {
    bytes: usize,
    kind: Kind,
}

enum Kind {
    Pageable(Pageable),
    Pinned(Owned<*mut c_void>),
    // Unregistered before it is freed.
    Registered(Owned<*mut c_void>, #[allow(dead_code, reason = "kept until it is unregistered")] Pageable),
    Managed(Owned<CUdeviceptr>),
    Device(Owned<CUdeviceptr>),
}

impl Block {
    /// So many bytes, written once where the host can.
    pub(super) fn new(context: &Arc<Context>, memory: Memory, bytes: usize) -> Result<Self> {
        context.bind()?;
        let kind = match memory {
            Memory::Pageable => Kind::Pageable(pageable(bytes)?),
            Memory::Pinned => {
                let pinned = pinned(context, bytes)?;
                // Safety: new, and that long.
                unsafe { pinned.get()?.cast::<u8>().write_bytes(1, bytes) };
                Kind::Pinned(pinned)
            }
            Memory::Registered => {
                let block = pageable(bytes)?;
                Kind::Registered(registered(context, &block, bytes)?, block)
            }
            Memory::Managed => Kind::Managed(managed(context, bytes.max(MOVED_ALONE), bytes)?),
            Memory::Device => Kind::Device(device(context, bytes)?),
        };
        Ok(Self { bytes, kind })
    }

    /// Its size.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Its address: in one address space, the same for the host and the device, where both can reach it.
    pub(super) fn address(&self) -> Result<CUdeviceptr> {
        match &self.kind {
            Kind::Pageable(block) => Ok(block.start() as CUdeviceptr),
            Kind::Pinned(start) | Kind::Registered(start, _) => Ok(start.get()? as CUdeviceptr),
            Kind::Managed(address) | Kind::Device(address) => address.get(),
        }
    }

    /// As [`address`](Self::address), for the host.
    pub(super) fn start(&self) -> Result<*mut c_void> {
        self.address().map(|address| address as *mut c_void)
    }

    /// Where a kernel finds it: a device may know page-locked memory by another address.
    pub(super) fn on_device(&self) -> Result<CUdeviceptr> {
        match &self.kind {
            Kind::Pinned(start) | Kind::Registered(start, _) => {
                // The thread that asks need not be the one that made it.
                start.context.bind()?;
                let mut address = 0;
                // Safety: the memory is mapped; writes one address.
                let status = unsafe { sys::cuMemHostGetDevicePointer_v2(&mut address, start.get()?, 0) };
                start.context.check("cuMemHostGetDevicePointer", status).map(|()| address)
            }
            _ => self.address(),
        }
    }
}

/// The least size of pageable memory: the host's allocator gives it pages that nothing else lies in.
const ALONE: usize = 256 << 10;

/// The least size of managed memory: the driver moves whole pages, in which small blocks lie beside each other, and in its
/// largest pages, of this size, nothing else lies.
const MOVED_ALONE: usize = 2 << 20;

/// Pageable memory, written once: used by its address alone, so that nothing is borrowed while a call uses it.
pub(super) struct Pageable(Vec<u64>);

impl Pageable {
    fn start(&self) -> *mut c_void {
        self.0.as_ptr().cast_mut().cast()
    }
}

/// So many bytes at least.
pub(super) fn pageable(bytes: usize) -> Result<Pageable> {
    let words = bytes.max(ALONE).div_ceil(size_of::<u64>());
    let mut block = Vec::new();
    block.try_reserve_exact(words).map_err(|_| no_room("the host", bytes))?;
    block.resize(words, u64::from_ne_bytes([1; 8]));
    Ok(Pageable(block))
}

pub(super) fn allocate(address: &mut CUdeviceptr, bytes: usize) -> CUresult {
    // Safety: writes one address.
    unsafe { sys::cuMemAlloc_v2(address, bytes) }
}

pub(super) fn device(context: &Arc<Context>, bytes: usize) -> Result<Owned<CUdeviceptr>> {
    Owned::new(context, "cuMemAlloc", sys::cuMemFree_v2, |address| allocate(address, bytes))
}

pub(super) fn allocate_managed(address: &mut CUdeviceptr, bytes: usize) -> CUresult {
    // Safety: writes one address.
    unsafe { sys::cuMemAllocManaged(address, bytes, CUmemAttach_flags::CU_MEM_ATTACH_GLOBAL as u32) }
}

/// Managed memory, of which so many bytes are written, as a program does: their pages are there.
pub(super) fn managed(context: &Arc<Context>, bytes: usize, written: usize) -> Result<Owned<CUdeviceptr>> {
    let managed =
        Owned::new(context, "cuMemAllocManaged", sys::cuMemFree_v2, |address| allocate_managed(address, bytes))?;
    // Safety: new and at least that long; no work uses it.
    unsafe { (managed.get()? as *mut u8).write_bytes(1, written) };
    Ok(managed)
}

pub(super) fn allocate_pinned(start: &mut *mut c_void, bytes: usize) -> CUresult {
    // Safety: writes one address.
    unsafe { sys::cuMemHostAlloc(start, bytes, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP) }
}

pub(super) fn pinned(context: &Arc<Context>, bytes: usize) -> Result<Owned<*mut c_void>> {
    Owned::new(context, "cuMemHostAlloc", sys::cuMemFreeHost, |start| allocate_pinned(start, bytes))
}

/// Page-locks the head of a block.
pub(super) fn register(start: &mut *mut c_void, block: &Pageable, bytes: usize) -> CUresult {
    *start = block.start();
    let bytes = bytes.min(size_of_val(&block.0[..]));
    // Safety: the block is that long, and is kept until it is unregistered.
    unsafe { sys::cuMemHostRegister_v2(*start, bytes, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP) }
}

pub(super) fn registered(context: &Arc<Context>, block: &Pageable, bytes: usize) -> Result<Owned<*mut c_void>> {
    Owned::new(context, "cuMemHostRegister", sys::cuMemHostUnregister, |start| register(start, block, bytes))
}
