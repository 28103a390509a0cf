//! Handles and memory that end with their owner.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

use cudarc::driver::sys::{
    self, CU_MEMHOSTALLOC_DEVICEMAP, CU_MEMHOSTALLOC_PORTABLE, CU_MEMHOSTREGISTER_DEVICEMAP,
    CU_MEMHOSTREGISTER_PORTABLE, CUdeviceptr, CUmemAttach_flags, CUresult,
};

use crate::Result;
use crate::catalogue::Memory;
use crate::ways::no_room;
use syncscope::device::raw::Context;
use syncscope::error::DeviceError;

/// A handle, or the place for one, that is ended with its owner.
pub(super) struct Owned<H: Copy> {
    raw: Option<H>,
    end: unsafe fn(H) -> CUresult,
    context: Arc<Context>,
}

impl<H: Copy> Owned<H> {
    /// A place for a handle that a call makes, and that `end` ends.
    pub(super) fn empty(context: &Arc<Context>, end: unsafe fn(H) -> CUresult) -> Self {
        Self { raw: None, end, context: context.clone() }
    }

    /// A handle that `end` ends.
    pub(super) fn of(context: &Arc<Context>, raw: H, end: unsafe fn(H) -> CUresult) -> Self {
        Self { raw: Some(raw), end, context: context.clone() }
    }

    /// The handle.
    #[inline]
    pub(super) fn get(&self) -> Result<H> {
        self.raw.ok_or_else(|| DeviceError::InvalidArgument {
            operation: "call",
            reason: "what it is about has been ended".to_owned(),
        })
    }

    /// Takes what a call has made, where it has.
    #[inline]
    pub(super) fn keep(&mut self, call: &'static str, raw: H, status: CUresult) -> Result<()> {
        self.context.check(call, status)?;
        self.raw = Some(raw);
        Ok(())
    }

    /// Another call has ended it.
    #[inline]
    pub(super) fn forget(&mut self) {
        self.raw = None;
    }

    /// Ends the handle by the call that is measured.
    #[inline]
    pub(super) fn end(&mut self, call: &'static str) -> Result<()> {
        let raw = self.get()?;
        self.raw = None;
        // Safety: the handle is live, and not used again.
        self.context.check(call, unsafe { (self.end)(raw) })
    }
}

impl<H: Copy> Drop for Owned<H> {
    /// A drop cannot return an error, and nothing is left to undo.
    fn drop(&mut self) {
        if let Some(raw) = self.raw.take() {
            let _ = self.context.bind();
            // Safety: the handle is live, and not used again; the work that used it is over.
            unsafe { (self.end)(raw) };
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
                let mut pinned = Owned::empty(context, sys::cuMemFreeHost);
                allocate_pinned(&mut pinned, bytes)?;
                // Safety: new, and that long.
                unsafe { pinned.get()?.cast::<u8>().write_bytes(1, bytes) };
                Kind::Pinned(pinned)
            }
            Memory::Registered => {
                let block = pageable(bytes)?;
                let mut registered = Owned::empty(context, sys::cuMemHostUnregister);
                register(&mut registered, &block, bytes)?;
                Kind::Registered(registered, block)
            }
            Memory::Managed => {
                let mut managed = Owned::empty(context, sys::cuMemFree_v2);
                allocate_managed(&mut managed, bytes.max(MOVED_ALONE))?;
                // Safety: new and that long; no work uses it.
                unsafe { (managed.get()? as *mut u8).write_bytes(1, bytes) };
                Kind::Managed(managed)
            }
            Memory::Device => {
                let mut device = Owned::empty(context, sys::cuMemFree_v2);
                allocate(&mut device, bytes)?;
                Kind::Device(device)
            }
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

/// Pageable memory, written once: read and written by its address, so that nothing is borrowed while a call uses it.
pub(super) struct Pageable(Vec<u64>);

impl Pageable {
    fn start(&self) -> *mut c_void {
        self.0.as_ptr().cast_mut().cast()
    }
}

/// So many bytes at least.
pub(super) fn pageable(bytes: usize) -> Result<Pageable> {
    let words = bytes.max(ALONE).div_ceil(size_of::<u64>());
    let (mut block, no_room) = (Vec::new(), |_| no_room("the host", bytes));
    block.try_reserve_exact(words).map_err(no_room)?;
    block.resize(words, u64::from_ne_bytes([1; 8]));
    Ok(Pageable(block))
}

pub(super) fn allocate(place: &mut Owned<CUdeviceptr>, bytes: usize) -> Result<()> {
    let mut address = 0;
    // Safety: writes one address.
    let status = unsafe { sys::cuMemAlloc_v2(&mut address, bytes) };
    place.keep("cuMemAlloc", address, status)
}

pub(super) fn allocate_managed(place: &mut Owned<CUdeviceptr>, bytes: usize) -> Result<()> {
    let mut address = 0;
    let flags = CUmemAttach_flags::CU_MEM_ATTACH_GLOBAL as u32;
    // Safety: writes one address.
    let status = unsafe { sys::cuMemAllocManaged(&mut address, bytes, flags) };
    place.keep("cuMemAllocManaged", address, status)
}

pub(super) fn allocate_pinned(place: &mut Owned<*mut c_void>, bytes: usize) -> Result<()> {
    let mut start = ptr::null_mut();
    let flags = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP;
    // Safety: writes one address.
    let status = unsafe { sys::cuMemHostAlloc(&mut start, bytes, flags) };
    place.keep("cuMemHostAlloc", start, status)
}

/// Page-locks the head of a block.
pub(super) fn register(place: &mut Owned<*mut c_void>, block: &Pageable, bytes: usize) -> Result<()> {
    let flags = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP;
    let bytes = bytes.min(block.0.len() * size_of::<u64>());
    // Safety: the block is that long, and is kept until it is unregistered.
    let status = unsafe { sys::cuMemHostRegister_v2(block.start(), bytes, flags) };
    place.keep("cuMemHostRegister", block.start(), status)
}
