//! CUPTI, found in the process: its functions, its callbacks and its activity records, by the fields that versions 12 and 13
//! have at the same places (`cupti_callbacks.h`, `cupti_activity.h`: later structures only append).

use std::alloc::{Layout, alloc, dealloc};
use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::file::Fields;
use crate::format::{NONE, tag, work};
use crate::library::library;
pub(crate) use crate::library::{Call, Callback, TAKEN};
use crate::library::{DRIVER_CALLS, Status};
use crate::system;

/// What CUPTI answers in a process that has loaded the driver and does not use it, such as one that only starts others.
pub(crate) const NOT_IN_USE: Status = 15;

const BUFFER: Layout = match Layout::from_size_align(1 << 20, 8) {
    Ok(layout) => layout,
    Err(_) => Layout::new::<u64>(),
};
const MAX_BUFFERS: usize = 64;
const MAX_NAMES: usize = 1 << 16;
/// How long the end of a recording waits for what still runs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);
/// `cuDriverGetVersion`, which needs no context.
const LEFT_IN: u32 = 2;
/// Copies, fills, kernels (one after the other or not), copies between devices, and markers.
const KINDS: [u32; 5] = [COPY, FILL, KERNEL, PEER, MARKER];
const COPY: u32 = 1;
const FILL: u32 = 2;
const KERNEL: u32 = 10;
const MARKER: u32 = 12;
const PEER: u32 = 22;
/// How often whole records are handed over, in milliseconds: a process that is killed loses no more.
const PERIOD: u32 = 100;

type Request = unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
type Complete = unsafe extern "C" fn(*mut c_void, u32, *mut u8, usize, usize);

macro_rules! functions {
    ($($field:ident: $name:literal, fn($($argument:ty),*);)+) => {
        /// CUPTI's functions.
        pub(crate) struct Cupti {
            $($field: unsafe extern "C" fn($($argument),*) -> Status,)+
        }

        impl Cupti {
            fn of(library: *mut c_void) -> Result<Self, String> {
                Ok(Self { $($field: {
                    let name = CString::new($name).unwrap_or_default();
                    let found = system::symbol(library, &name).ok_or_else(|| format!("it has no {}", $name))?;
                    // Safety: the function has this signature in CUPTI's headers.
                    unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($argument),*) -> Status>(found) }
                },)+ })
            }
        }
    };
}

functions! {
    subscribe: "cuptiSubscribe", fn(*mut *mut c_void, Callback, *mut c_void);
    watch: "cuptiEnableCallback", fn(u32, *mut c_void, u32, u32);
    time: "cuptiGetTimestamp", fn(*mut u64);
    stream: "cuptiGetStreamIdEx", fn(*mut c_void, *mut c_void, u8, *mut u32);
    register: "cuptiActivityRegisterCallbacks", fn(Request, Complete);
    enable: "cuptiActivityEnable", fn(u32);
    disable: "cuptiActivityDisable", fn(u32);
    unsubscribe: "cuptiUnsubscribe", fn(*mut c_void);
    next: "cuptiActivityGetNextRecord", fn(*mut u8, usize, *mut *mut u8);
    flush: "cuptiActivityFlushAll", fn(u32);
    period: "cuptiActivityFlushPeriod", fn(u32);
    dropped: "cuptiActivityGetNumDroppedRecords", fn(*mut c_void, u32, *mut usize);
    version: "cuptiGetVersion", fn(*mut u32);
    finalize: "cuptiFinalize", fn();
}

// Safety: pointers to functions.
unsafe impl Sync for Cupti {}
// Safety: as above.
unsafe impl Send for Cupti {}

/// How often streams may have ended.
static ENDED: AtomicU32 = AtomicU32::new(0);

/// How many callbacks run.
static INSIDE: AtomicUsize = AtomicUsize::new(0);
/// The thread that has CUPTI leave the process in the exit of its call; 0 where none does.
static LEAVER: AtomicU32 = AtomicU32::new(0);

/// What CUPTI knows this library by.
static SUBSCRIBER: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

static CUPTI: OnceLock<Cupti> = OnceLock::new();

/// CUPTI, once it is loaded.
pub(crate) fn get() -> Option<&'static Cupti> {
    CUPTI.get()
}

