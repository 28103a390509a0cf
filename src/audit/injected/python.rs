//! The Python stack of the calling thread, with any CPython from 3.9 on: its functions are looked up by their names.
//!
//! # Method
//! A thread that holds the interpreter's lock reads its own frames. A thread that has let go of it, as PyTorch does before
//! it waits, must not take it here: whoever holds it may wait for a lock of this very thread. So another thread, the
//! reader, takes the lock and reads the frames of the calling thread, which cannot change meanwhile, as running Python needs
//! the lock. The calling thread waits for that up to 15 ms ([`be_patient`]), and goes on without a stack where it is not enough.
//!
//! A thread of a library in C++ that runs no Python, such as one of PyTorch's backward pass, works for a line of another
//! thread: the main thread's frames are taken in place of its own, and are marked as such.
//!
//! # Limits
//! Interpreters beside the main one, and builds without the lock, have no stack where the thread has let go of it.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use crate::format::NONE;
use crate::stacks::{self, DEPTH};
use crate::system;

/// How long a call waits for its stack, in milliseconds. A thread that runs Python lets go of the lock within 5 ms when it is
/// asked.
static PATIENCE: AtomicU64 = AtomicU64::new(15);
/// After so many stacks in a row that were not taken in time, this many are not asked for.
const FAILURES: u32 = 3;
const PAUSE: u32 = 64;

type Object = *mut c_void;

macro_rules! functions {
    ($($field:ident: $($name:literal)|+, fn($($argument:ty),*) -> $result:ty;)+) => {
        struct Python {
            $($field: unsafe extern "C" fn($($argument),*) -> $result,)+
            /// Whether there is one lock, which says that frames do not change.
            has_lock: bool,
        }

        impl Python {
            fn find() -> Option<Self> {
                let all = std::ptr::null_mut();
                Some(Self {
                    $($field: {
                        let names: &[&CStr] = &[$($name),+];
                        let found = names.iter().find_map(|name| system::symbol(all, name))?;
                        // Safety: the function has this signature in all versions that have its name.
                        unsafe {
                            std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($argument),*) -> $result>(found)
                        }
                    },)+
                    has_lock: system::symbol(all, c"PyUnstable_Module_SetGIL").is_none(),
                })
            }
        }
    };
}

functions! {
    is_initialized: c"Py_IsInitialized", fn() -> c_int;
    is_finalizing: c"Py_IsFinalizing" | c"_Py_IsFinalizing", fn() -> c_int;
    own_state: c"PyGILState_GetThisThreadState", fn() -> Object;
    current_state: c"PyThreadState_GetUnchecked" | c"_PyThreadState_UncheckedGet", fn() -> Object;
    interpreter: c"PyThreadState_GetInterpreter", fn(Object) -> Object;
    main: c"PyInterpreterState_Main", fn() -> Object;
    first: c"PyInterpreterState_ThreadHead", fn(Object) -> Object;
    next: c"PyThreadState_Next", fn(Object) -> Object;
    ensure: c"PyGILState_Ensure", fn() -> c_int;
    save: c"PyEval_SaveThread", fn() -> Object;
    restore: c"PyEval_RestoreThread", fn(Object) -> ();
    frame: c"PyThreadState_GetFrame", fn(Object) -> Object;
    back: c"PyFrame_GetBack", fn(Object) -> Object;
    code: c"PyFrame_GetCode", fn(Object) -> Object;
    line: c"PyFrame_GetLineNumber", fn(Object) -> c_int;
    attribute: c"PyObject_GetAttrString", fn(Object, *const c_char) -> Object;
    text: c"PyUnicode_AsUTF8AndSize", fn(Object, *mut isize) -> *const c_char;
    // Of no object, it does nothing.
    release: c"Py_DecRef", fn(Object) -> ();
    hold: c"Py_IncRef", fn(Object) -> ();
    fetch: c"PyErr_Fetch", fn(*mut Object, *mut Object, *mut Object) -> ();
    bring: c"PyErr_Restore", fn(Object, Object, Object) -> ();
}

/// What became of a stack.
pub(crate) enum Taken {
    /// It has this number.
    Stack(u32),
    /// The thread runs no Python.
    NoPython,
    /// It could not be taken in time.
    Missed,
}

static PYTHON: OnceLock<Python> = OnceLock::new();
/// The state of the main thread, once it was seen.
static MAIN: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static MISSED: AtomicU64 = AtomicU64::new(0);
static IN_A_ROW: AtomicU32 = AtomicU32::new(0);

/// Has calls wait for their stacks up to so many milliseconds.
pub(crate) fn be_patient(milliseconds: u64) {
    PATIENCE.store(milliseconds, Ordering::Relaxed);
}

