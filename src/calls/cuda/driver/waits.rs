//! Calls that wait, ask, or order streams.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

use cudarc::driver::sys::{
    self, CUevent, CUevent_flags, CUresult, CUstream, CUstream_flags, CUstreamWaitValue_flags, CUstreamWriteValue_flags,
};

use super::owned::{Block, Owned};
use super::{Calls, LEGACY, Status, call, creates, ends, made, plain, ready_or_not, stream};
use crate::catalogue::{Call, Memory};
use crate::{On, Result, Steps};
use syncscope::device::raw::driver_function;

pub(super) fn calls() -> Vec<Call> {
    let untimed = CUevent_flags::CU_EVENT_DISABLE_TIMING;
    vec![
        // Safety: the context is current.
        plain("cuCtxSynchronize", On::Nothing, |_| Ok(unsafe { sys::cuCtxSynchronize() })),
        // Safety: the stream is live.
        plain("cuStreamSynchronize", On::Stream, |c| Ok(unsafe { sys::cuStreamSynchronize(c.own.get()?) })),
        // Safety: a stream that is always there.
        plain("cuStreamSynchronize", On::Legacy, |_| Ok(unsafe { sys::cuStreamSynchronize(LEGACY) }))
            .way("legacy default stream"),
        // Safety: the stream is live.
        plain("cuStreamQuery", On::Stream, |c| Ok(ready_or_not(unsafe { sys::cuStreamQuery(c.own.get()?) }))),
        // Safety: the event is live.
        recorded("cuEventSynchronize", untimed, |_, event| Ok(unsafe { sys::cuEventSynchronize(event) })),
        recorded("cuEventSynchronize", CUevent_flags::CU_EVENT_BLOCKING_SYNC, |_, event| {
            // Safety: as above.
            Ok(unsafe { sys::cuEventSynchronize(event) })
        })
        .way("blocking event"),
        // Safety: as above.
        recorded("cuEventQuery", untimed, |_, event| Ok(ready_or_not(unsafe { sys::cuEventQuery(event) }))),
        call("cuEventElapsedTime", On::Stream, elapsed),
        made(
            "cuEventRecord",
            On::Stream,
            move |c| event(c, untimed),
            |c, event| {
                // Safety: both are live.
                Ok(unsafe { sys::cuEventRecord(event.get()?, c.own.get()?) })
            },
        ),
        recorded("cuStreamWaitEvent", untimed, |c, event| {
            // Safety: both are live.
            Ok(unsafe { sys::cuStreamWaitEvent(c.own.get()?, event, 0) })
        }),
        word("cuStreamWaitValue32", |c, address| {
            let flags = CUstreamWaitValue_flags::CU_STREAM_WAIT_VALUE_GEQ as u32;
            // Safety: an aligned word of mapped memory, which is kept until the stream is past it. 0 is reached.
            Ok(unsafe { sys::cuStreamWaitValue32_v2(c.own.get()?, address, 0, flags) })
        }),
        word("cuStreamWriteValue32", |c, address| {
            let flags = CUstreamWriteValue_flags::CU_STREAM_WRITE_VALUE_DEFAULT as u32;
            // Safety: as above.
            Ok(unsafe { sys::cuStreamWriteValue32_v2(c.own.get()?, address, 1, flags) })
        }),
        plain("cuLaunchHostFunc", On::Stream, |c| {
            // Safety: the function uses none of its argument.
            Ok(unsafe { sys::cuLaunchHostFunc(c.own.get()?, Some(nothing), ptr::null_mut()) })
        }),
        plain("cuStreamAddCallback", On::Stream, |c| {
            // Safety: as above.
            Ok(unsafe { sys::cuStreamAddCallback(c.own.get()?, Some(nothing_more), ptr::null_mut(), 0) })
        }),
    ]
}

unsafe extern "C" fn nothing(_: *mut c_void) {}

unsafe extern "C" fn nothing_more(_: CUstream, _: CUresult, _: *mut c_void) {}

/// An event of its own.
fn event(calls: &Calls, flags: CUevent_flags) -> Result<Owned<CUevent>> {
    // Safety: writes one handle.
    let create = |raw: &mut CUevent| unsafe { sys::cuEventCreate(raw, flags as u32) };
    Owned::new(&calls.context, "cuEventCreate", sys::cuEventDestroy_v2, create)
}

/// Records an event on the call's stream.
fn record(calls: &Calls, event: &Owned<CUevent>) -> Result<()> {
    // Safety: both are live.
    calls.check("cuEventRecord", unsafe { sys::cuEventRecord(event.get()?, calls.own.get()?) })
}

