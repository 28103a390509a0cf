//! Streams and events of the driver, destroyed on drop.
//!
//! The makers ask for the context to be current; so do the drops, whose owners bind it first.

use std::ptr;

use cudarc::driver::sys::{self, CUevent, CUevent_flags, CUstream, CUstream_flags};

use crate::device::cuda::driver::primary::Primary;
use crate::device::engine::Result;

/// An owned stream.
pub(crate) struct StreamHandle(CUstream);

// Safety: a stream may be used from any thread; the driver synchronizes its own calls.
unsafe impl Send for StreamHandle {}
// Safety: as above.
unsafe impl Sync for StreamHandle {}

impl StreamHandle {
    /// A stream that is ordered against no other, also not against the legacy default stream.
    pub(crate) fn new(primary: &Primary) -> Result<Self> {
        let mut raw = ptr::null_mut();
        // Safety: writes one handle, which is destroyed on drop.
        let status = unsafe { sys::cuStreamCreate(&mut raw, CUstream_flags::CU_STREAM_NON_BLOCKING as u32) };
        primary.check("cuStreamCreate", status)?;
        Ok(Self(raw))
    }

    #[inline]
    pub(crate) fn raw(&self) -> CUstream {
        self.0
    }
}

impl Drop for StreamHandle {
    /// Returns at once: the driver lets what was enqueued run to its end. A drop cannot return an error.
    fn drop(&mut self) {
        // Safety: the handle is live and not used again.
        unsafe { sys::cuStreamDestroy_v2(self.0) };
    }
}

/// An owned event.
pub(crate) struct EventHandle(CUevent);

// Safety: an event may be used from any thread; the driver synchronizes its own calls.
unsafe impl Send for EventHandle {}
// Safety: as above.
unsafe impl Sync for EventHandle {}

impl EventHandle {
    /// An event, not recorded yet. Without timing it is cheaper to record.
    pub(crate) fn new(primary: &Primary, timing: bool) -> Result<Self> {
        let flags = if timing { CUevent_flags::CU_EVENT_DEFAULT } else { CUevent_flags::CU_EVENT_DISABLE_TIMING };
        let mut raw = ptr::null_mut();
        // Safety: writes one handle, which is destroyed on drop.
        primary.check("cuEventCreate", unsafe { sys::cuEventCreate(&mut raw, flags as u32) })?;
        Ok(Self(raw))
    }

    #[inline]
    pub(crate) fn raw(&self) -> CUevent {
        self.0
    }
}

impl Drop for EventHandle {
    /// Returns at once, also while a recording is pending. A drop cannot return an error.
    fn drop(&mut self) {
        // Safety: the handle is live and not used again.
        unsafe { sys::cuEventDestroy_v2(self.0) };
    }
}
