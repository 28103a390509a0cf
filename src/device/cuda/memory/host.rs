//! Host memory for copies: ordinary, page-locked, or page-locked and write-combined.

use std::any::Any;
use std::ffi::c_void;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;

use cudarc::driver::sys::{CU_MEMHOSTALLOC_PORTABLE, CU_MEMHOSTALLOC_WRITECOMBINED};

use crate::device::DType;
use crate::device::cuda::context::Context;
use crate::device::cuda::memory::pinned;
use crate::device::engine::{HostKind, HostMemory, Result};
use crate::error::DeviceError;

/// Host memory that copies of a CUDA device use.
pub(crate) struct CudaHostMemory {
    len: usize,
    memory: Memory,
}

/// Both kinds are changed by the device behind Rust's back, hence no plain slices.
enum Memory {
    /// In units that are aligned for every element type.
    Pageable(NonNull<[u64]>),
    Pinned {
        context: Arc<Context>,
        /// Dangling where there are no bytes.
        start: NonNull<c_void>,
    },
}

// Safety: the memory is plain bytes; who may touch it when is the contract of `HostMemory`, kept by `HostBuffer`.
unsafe impl Send for CudaHostMemory {}
// Safety: as above.
unsafe impl Sync for CudaHostMemory {}

impl CudaHostMemory {
    /// `len` zeroed elements.
    pub(crate) fn new(context: &Arc<Context>, kind: HostKind, dtype: DType, len: usize) -> Result<Self> {
        let device = || context.primary.name().to_owned();
        let Some(bytes) = len.checked_mul(dtype.size()) else {
            return Err(DeviceError::InvalidArgument {
                operation: "host buffer",
                reason: format!("{len} elements of {dtype} are more than a machine can address"),
            });
        };
        let memory = match kind {
            HostKind::Pageable => {
                let words = bytemuck::allocation::try_zeroed_slice_box::<u64>(bytes.div_ceil(8));
                let no_room =
                    |()| DeviceError::OutOfMemory { device: "the host".to_owned(), requested: bytes, free: None };
                // A pointer, not a box: the host's slices and the copies' addresses come from one place.
                Memory::Pageable(NonNull::from(Box::leak(words.map_err(no_room)?)))
            }
            HostKind::Pinned | HostKind::WriteCombined => {
                let combined = if kind == HostKind::WriteCombined { CU_MEMHOSTALLOC_WRITECOMBINED } else { 0 };
                let start = if bytes == 0 {
                    NonNull::<u64>::dangling().cast()
                } else {
                    context.bind()?;
                    pinned::allocate_host(&context.primary, bytes, CU_MEMHOSTALLOC_PORTABLE | combined).map_err(
                        |error| DeviceError::CallFailed {
                            device: device(),
                            call: "cuMemHostAlloc",
                            reason: format!("{bytes} bytes of pinned memory: {error}"),
                        },
                    )?
                };
                // Safety: just allocated, that long; nobody else knows it yet.
                unsafe { start.cast::<u8>().write_bytes(0, bytes) };
                Memory::Pinned { context: context.clone(), start }
            }
        };
        Ok(Self { len: bytes, memory })
    }

    /// The memory behind the interface, if it is of this engine.
    pub(crate) fn of<'a>(memory: &'a dyn HostMemory, device: &str) -> Result<&'a Self> {
        let memory: &dyn Any = memory;
        memory
            .downcast_ref::<Self>()
            .ok_or_else(|| DeviceError::ForeignObject { what: "host buffer", device: device.to_owned() })
    }

    /// The first byte, for copies.
    pub(crate) fn start(&self) -> *mut c_void {
        match &self.memory {
            Memory::Pageable(words) => words.as_ptr().cast(),
            Memory::Pinned { start, .. } => start.as_ptr(),
        }
    }

    /// The size in bytes.
    pub(crate) fn size(&self) -> usize {
        self.len
    }
}

impl HostMemory for CudaHostMemory {
    fn bytes(&self) -> Box<dyn Deref<Target = [u8]> + '_> {
        // Safety: that long and initialised; the caller waited for copies into it.
        Box::new(unsafe { std::slice::from_raw_parts(self.start().cast::<u8>(), self.len) })
    }

    fn bytes_mut(&mut self) -> Box<dyn DerefMut<Target = [u8]> + '_> {
        // Safety: that long and initialised; the caller waited for copies from and into it, and has it exclusively.
        Box::new(unsafe { std::slice::from_raw_parts_mut(self.start().cast::<u8>(), self.len) })
    }
}

impl Drop for CudaHostMemory {
    /// Pending copies are over: `HostBuffer` waits for them. The driver may wait for more before it unpins.
    fn drop(&mut self) {
        match &self.memory {
            // Safety: leaked by `new`, taken back once.
            Memory::Pageable(words) => drop(unsafe { Box::from_raw(words.as_ptr()) }),
            Memory::Pinned { context, start } if self.len > 0 => {
                let _ = context.bind();
                // Safety: allocated in `new`, freed once.
                unsafe { pinned::free_host(*start) };
            }
            Memory::Pinned { .. } => {}
        }
    }
}
