//! All-reduces over several devices by NCCL.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;
use std::rc::Rc;
use std::sync::Arc;

use cudarc::driver::sys::{self, CUdeviceptr, CUstream, CUstream_flags};

use super::owned::{Block, Owned};
use super::{Calls, ONE_DEVICE, call, stream};
use crate::catalogue::{Call, Memory};
use crate::{Made, On, Result};
use syncscope::affinity;
use syncscope::device::raw::{self, Context};
use syncscope::error::DeviceError;

/// What each rank contributes to each element.
const CONTRIBUTION: f32 = 1.0;

/// The ranks, one for each device, and their connection.
pub(crate) struct NcclRanks {
    // Ended before the streams and the memory that it uses.
    connection: Option<Connection>,
    /// Whether the next call is the first one of the connection: NCCL starts threads in it, too.
    is_new: Cell<bool>,
    ranks: Vec<Rank>,
    elements: usize,
    nccl: Nccl,
    // The stream that it lends is there as long.
    calls: Arc<Calls>,
}

struct Rank {
    stream: CUstream,
    #[allow(dead_code, reason = "kept where the stream is the rank's own")]
    own: Option<Owned<CUstream>>,
    from: Block,
    to: Block,
    context: Arc<Context>,
}

impl Rank {
    /// On this stream, or else on one of its own.
    fn new(context: &Arc<Context>, elements: usize, lent: Option<CUstream>) -> Result<Self> {
        let block = || Block::new(context, Memory::Device, elements * size_of::<f32>());
        let (from, to) = (block()?, block()?);
        context.bind()?;
        let (stream, own) = match lent {
            Some(stream) => (stream, None),
            None => {
                let own = stream(context, CUstream_flags::CU_STREAM_NON_BLOCKING)?;
                (own.get()?, Some(own))
            }
        };
        // Safety: the block holds as many words, and its context is current.
        let status = unsafe { sys::cuMemsetD32_v2(from.address()?, CONTRIBUTION.to_bits(), elements) };
        context.check("cuMemsetD32", status)?;
        Ok(Self { stream, own, from, to, context: context.clone() })
    }

    fn memory(&self) -> Result<RankMemory> {
        Ok(RankMemory { from: self.from.address()?, to: self.to.address()?, stream: self.stream })
    }

    /// The last element that was written.
    fn last(&self, elements: usize) -> Result<f32> {
        let mut value = 0.0f32;
        self.context.bind()?;
        let address = self.to.address()? + ((elements - 1) * size_of::<f32>()) as u64;
        // Safety: within the block; writes one element.
        let status = unsafe { sys::cuMemcpyDtoH_v2((&raw mut value).cast(), address, size_of::<f32>()) };
        self.context.check("cuMemcpyDtoH", status).map(|()| value)
    }
}

impl NcclRanks {
    /// Ranks of these devices, not connected; the first one is on the stream of the rig where `lent` says so. The rig's device is
    /// current again after each call.
    fn new(calls: &Arc<Calls>, contexts: &[Arc<Context>], bytes: usize, lent: bool) -> Result<Self> {
        let nccl = Nccl::load()?;
        let elements = (bytes / size_of::<f32>()).max(1);
        let lent = if lent { Some(calls.own.get()?) } else { None };
        let streams = [lent].into_iter().chain(std::iter::repeat(None));
        let rank = |(context, lent): (&Arc<Context>, Option<CUstream>)| Rank::new(context, elements, lent);
        let ranks = contexts.iter().zip(streams).map(rank).collect::<Result<_>>();
        calls.bind()?;
        Ok(Self { connection: None, is_new: Cell::new(false), ranks: ranks?, elements, nccl, calls: Arc::clone(calls) })
    }

    /// Connects them.
    pub(crate) fn connect(&mut self) -> Result<()> {
        let contexts: Vec<_> = self.ranks.iter().map(|rank| rank.context.clone()).collect();
        // NCCL starts threads, which are to run elsewhere than the thread that measures.
        let connection = affinity::elsewhere(|| Connection::new(self.nccl, &contexts));
        self.calls.bind()?;
        self.connection = Some(connection?);
        self.is_new.set(true);
        Ok(())
    }

    /// Enqueues an all-reduce on the streams of all ranks. They are connected.
    pub(crate) fn enqueue(&self) -> Result<()> {
        let memory = self.ranks.iter().map(Rank::memory).collect::<Result<Vec<_>>>()?;
        let connection = self
            .connection
            .as_ref()
            .ok_or_else(|| DeviceError::invalid("all-reduce", "the ranks are not connected"))?;
        let all_reduce = || connection.all_reduce(&memory, self.elements);
        let enqueued = if self.is_new.take() { affinity::elsewhere(all_reduce) } else { all_reduce() };
        self.calls.bind()?;
        enqueued
    }

    /// Waits until all streams are idle.
    pub(crate) fn synchronize(&self) -> Result<()> {
        let waited = self.ranks.iter().try_for_each(|rank| {
            rank.context.bind()?;
            // Safety: the stream is live.
            rank.context.check("cuStreamSynchronize", unsafe { sys::cuStreamSynchronize(rank.stream) })
        });
        self.calls.bind()?;
        waited
    }

    /// Fails where the last all-reduce has not left the sum of all ranks. All streams are idle.
    pub(crate) fn check(&self) -> Result<()> {
        let expected = CONTRIBUTION * self.ranks.len() as f32;
        let found = self.ranks.iter().map(|rank| rank.last(self.elements)).collect::<Result<Vec<_>>>();
        self.calls.bind()?;
        let reason = || format!("the sum of {} ones is not {expected} on each rank", self.ranks.len());
        let is_right = found?.iter().all(|sum| *sum == expected);
        is_right.then_some(()).ok_or_else(|| DeviceError::call_failed("all devices", "ncclAllReduce", reason()))
    }