/// How many stacks were not taken in time.
pub(crate) fn missed() -> u64 {
    MISSED.load(Ordering::Relaxed)
}

/// The interpreter, if it runs. It may be loaded later.
fn running() -> Option<&'static Python> {
    let python = match PYTHON.get() {
        Some(python) => python,
        None => {
            let python = Python::find()?;
            PYTHON.get_or_init(|| python)
        }
    };
    python.runs().then_some(python)
}

/// Remembers the state of this thread if it is the main one.
pub(crate) fn begin() {
    if let Some(python) = running() {
        python.own();
    }
}

/// The stack of this thread.
pub(crate) fn stack() -> Taken {
    let Some(python) = running() else { return Taken::NoPython };
    // Safety: this asks for a pointer that the interpreter keeps.
    let (own, current) = (python.own(), unsafe { (python.current_state)() });
    let taken = match own {
        _ if own.is_null() => return Taken::NoPython,
        // Safety: this thread holds the lock, and the state is its own.
        _ if own == current => unsafe { python.frames(own) },
        _ if !python.has_lock => None,
        _ => ask(own),
    };
    match taken {
        Some(NONE) => Taken::NoPython,
        Some(stack) => Taken::Stack(stack),
        None => {
            MISSED.fetch_add(1, Ordering::Relaxed);
            Taken::Missed
        }
    }
}

impl Python {
    fn runs(&self) -> bool {
        // Safety: both may be called at any time.
        unsafe { (self.is_initialized)() != 0 && (self.is_finalizing)() == 0 }
    }

    /// The state of this thread, null where it has none.
    fn own(&self) -> Object {
        // Safety: this asks for a pointer that the interpreter keeps for each thread.
        let own = unsafe { (self.own_state)() };
        if system::thread() == std::process::id() {
            MAIN.store(own, Ordering::Release);
        }
        own
    }

    /// The state of the main thread, where that is another one, and is still there.
    ///
    /// # Safety
    /// The caller holds the lock.
    unsafe fn main_beside(&self, state: Object) -> Option<Object> {
        let main = MAIN.load(Ordering::Acquire);
        if !self.has_lock || main.is_null() || main == state {
            return None;
        }
        // Safety: states are put first and taken out with the lock held.
        unsafe {
            let mut known = (self.first)((self.main)());
            while !known.is_null() && known != main {
                known = (self.next)(known);
            }
            (!known.is_null()).then_some(main)
        }
    }

    /// The stack of a thread: that of the main thread where it has no frame, [`NONE`] where that has none either.
    ///
    /// # Safety
    /// The caller holds the lock, and `state` is a thread of the caller's interpreter.
    unsafe fn frames(&self, state: Object) -> Option<u32> {
        let mut found = [0; DEPTH];
        // Safety: the caller's promise, and the main thread is there.
        let count = unsafe {
            match self.walk(state, &mut found) {
                0 => self.main_beside(state).zip(stacks::other_thread()).map_or(0, |(main, mark)| {
                    found[0] = mark;
                    let more = self.walk(main, &mut found[1..]);
                    if more == 0 { 0 } else { more + 1 }
                }),
                count => count,
            }
        };
        Some(if count == 0 { NONE } else { stacks::stack(&found[..count]) })
    }

    /// Puts the frames of a thread into `found`, the innermost first, and says how many.
    ///
    /// # Safety
    /// As for [`frames`](Self::frames).
    unsafe fn walk(&self, state: Object, found: &mut [u32]) -> usize {
        let (mut kind, mut value, mut trace) = (std::ptr::null_mut(), std::ptr::null_mut(), std::ptr::null_mut());
        let mut count = 0;
        // Safety: the lock is held; each frame and each code object is held while it is used. An error that the program has
        // not dealt with yet is put back.
        unsafe {
            (self.fetch)(&mut kind, &mut value, &mut trace);
            let mut frame = (self.frame)(state);
            while !frame.is_null() && count < found.len() {
                let line = (self.line)(frame).max(0) as u32;
                let code = (self.code)(frame);
                if let Some(number) = stacks::seen(code as usize, line).or_else(|| self.name(code, line)) {
                    found[count] = number;
                    count += 1;
                }
                (self.release)(code);
                let next = (self.back)(frame);
                (self.release)(frame);
                frame = next;
            }
            (self.release)(frame);
            (self.bring)(kind, value, trace);
        }
        count
    }

