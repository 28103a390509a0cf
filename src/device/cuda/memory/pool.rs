//! Stream-ordered device memory.
//!
//! An own pool rather than the device's default one, because two of its attributes decide what a measurement sees:
//! - nothing is given back to the system while the device is open (release threshold at its maximum), so that an
//!   allocation costs well under a microsecond once its size has been seen;
//! - the pool never orders two streams to reuse memory (internal dependencies off): an allocation on one stream must
//!   not wait for another stream that a gate holds. The price is that memory freed on a stream that has not come to
//!   the free yet serves that stream alone.

use std::ffi::c_void;
use std::ptr;

use cudarc::driver::sys::{
    self, CUdeviceptr, CUmemAllocationHandleType, CUmemAllocationType, CUmemLocation, CUmemLocationType,
    CUmemPool_attribute, CUmemPoolProps, CUmemoryPool, CUresult, CUstream,
};

use crate::device::cuda::driver::primary::Primary;
use crate::device::engine::Result;
use crate::error::DeviceError;

/// The memory of one opened device.
pub(crate) struct Pool(CUmemoryPool);

// Safety: a pool may be used from any thread; the driver synchronizes its own calls.
unsafe impl Send for Pool {}
// Safety: as above.
unsafe impl Sync for Pool {}

impl Pool {
    pub(crate) fn new(primary: &Primary) -> Result<Self> {
        let properties = CUmemPoolProps {
            allocType: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
            handleTypes: CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_NONE,
            location: CUmemLocation { type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE, id: primary.device() },
            win32SecurityAttributes: ptr::null_mut(),
            maxSize: 0,
            usage: 0,
            reserved: [0; 54],
        };
        let mut raw = ptr::null_mut();
        // Safety: writes one handle, which is destroyed on drop.
        primary.check("cuMemPoolCreate", unsafe { sys::cuMemPoolCreate(&mut raw, &properties) })?;
        let pool = Self(raw);
        let (mut threshold, mut off) = (u64::MAX, 0i32);
        let attributes: [(_, *mut c_void); 2] = [
            (CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, (&raw mut threshold).cast()),
            (CUmemPool_attribute::CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, (&raw mut off).cast()),
        ];
        for (attribute, value) in attributes {
            // Safety: the values have the types that these attributes are documented with.
            primary.check("cuMemPoolSetAttribute", unsafe { sys::cuMemPoolSetAttribute(raw, attribute, value) })?;
        }
        Ok(pool)
    }

    /// `bytes` (more than 0) for work enqueued on `stream` from now on; aligned to 256 bytes at least.
    ///
    /// Where there is no room, unused memory of the pool goes back to the system and the driver is asked once more.
    pub(crate) fn allocate(&self, primary: &Primary, bytes: usize, stream: CUstream) -> Result<CUdeviceptr> {
        let (first, pointer) = self.ask(bytes, stream);
        if first == CUresult::CUDA_SUCCESS {
            return Ok(pointer);
        }
        let (free, total) = self.room();
        if first != CUresult::CUDA_ERROR_OUT_OF_MEMORY && total.is_none_or(|total| bytes <= total) {
            primary.check("cuMemAllocFromPoolAsync", first)?;
        }
        // Safety: the pool is live; memory in use is not touched. Its failure shows in the next attempt.
        unsafe { sys::cuMemPoolTrimTo(self.0, 0) };
        match self.ask(bytes, stream) {
            (CUresult::CUDA_SUCCESS, pointer) => Ok(pointer),
            _ => Err(DeviceError::OutOfMemory { device: primary.name().to_owned(), requested: bytes, free }),
        }
    }

    #[inline]
    fn ask(&self, bytes: usize, stream: CUstream) -> (CUresult, CUdeviceptr) {
        let mut pointer = 0;
        // Safety: writes one address; pool and stream are live.
        let status = unsafe { sys::cuMemAllocFromPoolAsync(&mut pointer, bytes, self.0, stream) };
        (status, pointer)
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
        let status = unsafe { sys::cuMemPoolGetAttribute(self.0, attribute, (&raw mut value).cast()) };
        (status == CUresult::CUDA_SUCCESS).then_some(value as usize)
    }
}

impl Drop for Pool {
    /// The driver keeps what is still in use until it is freed. A drop cannot return an error.
    fn drop(&mut self) {
        // Safety: the handle is live and not used again.
        unsafe { sys::cuMemPoolDestroy(self.0) };
    }
}
