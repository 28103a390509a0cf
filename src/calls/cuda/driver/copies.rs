//! Copies, and setting memory to a value.

use std::sync::Arc;

use cudarc::driver::sys;

use super::Calls;
use super::owned::Block;
use crate::Result;
use crate::catalogue::{Copy, CopyDirection, Memory};
use crate::{Made, Steps};

/// Why pageable memory is not filled.
const NO_ADDRESS: &str = "the call takes an address of the driver's, and pageable memory has none";

/// The blocks live as long as the steps, and so longer than the copies.
pub(super) fn steps(calls: &Arc<Calls>, copy: Copy) -> Result<Box<dyn Steps>> {
    let Copy { direction, memory, bytes, asynchronous } = copy;
    let block = |memory| Block::new(&calls.context, memory, bytes);
    let (from, to) = match direction {
        CopyDirection::ToDevice => (block(memory)?, block(Memory::Device)?),
        CopyDirection::ToHost => (block(Memory::Device)?, block(memory)?),
        CopyDirection::WithinDevice | CopyDirection::WithinHost => (block(memory)?, block(memory)?),
        CopyDirection::HostTo(to) => (block(memory)?, block(to)?),
    };
    let (c, own) = (Arc::clone(calls), calls.own.get()?);
    let (source, target, bytes) = (from.address()?, to.address()?, from.bytes().min(to.bytes()));
    let (host_source, host_target) = (from.start()?, to.start()?);
    let call = move || {
        let _kept = (&from, &to);
        // Safety: both blocks hold as many bytes, and are kept until the copy is over.
        unsafe {
            match (direction, asynchronous) {
                (CopyDirection::ToDevice, false) => {
                    c.check("cuMemcpyHtoD", sys::cuMemcpyHtoD_v2(target, host_source, bytes))
                }
                (CopyDirection::ToDevice, true) => {
                    c.check("cuMemcpyHtoDAsync", sys::cuMemcpyHtoDAsync_v2(target, host_source, bytes, own))
                }
                (CopyDirection::ToHost, false) => {
                    c.check("cuMemcpyDtoH", sys::cuMemcpyDtoH_v2(host_target, source, bytes))
                }
                (CopyDirection::ToHost, true) => {
                    c.check("cuMemcpyDtoHAsync", sys::cuMemcpyDtoHAsync_v2(host_target, source, bytes, own))
                }
                (CopyDirection::WithinDevice, false) => {
                    c.check("cuMemcpyDtoD", sys::cuMemcpyDtoD_v2(target, source, bytes))
                }
                (CopyDirection::WithinDevice, true) => {
                    c.check("cuMemcpyDtoDAsync", sys::cuMemcpyDtoDAsync_v2(target, source, bytes, own))
                }
                (CopyDirection::WithinHost | CopyDirection::HostTo(_), false) => {
                    c.check("cuMemcpy", sys::cuMemcpy(target, source, bytes))
                }
                (CopyDirection::WithinHost | CopyDirection::HostTo(_), true) => {
                    c.check("cuMemcpyAsync", sys::cuMemcpyAsync(target, source, bytes, own))
                }
            }
        }
    };
    Ok(Made::new(|| Ok(()), move |()| call()).boxed())
}

/// Setting memory to a value.
///
/// # Errors
/// [`NotApplicable`](syncscope::error::DeviceError::NotApplicable) for pageable memory; the driver's own.
pub(super) fn fill(calls: &Arc<Calls>, memory: Memory, bytes: usize, asynchronous: bool) -> Result<Box<dyn Steps>> {
    if memory == Memory::Pageable {
        return Err(calls.missing("a fill of pageable memory", NO_ADDRESS));
    }
    let block = Block::new(&calls.context, memory, bytes)?;
    let (c, own, address) = (Arc::clone(calls), calls.own.get()?, block.on_device()?);
    let call = move || {
        let bytes = block.bytes();
        // Safety: the block holds as many bytes, and is kept until the work is over.
        unsafe {
            match asynchronous {
                false => c.check("cuMemsetD8", sys::cuMemsetD8_v2(address, 1, bytes)),
                true => c.check("cuMemsetD8Async", sys::cuMemsetD8Async(address, 1, bytes, own)),
            }
        }
    };
    Ok(Made::new(|| Ok(()), move |()| call()).boxed())
}
