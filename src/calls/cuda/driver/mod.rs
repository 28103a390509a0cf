//! The driver's own calls, to be measured one by one: streams of their own, and each call of the catalogue as steps.
//!
//! Nothing here is on the way of an operation. A call gets what the documentation asks of its arguments: live handles, memory
//! of the size that is copied, a kernel with its arguments. What it needs is made before it and given up when all work is
//! over, by the drop of an [`Owned`] or of a [`Block`].
//!
//! | file | holds |
//! |---|---|
//! | `owned` | handles and memory that end with their owner |
//! | `first` | what loading and launching the first kernel takes |
//! | `layers` | launches through layers, and in the ways that the driver offers |
//! | `marks` | work whose end the host sees by itself, and functions of the host behind it |
//! | `ranks` | all-reduces over several devices, by NCCL |
//! | `ways` | transfers of memory between the host, the device and another device |
//! | the others | the calls of a family |

mod code;
mod contexts;
mod copies;
pub(super) mod first;
mod graphs;
mod launches;
pub mod layers;
mod marks;
mod memory;
mod owned;
pub(super) mod ranks;
mod waits;
mod ways;

use std::ffi::{CStr, c_void};
use std::ptr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use cudarc::driver::sys::{
    self, CUctx_flags, CUfunction, CUmodule, CUresult, CUstream, CUstream_flags, CUstreamWaitValue_flags,
};

use syncscope::device::raw::{Context, Flag, driver_function};
use syncscope::error::DeviceError;

use crate::catalogue::{Call, Make};
use crate::{Family, Made, On, Result, Steps, StreamRole, WaitMode};
pub(super) use marks::{Cell, Wake};
use owned::{Handle, Owned};

/// The kernel that calls launch: it takes one argument, for how many nanoseconds it keeps the stream busy.
const KERNEL: &CStr = c"spin";

/// The kernel that then writes a word: it takes the nanoseconds, the word's address, and what it becomes.
const MARKER: &CStr = c"spin_and_mark";

/// The kernel that tells the device's time: it takes the address of the word by which the host asks, the number of the first
/// question, how many there are, and for how many nanoseconds it waits for one.
const CLOCK: &CStr = c"tell_time";

/// The kernel that keeps the stream busy in two halves, of which a programmatic launch overlaps one: it takes the nanoseconds of
/// both.
const HALVES: &CStr = c"spin_in_halves";

/// The legacy default stream, as the driver's header names it.
const LEGACY: CUstream = 1 as CUstream;

/// The flags of a context that say how threads wait.
const SCHEDULING: u32 = CUctx_flags::CU_CTX_SCHED_MASK as u32;

/// Those that can be set once it is there; others are shown, too.
const SETTABLE: u32 = SCHEDULING | CUctx_flags::CU_CTX_LMEM_RESIZE_TO_MAX as u32;

/// Streams to hold and to make calls on, and a loaded kernel.
pub(crate) struct Calls {
    // Before the context, which ends after them.
    own: Owned<CUstream>,
    other: Owned<CUstream>,
    non_blocking: Owned<CUstream>,
    of_thread: Owned<CUstream>,
    of_device: Option<Owned<CUstream>>,
    #[allow(dead_code, reason = "kept for its kernel")]
    module: Owned<CUmodule>,
    kernel: CUfunction,
    instruments: Instruments,
    /// The machine code of the kernel.
    image: Arc<[u8]>,
    /// How threads wait in the context by default.
    flags: u32,
    other_device: Option<Arc<Context>>,
    context: Arc<Context>,
}

/// The kernels that measure.
struct Instruments {
    marker: CUfunction,
    clock: CUfunction,
    halves: CUfunction,
    #[allow(dead_code, reason = "kept for its kernels")]
    module: Owned<CUmodule>,
}

impl Instruments {
    fn new(context: &Arc<Context>, image: &[u8]) -> Result<Self> {
        let module = module(context, image)?;
        let kernel = |name| function(context, module.get()?, name);
        Ok(Self { marker: kernel(MARKER)?, clock: kernel(CLOCK)?, halves: kernel(HALVES)?, module })
    }
}

// Safety: the driver's handles are not bound to a thread; each call binds the context to its own.
unsafe impl Send for Calls {}
// Safety: as above; the driver synchronizes its own calls.
unsafe impl Sync for Calls {}

