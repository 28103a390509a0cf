//! Stream-ordered device memory.
//!
//! An own pool rather than the device's default one, because two of its attributes decide what a measurement sees:
//! - nothing is given back to the system until somebody trims the pool (release threshold at its maximum), so that an
//!   allocation costs well under a microsecond once its size has been seen;
//! - the pool never orders two streams to reuse memory (internal dependencies off): an allocation on one stream must
//!   not wait for another stream that a gate holds. The price is that memory freed on a stream that has not come to
//!   the free yet serves that stream alone.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

use cudarc::driver::sys::{
    self, CUdeviceptr, CUmemAllocationHandleType, CUmemAllocationType, CUmemLocation, CUmemLocationType,
    CUmemPool_attribute, CUmemPoolProps, CUmemoryPool, CUresult, CUstream,
};
use cudarc::driver::{CudaSlice, CudaStream, DevicePtrMut};

use super::{Context, exit};
use crate::device::engine::Result;
use crate::error::DeviceError;

/// A run of bytes that the device can address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PoolSpan {
    address: CUdeviceptr,
    bytes: usize,
}

impl PoolSpan {
    pub(crate) fn new(address: CUdeviceptr, bytes: usize) -> Self {
        Self { address, bytes }
    }

    /// Where it begins, as a kernel's argument takes it.
    #[inline]
    pub(crate) fn address(self) -> u64 {
        self.address
    }

    /// Its size.
    #[inline]
    pub(crate) fn size(self) -> usize {
        self.bytes
    }

    /// A part of it; `None` where that lies outside.
    #[inline]
    pub(crate) fn part(self, offset: usize, bytes: usize) -> Option<Self> {
        let inside = offset.checked_add(bytes).is_some_and(|end| end <= self.bytes);
        inside.then(|| Self { address: self.address + offset as u64, bytes })
    }
}

/// Memory of a pool, to be freed in a stream's order ([`Stream::free`](super::Stream::free)); dropped, it stays
/// allocated.
#[must_use]
#[derive(Debug)]
pub(crate) struct Allocation(PoolSpan);

impl Allocation {
    #[inline]
    pub(crate) fn span(&self) -> PoolSpan {
        self.0
    }

    #[inline]
    pub(crate) fn size(&self) -> usize {
        self.0.bytes
    }
}

impl Allocation {
    /// It as memory of `cudarc`, of `len` elements that fit into it, which is freed in the order of `stream`.
    pub(crate) fn into_slice<T>(self, stream: &Arc<CudaStream>, len: usize) -> CudaSlice<T> {
        // Safety: allocated in stream order, of that size, and given up here.
        unsafe { stream.upgrade_device_ptr(self.0.address, len) }
    }
}

impl Context {
    /// Has `cudarc` order the stream of its memory behind whoever still uses that, and put an event behind what is pending there, for
    /// which it has other streams wait: the memory, and its address.
    ///
    /// # Errors
    /// The driver's.
    pub(crate) fn written<T>(&self, mut slice: CudaSlice<T>) -> Result<(CudaSlice<T>, CUdeviceptr)> {
        let own = slice.stream().clone();
        // `cudarc` keeps the error of a drop for its next call, which then does nothing.
        self.checked("an earlier call of `cudarc`", own.context().check_err())?;
        // It takes this for a use that writes: it records the event where the use ends, and keeps what fails.
        let (address, written) = slice.device_ptr_mut(&own);
        drop(written);
        self.checked("cuStreamWaitEvent", own.context().check_err()).map(|()| (slice, address))
    }

    /// Whether `cudarc` makes events: where it cannot, and takes memory, it panics.
    pub(crate) fn check_lent(&self, stream: &CudaStream) -> Result<()> {
        self.checked("cuEventCreate", stream.context().new_event(None)).map(drop)
    }
}

#[cfg(test)]
impl Allocation {
    pub(crate) fn of_test(address: u64, bytes: usize) -> Self {
        Self(PoolSpan { address, bytes })
    }
}

