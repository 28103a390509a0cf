//! Native frames with their functions, files and lines, inlined ones too, from the debugging information of the modules.
//!
//! # Limits
//! Modules of the system and of NVIDIA are left as they are. A module without debugging information gives the names of its
//! functions at most, one that is gone nothing. Release builds of Rust need `debug = "line-tables-only"`.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

use addr2line::Loader;

use super::names::demangled;
use super::recording::{Frame, Process};

/// A page of memory: where a module begins, its first one does.
const PAGE: u64 = 4096;
/// The most frames that one address stands for.
const MAX_INLINED: usize = 16;

/// The process with each of its native frames as the lines that it stands for.
pub(crate) fn resolve(mut process: Process) -> Process {
    let mut modules: HashMap<String, Option<Module>> = HashMap::new();
    let mut frames: Vec<Frame> = Vec::new();
    let mut places: Vec<Vec<u32>> = Vec::new();
    for frame in process.frames {
        let found = match frame.offset.filter(|_| frame.may_have_a_line()) {
            Some(offset) => {
                let module = modules.entry(frame.file.clone()).or_insert_with_key(|file| load(file));
                module.as_ref().map(|module| module.lines(offset)).unwrap_or_default()
            }
            None => Vec::new(),
        };
        let found = if found.is_empty() { vec![frame] } else { found };
        places.push((frames.len() as u32..).take(found.len()).collect());
        frames.extend(found);
    }
    for stack in &mut process.stacks {
        *stack = stack.iter().filter_map(|frame| places.get(*frame as usize)).flatten().copied().collect();
    }
    Process { frames, ..process }
}

/// A module with its debugging information.
struct Module {
    loader: Loader,
    /// The address at which it was linked to begin: 0, unless it is linked to a fixed one.
    begin: u64,
}

fn load(file: &str) -> Option<Module> {
    Some(Module { loader: Loader::new(file).ok()?, begin: begin(&File::open(file).ok()?).unwrap_or(0) })
}

/// The page of the lowest address among the parts that are loaded of a module (ELF of 64 bits, the lowest byte first).
fn begin(file: &File) -> Option<u64> {
    const LOADED: u64 = 1;
    let number = |bytes: &[u8], at: usize, length: usize| {
        bytes.get(at..at + length).map(|bytes| bytes.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
    };
    let mut head = [0; 64];
    file.read_exact_at(&mut head, 0).ok()?;
    let (place, size, count) = (number(&head, 32, 8)?, number(&head, 54, 2)?, number(&head, 56, 2)?);
    let mut parts = vec![0; (size * count) as usize];
    file.read_exact_at(&mut parts, place).ok()?;
    let loaded = parts.chunks_exact((size as usize).max(1)).filter(|part| number(part, 0, 4) == Some(LOADED));
    loaded.filter_map(|part| number(part, 16, 8)).min().map(|address| address / PAGE * PAGE)
}

impl Module {
    /// The frames at an offset, the innermost first; none where the module does not know it.
    fn lines(&self, offset: u64) -> Vec<Frame> {
        let Ok(mut found) = self.loader.find_frames(self.begin.saturating_add(offset)) else { return Vec::new() };
        let mut out = Vec::new();
        while let Ok(Some(frame)) = found.next() {
            let Some((file, line)) = frame.location.and_then(|location| location.file.zip(location.line)) else {
                continue;
            };
            let name = frame.function.as_ref().and_then(|function| function.raw_name().ok());
            let function = name.map(|name| demangled(&name)).unwrap_or_default();
            out.push(Frame { file: file.to_owned(), line, function, offset: None, is_function: false });
            if out.len() == MAX_INLINED {
                break;
            }
        }
        out
    }
}
