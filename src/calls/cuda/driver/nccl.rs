//! NCCL: connections of devices, and the all-reduce.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;
use std::sync::Arc;

use cudarc::driver::sys::{CUdeviceptr, CUstream};
use cudarc::nccl::sys::{ncclComm_t, ncclDataType_t, ncclRedOp_t};
use syncscope::device::raw::{self, Context};
use syncscope::error::DeviceError;

use crate::Result;

/// What a call returns that did what it was asked.
const SUCCESS: c_int = 0;

/// The functions. They return a number of the library's own list, which a later version may extend.
#[derive(Clone, Copy)]
pub(super) struct Nccl {
    get_error_string: unsafe extern "C" fn(c_int) -> *const c_char,
    comm_init_all: unsafe extern "C" fn(*mut ncclComm_t, c_int, *const c_int) -> c_int,
    comm_destroy: unsafe extern "C" fn(ncclComm_t) -> c_int,
    group_start: unsafe extern "C" fn() -> c_int,
    group_end: unsafe extern "C" fn() -> c_int,
    all_reduce: unsafe extern "C" fn(*const c_void, *mut c_void, usize, c_int, c_int, ncclComm_t, CUstream) -> c_int,
}

impl Nccl {
    /// Those of the library.
    ///
    /// # Errors
    /// [`NotApplicable`](DeviceError::NotApplicable) where there is none, or none of version 2.
    pub(super) fn load() -> Result<Self> {
        let library = raw::nccl()?;
        // Safety: the types are those of the library's header, the same in every version 2.
        let functions = || unsafe {
            Ok::<_, libloading::Error>(Self {
                get_error_string: *library.get(b"ncclGetErrorString")?,
                comm_init_all: *library.get(b"ncclCommInitAll")?,
                comm_destroy: *library.get(b"ncclCommDestroy")?,
                group_start: *library.get(b"ncclGroupStart")?,
                group_end: *library.get(b"ncclGroupEnd")?,
                all_reduce: *library.get(b"ncclAllReduce")?,
            })
        };
        functions().map_err(|error| DeviceError::not_applicable("an all-reduce", "this machine", error.to_string()))
    }

    fn check(&self, device: &str, call: &'static str, status: c_int) -> Result<()> {
        if status == SUCCESS {
            return Ok(());
        }
        // Safety: returns a text of the library's own for every number.
        let text = unsafe { (self.get_error_string)(status) };
        // Safety: terminated, and there as long as the library.
        let text = if text.is_null() { "".into() } else { unsafe { CStr::from_ptr(text) }.to_string_lossy() };
        Err(DeviceError::call_failed(device, call, format!("{text} ({status})")))
    }
}

/// What a rank reads and writes, and its stream: all of one device, and as long as the all-reduce runs.
pub(super) struct RankMemory {
    /// What is read.
    pub(super) from: CUdeviceptr,
    /// What is written.
    pub(super) to: CUdeviceptr,
    /// Where it is enqueued.
    pub(super) stream: CUstream,
}

/// Connected devices, in the order of their ranks.
pub(super) struct Connection {
    nccl: Nccl,
    ranks: Vec<ncclComm_t>,
    contexts: Vec<Arc<Context>>,
}

impl Connection {
    /// Connects the devices of these contexts. Which context is current is undefined afterwards.
    pub(super) fn new(nccl: Nccl, contexts: &[Arc<Context>]) -> Result<Self> {
        let devices: Vec<c_int> = contexts.iter().map(|context| context.device()).collect();
        let mut ranks = vec![ptr::null_mut(); devices.len()];
        let count = c_int::try_from(devices.len()).unwrap_or(c_int::MAX);
        // Safety: both lists have as many elements.
        let status = unsafe { (nccl.comm_init_all)(ranks.as_mut_ptr(), count, devices.as_ptr()) };
        nccl.check("all devices", "ncclCommInitAll", status)?;
        Ok(Self { nccl, ranks, contexts: contexts.to_vec() })
    }

    /// Enqueues the sum over all ranks of so many `float` elements, within one group.
    pub(super) fn all_reduce(&self, memory: &[RankMemory], elements: usize) -> Result<()> {
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
