//! The calls of other libraries, by CUPTI's callbacks for the driver's functions.
//!
//! # Method
//! Each call of the driver that enqueues or can wait is a call of the recording, unless it lies within one of this library's,
//! whose part it is. What a run-time library is called for becomes calls of the driver.
//!
//! A call that can wait by its arguments ([`waits`]) is a synchronization point, whether or not it waited.
//!
//! # Limits
//! CUPTI has callbacks for one tool in a process. Calls that make something ready (those that allocate and load) are in the
//! recording where they waited.

use std::backtrace::Backtrace;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::{CStr, c_void};
use std::ptr;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use cudarc::cupti::sys::{
    self, CUpti_ApiCallbackSite, CUpti_CallbackData, CUpti_CallbackDomain, CUpti_SubscriberHandle,
    CUpti_driver_api_trace_cbid, CUptiResult,
};
use cudarc::driver::sys::{self as driver, CUcontext, CUresult, CUstream};

use super::buffers::Collecting;
use super::check;
use super::waits::{self, Memory, Rule};
use crate::device::kept::ByteBudget;
use crate::device::lock;
use crate::device::tracer::{BegunCall, CallInfo, Kind, SyncKind, Tracer};

const DOMAIN: CUpti_CallbackDomain = CUpti_CallbackDomain::CUPTI_CB_DOMAIN_DRIVER_API;

/// More than any number of a function.
const FUNCTIONS: u32 = 1024;

/// How long a call lasts that may have waited, whatever it is: so long it takes to take its stack.
const LONG: Duration = Duration::from_micros(20);

/// What an event takes in the list of those that were recorded.
const EVENT_BYTES: usize = 64;

/// A recording's calls of other libraries; `None` while nobody records.
static WATCH: Mutex<Option<Arc<Watch>>> = Mutex::new(None);

/// CUPTI's handle of this library, from the first recording to the process's end: CUPTI 13.0 can crash in a call of the driver
/// that another thread is in while it is given back.
static SUBSCRIBER: Mutex<Option<Subscriber>> = Mutex::new(None);

struct Subscriber(CUpti_SubscriberHandle);

// Safety: CUPTI's handles are not bound to a thread.
unsafe impl Send for Subscriber {}

thread_local! {
    /// How many calls of this library, or of a callback, are open on this thread.
    static OWN: Cell<usize> = const { Cell::new(0) };
    /// The call of another library that is open on this thread. It is not left with CUPTI, which has 8 bytes for it: of a call that
    /// began before the callbacks were there the exit alone is told, with any bytes.
    static OPEN: RefCell<Option<Open>> = const { RefCell::new(None) };
}

/// A call of another library that has begun.
struct Open {
    /// CUPTI's number of it, which its exit has, too.
    correlation: u32,
    watch: Arc<Watch>,
    begun: BegunCall,
}

/// This thread enters a call of the library.
pub(super) fn enter_own() {
    let _ = OWN.try_with(|own| own.set(own.get() + 1));
}

/// This thread leaves it.
pub(super) fn leave_own() {
    let _ = OWN.try_with(|own| own.set(own.get().saturating_sub(1)));
}

struct Watch {
    tracer: Arc<Tracer>,
    seen: Mutex<Seen>,
}

/// What is known of the calls beside what the tracer keeps.
#[derive(Default)]
pub(super) struct Seen {
    /// The call that recorded an event last, by the event's handle.
    recorded: HashMap<u64, u64>,
    /// CUPTI's number of the stream that a call waits for.
    pub(super) streams: HashMap<u64, u32>,
    room: ByteBudget,
}

/// What a function of the driver does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Function {
    Enqueues(Option<Kind>),
    Records,
    Waits(SyncKind),
    MayWait,
}

impl Function {
    /// By its name. `None` for what neither enqueues nor waits.
    fn of(name: &str) -> Option<Self> {
        let begins = |beginnings: &[&str]| beginnings.iter().any(|beginning| name.starts_with(beginning));
        if begins(&["cuStreamSynchronize"]) {
            Some(Self::Waits(SyncKind::Stream))
        } else if begins(&["cuEventSynchronize"]) {
            Some(Self::Waits(SyncKind::Event))
        } else if begins(&["cuCtxSynchronize"]) {
            Some(Self::Waits(SyncKind::Device))
        } else if begins(&["cuEventRecord"]) {
            Some(Self::Records)
        } else if begins(&["cuStreamWaitEvent"]) {
            Some(Self::Enqueues(None))
        } else if begins(&["cuMemcpy"]) {
            Some(Self::Enqueues(Some(Kind::Copy)))
        } else if begins(&["cuLaunch", "cuGraphLaunch", "cuMemset"]) {
            Some(Self::Enqueues(Some(Kind::Kernel)))
        } else if name.contains("Async") || name.contains("Get") {
            None
        } else {
            let may_wait = begins(&[
                "cuMemAlloc",
                "cuMemFree",
                "cuMemHost",
                "cuMemPoolTrim",
                "cuMemUnmap",
                "cuMemRelease",
                "cuModuleLoad",
                "cuModuleUnload",
                "cuLibraryLoad",
                "cuLibraryUnload",
                "cuArray",
                "cuMipmappedArray",
                "cuStreamDestroy",
                "cuCtxSetLimit",
                "cuGraphInstantiate",
                "cuGraphExecDestroy",
                "cuGraphUpload",
                "cuFuncLoad",
            ]);
            may_wait.then_some(Self::MayWait)
        }
    }
}

