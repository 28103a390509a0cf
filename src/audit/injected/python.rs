//! The Python stack of the calling thread, with any CPython from 3.9 on: its functions are looked up by their names.
//!
//! # Method
//! A thread that holds the interpreter's lock reads its own frames. A thread that has let go of it, as PyTorch does before
//! it waits, must not take it here: whoever holds it may wait for a lock of this very thread. So another thread, the
//! watcher, takes the lock and reads the frames of the calling thread, which cannot change meanwhile, as running Python needs
//! the lock (`asks`).
//!
//! A main thread that runs Python reads the stacks of a sample itself (`pending`).
//!
//! No garbage is collected meanwhile: what that ends would be ended at another place than without an audit.
//!
//! A thread of a library in C++ that runs no Python, such as one of PyTorch's backward pass, works for a line of another
//! thread: the main thread's frames are taken in place of its own, and are marked as such.
//!
//! # Limits
//! Interpreters beside the main one, and builds without the lock, have no stack where the thread has let go of it.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use crate::format::NONE;
use crate::stacks::{self, DEPTH};
use crate::{asks, file, system};

pub(crate) type Object = *mut c_void;

macro_rules! functions {
    ($($field:ident: $($name:literal)|+, fn($($argument:ty),*) -> $result:ty;)+) => {
        /// The interpreter.
        pub(crate) struct Python {
            $($field: unsafe extern "C" fn($($argument),*) -> $result,)+
            /// Whether there is one lock, which says that frames do not change.
            pub(crate) has_lock: bool,
            /// What ends and allows the collection of garbage, and says whether it was allowed; not before 3.10, where reading
            /// frames makes nothing that could be garbage.
            collection: Option<[unsafe extern "C" fn() -> c_int; 2]>,
            /// Whether code has qualified names, and states have the system's numbers of their threads: from 3.11 on.
            is_recent: bool,
            /// Where the main interpreter's lock lies.
            pub(crate) lock: Range<usize>,
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
                    collection: system::symbol(all, c"PyGC_Disable").zip(system::symbol(all, c"PyGC_Enable")).map(
                        // Safety: both have this signature in all versions that have them.
                        |(end, allow)| unsafe {
                            [end, allow].map(|found| {
                                std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> c_int>(found)
                            })
                        },
                    ),
                    is_recent: system::symbol(all, c"Py_Version").is_some(),
                    lock: system::extent(c"_PyRuntime").unwrap_or_default(),
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
    post: c"Py_AddPendingCall", fn(PendingCall, *mut c_void) -> c_int;
    limit: c"Py_GetRecursionLimit", fn() -> c_int;
    version: c"Py_GetVersion", fn() -> *const c_char;
}

/// What the main thread calls between two instructions of Python.
type PendingCall = unsafe extern "C" fn(*mut c_void) -> c_int;

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

/// The main thread has this state: it may make no watched call itself.
pub(crate) fn remember_main(state: Object) {
    MAIN.store(state, Ordering::Release);
}

/// How many stacks were not taken in time since this was asked.
pub(crate) fn missed() -> u64 {
    MISSED.swap(0, Ordering::Relaxed)
}

/// The interpreter, if it runs. It may be loaded later.
pub(crate) fn running() -> Option<&'static Python> {
    let python = match PYTHON.get() {
        Some(python) => python,
        None => {
            let python = Python::find()?;
            PYTHON.get_or_init(|| python)
        }
    };
    python.runs().then_some(python)
}

/// The state of this thread, 0 where it has none. It costs next to nothing: an interpreter is not looked for here.
pub(crate) fn own_state() -> usize {
    PYTHON.get().filter(|python| python.runs()).map_or(0, |python| python.own() as usize)
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
        _ if own == current => Some(unsafe { python.frames(own) }),
        _ if !python.has_lock => None,
        _ => asks::ask(own as usize),
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
        if system::thread() == file::process() {
            MAIN.store(own, Ordering::Release);
        }
        own
    }

    /// Takes the lock, has `then` done, and lets go of it. `own` is this thread's state, null at the first time.
    ///
    /// An interpreter that ends may end this thread here: the caller has no destructors on its stack.
    pub(crate) fn with_lock<R: Copy>(&self, own: &mut Object, then: impl FnOnce(Object) -> R) -> R {
        // Safety: this thread's own state, made at the first time and kept; the lock is let go of below.
        unsafe {
            match own.is_null() {
                true => _ = (self.ensure)(),
                false => (self.restore)(*own),
            }
        }
        // Safety: the lock is held.
        unsafe {
            let done = self.without_collection(|| then((self.current_state)()));
            *own = (self.save)();
            done
        }
    }

    /// Has no garbage collected while `then` is done.
    ///
    /// # Safety
    /// The caller holds the lock.
    unsafe fn without_collection<R>(&self, then: impl FnOnce() -> R) -> R {
        // Safety: the caller's promise. What was allowed before is allowed again.
        unsafe {
            let collection = self.collection.filter(|[end, _]| end() != 0);
            let done = then();
            collection.iter().for_each(|[_, allow]| _ = allow());
            done
        }
    }

    /// Which 3.x it is.
    pub(crate) fn minor_version(&self) -> Option<u32> {
        // Safety: a text that the interpreter keeps.
        let version = unsafe { CStr::from_ptr((self.version)()) }.to_str().ok()?;
        version.strip_prefix("3.")?.split('.').next()?.parse().ok()
    }

    /// Whether the main thread may hold the lock. Before 3.12 it is known to the whole process who does; later each thread knows
    /// it of itself only.
    pub(crate) fn main_may_hold_lock(&self) -> bool {
        let main = MAIN.load(Ordering::Acquire);
        // Safety: asks for a pointer, which is not followed.
        let is_main = || main.is_null() || unsafe { (self.current_state)() } == main;
        self.minor_version().is_some_and(|minor| minor >= 12 || is_main())
    }

    /// The state of the main interpreter.
    pub(crate) fn main_interpreter(&self) -> Object {
        // Safety: asks for a pointer that the interpreter keeps.
        unsafe { (self.main)() }
    }

    /// How deep calls of Python may be.
    ///
    /// # Safety
    /// The caller holds the lock.
    pub(crate) unsafe fn recursion_limit(&self) -> u32 {
        // Safety: the caller's promise.
        unsafe { (self.limit)() as u32 }
    }

    /// Has the main thread make a call as soon as it finds it (`breaker`); whether there was room for that. The caller needs
    /// no lock.
    pub(crate) fn post(&self, call: PendingCall) -> bool {
        // Safety: any thread may post a call at any time; it lives as long as the process.
        unsafe { (self.post)(call, std::ptr::null_mut()) == 0 }
    }

    /// Does what a posted call is for, unless it is made by an interpreter beside the main one.
    ///
    /// # Safety
    /// The caller is a call that was posted: it holds the lock.
    pub(crate) unsafe fn in_posted_call(&self, then: impl FnOnce()) {
        // It may be the first time that the main thread is seen.
        self.own();
        // Safety: the caller's promise.
        unsafe {
            if (self.interpreter)((self.current_state)()) == (self.main)() {
                self.without_collection(then);
            }
        }
    }

    /// The states of all threads of the main interpreter.
    ///
    /// # Safety
    /// The caller holds the lock as long as it goes on.
    pub(crate) unsafe fn states(&self) -> impl Iterator<Item = Object> {
        // Safety: states are put first and taken out with the lock held.
        let is_there = |state: Object| (!state.is_null()).then_some(state);
        // Safety: as above.
        let first = unsafe { (self.first)((self.main)()) };
        // Safety: as above.
        std::iter::successors(is_there(first), move |state| is_there(unsafe { (self.next)(*state) }))
    }

    /// A state, where it is still there.
    ///
    /// # Safety
    /// The caller holds the lock.
    pub(crate) unsafe fn known(&self, state: Object) -> Option<Object> {
        // Safety: the caller's promise.
        unsafe { self.states() }.find(|known| *known == state)
    }

    /// Where the system's number of a thread lies in its state, by what this thread's and the main thread's hold. There is no
    /// function that says it.
    ///
    /// # Safety
    /// The caller holds the lock; `own` is the state of this thread.
    pub(crate) unsafe fn place_of_number(&self, own: Object) -> Option<usize> {
        const SEARCHED: usize = 256;
        if !self.is_recent {
            return None;
        }
        // Safety: the caller's promise; a state is longer than what is searched.
        unsafe {
            let is_main = |place: usize| self.states().any(|state| number_at(state, place) == std::process::id());
            let is_own = |place: &usize| number_at(own, *place) == system::thread();
            let mut places = (0..SEARCHED).step_by(8).filter(is_own).filter(|place| is_main(*place));
            let place = places.next()?;
            places.next().is_none().then_some(place)
        }
    }

    /// The state of the main thread, where that is still there.
    ///
    /// # Safety
    /// The caller holds the lock.
    pub(crate) unsafe fn main_state(&self) -> Option<Object> {
        let main = MAIN.load(Ordering::Acquire);
        // Safety: the caller's promise.
        if main.is_null() { None } else { unsafe { self.known(main) } }
    }

    /// The stack of a thread: that of the main thread where it has no frame, [`NONE`] where that has none either.
    ///
    /// # Safety
    /// The caller holds the lock, and `state` is null or a thread of the caller's interpreter.
    pub(crate) unsafe fn frames(&self, state: Object) -> u32 {
        let mut found = [0; DEPTH];
        // Safety: the caller's promise, and the main thread is there. Without one lock it may change meanwhile.
        let count = unsafe {
            match if state.is_null() { 0 } else { self.walk(state, &mut found) } {
                0 => {
                    let main = self.main_state().filter(|main| self.has_lock && *main != state);
                    main.zip(stacks::other_thread()).map_or(0, |(main, mark)| {
                        found[0] = mark;
                        let more = self.walk(main, &mut found[1..]);
                        if more == 0 { 0 } else { more + 1 }
                    })
                }
                count => count,
            }
        };
        if count == 0 { NONE } else { stacks::stack(&found[..count]) }
    }

    /// The stack of a thread that has this state and waits in a call; `None` for a thread of another interpreter.
    ///
    /// # Safety
    /// The caller holds the lock, and the state is there.
    pub(crate) unsafe fn frames_of_main(&self, state: Object) -> Option<u32> {
        // Safety: the caller's promise.
        unsafe { ((self.interpreter)(state) == (self.main)()).then(|| self.frames(state)) }
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
            // What a version does not have would leave an error, which is an object that may be garbage.
            let function = if self.is_recent { c"co_qualname" } else { c"co_name" };
            let function = (self.attribute)(code, function.as_ptr());
            let file = (self.attribute)(code, c"co_filename".as_ptr());
            let bytes = |object: Object| {
                let mut length = 0;
                let text = if object.is_null() { std::ptr::null() } else { (self.text)(object, &mut length) };
                if text.is_null() { &[][..] } else { std::slice::from_raw_parts(text.cast::<u8>(), length as usize) }
            };
            let number = stacks::frame(code as usize, line, 0, bytes(file), bytes(function));
            (self.hold)(code);
            [function, file].into_iter().for_each(|object| (self.release)(object));
            number
        }
    }
}

/// The number of the system that a state has at a place, by which [`Python::place_of_number`] looks for it.
///
/// # Safety
/// The state is there, and holds 8 bytes at the place.
pub(crate) unsafe fn number_at(state: Object, place: usize) -> u32 {
    // Safety: the caller's promise.
    let number = unsafe { state.cast::<u8>().add(place).cast::<u64>().read_unaligned() };
    u32::try_from(number).unwrap_or(0)
}
