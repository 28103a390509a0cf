//! Calls that wait for work, ask about it, or are enqueued to order streams.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

use cudarc::driver::sys::{
    self, CUevent, CUevent_flags, CUresult, CUstream, CUstreamWaitValue_flags, CUstreamWriteValue_flags,
};

use super::owned::{Block, Owned};
use super::{Calls, LEGACY, ready_or_not};
use crate::Result;
use crate::catalogue::{Memory, Wait};
use crate::{Made, Steps};

type ElapsedTime = unsafe extern "C" fn(*mut f32, CUevent, CUevent) -> CUresult;

pub(super) fn steps(calls: &Arc<Calls>, call: Wait) -> Result<Box<dyn Steps>> {
    let c = Arc::clone(calls);
    let own = calls.own.get()?;
    let plain = |call: fn(&Calls, CUstream) -> Result<()>| {
        let c = Arc::clone(calls);
        Made::new(|| Ok(()), move |()| call(&c, own)).boxed()
    };
    Ok(match call {
        Wait::Context => plain(|c, _| {
            // Safety: the context is current.
            c.check("cuCtxSynchronize", unsafe { sys::cuCtxSynchronize() })
        }),
        Wait::Stream => plain(|c, own| {
            // Safety: the stream is live.
            c.check("cuStreamSynchronize", unsafe { sys::cuStreamSynchronize(own) })
        }),
        Wait::Legacy => plain(|c, _| {
            // Safety: the driver has this stream always.
            c.check("cuStreamSynchronize", unsafe { sys::cuStreamSynchronize(LEGACY) })
        }),
        Wait::QueryStream => plain(|c, own| {
            // Safety: the stream is live.
            c.check("cuStreamQuery", ready_or_not(unsafe { sys::cuStreamQuery(own) }))
        }),
        Wait::Event => recorded(calls, own, CUevent_flags::CU_EVENT_DISABLE_TIMING, |c, event| {
            // Safety: the event is live.
            c.check("cuEventSynchronize", unsafe { sys::cuEventSynchronize(event) })
        }),
        Wait::BlockingEvent => recorded(calls, own, CUevent_flags::CU_EVENT_BLOCKING_SYNC, |c, event| {
            // Safety: the event is live.
            c.check("cuEventSynchronize", unsafe { sys::cuEventSynchronize(event) })
        }),
        Wait::QueryEvent => recorded(calls, own, CUevent_flags::CU_EVENT_DISABLE_TIMING, |c, event| {
            // Safety: the event is live.
            c.check("cuEventQuery", ready_or_not(unsafe { sys::cuEventQuery(event) }))
        }),
        Wait::Elapsed => {
            // CUDA 13's bindings know this function only by its second version, which drivers before 12.8 lack.
            // Safety: the signature is the driver's documented one, and the library is never unloaded.
            let found = unsafe { sys::culib().get::<ElapsedTime>(b"cuEventElapsedTime\0") }.map(|symbol| *symbol);
            let elapsed = found.map_err(|error| calls.missing("cuEventElapsedTime", &error.to_string()))?;
            recorded(calls, own, CUevent_flags::CU_EVENT_DEFAULT, move |c, event| {
                let mut milliseconds = 0.0;
                // Safety: the event is live; writes one number.
                c.check("cuEventElapsedTime", ready_or_not(unsafe { elapsed(&mut milliseconds, event, event) }))
            })
        }
        Wait::Record => {
            let made = Arc::clone(calls);
            Made::new(
                move || event(&made, CUevent_flags::CU_EVENT_DISABLE_TIMING),
                move |event| record(&c, event.get()?, own),
            )
            .boxed()
        }
        Wait::StreamAfterEvent => recorded(calls, own, CUevent_flags::CU_EVENT_DISABLE_TIMING, {
            move |c, event| {
                // Safety: both are live.
                c.check("cuStreamWaitEvent", unsafe { sys::cuStreamWaitEvent(c.own.get()?, event, 0) })
            }
        }),
        Wait::StreamAfterValue => word(calls, |c, address| {
            let flags = CUstreamWaitValue_flags::CU_STREAM_WAIT_VALUE_GEQ as u32;
            // Safety: an aligned word of mapped memory, which is kept until the stream is past it. 0 is reached.
            let status = unsafe { sys::cuStreamWaitValue32_v2(c.own.get()?, address, 0, flags) };
            c.check("cuStreamWaitValue32", status)
        })?,
        Wait::WriteValue => word(calls, |c, address| {
            let flags = CUstreamWriteValue_flags::CU_STREAM_WRITE_VALUE_DEFAULT as u32;
            // Safety: as above.
            let status = unsafe { sys::cuStreamWriteValue32_v2(c.own.get()?, address, 1, flags) };
            c.check("cuStreamWriteValue32", status)
        })?,
        Wait::HostFunction => plain(|c, own| {
            // Safety: the function uses none of its argument.
            c.check("cuLaunchHostFunc", unsafe { sys::cuLaunchHostFunc(own, Some(nothing), ptr::null_mut()) })
        }),
        Wait::Callback => plain(|c, own| {
            // Safety: as above.
            let status = unsafe { sys::cuStreamAddCallback(own, Some(nothing_more), ptr::null_mut(), 0) };
            c.check("cuStreamAddCallback", status)
        }),
    })
}

unsafe extern "C" fn nothing(_: *mut c_void) {}

unsafe extern "C" fn nothing_more(_: CUstream, _: CUresult, _: *mut c_void) {}

/// An event of its own.
pub(super) fn event(calls: &Calls, flags: CUevent_flags) -> Result<Owned<CUevent>> {
    let mut raw = ptr::null_mut();
    // Safety: writes one handle.
    calls.check("cuEventCreate", unsafe { sys::cuEventCreate(&mut raw, flags as u32) })?;
    Ok(Owned::of(&calls.context, raw, sys::cuEventDestroy_v2))
}

/// Records an event.
#[inline]
pub(super) fn record(calls: &Calls, event: CUevent, stream: CUstream) -> Result<()> {
    // Safety: both are live.
    calls.check("cuEventRecord", unsafe { sys::cuEventRecord(event, stream) })
}

/// A call about an event that is recorded on the call's stream, behind what is held.
fn recorded(
    calls: &Arc<Calls>,
    own: CUstream,
    flags: CUevent_flags,
    call: impl Fn(&Calls, CUevent) -> Result<()> + 'static,
) -> Box<dyn Steps> {
    let (made, recorder, c) = (Arc::clone(calls), Arc::clone(calls), Arc::clone(calls));
    Made::new(move || event(&made, flags), move |event| call(&c, event.get()?))
        .behind(move |event| record(&recorder, event.get()?, own))
        .boxed()
}

/// A call about a word of page-locked memory.
fn word(calls: &Arc<Calls>, call: impl Fn(&Calls, u64) -> Result<()> + 'static) -> Result<Box<dyn Steps>> {
    let c = Arc::clone(calls);
    let block = Block::new(&calls.context, Memory::Pinned, 64)?;
    let address = block.on_device()?;
    Ok(Made::new(
        || Ok(()),
        move |()| {
            // As long as the call, and so as long as its work.
            let _kept = &block;
            call(&c, address)
        },
    )
    .boxed())
}
