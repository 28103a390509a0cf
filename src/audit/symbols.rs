//! Native frames with their functions, files and lines, inlined ones too, from the debugging information of the modules.
//!
//! # Limits
//! Modules of the system and of NVIDIA are left as they are. A module without debugging information gives the names of its
//! functions at most, one that is gone nothing. Release builds of Rust need `debug = "line-tables-only"`.

use std::collections::HashMap;

use addr2line::Loader;
use addr2line::demangle_auto;

use super::recording::{Frame, Process};

/// Where a program that is linked to a fixed address begins.
const FIXED: u64 = 0x40_0000;
/// The most frames that one address stands for.
const MOST_INLINED: usize = 16;

/// Resolves the native frames of a process.
pub(crate) fn resolve(process: &mut Process) {
    if process.frames.iter().all(|frame| frame.offset.is_none()) {
        return;
    }
    let mut modules: HashMap<String, Option<Loader>> = HashMap::new();
    let mut frames: Vec<Frame> = Vec::new();
    let mut places: Vec<Vec<u32>> = Vec::new();
    for frame in &process.frames {
        let module = modules.entry(frame.file.clone()).or_insert_with_key(|file| load(file));
        let found = module.as_ref().zip(frame.offset).map(|(module, offset)| lines(module, offset)).unwrap_or_default();
        let found = if found.is_empty() { vec![frame.clone()] } else { found };
        places.push((frames.len() as u32..).take(found.len()).collect());
        frames.extend(found);
    }
    for stack in &mut process.stacks {
        *stack = stack.iter().filter_map(|frame| places.get(*frame as usize)).flatten().copied().collect();
    }
    process.frames = frames;
}

/// A kernel's name as its author wrote it, cut where templates make it endless.
pub(crate) fn readable(name: &str) -> String {
    const MOST: usize = 160;
    let name = demangle_auto(name.into(), None);
    match name.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.into_owned(),
    }
}

fn load(file: &str) -> Option<Loader> {
    let is_foreign = ["/lib/", "/lib64/", "/usr/lib", "libcupti", "libcuda", "libsyncscope_audit"]
        .iter()
        .any(|part| file.starts_with(part) || file.rsplit('/').next().is_some_and(|name| name.starts_with(part)));
    if is_foreign { None } else { Loader::new(file).ok() }
}

/// The frames at an address, the innermost first; none where the module does not know it.
fn lines(module: &Loader, offset: u64) -> Vec<Frame> {
    for address in [offset, offset + FIXED] {
        let Ok(mut found) = module.find_frames(address) else { continue };
        let mut out = Vec::new();
        while let Ok(Some(frame)) = found.next() {
            let Some((file, line)) = frame.location.and_then(|location| location.file.zip(location.line)) else {
                continue;
            };
            let name = frame.function.as_ref().and_then(|function| function.raw_name().ok());
            let function = name.map(|name| demangle_auto(name, None).into_owned()).unwrap_or_default();
            out.push(Frame { file: file.to_owned(), line, function, offset: None });
            if out.len() == MOST_INLINED {
                break;
            }
        }
        if !out.is_empty() {
            return out;
        }
    }
    Vec::new()
}
