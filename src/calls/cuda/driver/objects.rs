//! Calls that make and end streams and events.

use cudarc::driver::sys::{self, CUevent, CUevent_flags, CUstream, CUstream_flags};

use super::owned::Owned;
use super::waits::{event, record};
use super::{Calls, call, creates, ends, plain, stream};
use crate::catalogue::Call;
use crate::{On, Result};

const APART: CUstream_flags = CUstream_flags::CU_STREAM_NON_BLOCKING;

pub(super) fn calls() -> Vec<Call> {
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
