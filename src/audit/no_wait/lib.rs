//! The library of no-wait tests: it notes the calls of a thread that can keep it until the device has done its work, between
//! [`syncscope_no_wait_begin`] and [`syncscope_no_wait_end`]. `syncscope_no_wait.h` is for C; the Python package in `python`
//! comes with it.
//!
//! # Method
//! While a region is open in some thread, CUPTI calls back for the driver's calls that can wait, of whichever library makes
//! them: PyTorch, cuBLAS, NCCL or one's own. [`waits`] says of each call whether it can wait, by its arguments. What can is noted with
//! its native stack, and in Python with the frames of the thread.
//!
//! # What was decided
//! * **A library beside the audit's**, and not a part of it: it needs no record file, no activity and no thread of its own. Both
//!   have the ways to CUPTI, to the system and to native stacks from the same files.
//! * **No region, no cost.** The first region to open subscribes to CUPTI, and the last to close gives it back, so that a
//!   profiler can have it between two tests.
//! * **A wait is what can wait**, not what did: a test that depends on how fast a device is fails one day in ten. A call that failed
//!   is none.
//! * **What makes ready is no wait** ([`waits`] says which calls). Whether a test comes first must not decide it. For the
//!   same reason, a warm-up before the region is the usual advice: what a library does at its first call may wait.
//! * **A region is its thread's.** What other threads wait for is theirs. A region within another one is judged by itself: the outer
//!   one does not have its waits.
//! * **Frames of Python are written by `faulthandler`**, whose handler the library has run by a signal to its own thread. It
//!   needs no lock of the interpreter and runs no Python. A thread that waits has often let go of the lock, and whoever
//!   took it anew there could wait for a lock of this very thread.
//!
//! # Limits
//! CUPTI has callbacks for one tool in a process. A child of a fork has no regions, as it cannot use CUDA either. A loop that asks
//! again and again if something is done waits without a call that waits.

#![allow(unsafe_code)]
// As a test it has no user beside itself.
#![cfg_attr(test, allow(unreachable_pub))]

mod cupti;
mod driver;
#[path = "../injected/library.rs"]
#[allow(dead_code, reason = "the audit uses the rest")]
mod library;
mod python;
#[path = "../injected/system.rs"]
#[allow(dead_code, reason = "the audit uses the rest")]
mod system;
#[path = "../injected/unwind.rs"]
mod unwind;
#[path = "../../syncscope/device/cuda/profiling/cupti/waits.rs"]
mod waits;

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::{Mutex, PoisonError};

use cupti::Subscription;
use library::Call;

/// The most different waits of a region. Waits are different where their calls or their stacks are.
const MAX_DIFFERENT: usize = 1000;

/// The regions that are open in all threads, and what they have CUPTI for.
static OPEN: Mutex<Open> = Mutex::new(Open { regions: 0, subscription: None });

struct Open {
    regions: usize,
    subscription: Option<Subscription>,
}

thread_local! {
    /// The open regions of this thread, the innermost last.
    static REGIONS: RefCell<Vec<Region>> = const { RefCell::new(Vec::new()) };
    /// What was noted in the one that ended last.
    static ENDED: RefCell<Vec<CString>> = const { RefCell::new(Vec::new()) };
    /// Why the last one could not begin.
    static REFUSED: RefCell<CString> = RefCell::default();
}

/// An open region, until it is dropped.
struct Region {
    process: u32,
    /// Each wait's text, with its place among the waits and how often it was there.
    known: HashMap<String, (usize, u64)>,
    /// How many calls found no room among these.
    others: u64,
    /// A line for each address of a stack. To look one up in a library of a hundred thousand names takes most of a millisecond.
    frames: HashMap<usize, String>,
}

/// Why no region can begin.
enum Refusal {
    /// There is no device to wait for.
    NoCuda(String),
    Failed(String),
}

impl Region {
    fn open() -> Result<Self, Refusal> {
        let process = std::process::id();
        driver::begin(process)?;
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        if open.regions == 0 {
            open.subscription = Some(Subscription::begin(called)?);
        }
        open.regions += 1;
        Ok(Self { process, known: HashMap::new(), others: 0, frames: HashMap::new() })
    }

