//! Stacks as numbers: each frame and each stack is written once.

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::{Mutex, PoisonError};

use crate::file::{self, Fields};
use crate::format::{NONE, OTHER_THREAD, is_tool, tag};
use crate::system;

/// The most frames of a stack, all of which have room in a record, and the most frames and stacks that are kept apart. A line
/// of the program may lie far behind those of the packages that it uses.
pub(crate) const DEPTH: usize = 256;
const _: () = assert!(DEPTH * size_of::<u32>() <= file::TEXT);
const MOST: usize = 1 << 16;

#[derive(Default)]
struct Known {
    /// [`NONE`] for what no program's place lies in.
    frames: HashMap<(usize, u32), u32>,
    stacks: HashMap<Vec<u32>, u32>,
}

static KNOWN: Mutex<Option<Known>> = Mutex::new(None);

fn with<R>(then: impl FnOnce(&mut Known) -> R) -> R {
    then(KNOWN.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default())
}

/// Another file begins, which holds no frame and no stack.
pub(crate) fn forget() {
    with(|known| *known = Known::default());
}

/// The number of a frame that was seen before: by its code and its line.
pub(crate) fn seen(code: usize, line: u32) -> Option<u32> {
    with(|known| known.frames.get(&(code, line)).copied())
}

/// The number of a new frame; `None` where there are too many.
pub(crate) fn frame(code: usize, line: u32, offset: u64, file: &[u8], function: &[u8]) -> Option<u32> {
    let number = with(|known| {
        let next = known.frames.len() as u32;
        (known.frames.len() < MOST).then(|| *known.frames.entry((code, line)).or_insert(next))
    })?;
    let (file, function) = (&file[..file.len().min(500)], &function[..function.len().min(500)]);
    let text = [file, &[0], function].concat();
    Fields::new().u32(number).u32(line).u64(offset).write(tag::FRAME, &text);
    Some(number)
}

/// The number of the frame behind which those of the main thread stand.
pub(crate) fn other_thread() -> Option<u32> {
    seen(0, 0).or_else(|| frame(0, 0, 0, OTHER_THREAD.as_bytes(), &[]))
}

/// The number of a stack.
pub(crate) fn stack(frames: &[u32]) -> u32 {
    let known = with(|known| {
        if let Some(number) = known.stacks.get(frames) {
            return Some((*number, false));
        }
        let next = known.stacks.len() as u32;
        (known.stacks.len() < MOST).then(|| {
            known.stacks.insert(frames.to_vec(), next);
            (next, true)
        })
    });
    let Some((number, is_new)) = known else { return NONE };
    if is_new {
        let text: Vec<u8> = frames.iter().flat_map(|frame| frame.to_le_bytes()).collect();
        file::write(tag::STACK, &number.to_le_bytes(), &text);
    }
    number
}

type Step = unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int;

/// The stack of a program without an interpreter: modules and offsets, and the names that the dynamic linker knows. The frames
/// of the driver and of this library, the innermost, are left out.
pub(crate) fn native() -> u32 {
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
    let Some((trace, address)) = found else { return NONE };
    // Safety: the signatures of the unwinder's interface (Itanium C++ ABI); the walk outlives the call.
    let walk = unsafe {
        let trace = std::mem::transmute::<*mut c_void, unsafe extern "C" fn(Step, *mut c_void) -> c_int>(trace);
        let address = std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut c_void) -> usize>(address);
        let mut walk = Walk { address, found: [0; DEPTH], count: 0 };
        trace(step, (&raw mut walk).cast());
        walk
    };
    // A return address lies behind its call.
    let addresses = walk.found[..walk.count].iter().filter(|address| **address != 0).map(|address| address - 1);
    let frames = addresses.filter_map(|address| seen(address, 0).or_else(|| of_address(address)));
    let frames: Vec<u32> = frames.filter(|frame| *frame != NONE).collect();
    if frames.is_empty() { NONE } else { stack(&frames) }
}

fn of_address(address: usize) -> Option<u32> {
    let (none, nowhere) = (std::ptr::null(), std::ptr::null_mut());
    let mut symbol = system::Symbol { file: none, base: nowhere, name: none, address: nowhere };
    // Safety: writes one structure; the texts are those of loaded modules.
    let (file, name) = unsafe {
        if system::dladdr(address as *const c_void, &mut symbol) == 0 {
            return None;
        }
        let text = |text: *const c_char| if text.is_null() { &[][..] } else { CStr::from_ptr(text).to_bytes() };
        (text(symbol.file), text(symbol.name))
    };
    if is_tool(file) {
        with(|known| {
            if known.frames.len() < MOST {
                known.frames.insert((address, 0), NONE);
            }
        });
        return Some(NONE);
    }
    frame(address, 0, (address - symbol.base as usize) as u64, file, name)
}
