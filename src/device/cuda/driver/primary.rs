//! The primary context of a device: the one that the driver shares within a process.
//!
//! Retained while this value lives. A thread must have it current before most driver calls: [`Primary::bind`] is
//! called at the head of every public call and costs one query where it already is.

use std::ffi::{CStr, c_char, c_int};
use std::ptr;

use cudarc::driver::sys::{self, CUcontext, CUdevice, CUdevice_attribute, CUevent, CUresult};

use crate::device::cuda::ENGINE;
use crate::device::cuda::driver::libraries::Library;
use crate::device::engine::Result;
use crate::error::DeviceError;

/// The first driver interface that has all that is called here.
const OLDEST_DRIVER: c_int = 12_000;

type ElapsedTime = unsafe extern "C" fn(*mut f32, CUevent, CUevent) -> CUresult;

/// A retained primary context.
pub(crate) struct Primary {
    device: CUdevice,
    raw: CUcontext,
    name: String,
    elapsed_time: ElapsedTime,
}

// Safety: the driver's handles are not bound to a thread; each call binds the context to its own.
unsafe impl Send for Primary {}
// Safety: as above; the driver synchronizes its own calls.
unsafe impl Sync for Primary {}

/// Loads and initializes the driver and gives the number of devices.
pub(crate) fn device_count() -> Result<usize> {
    Library::Driver.require()?;
    let unavailable = |reason| DeviceError::EngineUnavailable { engine: ENGINE, reason };
    let check = |call: &str, status| match status {
        CUresult::CUDA_SUCCESS => Ok(()),
        status => Err(unavailable(format!("{call}: {}", describe(status)))),
    };
    // Safety: the library is there, and this is the call to begin with; it may be repeated.
    check("cuInit", unsafe { sys::cuInit(0) })?;
    let version = driver_version();
    if version < OLDEST_DRIVER {
        return Err(unavailable(format!(
            "the driver is of CUDA {}, this program needs one of CUDA {} or newer: update the NVIDIA driver",
            dotted(version),
            dotted(OLDEST_DRIVER),
        )));
    }
    let mut count = 0;
    // Safety: writes one integer.
    check("cuDeviceGetCount", unsafe { sys::cuDeviceGetCount(&mut count) })?;
    match usize::try_from(count) {
        Ok(count) if count > 0 => Ok(count),
        _ => Err(unavailable("the driver reports no device".to_owned())),
    }
}

/// The driver's interface version, 13000 for CUDA 13.0; 0 where it does not tell.
pub(crate) fn driver_version() -> c_int {
    let mut version = 0;
    // Safety: writes one integer; allowed at any time once the library is loaded.
    unsafe { sys::cuDriverGetVersion(&mut version) };
    version
}

/// 13000 as `13.0`.
pub(crate) fn dotted(version: c_int) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

/// The handle of device `index`.
fn device(index: usize) -> Result<CUdevice> {
    let mut device = 0;
    let ordinal = c_int::try_from(index).unwrap_or(c_int::MAX);
    // Safety: writes one handle.
    check(&name(index), "cuDeviceGet", unsafe { sys::cuDeviceGet(&mut device, ordinal) })?;
    Ok(device)
}

/// The name a device is opened by: `cuda:0`.
pub(crate) fn name(index: usize) -> String {
    format!("{ENGINE}:{index}")
}

/// The model of device `index`: `NVIDIA H200`.
pub(crate) fn model(index: usize) -> Result<String> {
    let device = device(index)?;
    text(|buffer, len| {
        // Safety: writes at most `len` bytes.
        check(&name(index), "cuDeviceGetName", unsafe { sys::cuDeviceGetName(buffer, len, device) })
    })
}

impl Primary {
    /// Retains the context of device `index` and makes it current.
    pub(crate) fn retain(index: usize) -> Result<Self> {
        let (name, device) = (name(index), device(index)?);
        // CUDA 13's bindings know this function only by its second version, which drivers before 12.8 lack; the
        // first is in all of them.
        // Safety: the signature is the driver's documented one, and the library is never unloaded.
        let elapsed_time = unsafe { sys::culib().get::<ElapsedTime>(b"cuEventElapsedTime\0") }
            .map(|symbol| *symbol)
            .map_err(|error| DeviceError::EngineUnavailable { engine: ENGINE, reason: error.to_string() })?;
        let mut raw = ptr::null_mut();
        // Safety: writes one handle, which is released on drop.
        check(&name, "cuDevicePrimaryCtxRetain", unsafe { sys::cuDevicePrimaryCtxRetain(&mut raw, device) })?;
        let primary = Self { device, raw, name, elapsed_time };
        primary.bind()?;
        Ok(primary)
    }