/// A function that is watched.
struct Watched {
    name: &'static str,
    function: Function,
    /// When it waits by its arguments.
    rule: Option<Rule>,
}

/// The functions that are watched, by CUPTI's numbers.
fn functions() -> &'static HashMap<u32, Watched> {
    static FUNCTIONS_BY_NUMBER: OnceLock<HashMap<u32, Watched>> = OnceLock::new();
    let named = |number| {
        let mut name = ptr::null();
        // Safety: writes one pointer to a text of the library's own.
        let status = unsafe { sys::cuptiGetCallbackName(DOMAIN, number, &mut name) };
        if status != CUptiResult::CUPTI_SUCCESS || name.is_null() {
            return None;
        }
        // Safety: a terminated text, which stays as long as the library.
        let name: &'static CStr = unsafe { CStr::from_ptr(name) };
        let name = name.to_str().ok()?;
        let rule = waits::rule(name);
        let function = Function::of(name).or(rule.map(|_| Function::MayWait))?;
        Some((number, Watched { name: plain(name), function, rule }))
    };
    FUNCTIONS_BY_NUMBER.get_or_init(|| (1..FUNCTIONS).filter_map(named).collect())
}

/// A function's name without the marks of its version and of its default stream.
fn plain(name: &str) -> &str {
    let name = name.strip_suffix("_ptsz").or_else(|| name.strip_suffix("_ptds")).unwrap_or(name);
    match name.rsplit_once("_v") {
        Some((plain, version)) if version.bytes().all(|byte| byte.is_ascii_digit()) => plain,
        _ => name,
    }
}

/// Calls of other libraries are watched, until it is dropped.
pub(super) struct Watching(());

impl Watching {
    /// Begins to have the calls traced; or says why CUPTI cannot.
    pub(super) fn begin(tracer: &Arc<Tracer>) -> Result<Self, String> {
        let watching = Self(());
        *lock(&WATCH) = Some(Arc::new(Watch { tracer: tracer.clone(), seen: Mutex::default() }));
        let mut subscriber = lock(&SUBSCRIBER);
        if subscriber.is_none() {
            let mut handle = ptr::null_mut();
            // Safety: the callback lives as long as the process.
            let status = unsafe { sys::cuptiSubscribe(&mut handle, Some(called), ptr::null_mut()) };
            check("cuptiSubscribe", status)?;
            *subscriber = Some(Subscriber(handle));
        }
        drop(subscriber);
        call_back(true);
        Ok(watching)
    }

    /// What was seen, of which the tracer does not know.
    pub(super) fn seen(&self) -> Seen {
        lock(&WATCH).take().map(|watch| std::mem::take(&mut *lock(&watch.seen))).unwrap_or_default()
    }

    /// No call is told of any more: only while nothing holds the device.
    pub(super) fn stop(&self) {
        call_back(false);
    }
}

/// Has calls told of, or not any more.
fn call_back(on: bool) {
    if let Some(Subscriber(handle)) = &*lock(&SUBSCRIBER) {
        for number in functions().keys() {
            // Safety: takes numbers. A function that this driver does not have is not called.
            unsafe { sys::cuptiEnableCallback(on.into(), *handle, DOMAIN, *number) };
        }
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        *lock(&WATCH) = None;
    }
}

/// CUPTI tells of a call, at its enter and at its exit.
unsafe extern "C" fn called(_: *mut c_void, domain: CUpti_CallbackDomain, number: u32, data: *const c_void) {
    if domain != DOMAIN || data.is_null() || OWN.try_with(Cell::get) != Ok(0) {
        return;
    }
    // Safety: CUPTI's own structure, for the length of the callback.
    let call = unsafe { &*data.cast::<CUpti_CallbackData>() };
    // A panic must not leave a function of C's.
    let _ = std::panic::catch_unwind(|| {
        enter_own();
        match call.callbackSite {
            CUpti_ApiCallbackSite::CUPTI_API_ENTER => enter(number, call),
            _ => exit(number, call),
        }
        leave_own();
    });
}

