//! The native stack of this thread, and what the dynamic linker knows of its addresses.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStringExt;
use std::sync::OnceLock;

use crate::system;

/// The most frames of a stack.
pub(crate) const DEPTH: usize = 256;

type Step = unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int;

/// The addresses of the calls, the innermost first; none where the process has no unwinder.
pub(crate) fn addresses() -> Vec<usize> {
    struct Walk {
        address: unsafe extern "C" fn(*mut c_void) -> usize,
        found: [usize; DEPTH],
        count: usize,
    }
    unsafe extern "C" fn step(frame: *mut c_void, walk: *mut c_void) -> c_int {
        // Safety: the walk below, and a frame of the unwinder's.
        let walk = unsafe { &mut *walk.cast::<Walk>() };
        // Safety: as above.
        walk.found[walk.count] = unsafe { (walk.address)(frame) };
        walk.count += 1;
        c_int::from(walk.count == DEPTH)
    }
    let all = std::ptr::null_mut();
    let found = system::symbol(all, c"_Unwind_Backtrace").zip(system::symbol(all, c"_Unwind_GetIP"));
    let Some((trace, address)) = found else { return Vec::new() };
    // Safety: the signatures of the unwinder's interface (Itanium C++ ABI); the walk outlives the call.
    let walk = unsafe {
        let trace = std::mem::transmute::<*mut c_void, unsafe extern "C" fn(Step, *mut c_void) -> c_int>(trace);
        let address = std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut c_void) -> usize>(address);
        let mut walk = Walk { address, found: [0; DEPTH], count: 0 };
        trace(step, (&raw mut walk).cast());
        walk
    };
    // A return address lies behind its call.
    walk.found[..walk.count].iter().filter(|address| **address != 0).map(|address| address - 1).collect()
}

/// Where an address lies.
pub(crate) struct Place {
    pub(crate) module: &'static [u8],
    /// Empty where the dynamic linker knows none.
    pub(crate) function: &'static [u8],
    /// From the begin of the module.
    pub(crate) offset: usize,
}

/// The place of an address in a module; `None` where there is none.
pub(crate) fn place(address: usize) -> Option<Place> {
    let (none, nowhere) = (std::ptr::null(), std::ptr::null_mut());
    let mut symbol = system::Symbol { file: none, base: nowhere, name: none, address: nowhere };
    // Safety: writes one structure; the texts are those of modules, which this thread is in and which stay loaded so long.
    unsafe {
        if system::dladdr(address as *const c_void, &mut symbol) == 0 {
            return None;
        }
        let text = |text: *const c_char| if text.is_null() { &[][..] } else { CStr::from_ptr(text).to_bytes() };
        Some(Place {
            module: path(text(symbol.file)),
            function: text(symbol.name),
            offset: address - symbol.base as usize,
        })
    }
}

/// The path of a module by the linker's name of it. That of the program is as it was started: seen from a folder that may not be
/// the current one any more.
fn path(name: &'static [u8]) -> &'static [u8] {
    static PROGRAM: OnceLock<Vec<u8>> = OnceLock::new();
    let is_library = name.ends_with(b".so") || name.windows(4).any(|part| part == b".so.");
    if name.starts_with(b"/") || is_library {
        return name;
    }
    let program =
        || std::fs::read_link("/proc/self/exe").map_or_else(|_| name.to_vec(), |path| path.into_os_string().into_vec());
    PROGRAM.get_or_init(program)
}
