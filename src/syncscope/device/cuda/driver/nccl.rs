//! NCCL: connections of devices, and the all-reduce.
//!
//! The library is loaded when it is first asked for, by the names under which it is installed: with development files, or
//! without them, where only the name with its major version is there. What is called is in every version 2.

use std::ffi::{CStr, OsString, c_char, c_int, c_void};
use std::path::PathBuf;
use std::ptr;
use std::sync::{Arc, OnceLock};

use cudarc::driver::sys::{CUdeviceptr, CUstream};
use cudarc::nccl::sys::{ncclComm_t, ncclDataType_t, ncclRedOp_t};
use libloading::Library;

use super::Context;
use super::libraries::usual_folders;
use crate::device::engine::Result;
use crate::error::DeviceError;

/// Its names, the first found is taken.
const NAMES: [&str; 2] = ["libnccl.so.2", "libnccl.so"];

/// What a call returns that did what it was asked.
const SUCCESS: c_int = 0;

/// The functions. They return a number of the library's own list, which a later version may extend.
pub(crate) struct Nccl {
    get_version: unsafe extern "C" fn(*mut c_int) -> c_int,
    get_error_string: unsafe extern "C" fn(c_int) -> *const c_char,
    comm_init_all: unsafe extern "C" fn(*mut ncclComm_t, c_int, *const c_int) -> c_int,
    comm_destroy: unsafe extern "C" fn(ncclComm_t) -> c_int,
    group_start: unsafe extern "C" fn() -> c_int,
    group_end: unsafe extern "C" fn() -> c_int,
    all_reduce: unsafe extern "C" fn(*const c_void, *mut c_void, usize, c_int, c_int, ncclComm_t, CUstream) -> c_int,
}

impl Nccl {
    /// The library; loaded by the first that asks for it, and kept as long as the process, since it starts threads.
    ///
    /// # Errors
    /// [`NotApplicable`](DeviceError::NotApplicable) says where it was looked for.
    pub(crate) fn load() -> Result<&'static Self> {
        static NCCL: OnceLock<Option<Nccl>> = OnceLock::new();
        NCCL.get_or_init(|| candidates().find_map(Self::open)).as_ref().ok_or_else(|| DeviceError::NotApplicable {
            what: "an all-reduce".to_owned(),
            device: "this machine".to_owned(),
            reason: format!(
                "{} (NCCL) was not found in LD_LIBRARY_PATH, the system loader's folders or those of a CUDA toolkit; it \
                 comes with the package `libnccl2`, or with the PyPI package `nvidia-nccl-cu13`",
                NAMES[0]
            ),
        })
    }

    fn open(name: OsString) -> Option<Self> {
        // Safety: loading runs the library's initialisers, which expect to be loaded so.
        let library = unsafe { Library::new(name) }.ok()?;
        // Safety: the types are those of the library's header, the same in every version 2.
        let functions = unsafe {
            Self {
                get_version: *library.get(b"ncclGetVersion").ok()?,
                get_error_string: *library.get(b"ncclGetErrorString").ok()?,
                comm_init_all: *library.get(b"ncclCommInitAll").ok()?,
                comm_destroy: *library.get(b"ncclCommDestroy").ok()?,
                group_start: *library.get(b"ncclGroupStart").ok()?,
                group_end: *library.get(b"ncclGroupEnd").ok()?,
                all_reduce: *library.get(b"ncclAllReduce").ok()?,
            }
        };
        std::mem::forget(library);
        Some(functions)
    }

    /// Its version: `2.28.3`; `None` where it does not tell.
    pub(crate) fn version(&self) -> Option<String> {
        let mut version = 0;
        // Safety: writes one integer.
        let status = unsafe { (self.get_version)(&mut version) };
        // Since 2.9 with two digits for the second number.
        let [major, minor] = if version >= 10_000 { [10_000, 100] } else { [1000, 100] };
        (status == SUCCESS).then(|| format!("{}.{}.{}", version / major, version % major / minor, version % minor))
    }

    fn check(&self, device: &str, call: &'static str, status: c_int) -> Result<()> {
        if status == SUCCESS {
            return Ok(());
        }
        // Safety: returns a text of the library's own for every number.
        let text = unsafe { (self.get_error_string)(status) };
        // Safety: terminated, and there as long as the library.
        let text = if text.is_null() { "".into() } else { unsafe { CStr::from_ptr(text) }.to_string_lossy() };
        Err(DeviceError::CallFailed { device: device.to_owned(), call, reason: format!("{text} ({status})") })
    }
}

