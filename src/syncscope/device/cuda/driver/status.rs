//! From a status of the driver to an error that names the call, the device, and the first cause.

use std::ffi::CStr;
use std::ptr;

use cudarc::driver::sys::{self, CUresult};

use crate::device::engine::Result;
use crate::error::DeviceError;

/// Turns a status into a result that names the call and the device.
#[inline]
pub(super) fn check(device: &str, call: &'static str, status: CUresult) -> Result<()> {
    match status {
        CUresult::CUDA_SUCCESS => Ok(()),
        status => Err(failed(device, call, status)),
    }
}

#[cold]
pub(super) fn failed(device: &str, call: &'static str, status: CUresult) -> DeviceError {
    DeviceError::call_failed(device, call, describe(status))
}

/// Whether the context is of no use after this status: each later call returns it, too, or one like it.
pub(super) fn is_sticky(status: CUresult) -> bool {
    matches!(
        status,
        CUresult::CUDA_ERROR_ECC_UNCORRECTABLE
            | CUresult::CUDA_ERROR_ILLEGAL_ADDRESS
            | CUresult::CUDA_ERROR_LAUNCH_TIMEOUT
            | CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED
            | CUresult::CUDA_ERROR_ASSERT
            | CUresult::CUDA_ERROR_HARDWARE_STACK_ERROR
            | CUresult::CUDA_ERROR_ILLEGAL_INSTRUCTION
            | CUresult::CUDA_ERROR_MISALIGNED_ADDRESS
            | CUresult::CUDA_ERROR_INVALID_ADDRESS_SPACE
            | CUresult::CUDA_ERROR_INVALID_PC
            | CUresult::CUDA_ERROR_LAUNCH_FAILED
    )
}

/// A status by its name and the driver's words: `CUDA_ERROR_NO_DEVICE (no CUDA-capable device is detected)`.
pub(super) fn describe(status: CUresult) -> String {
    let mut words = ptr::null();
    // Safety: writes a pointer to a static text, or null for an unknown status.
    let known = unsafe { sys::cuGetErrorString(status, &mut words) } == CUresult::CUDA_SUCCESS && !words.is_null();
    if !known {
        return format!("{status:?}");
    }
    // Safety: a static, terminated text.
    format!("{status:?} ({})", unsafe { CStr::from_ptr(words) }.to_string_lossy())
}