/// Loads CUPTI: the one that the process has already, else one by its name, else one from where it usually lies.
pub(crate) fn load() -> Result<&'static Cupti, String> {
    if let Some(cupti) = get() {
        return Ok(cupti);
    }
    let library = library().ok_or_else(|| "no libcupti.so was found".to_owned())?;
    let cupti = Cupti::of(library)?;
    Ok(CUPTI.get_or_init(|| cupti))
}

/// Has CUPTI take the ranges of NVTX, as a program's first use of NVTX asks for.
///
/// # Safety
/// `table` is NVTX's function that hands out its tables.
pub(crate) unsafe fn take_ranges(table: *mut c_void) -> c_int {
    let found = library().and_then(|library| system::symbol(library, c"InitializeInjectionNvtx2"));
    let Some(begin) = found else { return 0 };
    // Safety: CUPTI's function of this name has the signature that NVTX calls it by; the table is the caller's promise.
    unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut c_void) -> c_int>(begin)(table) }
}

/// Calls the function in which CUPTI leaves.
fn call_driver() {
    // Safety: only finds out that it is loaded.
    let driver = unsafe { system::dlopen(c"libcuda.so.1".as_ptr(), system::NOW | system::ALREADY_LOADED) };
    let function = (!driver.is_null()).then(|| system::symbol(driver, c"cuDriverGetVersion")).flatten();
    if let Some(function) = function {
        let mut version = 0;
        // Safety: the function has this signature in the driver's header, and writes one number.
        unsafe {
            std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut c_int) -> c_int>(function)(&mut version)
        };
    }
}

/// Waits until something holds, at most [`PATIENCE`]; whether it does.
fn wait_until(mut holds: impl FnMut() -> bool) -> bool {
    const LOOK: Duration = Duration::from_millis(5);
    let until = Instant::now() + PATIENCE;
    loop {
        if holds() {
            return true;
        }
        if Instant::now() >= until {
            return false;
        }
        sleep(LOOK);
    }
}

fn check(call: &str, status: Status) -> Result<(), (String, Status)> {
    if status == 0 { Ok(()) } else { Err((format!("{call} answered {status}"), status)) }
}

impl Cupti {
    /// Now, in nanoseconds of the clock of the activity records.
    pub(crate) fn now(&self) -> u64 {
        let mut now = 0;
        // Safety: writes one number.
        unsafe { (self.time)(&mut now) };
        now
    }

    /// The number of a stream in the activity records. That of the stream before is not asked for again.
    pub(crate) fn stream(&self, context: *mut c_void, stream: *mut c_void, of_thread: bool) -> u32 {
        type Known = (u32, [*mut c_void; 2], bool, u32);
        thread_local!(static KNOWN: Cell<Option<Known>> = const { Cell::new(None) });
        let asked = (ENDED.load(Ordering::Acquire), [context, stream], of_thread);
        if let Ok(Some((ended, places, own, number))) = KNOWN.try_with(Cell::get)
            && (ended, places, own) == asked
        {
            return number;
        }
        let mut number = NONE;
        // Safety: the context and the stream are those of a call that has just been made. A failure leaves the number.
        let status = unsafe { (self.stream)(context, stream, u8::from(of_thread), &mut number) };
        if status != 0 {
            return NONE;
        }
        let _ = KNOWN.try_with(|known| known.set(Some((asked.0, asked.1, asked.2, number))));
        number
    }

    /// Streams may end now: another may come to lie at the place of one.
    pub(crate) fn streams_end(&self) {
        ENDED.fetch_add(1, Ordering::AcqRel);
    }

    /// Has `callback` called at the enter and the exit of these functions, and activity recorded.
    pub(crate) fn begin(
        &self,
        callback: Callback,
        functions: impl Iterator<Item = u32>,
        with_activity: bool,
    ) -> Result<(), (String, Status)> {
        let mut subscriber = std::ptr::null_mut();
        // Where it has left before, asking for its time has it come back: it refuses a subscriber else.
        self.now();
        // Safety: the callbacks live as long as the process; the rest are numbers.
        unsafe {
            check("cuptiSubscribe", (self.subscribe)(&mut subscriber, callback, std::ptr::null_mut()))?;
            SUBSCRIBER.store(subscriber, Ordering::Release);
            // One that has left and come back may number streams anew.
            self.streams_end();
            functions.for_each(|function| self.call_back(true, function));
            if !with_activity {
                return Ok(());
            }
            check("cuptiActivityRegisterCallbacks", (self.register)(request, complete))?;
            BEGUN.store(self.now(), Ordering::Relaxed);
            for kind in KINDS {
                check("cuptiActivityEnable", (self.enable)(kind))?;
            }
            (self.period)(PERIOD);
        }
        Ok(())
    }