/// A pool of device memory. Lives as long as its context.
pub(crate) struct Pool {
    raw: CUmemoryPool,
    context: Arc<Context>,
}

// Safety: a pool may be used from any thread; the driver synchronizes its own calls.
unsafe impl Send for Pool {}
// Safety: as above.
unsafe impl Sync for Pool {}

impl Pool {
    pub(crate) fn new(context: &Arc<Context>) -> Result<Self> {
        context.bind()?;
        let properties = CUmemPoolProps {
            allocType: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
            handleTypes: CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_NONE,
            location: CUmemLocation { type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE, id: context.device() },
            win32SecurityAttributes: ptr::null_mut(),
            maxSize: 0,
            usage: 0,
            reserved: [0; 54],
        };
        let mut raw = ptr::null_mut();
        // Safety: writes one handle.
        context.check("cuMemPoolCreate", unsafe { sys::cuMemPoolCreate(&mut raw, &properties) })?;
        let (mut threshold, mut off) = (u64::MAX, 0i32);
        let attributes: [(_, *mut c_void); 2] = [
            (CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, (&raw mut threshold).cast()),
            (CUmemPool_attribute::CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, (&raw mut off).cast()),
        ];
        for (attribute, value) in attributes {
            // Safety: the values have the types that these attributes are documented with.
            context.check("cuMemPoolSetAttribute", unsafe { sys::cuMemPoolSetAttribute(raw, attribute, value) })?;
        }
        Ok(Self { raw, context: context.clone() })
    }

    /// `bytes` (more than 0) for work enqueued on `stream` from now on; aligned to 256 bytes at least. The context is
    /// current.
    #[inline]
    pub(super) fn allocate(&self, bytes: usize, stream: CUstream) -> Result<Allocation> {
        let mut address = 0;
        // Safety: writes one address; pool and stream are live.
        match unsafe { sys::cuMemAllocFromPoolAsync(&mut address, bytes, self.raw, stream) } {
            CUresult::CUDA_SUCCESS => Ok(Allocation(PoolSpan { address, bytes })),
            status => Err(self.refused(bytes, status)),
        }
    }

    /// The driver says `INVALID_VALUE` of sizes that no device has.
    #[cold]
    fn refused(&self, bytes: usize, status: CUresult) -> DeviceError {
        let (free, total) = self.room();
        let no_room = status == CUresult::CUDA_ERROR_OUT_OF_MEMORY || total.is_some_and(|total| bytes > total);
        match self.context.check("cuMemAllocFromPoolAsync", status) {
            Err(error) if !no_room => error,
            _ => DeviceError::OutOfMemory { device: self.context.name().to_owned(), requested: bytes, free },
        }
    }

    /// Gives memory that nobody uses back to the system.
    pub(crate) fn trim(&self) -> Result<()> {
        self.context.bind()?;
        let _inside = exit::enter();
        // Safety: the pool is live; memory in use is not touched.
        self.context.check("cuMemPoolTrimTo", unsafe { sys::cuMemPoolTrimTo(self.raw, 0) })
    }

    /// What is free, with what the pool holds unused, and what the device has at all.
    #[cold]
    fn room(&self) -> (Option<usize>, Option<usize>) {
        let (mut free, mut total) = (0, 0);
        // Safety: writes two sizes.
        if unsafe { sys::cuMemGetInfo_v2(&mut free, &mut total) } != CUresult::CUDA_SUCCESS {
            return (None, None);
        }
        let reserved = self.size(CUmemPool_attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT).unwrap_or(0);
        let used = self.size(CUmemPool_attribute::CU_MEMPOOL_ATTR_USED_MEM_CURRENT).unwrap_or(0);
        (Some(free + reserved.saturating_sub(used)), Some(total))
    }

    fn size(&self, attribute: CUmemPool_attribute) -> Option<usize> {
        let mut value = 0u64;
        // Safety: both attributes asked for are 64-bit sizes.
        let status = unsafe { sys::cuMemPoolGetAttribute(self.raw, attribute, (&raw mut value).cast()) };
        (status == CUresult::CUDA_SUCCESS).then_some(value as usize)
    }
}