    /// Ends the connections; all streams are idle.
    pub(crate) fn disconnect(&mut self) {
        self.connection = None;
        // The next call binds it again where this fails.
        let _ = self.calls.bind();
    }
}

impl Drop for NcclRanks {
    /// Nothing may use the memory when it is freed. A drop cannot return an error.
    fn drop(&mut self) {
        let _ = self.synchronize();
        self.disconnect();
    }
}

impl Calls {
    /// The ranks of these devices, for so many bytes.
    pub(in crate::cuda) fn ranks(self: &Arc<Self>, contexts: &[Arc<Context>], bytes: usize) -> Result<NcclRanks> {
        if contexts.len() < 2 {
            return Err(self.missing("an all-reduce", ONE_DEVICE));
        }
        for context in contexts {
            self.room(context, 2, bytes)?;
        }
        NcclRanks::new(self, contexts, bytes, false)
    }
}

/// All-reduces of one element over this device and another one: the first one of a connection, and a later one.
pub(super) fn calls() -> [Call; 2] {
    let enqueued = |pending: &mut Pending| pending.0.enqueue();
    let first = move |calls: &Arc<Calls>| {
        let (c, contexts) = (Arc::clone(calls), [calls.context.clone(), calls.other()?]);
        Ok(Made::new(move || connected(&c, &contexts).map(Pending), enqueued).boxed())
    };
    let later = move |calls: &Arc<Calls>| {
        let ranks = connected(calls, &[calls.context.clone(), calls.other()?])?;
        ranks.enqueue()?;
        Ok(Made::new(move || Ok(Pending(Rc::clone(&ranks))), enqueued).boxed())
    };
    [call("ncclAllReduce", On::Stream, first).way("first"), call("ncclAllReduce", On::Stream, later).way("later")]
}

fn connected(calls: &Arc<Calls>, contexts: &[Arc<Context>]) -> Result<Rc<NcclRanks>> {
    let mut ranks = NcclRanks::new(calls, contexts, size_of::<f32>(), true)?;
    ranks.connect().map(|()| Rc::new(ranks))
}

/// What is waited for on all devices when it ends: others wait for this one alone.
struct Pending(Rc<NcclRanks>);

impl Drop for Pending {
    /// A drop cannot return an error.
    fn drop(&mut self) {
        let _ = self.0.synchronize();
    }
}

/// What a call returns that did what it was asked.
const SUCCESS: c_int = 0;

/// `ncclFloat32` and `ncclSum`, the same in every version 2.
const FLOAT: c_int = 7;
const SUM: c_int = 0;

/// A connected rank, `ncclComm_t`.
type Comm = *mut c_void;

/// The functions. They return a number of the library's own list, which a later version may extend.
#[derive(Clone, Copy)]
struct Nccl {
    get_error_string: unsafe extern "C" fn(c_int) -> *const c_char,
    comm_init_all: unsafe extern "C" fn(*mut Comm, c_int, *const c_int) -> c_int,
    comm_destroy: unsafe extern "C" fn(Comm) -> c_int,
    group_start: unsafe extern "C" fn() -> c_int,
    group_end: unsafe extern "C" fn() -> c_int,
    all_reduce: unsafe extern "C" fn(*const c_void, *mut c_void, usize, c_int, c_int, Comm, CUstream) -> c_int,
}

impl Nccl {
    /// Those of the library.
    ///
    /// # Errors
    /// [`NotApplicable`](DeviceError::NotApplicable) where there is none, or none of version 2.
    fn load() -> Result<Self> {
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
struct RankMemory {
    /// What is read.
    from: CUdeviceptr,
    /// What is written.
    to: CUdeviceptr,
    /// Where it is enqueued.
    stream: CUstream,
}

/// Connected devices, in the order of their ranks.
struct Connection {
    nccl: Nccl,
    ranks: Vec<Comm>,
    contexts: Vec<Arc<Context>>,
}

impl Connection {
    /// Connects the devices of these contexts. Which context is current is undefined afterwards.
    fn new(nccl: Nccl, contexts: &[Arc<Context>]) -> Result<Self> {
        let devices: Vec<c_int> = contexts.iter().map(|context| context.device()).collect();
        let mut ranks = vec![ptr::null_mut(); devices.len()];
        let count = c_int::try_from(devices.len()).unwrap_or(c_int::MAX);
        // Safety: both lists have as many elements.
        let status = unsafe { (nccl.comm_init_all)(ranks.as_mut_ptr(), count, devices.as_ptr()) };
        nccl.check("all devices", "ncclCommInitAll", status)?;
        Ok(Self { nccl, ranks, contexts: contexts.to_vec() })
    }

    /// Enqueues the sum over all ranks of so many `float` elements, within one group.
    fn all_reduce(&self, memory: &[RankMemory], elements: usize) -> Result<()> {
        // Safety: has no arguments.
        self.nccl.check("all devices", "ncclGroupStart", unsafe { (self.nccl.group_start)() })?;
        let mut enqueued = Ok(());
        for ((rank, memory), context) in self.ranks.iter().zip(memory).zip(&self.contexts) {
            let (from, to) = (memory.from as *const c_void, memory.to as *mut c_void);
            // Safety: the rank is connected; both blocks are of its device, hold as many elements, and are kept until the
            // all-reduce is over, as is the stream.
            let status = unsafe { (self.nccl.all_reduce)(from, to, elements, FLOAT, SUM, *rank, memory.stream) };
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