impl Calls {
    /// `image` is the machine code of a module with the kernel [`KERNEL`] alone, `instruments` of one with [`MARKER`],
    /// [`CLOCK`] and [`HALVES`].
    pub(super) fn new(
        context: &Arc<Context>,
        other_device: Option<Arc<Context>>,
        image: Vec<u8>,
        instruments: &[u8],
    ) -> Result<Arc<Self>> {
        context.bind()?;
        let default = CUstream_flags::CU_STREAM_DEFAULT;
        let apart = CUstream_flags::CU_STREAM_NON_BLOCKING;
        let of_device = other_device.as_ref().map(|device| stream(device, apart)).transpose()?;
        context.bind()?;
        let mut flags = 0;
        // Safety: writes one word; the context is current.
        context.check("cuCtxGetFlags", unsafe { sys::cuCtxGetFlags(&mut flags) })?;
        let flags = flags & SETTABLE;
        let image: Arc<[u8]> = image.into();
        let module = module(context, &image)?;
        let calls = Self {
            own: stream(context, default)?,
            other: stream(context, default)?,
            non_blocking: stream(context, apart)?,
            of_thread: stream(context, apart)?,
            of_device,
            kernel: function(context, module.get()?, KERNEL)?,
            instruments: Instruments::new(context, instruments)?,
            module,
            image,
            flags,
            other_device,
            context: context.clone(),
        };
        // So that the kernel is loaded before anything is held.
        for line in StreamRole::ALL.into_iter().filter(|line| *line != StreamRole::Device) {
            calls.keep_busy(line, Duration::ZERO)?;
            calls.synchronize(line)?;
        }
        Ok(Arc::new(calls))
    }

    /// Makes the context current on this thread.
    pub(super) fn bind(&self) -> Result<()> {
        self.context.bind()
    }

    /// Has a stream wait for a flag.
    pub(super) fn hold(&self, line: StreamRole, flag: Flag) -> Result<()> {
        let at_least = CUstreamWaitValue_flags::CU_STREAM_WAIT_VALUE_GEQ as u32;
        let (context, stream) = self.stream(line)?;
        context.bind()?;
        // Safety: the word is mapped for all devices and aligned, and the caller keeps it until the stream is past it.
        let status = unsafe { sys::cuStreamWaitValue32_v2(stream, flag.address, flag.target, at_least) };
        context.check("cuStreamWaitValue32", status)?;
        self.bind()
    }

    /// Enqueues a kernel that takes this long.
    pub(super) fn keep_busy(&self, line: StreamRole, duration: Duration) -> Result<()> {
        let (context, stream) = self.stream(line)?;
        if line == StreamRole::Device {
            return Err(self.missing("work on another device", "only its streams are held"));
        }
        context.bind()?;
        self.launch(stream, duration)
    }

    /// Waits until a stream is idle.
    pub(super) fn synchronize(&self, line: StreamRole) -> Result<()> {
        let (context, stream) = self.stream(line)?;
        context.bind()?;
        // Safety: the stream is live.
        context.check("cuStreamSynchronize", unsafe { sys::cuStreamSynchronize(stream) })?;
        self.bind()
    }

    /// Whether there is another device.
    pub(super) fn has_other_device(&self) -> bool {
        self.other_device.is_some()
    }

    /// Has threads wait in this way in the context from now on, or, for none, as they did.
    ///
    /// # Errors
    /// The driver's; that the context says of another way afterwards.
    pub(super) fn wait_by(&self, mode: Option<WaitMode>) -> Result<()> {
        self.bind()?;
        let scheduling = match mode {
            None => self.flags & SCHEDULING,
            Some(WaitMode::Spin) => CUctx_flags::CU_CTX_SCHED_SPIN as u32,
            Some(WaitMode::Yield) => CUctx_flags::CU_CTX_SCHED_YIELD as u32,
            Some(WaitMode::Block) => CUctx_flags::CU_CTX_SCHED_BLOCKING_SYNC as u32,
        };
        let flags = (self.flags & !SCHEDULING) | scheduling;
        self.require("cuCtxSetFlags")?;
        // Safety: the context is current.
        self.context.check("cuCtxSetFlags", unsafe { sys::cuCtxSetFlags(flags) })?;
        // What was there before may be a choice of the driver's, which it need not call by the same flags.
        if mode.is_none() {
            return Ok(());
        }
        let mut now = 0;
        // Safety: writes one word; the context is current.
        self.context.check("cuCtxGetFlags", unsafe { sys::cuCtxGetFlags(&mut now) })?;
        in_force(self.context.name(), scheduling, now & SCHEDULING)
    }

    /// A call that needs nothing made; `run` gives its status.
    fn plain(self: &Arc<Self>, name: &'static str, run: impl Fn(&Self) -> Status + 'static) -> Box<dyn Steps> {
        self.made(name, |_| Ok(()), move |calls, ()| run(calls)).boxed()
    }

