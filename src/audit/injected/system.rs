//! What the library takes of the C library, declared by hand: it has no dependencies.

use std::ffi::{CStr, c_char, c_int, c_void};

pub(crate) const NOW: c_int = 2;
pub(crate) const ALREADY_LOADED: c_int = 4;
const READ_WRITE: c_int = 3;
const SHARED: c_int = 1;

/// Of `dladdr`.
#[repr(C)]
pub(crate) struct Symbol {
    pub(crate) file: *const c_char,
    pub(crate) base: *mut c_void,
    pub(crate) name: *const c_char,
    pub(crate) address: *mut c_void,
}

unsafe extern "C" {
    pub(crate) fn dlopen(file: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    pub(crate) fn dladdr(address: *const c_void, symbol: *mut Symbol) -> c_int;
    pub(crate) fn atexit(function: extern "C" fn()) -> c_int;
    pub(crate) fn pthread_atfork(
        before: Option<extern "C" fn()>,
        parent: Option<extern "C" fn()>,
        child: Option<extern "C" fn()>,
    ) -> c_int;
    fn gettid() -> c_int;
    fn mmap(address: *mut c_void, length: usize, access: c_int, flags: c_int, file: c_int, offset: i64) -> *mut c_void;
    fn munmap(address: *mut c_void, length: usize) -> c_int;
    fn posix_fallocate(file: c_int, offset: i64, length: i64) -> c_int;
    fn getrlimit(resource: c_int, limits: *mut [u64; 2]) -> c_int;
    fn pthread_create(
        thread: *mut usize,
        attributes: *const c_void,
        start: extern "C" fn(*mut c_void) -> *mut c_void,
        argument: *mut c_void,
    ) -> c_int;
    fn pthread_detach(thread: usize) -> c_int;
    fn sigfillset(set: *mut [u64; 16]) -> c_int;
    fn pthread_sigmask(how: c_int, set: *const [u64; 16], old: *mut [u64; 16]) -> c_int;
}

/// The symbol in a library, or in any that the process has loaded.
pub(crate) fn symbol(library: *mut c_void, name: &CStr) -> Option<*mut c_void> {
    // Safety: null stands for all that is loaded; the name is terminated.
    let found = unsafe { dlsym(library, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// The number of this thread, as the system has it.
pub(crate) fn thread() -> u32 {
    thread_local!(static OWN: std::cell::Cell<u32> = const { std::cell::Cell::new(0) });
    // A thread at its very end has no variables any more.
    let known = OWN.try_with(std::cell::Cell::get).unwrap_or(0);
    if known != 0 {
        return known;
    }
    // Safety: takes nothing.
    let own = unsafe { gettid() } as u32;
    let _ = OWN.try_with(|cell| cell.set(own));
    own
}

/// Maps `length` bytes of a file, which are there before: memory of a file without room would end the process, and so would a
/// file that is longer than the process may write.
pub(crate) fn map(file: c_int, offset: usize, length: usize) -> Option<*mut u8> {
    const FILE_SIZE: c_int = 1;
    let mut limits = [u64::MAX; 2];
    // Safety: writes two numbers. A failure leaves them.
    unsafe { getrlimit(FILE_SIZE, &mut limits) };
    if (offset + length) as u64 > limits[0] {
        return None;
    }
    // Safety: a file that is open; the arguments are numbers.
    unsafe {
        if posix_fallocate(file, offset as i64, length as i64) != 0 {
            return None;
        }
        let map = mmap(std::ptr::null_mut(), length, READ_WRITE, SHARED, file, offset as i64);
        (map as isize != -1).then_some(map.cast())
    }
}

/// Ends a mapping.
///
/// # Safety
/// It is of [`map`] with this length, and nothing uses it any more.
pub(crate) unsafe fn unmap(map: *mut u8, length: usize) {
    // Safety: the caller's promise.
    unsafe { munmap(map.cast(), length) };
}

/// Starts a thread that takes no signals: those of the program are its own. The start of the C library is used, so that
/// the thread may be ended by an interpreter that is ending.
pub(crate) fn start(body: extern "C" fn(*mut c_void) -> *mut c_void) -> bool {
    const SET: c_int = 2;
    let (mut all, mut old, mut thread) = ([0; 16], [0; 16], 0);
    // Safety: sets of signals have the size that the system's have; the body lives as long as the process.
    unsafe {
        sigfillset(&mut all);
        pthread_sigmask(SET, &all, &mut old);
        let started = pthread_create(&mut thread, std::ptr::null(), body, std::ptr::null_mut()) == 0;
        pthread_sigmask(SET, &old, std::ptr::null_mut());
        if started {
            pthread_detach(thread);
        }
        started
    }
}
