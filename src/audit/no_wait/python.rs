//! The frames of Python of this thread, in the words of `faulthandler`.
//!
//! # Method
//! The Python package has `faulthandler` write the frames of a thread to a file of memory when it gets a signal that nobody uses
//! (`faulthandler.register`). The library sends this signal to its own thread. The handler reads the frames as they
//! are. They do not change: the thread is in a call.

use std::ffi::{c_int, c_void};
use std::sync::{Mutex, PoisonError};

unsafe extern "C" {
    fn raise(signal: c_int) -> c_int;
    fn sigemptyset(set: *mut [u64; 16]) -> c_int;
    fn sigaddset(set: *mut [u64; 16], signal: c_int) -> c_int;
    fn pthread_sigmask(how: c_int, set: *const [u64; 16], old: *mut [u64; 16]) -> c_int;
    fn ftruncate(file: c_int, length: i64) -> c_int;
    fn lseek(file: c_int, offset: i64, from: c_int) -> i64;
    fn pread(file: c_int, bytes: *mut c_void, length: usize, offset: i64) -> isize;
}

/// The handler writes for one thread at a time.
static HANDLER: Mutex<Option<Handler>> = Mutex::new(None);

#[derive(Clone, Copy)]
struct Handler {
    signal: c_int,
    file: c_int,
}

impl Handler {
    /// Whether the file is still the one of memory. A program may close all descriptors, and open a file of its own by this number.
    fn has_its_file(&self) -> bool {
        let link = std::fs::read_link(format!("/proc/self/fd/{}", self.file)).unwrap_or_default();
        link.as_os_str().as_encoded_bytes().starts_with(b"/memfd:syncscope")
    }
}

/// Says which signal has `faulthandler` write frames, and to which file; signal 0: none does any more. It is for the Python
/// package alone.
#[unsafe(no_mangle)]
pub extern "C" fn syncscope_no_wait_python(signal: c_int, file: c_int) {
    *HANDLER.lock().unwrap_or_else(PoisonError::into_inner) = (signal != 0).then_some(Handler { signal, file });
}

/// The frames, the innermost first; empty in a thread without Python.
pub(crate) fn frames() -> String {
    let handler = HANDLER.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(Handler { signal, file }) = handler.filter(Handler::has_its_file) else { return String::new() };
    const UNBLOCK: c_int = 1;
    const SET: c_int = 2;
    const BEGIN: c_int = 0;
    let (mut own, mut before) = ([0; 16], [0; 16]);
    // Safety: sets of signals have the size that the system's have. The signal has a handler as long as it is named here, which
    // runs before `raise` returns.
    unsafe {
        ftruncate(file, 0);
        lseek(file, 0, BEGIN);
        sigemptyset(&mut own);
        sigaddset(&mut own, signal);
        pthread_sigmask(UNBLOCK, &own, &mut before);
        raise(signal);
        pthread_sigmask(SET, &before, std::ptr::null_mut());
    }
    let (mut text, mut part) = (Vec::new(), [0_u8; 4096]);
    loop {
        // Safety: writes at most as many bytes as there are.
        let read = unsafe { pread(file, part.as_mut_ptr().cast(), part.len(), text.len() as i64) };
        match usize::try_from(read) {
            Ok(read) if read > 0 => text.extend_from_slice(&part[..read]),
            _ => return String::from_utf8_lossy(&text).into_owned(),
        }
    }
}
