//! The process of the cells: it loads what evcxr compiled of a cell and calls it, one cell after the other.
//!
//! evcxr writes its instructions to the standard input. They are read from another descriptor here, and the standard input of
//! the cells, and of what they start, is empty: a cell that reads it finds its end. By evcxr's own loop it would wait for the
//! instruction to run the next cell, for good, and take it.

use std::ffi::c_void;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::mem::ManuallyDrop;

use anyhow::Context;
use libloading::Library;
use rustix::io::fcntl_dupfd_cloexec;
use rustix::stdio::dup2_stdin;

use crate::cells::marks::EVCXR_COMPLETE;

/// Begins an instruction of evcxr's: the path of a library and the name of a function follow.
const RUN: &str = "LOAD_AND_RUN ";
/// The first descriptor that stands for no stream.
const FREE: i32 = 3;

/// Calls cells until evcxr has no more.
pub(crate) fn run() -> anyhow::Result<()> {
    let instructions = File::from(fcntl_dupfd_cloexec(io::stdin(), FREE)?);
    dup2_stdin(File::open("/dev/null").context("/dev/null")?)?;
    let mut variables = std::ptr::null_mut();
    for line in BufReader::new(instructions).lines() {
        let line = line?;
        // Other lines are evcxr's answers to cells that ask for input.
        let Some((library, function)) = line.strip_prefix(RUN).and_then(|rest| rest.rsplit_once(' ')) else { continue };
        variables = call(library, function, variables).with_context(|| library.to_owned())?;
        println!("{EVCXR_COMPLETE}");
    }
    Ok(())
}

/// Calls the cell that `function` of `library` is, with what holds the variables of the cells before it.
fn call(library: &str, function: &str, variables: *mut c_void) -> Result<*mut c_void, libloading::Error> {
    // Safety: evcxr has compiled the library of a cell. Its functions have this type, and take and give what holds the
    // variables, which begins with none. Nothing else has it.
    unsafe {
        // Variables and threads may use its code from now on.
        let library = ManuallyDrop::new(Library::new(library)?);
        let cell = library.get::<extern "C" fn(*mut c_void) -> *mut c_void>(function.as_bytes())?;
        Ok(cell(variables))
    }
}