    /// Names a frame. Its code is held from now on: another must not come to lie at its address.
    ///
    /// # Safety
    /// The lock is held, and `code` is a code object.
    unsafe fn name(&self, code: Object, line: u32) -> Option<u32> {
        // Safety: the caller's promise; texts live as long as their objects, which are held.
        unsafe {
            let function = (self.attribute)(code, c"co_qualname".as_ptr());
            let function = if function.is_null() { (self.attribute)(code, c"co_name".as_ptr()) } else { function };
            let file = (self.attribute)(code, c"co_filename".as_ptr());
            let bytes = |object: Object| {
                let mut length = 0;
                let text = if object.is_null() { std::ptr::null() } else { (self.text)(object, &mut length) };
                if text.is_null() { &[][..] } else { std::slice::from_raw_parts(text.cast::<u8>(), length as usize) }
            };
            let number = stacks::frame(code as usize, line, 0, bytes(file), bytes(function));
            (self.hold)(code);
            // An attribute that an older version does not have leaves an error.
            let (mut kind, mut value, mut trace) = (std::ptr::null_mut(), std::ptr::null_mut(), std::ptr::null_mut());
            (self.fetch)(&mut kind, &mut value, &mut trace);
            [function, file, kind, value, trace].into_iter().for_each(|object| (self.release)(object));
            number
        }
    }
}

/// What the reader is asked for.
#[derive(Clone, Copy, PartialEq)]
enum State {
    Idle,
    /// The frames of the thread with this state.
    Asked(usize, u64),
    /// The reader waits for the lock, or reads.
    Reading(u64),
    Answered(u64, Option<u32>),
}

static STATE: Mutex<State> = Mutex::new(State::Idle);
static CHANGED: Condvar = Condvar::new();

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Has the reader take the stack of this thread.
fn ask(own: Object) -> Option<u32> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    static STARTED: OnceLock<bool> = OnceLock::new();
    static SKIPPED: AtomicU32 = AtomicU32::new(0);
    if IN_A_ROW.load(Ordering::Relaxed) >= FAILURES && SKIPPED.fetch_add(1, Ordering::Relaxed) % PAUSE != PAUSE - 1 {
        return None;
    }
    if !*STARTED.get_or_init(|| system::start(read)) {
        return None;
    }
    let deadline = Instant::now() + Duration::from_millis(PATIENCE.load(Ordering::Relaxed));
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let mut now = state();
    let wait = |now: MutexGuard<'static, State>| {
        let left = deadline.saturating_duration_since(Instant::now());
        let (now, _) = CHANGED.wait_timeout(now, left).unwrap_or_else(PoisonError::into_inner);
        now
    };
    while *now != State::Idle {
        if Instant::now() >= deadline {
            return None;
        }
        now = wait(now);
    }
    *now = State::Asked(own as usize, number);
    CHANGED.notify_all();
    let answer = loop {
        match *now {
            State::Answered(answered, stack) if answered == number => break stack,
            _ if Instant::now() >= deadline => break None,
            _ => now = wait(now),
        }
    };
    // What the reader still reads is of no use: it sees that it was not waited for.
    *now = State::Idle;
    CHANGED.notify_all();
    match answer {
        Some(_) => IN_A_ROW.store(0, Ordering::Relaxed),
        None => _ = IN_A_ROW.fetch_add(1, Ordering::Relaxed),
    }
    answer
}

/// The reader. It has no destructors on its stack: an interpreter that ends may end a thread that asks for its lock.
extern "C" fn read(_: *mut c_void) -> *mut c_void {
    let Some(python) = PYTHON.get() else { return std::ptr::null_mut() };
    let mut own: Object = std::ptr::null_mut();
    loop {
        let (thread, number) = next();
        let stack = match python.runs() {
            true => {
                // Safety: this thread's own state, made at the first time and kept; the lock is let go of below.
                unsafe {
                    match own.is_null() {
                        true => _ = (python.ensure)(),
                        false => (python.restore)(own),
                    }
                }
                let is_waited_for = *state() == State::Reading(number);
                let stack = match is_waited_for {
                    // Safety: the lock is held, and the thread waits or cannot run Python: its state is there.
                    true => unsafe {
                        let thread = thread as Object;
                        let is_of_main = (python.interpreter)(thread) == (python.main)();
                        if is_of_main { python.frames(thread) } else { None }
                    },
                    false => None,
                };
                // Safety: this thread holds the lock.
                own = unsafe { (python.save)() };
                stack
            }
            false => None,
        };
        answer(number, stack);
    }
}

fn next() -> (usize, u64) {
    let mut now = state();
    loop {
        if let State::Asked(thread, number) = *now {
            *now = State::Reading(number);
            return (thread, number);
        }
        now = CHANGED.wait(now).unwrap_or_else(PoisonError::into_inner);
    }
}

fn answer(number: u64, stack: Option<u32>) {
    let mut now = state();
    if *now == State::Reading(number) {
        *now = State::Answered(number, stack);
        CHANGED.notify_all();
    }
}