fn enter(number: u32, call: &CUpti_CallbackData) {
    let Some(watch) = lock(&WATCH).clone() else { return };
    let Some(Watched { name, function, rule }) = functions().get(&number) else { return };
    let argument = |place: usize| match call.functionParams.is_null() {
        true => 0,
        // Safety: the structure of the arguments of a function that is asked for two of them begins with them.
        false => unsafe { call.functionParams.cast::<u64>().add(place).read_unaligned() },
    };
    // Safety: CUPTI hands out the arguments of this function.
    let waits = rule
        .filter(|_| !call.functionParams.is_null())
        .and_then(|rule| unsafe { rule.judge(call.functionParams, memory) });
    let mut seen = lock(&watch.seen);
    let note = match function {
        Function::Enqueues(work) if waits.is_some() => {
            CallInfo { enqueues: *work, ..CallInfo::barrier(name, SyncKind::Implicit) }
        }
        Function::Enqueues(work) => CallInfo::enqueue(name, *work),
        Function::Records => CallInfo::enqueue(name, None),
        Function::MayWait if waits.is_some() => CallInfo::barrier(name, SyncKind::Implicit),
        Function::MayWait => CallInfo { may_wait: true, ..CallInfo::enqueue(name, None) },
        Function::Waits(kind) => {
            let event = (*kind == SyncKind::Event).then(|| argument(0));
            let awaits = event.and_then(|event| seen.recorded.get(&event).copied());
            CallInfo { awaits, ..CallInfo::barrier(name, *kind) }
        }
    };
    let Some((begun, _)) = watch.tracer.begin_call(CallInfo { others: true, ..note }, None) else { return };
    let own = begun.call.correlation;
    if *function == Function::Records && seen.room.take(EVENT_BYTES) {
        seen.recorded.insert(argument(0), own);
    }
    if *function == Function::Waits(SyncKind::Stream)
        && let Some(stream) = number_of(call.context, argument(0) as CUstream, number)
        && seen.room.take(EVENT_BYTES)
    {
        seen.streams.insert(own, stream);
    }
    drop(seen);
    let correlation = call.correlationId;
    Collecting::relate(correlation, own);
    let _ = OPEN.try_with(|open| open.replace(Some(Open { correlation, watch, begun })));
}

fn exit(number: u32, call: &CUpti_CallbackData) {
    let open = OPEN.try_with(|open| open.borrow_mut().take_if(|open| open.correlation == call.correlationId));
    let Ok(Some(Open { watch, mut begun, .. })) = open else { return };
    begun.call.end = Instant::now();
    let is_copy =
        matches!(functions().get(&number), Some(Watched { function: Function::Enqueues(Some(Kind::Copy)), .. }));
    if is_copy || begun.call.note.barrier.is_some() || begun.call.end - begun.call.start >= LONG {
        begun.call.stack = Some(Arc::new(Backtrace::force_capture()));
    }
    watch.tracer.end_call(&begun);
}

/// The kind of memory that a pointer of another library's is of. The driver answers for what it knows; the rest is pageable.
fn memory(pointer: u64) -> Memory {
    use cudarc::driver::sys::CUpointer_attribute as Attribute;
    let ask = |attribute| {
        let mut answer = 0_u32;
        // Safety: both attributes write at most 4 bytes.
        let status = unsafe { driver::cuPointerGetAttribute((&raw mut answer).cast(), attribute, pointer) };
        (status == CUresult::CUDA_SUCCESS).then_some(answer)
    };
    waits::memory(ask(Attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE), ask(Attribute::CU_POINTER_ATTRIBUTE_IS_MANAGED))
}

/// CUPTI's number of a stream.
fn number_of(context: CUcontext, stream: CUstream, function: u32) -> Option<u32> {
    let of_thread = function == CUpti_driver_api_trace_cbid::CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize_ptsz as u32;
    let mut number = 0;
    // Safety: the context and the stream of a call that is being made; writes one number.
    let status = unsafe { sys::cuptiGetStreamIdEx(context, stream, of_thread.into(), &mut number) };
    (status == CUptiResult::CUPTI_SUCCESS).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_known_by_their_names() {
        for (name, function) in [
            ("cuStreamSynchronize_ptsz", Some(Function::Waits(SyncKind::Stream))),
            ("cuCtxSynchronize_v2", Some(Function::Waits(SyncKind::Device))),
            ("cuEventRecordWithFlags", Some(Function::Records)),
            ("cuMemcpyDtoHAsync_v2", Some(Function::Enqueues(Some(Kind::Copy)))),
            ("cuLaunchKernelEx", Some(Function::Enqueues(Some(Kind::Kernel)))),
            ("cuMemFree_v2", Some(Function::MayWait)),
            ("cuMemFreeAsync", None),
            ("cuMemHostGetFlags", None),
            ("cuStreamQuery", None),
            ("cuCtxGetCurrent", None),
        ] {
            assert_eq!(Function::of(name), function, "{name}");
        }
    }

    #[test]
    fn a_name_is_without_its_version() {
        assert_eq!(plain("cuMemcpyDtoHAsync_v2_ptsz"), "cuMemcpyDtoHAsync");
        assert_eq!(plain("cuMemFree_v2"), "cuMemFree");
        assert_eq!(plain("cuLaunchKernel"), "cuLaunchKernel");
    }
}