    /// A call on what `make` makes anew for each time, and which ends when all work is over.
    fn made<T: 'static>(
        self: &Arc<Self>,
        name: &'static str,
        make: impl Fn(&Self) -> Result<T> + 'static,
        run: impl Fn(&Self, &mut T) -> Status + 'static,
    ) -> Made<T> {
        let (maker, caller) = (Arc::clone(self), Arc::clone(self));
        Made::new(move || make(&maker), move |made| caller.check(name, run(&caller, made)?))
    }

    /// Another device.
    fn other(&self) -> Result<Arc<Context>> {
        self.other_device.clone().ok_or_else(|| self.missing("another device", ONE_DEVICE))
    }

    fn stream(&self, line: StreamRole) -> Result<(&Arc<Context>, CUstream)> {
        let here = |stream: &Owned<CUstream>| Ok((&self.context, stream.get()?));
        match line {
            StreamRole::Given => here(&self.own),
            StreamRole::Other => here(&self.other),
            StreamRole::NonBlocking => here(&self.non_blocking),
            StreamRole::Thread => here(&self.of_thread),
            StreamRole::Legacy => Ok((&self.context, LEGACY)),
            StreamRole::Device => match (&self.other_device, &self.of_device) {
                (Some(context), Some(stream)) => Ok((context, stream.get()?)),
                _ => Err(self.missing("another device", ONE_DEVICE)),
            },
        }
    }

    /// Launches the kernel for this long.
    fn launch(&self, stream: CUstream, duration: Duration) -> Result<()> {
        self.check("cuLaunchKernel", spin(self.kernel, stream, duration))
    }

    /// Fails where the driver lacks a function: it is asked for at its first call, and a missing one would end the program.
    fn require(&self, symbol: &str) -> Result<()> {
        // Safety: the function is only looked for, and never called through this type.
        let found = unsafe { driver_function::<unsafe extern "C" fn()>(symbol) };
        found.map(drop).map_err(|_| self.missing(symbol, "this driver does not have the call"))
    }

    fn missing(&self, what: &str, reason: &str) -> DeviceError {
        let (what, device) = (what.to_owned(), self.context.name().to_owned());
        DeviceError::not_applicable(what, device, reason)
    }

    fn check(&self, call: &'static str, status: CUresult) -> Result<()> {
        self.context.check(call, status)
    }
}

/// What a call of the driver has returned, or why it could not be made.
type Status = Result<CUresult>;

/// The calls of a family; `sizes` are those of transfers.
pub(crate) fn calls(family: Family, sizes: &[usize]) -> Vec<Call> {
    let ends = [sizes.first().copied().unwrap_or(4), sizes.last().copied().unwrap_or(4)];
    let ends = if ends[0] == ends[1] { &ends[..1] } else { &ends[..] };
    match family {
        Family::Wait => waits::calls(),
        Family::Copy => sizes.iter().flat_map(|bytes| copies::calls(*bytes)).collect(),
        Family::Fill => sizes.iter().flat_map(|bytes| copies::fills(*bytes)).collect(),
        Family::Memory => ends.iter().flat_map(|bytes| memory::allocations(*bytes)).chain(memory::calls()).collect(),
        Family::Code => code::calls(),
        Family::Object => waits::objects(),
        Family::Graph => graphs::calls(),
        Family::Launch => launches::calls(),
        Family::Device => {
            let copies = ends.iter().flat_map(|bytes| contexts::copies(*bytes));
            contexts::calls().into_iter().chain(copies).chain(ranks::calls()).collect()
        }
    }
}

/// A call that `make` makes ready.
fn call(name: &'static str, on: On, make: impl Fn(&Arc<Calls>) -> Result<Box<dyn Steps>> + 'static) -> Call {
    Call::new(name, on, Make::Driver(Rc::new(make)))
}

/// A call that is made ready where `check` finds what it needs.
fn provided(check: impl Fn(&Calls) -> Result<()> + 'static, call: Call) -> Call {
    match call.make {
        Make::Driver(make) => Call { make: Make::Driver(Rc::new(move |c| check(c).and_then(|()| make(c)))), ..call },
        Make::Own(_) => call,
    }
}

/// As [`Calls::plain`].
fn plain(name: &'static str, on: On, run: impl Fn(&Calls) -> Status + Copy + 'static) -> Call {
    call(name, on, move |calls| Ok(calls.plain(name, run)))
}

/// As [`Calls::made`].
fn made<T: 'static>(
    name: &'static str,
    on: On,
    make: impl Fn(&Calls) -> Result<T> + Copy + 'static,
    run: impl Fn(&Calls, &mut T) -> Status + Copy + 'static,
) -> Call {
    call(name, on, move |calls| Ok(calls.made(name, make, run).boxed()))
}