    /// Notes a call: a line on it, one for each native frame, and what Python says of its own.
    fn note(&mut self, function: &str, wait: waits::Wait) {
        let bytes = wait.bytes.map(|bytes| format!(", {bytes} B")).unwrap_or_default();
        let mut text = format!("{function}{bytes}: {}\n", wait.why);
        for address in unwind::addresses() {
            text += self.frames.entry(address).or_insert_with(|| line(address));
        }
        text += &python::frames();
        let next = self.known.len();
        match self.known.get_mut(&text) {
            Some((_, count)) => *count += 1,
            None if next < MAX_DIFFERENT => _ = self.known.insert(text, (next, 1)),
            None => self.others += 1,
        }
    }

    /// The texts of the waits, in their order.
    fn texts(&mut self) -> Vec<CString> {
        let mut known: Vec<(String, (usize, u64))> = self.known.drain().collect();
        known.sort_unstable_by_key(|(_, (place, _))| *place);
        let mut texts: Vec<String> = known.iter().map(|(text, (_, count))| format!("{count} × {text}")).collect();
        if self.others > 0 {
            texts.push(format!("{} × others: there are more than {MAX_DIFFERENT} different calls", self.others));
        }
        texts.into_iter().map(|text| CString::new(text.replace('\0', "")).unwrap_or_default()).collect()
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // In a child of a fork, the regions and the lock are the parent's.
        if self.process != std::process::id() {
            return;
        }
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        open.regions -= 1;
        if open.regions == 0 {
            open.subscription = None;
        }
    }
}

/// Opens a region in this thread. 0; or 1 where there is no device to wait for, and 2 where the calls cannot be seen: `why` is
/// then a text, until this thread is refused again.
///
/// # Safety
/// `why` is null or a place for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn syncscope_no_wait_begin(why: *mut *const c_char) -> c_int {
    let (status, text) = match Region::open() {
        Ok(region) => {
            REGIONS.with_borrow_mut(|regions| regions.push(region));
            return 0;
        }
        Err(Refusal::NoCuda(text)) => (1, text),
        Err(Refusal::Failed(text)) => (2, text),
    };
    let text = REFUSED.with_borrow_mut(|refused| {
        *refused = CString::new(text).unwrap_or_default();
        refused.as_ptr()
    });
    if !why.is_null() {
        // Safety: the caller's promise.
        unsafe { *why = text };
    }
    status
}

/// Closes this thread's innermost region; how many different calls in it could wait. [`usize::MAX`] where this thread has none: it
/// was opened in another one, or was closed before.
#[unsafe(no_mangle)]
pub extern "C" fn syncscope_no_wait_end() -> usize {
    let Some(mut region) = REGIONS.with_borrow_mut(Vec::pop) else { return usize::MAX };
    let texts = region.texts();
    let count = texts.len();
    ENDED.set(texts);
    count
}

/// How often and what one of these calls was, in the order in which they returned first; null beyond the last. The text lasts
/// until this thread closes another region.
#[unsafe(no_mangle)]
pub extern "C" fn syncscope_no_wait_text(number: usize) -> *const c_char {
    ENDED.with_borrow(|ended| ended.get(number).map_or(std::ptr::null(), |text| text.as_ptr()))
}

/// At the enter and at the exit of each watched call.
unsafe extern "C" fn called(_: *mut c_void, _: u32, _: u32, call: *const Call) {
    const EXIT: c_int = 1;
    // Safety: null, or CUPTI's own structure for the length of the callback.
    let Some(call) = (unsafe { call.as_ref() }) else { return };
    // Safety: CUPTI's place for the status of a call that has returned.
    if call.site != EXIT || unsafe { call.status.as_ref() }.is_some_and(|status| *status != 0) {
        return;
    }
    let _ = REGIONS.try_with(|regions| {
        // A thread that is at work here is in no call of the program.
        let Ok(mut regions) = regions.try_borrow_mut() else { return };
        let Some(region) = regions.last_mut() else { return };
        // Safety: a name of CUPTI's.
        let function = unsafe { CStr::from_ptr(call.function) }.to_str().unwrap_or_default();
        let Some(rule) = waits::rule(function) else { return };
        // Safety: CUPTI hands out the arguments of this function.
        if let Some(wait) = unsafe { rule.judge(call.arguments, driver::memory) } {
            region.note(function, wait);
        }
    });
}

/// A frame in words: its module and its function, or its offset there.
fn line(address: usize) -> String {
    let Some(place) = unwind::place(address) else { return String::new() };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let module = text(place.module.rsplit(|byte| *byte == b'/').next().unwrap_or_default());
    let function = if place.function.is_empty() { format!("+{:#x}", place.offset) } else { text(place.function) };
    format!("  {module} {function}\n")
}