/// A call about an event that is recorded on the call's stream, behind what is held.
fn recorded(
    name: &'static str,
    flags: CUevent_flags,
    run: impl Fn(&Calls, CUevent) -> Status + Copy + 'static,
) -> Call {
    call(name, On::Stream, move |calls| Ok(behind_recording(calls, name, flags, run)))
}

fn behind_recording(
    calls: &Arc<Calls>,
    name: &'static str,
    flags: CUevent_flags,
    run: impl Fn(&Calls, CUevent) -> Status + 'static,
) -> Box<dyn Steps> {
    let recorder = Arc::clone(calls);
    let steps = calls.made(name, move |c| event(c, flags), move |c, event: &mut Owned<CUevent>| run(c, event.get()?));
    steps.behind(move |event| record(&recorder, event)).boxed()
}

type ElapsedTime = unsafe extern "C" fn(*mut f32, CUevent, CUevent) -> CUresult;

fn elapsed(calls: &Arc<Calls>) -> Result<Box<dyn Steps>> {
    const NAME: &str = "cuEventElapsedTime";
    // CUDA 13's bindings know this function only by its second version, which drivers before 12.8 lack.
    // Safety: the signature is the driver's documented one; the driver has been initialized.
    let found = unsafe { driver_function::<ElapsedTime>(NAME) };
    let elapsed = found.map_err(|error| calls.missing(NAME, &error.to_string()))?;
    Ok(behind_recording(calls, NAME, CUevent_flags::CU_EVENT_DEFAULT, move |_, event| {
        let mut milliseconds = 0.0;
        // Safety: the event is live; writes one number.
        Ok(ready_or_not(unsafe { elapsed(&mut milliseconds, event, event) }))
    }))
}

/// A call about a word of page-locked memory.
fn word(name: &'static str, run: impl Fn(&Calls, u64) -> Status + Copy + 'static) -> Call {
    call(name, On::Stream, move |calls| {
        let block = Block::new(&calls.context, Memory::Pinned, 64)?;
        let address = block.on_device()?;
        Ok(calls.plain(name, move |c| {
            // As long as the call, and so as long as its work.
            let _kept = &block;
            run(c, address)
        }))
    })
}

const APART: CUstream_flags = CUstream_flags::CU_STREAM_NON_BLOCKING;

/// Streams and events.
pub(super) fn objects() -> Vec<Call> {
    vec![
        created(CUstream_flags::CU_STREAM_DEFAULT),
        created(APART).way("non-blocking"),
        creates("cuStreamCreateWithPriority", On::Nothing, sys::cuStreamDestroy_v2, |_, stream| {
            // Safety: writes one handle. A smaller number is a higher priority; what is out of range is brought into it.
            Ok(unsafe { sys::cuStreamCreateWithPriority(stream, APART as u32, -1) })
        }),
        ends("cuStreamDestroy", |c| stream(&c.context, APART)),
        call("cuStreamDestroy", On::Stream, |calls| {
            let made = |c: &Calls| Ok((stream(&c.context, APART)?, untimed(c)?));
            let (steps, c) = (calls.made("cuStreamDestroy", made, |_, (stream, _)| stream.end()), calls.clone());
            let waits = move |(stream, event): &mut (Owned<CUstream>, Owned<CUevent>)| {
                record(&c, event)?;
                // Safety: both are live.
                let status = unsafe { sys::cuStreamWaitEvent(stream.get()?, event.get()?, 0) };
                c.check("cuStreamWaitEvent", status)
            };
            Ok(steps.behind(waits).boxed())
        })
        .way("with pending work"),
        plain("cuStreamGetPriority", On::Stream, |c| {
            let mut priority = 0;
            // Safety: the stream is live; writes one integer.
            Ok(unsafe { sys::cuStreamGetPriority(c.own.get()?, &mut priority) })
        }),
        creates("cuEventCreate", On::Nothing, sys::cuEventDestroy_v2, |_, event| {
            // Safety: writes one handle.
            Ok(unsafe { sys::cuEventCreate(event, CUevent_flags::CU_EVENT_DISABLE_TIMING as u32) })
        }),
        ends("cuEventDestroy", untimed),
        call("cuEventDestroy", On::Stream, |calls| {
            let (steps, c) = (calls.made("cuEventDestroy", untimed, |_, event| event.end()), calls.clone());
            Ok(steps.behind(move |event| record(&c, event)).boxed())
        })
        .way("recorded and not reached"),
    ]
}

fn untimed(calls: &Calls) -> Result<Owned<CUevent>> {
    event(calls, CUevent_flags::CU_EVENT_DISABLE_TIMING)
}

fn created(flags: CUstream_flags) -> Call {
    creates("cuStreamCreate", On::Nothing, sys::cuStreamDestroy_v2, move |_, stream| {
        // Safety: writes one handle.
        Ok(unsafe { sys::cuStreamCreate(stream, flags as u32) })
    })
}