/// A call that makes a handle, which `end` ends.
fn creates<H: Handle + 'static>(
    name: &'static str,
    on: On,
    end: unsafe fn(H) -> CUresult,
    create: impl Fn(&Calls, &mut H) -> Status + Copy + 'static,
) -> Call {
    let place = move |calls: &Calls| Ok(Owned::empty(&calls.context, end));
    made(name, on, place, move |calls, place| place.make(|raw| create(calls, raw)))
}

/// A call that ends a handle.
fn ends<H: Handle + 'static>(name: &'static str, make: impl Fn(&Calls) -> Result<Owned<H>> + Copy + 'static) -> Call {
    made(name, On::Nothing, make, |_, place| place.end())
}

/// Whether threads wait in the way that was asked for: a driver may take a flag and keep to its own way.
fn in_force(device: &str, asked: u32, now: u32) -> Result<()> {
    if asked == now {
        return Ok(());
    }
    let reason = format!(
        "threads were to wait by the flags {asked:#x} of the context, and it says {now:#x} afterwards: no time is of the way that \
         was asked for"
    );
    Err(DeviceError::call_failed(device, "cuCtxSetFlags", reason))
}

/// Why what takes two devices is not here.
const ONE_DEVICE: &str = "this machine has one GPU";

/// A call that says that something is not over has done what it is for.
fn ready_or_not(status: CUresult) -> CUresult {
    if status == CUresult::CUDA_ERROR_NOT_READY { CUresult::CUDA_SUCCESS } else { status }
}

fn stream(context: &Arc<Context>, flags: CUstream_flags) -> Result<Owned<CUstream>> {
    context.bind()?;
    // Safety: writes one handle.
    let create = |stream: &mut CUstream| unsafe { sys::cuStreamCreate(stream, flags as u32) };
    Owned::new(context, "cuStreamCreate", sys::cuStreamDestroy_v2, create)
}

/// One value and then the other: a call that sets what is set already changes nothing.
fn in_turn<T: Copy>(values: [T; 2]) -> impl Fn() -> T {
    let is_second = std::cell::Cell::new(false);
    move || values[usize::from(is_second.replace(!is_second.get()))]
}

fn load(module: &mut CUmodule, image: &[u8]) -> CUresult {
    // Safety: an image carries its own length. Writes one handle.
    unsafe { sys::cuModuleLoadData(module, image.as_ptr().cast::<c_void>()) }
}

fn module(context: &Arc<Context>, image: &[u8]) -> Result<Owned<CUmodule>> {
    Owned::new(context, "cuModuleLoadData", sys::cuModuleUnload, |module| load(module, image))
}

fn find_function(function: &mut CUfunction, module: CUmodule, name: &CStr) -> Status {
    // Safety: the module is live, the name terminated; writes one handle.
    Ok(unsafe { sys::cuModuleGetFunction(function, module, name.as_ptr()) })
}

fn function(context: &Arc<Context>, module: CUmodule, name: &CStr) -> Result<CUfunction> {
    let mut function = ptr::null_mut();
    context.check("cuModuleGetFunction", find_function(&mut function, module, name)?).map(|()| function)
}

/// Launches a kernel that ends at once.
fn start(kernel: CUfunction, stream: CUstream) -> CUresult {
    spin(kernel, stream, Duration::ZERO)
}

/// Launches a kernel that takes this long.
fn spin(kernel: CUfunction, stream: CUstream, duration: Duration) -> CUresult {
    let mut nanoseconds = nanoseconds(duration);
    // Safety: the kernel takes one word.
    unsafe { launch(kernel, [1, 1], stream, &mut [(&raw mut nanoseconds).cast()]) }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Launches a kernel of so many blocks of so many threads.
///
/// # Safety
/// The arguments are the kernel's, which the driver copies before it returns; the memory that they name is kept until the
/// kernel is over.
#[inline]
unsafe fn launch(
    kernel: CUfunction,
    [blocks, threads]: [u32; 2],
    stream: CUstream,
    arguments: &mut [*mut c_void],
) -> CUresult {
    let (arguments, none) = (arguments.as_mut_ptr(), ptr::null_mut());
    // Safety: the caller's.
    unsafe { sys::cuLaunchKernel(kernel, blocks, 1, 1, threads, 1, 1, 0, stream, arguments, none) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_way_to_wait_that_is_not_in_force_after_it_was_set_is_an_error_that_names_both() {
        let spin = CUctx_flags::CU_CTX_SCHED_SPIN as u32;
        assert!(in_force("cuda:0", spin, spin).is_ok());
        let error = in_force("cuda:0", spin, CUctx_flags::CU_CTX_SCHED_AUTO as u32).unwrap_err().to_string();
        assert!(error.contains("0x1") && error.contains("0x0"), "{error}");
    }
}
