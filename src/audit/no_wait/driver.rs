//! The driver: whether it is there, and which kind of memory a pointer is of.

use std::ffi::{c_int, c_uint, c_void};
use std::sync::OnceLock;

use crate::Refusal;
use crate::system;
use crate::waits::{self, Memory};

type Attribute = unsafe extern "C" fn(*mut c_void, c_int, u64) -> c_int;

struct Driver {
    /// The process that initialised it: a child of a fork cannot use it.
    process: u32,
    attribute: Attribute,
}

static DRIVER: OnceLock<Driver> = OnceLock::new();

/// Initialises the driver, if that was not done.
pub(crate) fn begin(process: u32) -> Result<(), Refusal> {
    let driver = match DRIVER.get() {
        Some(driver) => driver,
        None => {
            let driver = Driver::begin(process)?;
            DRIVER.get_or_init(|| driver)
        }
    };
    if driver.process == process {
        Ok(())
    } else {
        Err(Refusal::Failed("this process was forked from one that uses CUDA: it cannot use CUDA itself".to_owned()))
    }
}

impl Driver {
    fn begin(process: u32) -> Result<Self, Refusal> {
        const NO_DEVICE: c_int = 100;
        let no_cuda = |text: String| Refusal::NoCuda(text);
        // Safety: runs the driver's initialisers, which expect to be loaded so.
        let library = unsafe { system::dlopen(c"libcuda.so.1".as_ptr(), system::NOW) };
        if library.is_null() {
            return Err(no_cuda("there is no CUDA driver here: libcuda.so.1 was not found".to_owned()));
        }
        let begin = system::symbol(library, c"cuInit");
        let Some((begin, attribute)) = begin.zip(system::symbol(library, c"cuPointerGetAttribute")) else {
            return Err(Refusal::Failed("libcuda.so.1 has no cuInit, or no cuPointerGetAttribute".to_owned()));
        };
        // Safety: both have these signatures in the driver's header.
        let (begin, attribute) = unsafe {
            (
                std::mem::transmute::<*mut c_void, unsafe extern "C" fn(c_uint) -> c_int>(begin),
                std::mem::transmute::<*mut c_void, Attribute>(attribute),
            )
        };
        // Safety: may be called at any time, and as often as one likes.
        match unsafe { begin(0) } {
            0 => Ok(Self { process, attribute }),
            NO_DEVICE => Err(no_cuda("the CUDA driver sees no GPU here".to_owned())),
            status => Err(Refusal::Failed(format!("cuInit answered {status}"))),
        }
    }
}

/// The kind of memory that a pointer is of.
pub(crate) fn memory(pointer: u64) -> Memory {
    const MEMORY_TYPE: c_int = 2;
    const IS_MANAGED: c_int = 8;
    let Some(driver) = DRIVER.get() else { return Memory::Pageable };
    let ask = |attribute: c_int| {
        let mut answer = 0_u32;
        // Safety: both attributes write at most 4 bytes; no call of the driver is watched in this one.
        let status = unsafe { (driver.attribute)((&raw mut answer).cast(), attribute, pointer) };
        (status == 0).then_some(answer)
    };
    waits::memory(ask(MEMORY_TYPE), ask(IS_MANAGED))
}
