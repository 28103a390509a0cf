//! The context of a GPU: the one that the driver shares within a process.
//!
//! Retained while this value lives. A thread must have it current before most driver calls: every wrapper of this room
//! makes it so, for the price of one query where it already is.
//!
//! Some errors end the context: each later call fails. The first cause is kept here, and named by every one of them.

use std::collections::VecDeque;
use std::ffi::{CStr, c_char, c_int};
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use cudarc::driver::sys::{
    self, CUcontext, CUctx_flags, CUdevice, CUdevice_attribute, CUevent, CUgraphExec, CUresult, CUstream,
};
use cudarc::driver::{CudaStream, DriverError};

use super::apart::Apart;
use super::exit;
use super::libraries::{Library, driver_function};
use crate::device::cuda::ENGINE;
use crate::device::engine::Result;
use crate::device::lock;
use crate::error::DeviceError;

/// The first driver interface that has all that is called here.
const OLDEST_DRIVER: c_int = 12_000;

type ElapsedTime = unsafe extern "C" fn(*mut f32, CUevent, CUevent) -> CUresult;

/// The context of a GPU, kept as long as this value. See the rules of [`raw`](super::super::raw).
pub struct Context {
    device: CUdevice,
    raw: CUcontext,
    name: String,
    elapsed_time: ElapsedTime,
    lost: OnceLock<DeviceError>,
    /// A stream of the context by which streams are lent: see [`Context::lending`].
    pub(super) lending: OnceLock<Arc<CudaStream>>,
    given_up: Mutex<GivenUp>,
    pub(super) apart: Apart,
    /// For how many executable graphs and streams the driver has memory of its own, at least: see [`Context::reserve_graphs`].
    pub(super) room: Mutex<usize>,
}

/// Handles whose owners are gone. A drop calls the driver for nothing: where another thread is stuck in it, because a gate
/// holds a stream whose queue is full, the call could wait for the gate.
#[derive(Default)]
pub(super) struct GivenUp {
    /// Without and with timing; the next owners use them again.
    pub(super) events: [Vec<CUevent>; 2],
    /// Used again as well, the one that has lain here longest first: streams that were made one after the other are in different
    /// queues of the device.
    pub(super) streams: VecDeque<CUstream>,
    /// To be destroyed by the next call that makes one.
    pub(super) graphs: Vec<CUgraphExec>,
    /// Streams of other libraries, to be let go of while no gate is closed.
    pub(super) owners: Vec<Arc<CudaStream>>,
}

// Safety: the driver's handles are not bound to a thread; each call binds the context to its own.
unsafe impl Send for Context {}
// Safety: as above; the driver synchronizes its own calls.
unsafe impl Sync for Context {}