/// Where the library may be: where the loader looks, then in the usual folders.
fn candidates() -> impl Iterator<Item = OsString> {
    let folders = usual_folders().into_iter().map(Some);
    [None].into_iter().chain(folders).flat_map(|folder: Option<PathBuf>| {
        NAMES.map(|name| folder.as_ref().map_or_else(|| name.into(), |folder| folder.join(name).into_os_string()))
    })
}

/// What a rank reads and writes, and its stream: all of one device, and as long as the all-reduce runs.
pub(crate) struct RankMemory {
    /// What is read.
    pub(crate) from: CUdeviceptr,
    /// What is written.
    pub(crate) to: CUdeviceptr,
    /// Where it is enqueued.
    pub(crate) stream: CUstream,
}

/// Connected devices, in the order of their ranks.
pub(crate) struct Connection {
    nccl: &'static Nccl,
    ranks: Vec<ncclComm_t>,
    contexts: Vec<Arc<Context>>,
}

impl Connection {
    /// Connects the devices of these contexts. Which context is current is undefined afterwards.
    pub(crate) fn new(nccl: &'static Nccl, contexts: &[Arc<Context>]) -> Result<Self> {
        let devices: Vec<c_int> = contexts.iter().map(|context| context.device()).collect();
        let mut ranks = vec![ptr::null_mut(); devices.len()];
        let count = c_int::try_from(devices.len()).unwrap_or(c_int::MAX);
        // Safety: both lists have as many elements.
        let status = unsafe { (nccl.comm_init_all)(ranks.as_mut_ptr(), count, devices.as_ptr()) };
        nccl.check("all devices", "ncclCommInitAll", status)?;
        Ok(Self { nccl, ranks, contexts: contexts.to_vec() })
    }

    /// Enqueues the sum over all ranks of so many `float` elements, within one group.
    pub(crate) fn all_reduce(&self, memory: &[RankMemory], elements: usize) -> Result<()> {
        let (dtype, sum) = (ncclDataType_t::ncclFloat32 as c_int, ncclRedOp_t::ncclSum as c_int);
        // Safety: has no arguments.
        self.nccl.check("all devices", "ncclGroupStart", unsafe { (self.nccl.group_start)() })?;
        let mut enqueued = Ok(());
        for ((rank, memory), context) in self.ranks.iter().zip(memory).zip(&self.contexts) {
            let (from, to) = (memory.from as *const c_void, memory.to as *mut c_void);
            // Safety: the rank is connected; both blocks are of its device, hold as many elements, and are kept until the
            // all-reduce is over, as is the stream.
            let status = unsafe { (self.nccl.all_reduce)(from, to, elements, dtype, sum, *rank, memory.stream) };
            enqueued = enqueued.and(self.nccl.check(context.name(), "ncclAllReduce", status));
        }
        // A group that was begun is ended, whatever came of it.
        // Safety: has no arguments.
        let ended = self.nccl.check("all devices", "ncclGroupEnd", unsafe { (self.nccl.group_end)() });
        enqueued.and(ended)
    }
}

impl Drop for Connection {
    /// A drop cannot return an error.
    fn drop(&mut self) {
        for (rank, context) in self.ranks.drain(..).zip(&self.contexts) {
            let _ = context.bind();
            // Safety: connected, not used again, and its work is over.
            unsafe { (self.nccl.comm_destroy)(rank) };
        }
    }
}