    /// Has nothing called any more.
    pub(crate) fn silence(&self, functions: impl Iterator<Item = u32>) {
        functions.for_each(|function| self.call_back(false, function));
    }

    /// Whether a callback still runs.
    pub(crate) fn is_inside() -> bool {
        INSIDE.load(Ordering::Acquire) > 0
    }

    /// Has nothing recorded any more. What was launched before is waited for, at most [`PATIENCE`]: CUPTI has no times of work
    /// whose records it is to give before that is over, and may still write to them.
    pub(crate) fn end(&self) {
        const WHOLE: u32 = 0;
        // Safety: gives buffers to the callback; the rest are numbers.
        unsafe {
            KINDS.iter().for_each(|kind| _ = (self.disable)(*kind));
            wait_until(|| {
                (self.flush)(WHOLE);
                OUT.load(Ordering::Acquire) == 0
            });
            (self.period)(0);
        }
    }

    /// Has CUPTI leave the process, until it [`begin`](Self::begin)s again. It stays where work or a callback does not end, and
    /// with a version that is not known to come back; then no callback is its any more.
    ///
    /// While it is there, each launch pays for it; and version 13.0 loses all records of work where their recording begins once
    /// more without that.
    pub(crate) fn leave(&self) {
        /// Of CUDA 12.8.
        const COMES_BACK: u32 = 26;
        let is_over = wait_until(|| !Self::is_inside()) && OUT.load(Ordering::Acquire) == 0;
        let mut version = 0;
        // Safety: writes one number.
        unsafe { (self.version)(&mut version) };
        let has_left = is_over && version >= COMES_BACK && {
            self.call_back(true, LEFT_IN);
            LEAVER.store(system::thread(), Ordering::Release);
            call_driver();
            LEAVER.swap(0, Ordering::AcqRel) == 0
        };
        if !has_left {
            self.release();
        }
    }

    /// No callback is this library's any more.
    fn release(&self) {
        // Safety: what CUPTI knows this library by, or null, which it refuses.
        unsafe { (self.unsubscribe)(SUBSCRIBER.swap(std::ptr::null_mut(), Ordering::AcqRel)) };
    }

    /// Does what a callback is for, unless it is that in which CUPTI leaves: it may do so in the exit of a call alone.
    pub(crate) fn inside(&self, function: u32, call: &Call, then: impl FnOnce()) {
        INSIDE.fetch_add(1, Ordering::AcqRel);
        let leaver = LEAVER.load(Ordering::Acquire);
        if leaver == 0 || function != LEFT_IN {
            then();
        } else if call.site == 1 && leaver == system::thread() {
            self.release();
            // Safety: nothing is recorded, and no other thread of this library calls CUPTI.
            if unsafe { (self.finalize)() } == 0 {
                LEAVER.store(0, Ordering::Release);
            }
        }
        INSIDE.fetch_sub(1, Ordering::AcqRel);
    }

    /// Has the callback called for this function, or not any more. CUPTI asks for one caller at a time.
    pub(crate) fn call_back(&self, on: bool, function: u32) {
        let subscriber = SUBSCRIBER.load(Ordering::Acquire);
        // Safety: a subscriber that is there. A function that this version of CUPTI does not have is not called either.
        unsafe { (self.watch)(u32::from(on), subscriber, DRIVER_CALLS, function) };
    }

    /// The process ends: has all records handed over, also of work that is not over.
    pub(crate) fn last(&self) {
        const FORCED: u32 = 1;
        ENDS.store(true, Ordering::Release);
        // Safety: gives buffers to the callback.
        unsafe { (self.flush)(FORCED) };
    }

    /// How many records CUPTI dropped.
    pub(crate) fn dropped(&self) -> u64 {
        let mut dropped = 0;
        // Safety: writes one number.
        unsafe { (self.dropped)(std::ptr::null_mut(), 0, &mut dropped) };
        dropped as u64
    }
}

/// How many buffers CUPTI has.
static OUT: AtomicUsize = AtomicUsize::new(0);
/// Whether CUPTI may still write to a buffer that it gives back.
static ENDS: AtomicBool = AtomicBool::new(false);
/// When the recording began. What CUPTI tells later of work before is of another one.
static BEGUN: AtomicU64 = AtomicU64::new(0);