/// Loads and initializes the driver and gives the number of devices, at least one.
///
/// # Errors
/// Why there is none.
pub fn device_count() -> Result<usize> {
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

impl Context {
    /// Retains the context of device `index` and makes it current; the driver has been initialized, by [`device_count`].
    ///
    /// # Errors
    /// The driver's.
    pub fn retain(index: usize) -> Result<Self> {
        let (name, device) = (name(index), device(index)?);
        // CUDA 13's bindings know this function only by its second version, which drivers before 12.8 lack; the
        // first is in all of them.
        // Safety: the signature is the driver's documented one; the driver has been initialized.
        let elapsed_time = unsafe { driver_function::<ElapsedTime>("cuEventElapsedTime") }
            .map_err(|error| DeviceError::EngineUnavailable { engine: ENGINE, reason: error.to_string() })?;
        let mut raw = ptr::null_mut();
        // Safety: writes one handle, which is released on drop.
        check(&name, "cuDevicePrimaryCtxRetain", unsafe { sys::cuDevicePrimaryCtxRetain(&mut raw, device) })?;
        let context = Self {
            device,
            raw,
            name,
            elapsed_time,
            lost: OnceLock::new(),
            lending: OnceLock::new(),
            given_up: Mutex::default(),
            apart: Apart::default(),
            room: Mutex::default(),
        };
        context.bind()?;
        Ok(context)
    }

    /// Makes the context current on this thread, which the process's end may stop here.
    ///
    /// # Errors
    /// The driver's.
    #[inline]
    pub fn bind(&self) -> Result<()> {
        exit::stay_out();
        let mut current = ptr::null_mut();
        // Safety: writes one handle.
        let status = unsafe { sys::cuCtxGetCurrent(&mut current) };
        if status == CUresult::CUDA_SUCCESS && current == self.raw {
            return Ok(());
        }
        // Safety: the context is retained.
        self.check("cuCtxSetCurrent", unsafe { sys::cuCtxSetCurrent(self.raw) })
    }

    pub(super) fn given_up(&self) -> MutexGuard<'_, GivenUp> {
        lock(&self.given_up)
    }

    /// Turns a status into a result that names the call and the device, or the first cause where the context is lost.
    ///
    /// # Errors
    /// The status is one.
    #[inline]
    pub fn check(&self, call: &'static str, status: CUresult) -> Result<()> {
        // A guard binds the context once, and then makes any number of calls.
        exit::stay_out();
        if status == CUresult::CUDA_SUCCESS { Ok(()) } else { Err(self.failed(call, status)) }
    }

    #[cold]
    fn failed(&self, call: &'static str, status: CUresult) -> DeviceError {
        let error = failed(&self.name, call, status);
        if is_sticky(status) { self.lost.get_or_init(|| error).clone() } else { error }
    }

    /// What a call of `cudarc` came to.
    pub(super) fn checked<T>(&self, call: &'static str, outcome: std::result::Result<T, DriverError>) -> Result<T> {
        outcome.map_err(|DriverError(status)| self.failed(call, status))
    }

    /// Fails with the first cause once the context is lost.
    #[inline]
    pub(crate) fn check_loss(&self) -> Result<()> {
        self.lost.get().map_or(Ok(()), |cause| Err(cause.clone()))
    }

    /// The device's name: `cuda:0`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The driver's handle of the device.
    pub fn device(&self) -> CUdevice {
        self.device
    }

    /// The driver's handle of the context.
    pub fn raw(&self) -> CUcontext {
        self.raw
    }

    /// Its memory in bytes.
    pub(crate) fn memory_bytes(&self) -> Result<usize> {
        let mut memory = 0;
        // Safety: writes one size.
        let status = unsafe { sys::cuDeviceTotalMem_v2(&mut memory, self.device) };
        self.check("cuDeviceTotalMem", status).map(|()| memory)
    }

    /// Major and minor version of the architecture: 9 and 0 of `sm_90`.
    ///
    /// # Errors
    /// The driver's.
    pub fn architecture(&self) -> Result<(u32, u32)> {
        let major = self.attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
        let minor = self.attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
        Ok((major, minor))
    }

    /// The number of multiprocessors.
    ///
    /// # Errors
    /// The driver's.
    pub fn multiprocessors(&self) -> Result<u32> {
        self.attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
    }

    /// The size of the last cache before the memory, in bytes.
    pub(crate) fn cache_bytes(&self) -> Result<u32> {
        self.attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)
    }

    /// The number of copies that can run beside kernels.
    pub(crate) fn copy_engines(&self) -> Result<u32> {
        self.attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT)
    }

    pub(super) fn attribute(&self, attribute: CUdevice_attribute) -> Result<u32> {
        let mut value = 0;
        // Safety: writes one integer.
        let status = unsafe { sys::cuDeviceGetAttribute(&mut value, attribute, self.device) };
        self.check("cuDeviceGetAttribute", status).map(|()| value.unsigned_abs())
    }

    /// How a host thread waits in this context: whoever made it chose.
    pub(crate) fn wait_policy(&self) -> Result<&'static str> {
        self.bind()?;
        let mut flags = 0;
        // Safety: writes one word; the context is current.
        self.check("cuCtxGetFlags", unsafe { sys::cuCtxGetFlags(&mut flags) }).map(|()| policy(flags))
    }

    /// The place of the device in the machine: `0000:1b:00.0`.
    pub(crate) fn pci_bus_id(&self) -> Result<String> {
        text(|buffer, len| {
            // Safety: writes at most `len` bytes.
            self.check("cuDeviceGetPCIBusId", unsafe { sys::cuDeviceGetPCIBusId(buffer, len, self.device) })
        })
    }

    /// Milliseconds between two events, with the driver's status.
    pub(super) fn elapsed_time(&self, start: CUevent, end: CUevent) -> (f32, CUresult) {
        let mut milliseconds = 0.0;
        // Safety: both are live events of this context.
        let status = unsafe { (self.elapsed_time)(&mut milliseconds, start, end) };
        (milliseconds, status)
    }
}

impl Drop for Context {
    /// A drop cannot return an error, and nothing is left to undo.
    fn drop(&mut self) {
        // Safety: nothing made in the context is used after this; a dead context must not stay current.
        unsafe {
            sys::cuCtxSetCurrent(ptr::null_mut());
            sys::cuDevicePrimaryCtxRelease_v2(self.device);
        }
    }
}

fn policy(flags: u32) -> &'static str {
    const SPIN: u32 = CUctx_flags::CU_CTX_SCHED_SPIN as u32;
    const YIELD: u32 = CUctx_flags::CU_CTX_SCHED_YIELD as u32;
    const BLOCKING: u32 = CUctx_flags::CU_CTX_SCHED_BLOCKING_SYNC as u32;
    match flags & CUctx_flags::CU_CTX_SCHED_MASK as u32 {
        SPIN => "spin",
        YIELD => "yield",
        BLOCKING => "blocking",
        _ => "auto (spin when there are at least as many processors as contexts, else yield)",
    }
}

/// Reads a text that a call writes into a buffer.
fn text(write: impl FnOnce(*mut c_char, c_int) -> Result<()>) -> Result<String> {
    let mut buffer = [0u8; 256];
    // One byte is kept back, so that the text ends whatever the call wrote.
    write(buffer.as_mut_ptr().cast(), 255)?;
    let len = buffer.iter().position(|&byte| byte == 0).unwrap_or(buffer.len());
    Ok(String::from_utf8_lossy(&buffer[..len]).into_owned())
}

/// Turns a status into a result that names the call and the device.
#[inline]
fn check(device: &str, call: &'static str, status: CUresult) -> Result<()> {
    match status {
        CUresult::CUDA_SUCCESS => Ok(()),
        status => Err(failed(device, call, status)),
    }
}

#[cold]
fn failed(device: &str, call: &'static str, status: CUresult) -> DeviceError {
    DeviceError::call_failed(device, call, describe(status))
}

/// Whether the context is of no use after this status: each later call returns it, too, or one like it.
fn is_sticky(status: CUresult) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_policy_is_read_from_the_scheduling_bits_alone() {
        assert_eq!([policy(8 | 1), policy(2), policy(16 | 4)], ["spin", "yield", "blocking"]);
        assert!(policy(8).starts_with("auto"));
    }

    #[test]
    fn a_version_is_shown_as_its_maker_writes_it() {
        assert_eq!(dotted(12_090), "12.9");
    }
}