    /// Makes the context current on this thread.
    #[inline]
    pub(crate) fn bind(&self) -> Result<()> {
        let mut current = ptr::null_mut();
        // Safety: writes one handle.
        let status = unsafe { sys::cuCtxGetCurrent(&mut current) };
        if status == CUresult::CUDA_SUCCESS && current == self.raw {
            return Ok(());
        }
        // Safety: the context is retained.
        self.check("cuCtxSetCurrent", unsafe { sys::cuCtxSetCurrent(self.raw) })
    }

    /// Turns a status into a result that names the call and the device.
    #[inline]
    pub(crate) fn check(&self, call: &'static str, status: CUresult) -> Result<()> {
        check(&self.name, call, status)
    }

    /// The device's name: `cuda:0`.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The driver's handle of the device.
    pub(crate) fn device(&self) -> CUdevice {
        self.device
    }

    /// The driver's handle of the context.
    #[cfg(feature = "cupti")]
    pub(crate) fn raw(&self) -> CUcontext {
        self.raw
    }

    /// Whether both are the context of one device.
    #[inline]
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.raw == other.raw
    }

    /// An attribute of the device.
    pub(crate) fn attribute(&self, attribute: CUdevice_attribute) -> Result<c_int> {
        let mut value = 0;
        // Safety: writes one integer.
        let status = unsafe { sys::cuDeviceGetAttribute(&mut value, attribute, self.device) };
        self.check("cuDeviceGetAttribute", status)?;
        Ok(value)
    }

    /// The place of the device in the machine: `0000:1b:00.0`.
    pub(crate) fn pci_bus_id(&self) -> Result<String> {
        text(|buffer, len| {
            // Safety: writes at most `len` bytes.
            self.check("cuDeviceGetPCIBusId", unsafe { sys::cuDeviceGetPCIBusId(buffer, len, self.device) })
        })
    }

    /// Milliseconds between two events, with the driver's status.
    pub(crate) fn elapsed_time(&self, start: CUevent, end: CUevent) -> (f32, CUresult) {
        let mut milliseconds = 0.0;
        // Safety: both are live events of this context.
        let status = unsafe { (self.elapsed_time)(&mut milliseconds, start, end) };
        (milliseconds, status)
    }
}

impl Drop for Primary {
    /// Errors are of no use here: there is nobody to tell and nothing left to undo.
    fn drop(&mut self) {
        // Safety: nothing made in the context is used after this; a dead context must not stay current.
        unsafe {
            sys::cuCtxSetCurrent(ptr::null_mut());
            sys::cuDevicePrimaryCtxRelease_v2(self.device);
        }
    }
}

#[inline]
fn check(device: &str, call: &'static str, status: CUresult) -> Result<()> {
    match status {
        CUresult::CUDA_SUCCESS => Ok(()),
        status => Err(failed(device, call, status)),
    }
}

#[cold]
fn failed(device: &str, call: &'static str, status: CUresult) -> DeviceError {
    DeviceError::CallFailed { device: device.to_owned(), call, reason: describe(status) }
}

/// A status by its name and the driver's words: `CUDA_ERROR_NO_DEVICE (no CUDA-capable device is detected)`.
fn describe(status: CUresult) -> String {
    let mut words = ptr::null();
    // Safety: writes a pointer to a static text, or null for an unknown status.
    let known = unsafe { sys::cuGetErrorString(status, &mut words) } == CUresult::CUDA_SUCCESS && !words.is_null();
    if !known {
        return format!("{status:?}");
    }
    // Safety: a static, terminated text.
    format!("{status:?} ({})", unsafe { CStr::from_ptr(words) }.to_string_lossy())
}

/// Reads a text that a call writes into a buffer.
fn text(write: impl FnOnce(*mut c_char, c_int) -> Result<()>) -> Result<String> {
    let mut buffer = [0u8; 256];
    // One byte is kept back, so that the text ends whatever the call wrote.
    write(buffer.as_mut_ptr().cast(), 255)?;
    let len = buffer.iter().position(|&byte| byte == 0).unwrap_or(buffer.len());
    Ok(String::from_utf8_lossy(&buffer[..len]).into_owned())
}