unsafe extern "C" fn request(buffer: *mut *mut u8, size: *mut usize, most_records: *mut usize) {
    // Safety: CUPTI hands out three places. A null buffer is allowed: it then drops records and counts them.
    unsafe {
        let room = OUT.fetch_add(1, Ordering::AcqRel) < MAX_BUFFERS;
        let start = if room { alloc(BUFFER) } else { std::ptr::null_mut() };
        if start.is_null() {
            OUT.fetch_sub(1, Ordering::AcqRel);
        }
        *buffer = start;
        *size = if start.is_null() { 0 } else { BUFFER.size() };
        *most_records = 0;
    }
}

unsafe extern "C" fn complete(_: *mut c_void, _: u32, buffer: *mut u8, _: usize, valid: usize) {
    if buffer.is_null() {
        return;
    }
    if let Some(cupti) = get() {
        let mut record = std::ptr::null_mut();
        // Safety: the buffer holds so many bytes of records; `record` is null or the one before, and whole.
        unsafe {
            while valid > 0 && (cupti.next)(buffer, valid, &mut record) == 0 {
                take(record);
            }
        }
    }
    if !ENDS.load(Ordering::Acquire) {
        // Safety: from `request`, with this layout; CUPTI gave it back, with whole records alone.
        unsafe { dealloc(buffer, BUFFER) };
    }
    OUT.fetch_sub(1, Ordering::AcqRel);
}

/// Writes what matters of a record.
///
/// # Safety
/// It is an activity record of CUPTI.
unsafe fn take(record: *const u8) {
    // Safety: the caller's promise; the places are those of the structure that the kind names.
    let (u32_at, u64_at, byte, text) = unsafe {
        (
            |at: usize| record.add(at).cast::<u32>().read_unaligned(),
            |at: usize| record.add(at).cast::<u64>().read_unaligned(),
            |at: usize| record.add(at).read(),
            |at: usize| {
                let text = record.add(at).cast::<*const c_char>().read_unaligned();
                if text.is_null() { &[][..] } else { CStr::from_ptr(text).to_bytes() }
            },
        )
    };
    let begun = |start: u64, end: u64, correlation: u32| Fields::new().u64(start).u64(end).u32(correlation);
    let work = |correlation: usize, kinds: [u8; 4], bytes: u64| {
        let fields = begun(u64_at(16), u64_at(24), u32_at(correlation)).u32(u32_at(40)).u32(u32_at(36)).u32(u32_at(32));
        fields.u32(NONE).u8s(kinds).u64(bytes).write(tag::WORK, &[]);
    };
    let kind = u32_at(0);
    // Of what ran when recording began CUPTI does not know the start: it is 0.
    if u64_at(if kind == MARKER { 8 } else { 16 }) < BEGUN.load(Ordering::Relaxed) {
        return;
    }
    match kind {
        KERNEL => {
            let fields = begun(u64_at(16), u64_at(24), u32_at(92)).u32(u32_at(48)).u32(u32_at(44)).u32(u32_at(40));
            fields.u32(name(text(104))).u8s([work::KERNEL, 0, 0, 0]).u64(0).write(tag::WORK, &[]);
        }
        COPY => work(44, [work::COPY, byte(4), byte(5), byte(6)], u64_at(8)),
        PEER => work(60, [work::COPY, byte(4), byte(5), byte(6)], u64_at(8)),
        FILL => work(44, [work::FILL, 0, 0, 0], u64_at(8)),
        MARKER => Fields::new().u64(u64_at(8)).u32(u32_at(16)).u32(u32_at(4)).write(tag::MARKER, text(40)),
        _ => {}
    }
}

static NAMES: Mutex<Option<HashMap<Box<[u8]>, u32>>> = Mutex::new(None);

/// Another file begins, which holds no name.
pub(crate) fn forget_names() {
    NAMES.lock().unwrap_or_else(PoisonError::into_inner).take();
}

/// The number of a kernel's name, which is written the first time.
fn name(text: &[u8]) -> u32 {
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    let names = names.get_or_insert_with(HashMap::new);
    if let Some(number) = names.get(text) {
        return *number;
    }
    if names.len() == MAX_NAMES {
        return NONE;
    }
    let number = names.len() as u32;
    names.insert(text.into(), number);
    Fields::new().u32(number).write(tag::NAME, text);
    number
}
