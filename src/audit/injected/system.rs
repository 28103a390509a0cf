//! What the library takes of the C library, declared by hand: it has no dependencies.

use std::ffi::{CStr, c_char, c_int, c_long, c_void};
use std::ops::Range;
use std::time::Instant;

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
    fn madvise(address: *mut c_void, length: usize, advice: c_int) -> c_int;
    fn getpagesize() -> c_int;
    fn sysconf(name: c_int) -> c_long;
    fn clock_gettime(clock: c_int, time: *mut [i64; 2]) -> c_int;
    fn syscall(number: c_long, ...) -> c_long;
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

/// Where a variable of a library lies, by the size that the library says it has.
pub(crate) fn extent(name: &CStr) -> Option<Range<usize>> {
    /// Of the file format: the size follows these and the address.
    #[repr(C)]
    struct Entry {
        name: u32,
        kinds: [u8; 4],
        value: u64,
        size: u64,
    }
    type Find = unsafe extern "C" fn(*const c_void, *mut Symbol, *mut *const Entry, c_int) -> c_int;
    const ENTRY: c_int = 1;
    let address = symbol(std::ptr::null_mut(), name)?;
    // Not each C library has it.
    let find = symbol(std::ptr::null_mut(), c"dladdr1")?;
    let (none, nowhere) = (std::ptr::null(), std::ptr::null_mut());
    let (mut found, mut entry) = (Symbol { file: none, base: nowhere, name: none, address: nowhere }, std::ptr::null());
    // Safety: the function has this signature where it is; it writes one structure and one pointer to a loaded table.
    let size = unsafe {
        let find = std::mem::transmute::<*mut c_void, Find>(find);
        if find(address, &mut found, &mut entry, ENTRY) == 0 || entry.is_null() || found.address != address {
            return None;
        }
        (*entry).size as usize
    };
    Some(address as usize..address as usize + size)
}

/// How long a tick is in which the system counts the time of threads, in nanoseconds.
pub(crate) fn tick() -> u64 {
    const TICKS_PER_SECOND: c_int = 2;
    // Safety: asks for a number.
    let ticks = unsafe { sysconf(TICKS_PER_SECOND) };
    1_000_000_000 / u64::try_from(ticks).unwrap_or(0).max(1)
}

/// How long a thread of this process has run, in nanoseconds; `None` where there is no such thread.
pub(crate) fn ran(thread: u32) -> Option<u64> {
    /// Of one thread, as the scheduler has it.
    const RAN: c_int = 6;
    let mut time = [0; 2];
    // Safety: writes two numbers.
    let status = unsafe { clock_gettime(!(thread as c_int) << 3 | RAN, &mut time) };
    (status == 0).then_some(time[0] as u64 * 1_000_000_000 + time[1] as u64)
}

/// Gives this thread a table of descriptors of its own, which is empty: it opens and closes files all the time, and the program
/// may count its descriptors, or close those that it does not know. A system that cannot do it leaves the table shared.
pub(crate) fn leave_descriptors() {
    const CLOSE_RANGE: c_long = 436;
    const UNSHARE: c_long = 2;
    // Safety: the descriptors of the program stay open in its own table, and this thread has none.
    unsafe { syscall(CLOSE_RANGE, 0 as c_long, u32::MAX as c_long, UNSHARE) };
}

/// How long the first touch of a page of memory takes, in picoseconds; 0 where there is no memory.
pub(crate) fn first_touch() -> u64 {
    const PAGES: usize = 256;
    const PRIVATE_MEMORY: c_int = 0x22;
    const NO_HUGE_PAGES: c_int = 15;
    // Safety: memory of its own, which is written within its length and is given back.
    unsafe {
        let page = getpagesize() as usize;
        let length = PAGES * page;
        let map = mmap(std::ptr::null_mut(), length, READ_WRITE, PRIVATE_MEMORY, -1, 0);
        if map as isize == -1 {
            return 0;
        }
        madvise(map, length, NO_HUGE_PAGES);
        let begun = Instant::now();
        (0..PAGES).for_each(|number| map.cast::<u8>().add(number * page).write_volatile(1));
        let took = begun.elapsed();
        munmap(map, length);
        (took.as_nanos() * 1000) as u64 / PAGES as u64
    }
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
