//! Stacks as numbers: each frame and each stack is written once.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::file::{self, Fields};
use crate::format::{NONE, OTHER_THREAD, is_tool, tag};
use crate::unwind;

/// The most frames of a stack, all of which have room in a record, and the most frames and stacks that are kept apart. A line
/// of the program may lie far behind those of the packages that it uses.
pub(crate) const DEPTH: usize = unwind::DEPTH;
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

/// The stack of a program without an interpreter: modules and offsets, and the names that the dynamic linker knows. The frames
/// of the driver and of this library, the innermost, are left out.
pub(crate) fn native() -> u32 {
    let frames = unwind::addresses().into_iter().filter_map(|address| seen(address, 0).or_else(|| of_address(address)));
    let frames: Vec<u32> = frames.filter(|frame| *frame != NONE).collect();
    if frames.is_empty() { NONE } else { stack(&frames) }
}

fn of_address(address: usize) -> Option<u32> {
    let place = unwind::place(address)?;
    if is_tool(place.module) {
        with(|known| {
            if known.frames.len() < MOST {
                known.frames.insert((address, 0), NONE);
            }
        });
        return Some(NONE);
    }
    frame(address, 0, place.offset as u64, place.module, place.function)
}
