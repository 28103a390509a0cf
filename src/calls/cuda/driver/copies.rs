//! Calls that copy and fill memory.

use std::ffi::c_void;

use cudarc::driver::sys::{self, CUdeviceptr, CUresult, CUstream};

use super::owned::Block;
use super::{Calls, call};
use crate::On;
use crate::catalogue::{Call, Memory};

/// Why pageable memory is not filled.
const NO_ADDRESS: &str = "the call takes an address of the driver's, and pageable memory has none";

/// The two sides of a copy, as the device and as the host names them.
struct Sides {
    target: CUdeviceptr,
    host_target: *mut c_void,
    source: CUdeviceptr,
    host_source: *mut c_void,
    bytes: usize,
}

/// Copies of so many bytes.
pub(super) fn calls(bytes: usize) -> impl Iterator<Item = Call> {
    use Memory::{Device, Managed, Pageable, Pinned};
    const WITHIN_HOST: [&str; 2] = ["cuMemcpy", "cuMemcpyAsync"];
    let both = |memory| [memory, memory];
    let ways = [
        (["cuMemcpyHtoD", "cuMemcpyHtoDAsync"], Memory::OF_HOST.map(|from| [from, Device]).to_vec()),
        (["cuMemcpyDtoH", "cuMemcpyDtoHAsync"], Memory::OF_HOST.map(|to| [Device, to]).to_vec()),
        (["cuMemcpyDtoD", "cuMemcpyDtoDAsync"], [Managed, Device].map(both).to_vec()),
        (WITHIN_HOST, Memory::OF_HOST.map(both).to_vec()),
        // The driver may treat a copy by what it knows of either side.
        (WITHIN_HOST, [Pageable, Managed].map(|from| [from, Pinned]).to_vec()),
        (WITHIN_HOST, [Pinned, Managed].map(|from| [from, Pageable]).to_vec()),
        (WITHIN_HOST, [Pageable, Pinned].map(|from| [from, Managed]).to_vec()),
    ];
    ways.into_iter().flat_map(move |(names, sides)| {
        names.into_iter().zip([false, true]).flat_map(move |(name, asynchronous)| {
            sides.clone().into_iter().map(move |sides| copy(name, asynchronous, sides, bytes))
        })
    })
}

fn copy(name: &'static str, asynchronous: bool, [from, to]: [Memory; 2], bytes: usize) -> Call {
    let copy = call(name, stream_if(asynchronous), move |calls| {
        let (from, to) = (Block::new(&calls.context, from, bytes)?, Block::new(&calls.context, to, bytes)?);
        let (source, target, bytes) = (from.address()?, to.address()?, from.bytes().min(to.bytes()));
        let sides = Sides { target, host_target: to.start()?, source, host_source: from.start()?, bytes };
        let by = by(name);
        Ok(calls.plain(name, move |c| {
            let _kept = (&from, &to);
            Ok(by(&sides, c.own.get()?))
        }))
    });
    match (name, from) {
        ("cuMemcpy" | "cuMemcpyAsync", _) => {
            Call { to: Some(to).filter(|to| *to != from), ..copy.of(from, bytes).way("host to host") }
        }
        (_, Memory::Device) => copy.of(to, bytes),
        _ => copy.of(from, bytes),
    }
}

/// A call that copies; the sides are kept until that is over.
fn by(name: &str) -> fn(&Sides, CUstream) -> CUresult {
    // Safety, of all: both sides hold as many bytes.
    match name {
        // Safety: as above.
        "cuMemcpyHtoD" => |s, _| unsafe { sys::cuMemcpyHtoD_v2(s.target, s.host_source, s.bytes) },
        // Safety: as above.
        "cuMemcpyHtoDAsync" => |s, on| unsafe { sys::cuMemcpyHtoDAsync_v2(s.target, s.host_source, s.bytes, on) },
        // Safety: as above.
        "cuMemcpyDtoH" => |s, _| unsafe { sys::cuMemcpyDtoH_v2(s.host_target, s.source, s.bytes) },
        // Safety: as above.
        "cuMemcpyDtoHAsync" => |s, on| unsafe { sys::cuMemcpyDtoHAsync_v2(s.host_target, s.source, s.bytes, on) },
        // Safety: as above.
        "cuMemcpyDtoD" => |s, _| unsafe { sys::cuMemcpyDtoD_v2(s.target, s.source, s.bytes) },
        // Safety: as above.
        "cuMemcpyDtoDAsync" => |s, on| unsafe { sys::cuMemcpyDtoDAsync_v2(s.target, s.source, s.bytes, on) },
        // Safety: as above.
        "cuMemcpy" => |s, _| unsafe { sys::cuMemcpy(s.target, s.source, s.bytes) },
        // Safety: as above.
        _ => |s, on| unsafe { sys::cuMemcpyAsync(s.target, s.source, s.bytes, on) },
    }
}

/// Settings of so many bytes to a value.
pub(super) fn fills(bytes: usize) -> impl Iterator<Item = Call> {
    [("cuMemsetD8", false), ("cuMemsetD8Async", true)]
        .into_iter()
        .flat_map(move |(name, asynchronous)| Memory::ALL.map(|memory| fill(name, asynchronous, memory, bytes)))
}

fn fill(name: &'static str, asynchronous: bool, memory: Memory, bytes: usize) -> Call {
    let fill = call(name, stream_if(asynchronous), move |calls| {
        if memory == Memory::Pageable {
            return Err(calls.missing("a fill of pageable memory", NO_ADDRESS));
        }
        let block = Block::new(&calls.context, memory, bytes)?;
        let address = block.on_device()?;
        Ok(calls.plain(name, move |c: &Calls| {
            let (bytes, own) = (block.bytes(), c.own.get()?);
            // Safety: the block holds as many bytes, and is kept until the work is over.
            Ok(unsafe {
                match asynchronous {
                    false => sys::cuMemsetD8_v2(address, 1, bytes),
                    true => sys::cuMemsetD8Async(address, 1, bytes, own),
                }
            })
        }))
    });
    fill.of(memory, bytes)
}

fn stream_if(asynchronous: bool) -> On {
    if asynchronous { On::Stream } else { On::Nothing }
}
