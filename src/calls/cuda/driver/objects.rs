//! Calls that make and end streams and events.

use std::ptr;
use std::sync::Arc;

use cudarc::driver::sys::{self, CUevent_flags, CUstream, CUstream_flags};

use super::owned::Owned;
use super::waits::{event, record};
use super::{Calls, stream};
use crate::Result;
use crate::catalogue::Object;
use crate::{Made, Steps};

pub(super) fn steps(calls: &Arc<Calls>, call: Object) -> Result<Box<dyn Steps>> {
    let (c, context, own) = (Arc::clone(calls), calls.context.clone(), calls.own.get()?);
    let apart = CUstream_flags::CU_STREAM_NON_BLOCKING;
    let plain_event = CUevent_flags::CU_EVENT_DISABLE_TIMING;
    Ok(match call {
        Object::CreateStream => created(calls, CUstream_flags::CU_STREAM_DEFAULT),
        Object::CreateNonBlocking => created(calls, apart),
        Object::CreateWithPriority => Made::new(
            move || Ok(Owned::empty(&context, sys::cuStreamDestroy_v2)),
            move |place| {
                let mut raw = ptr::null_mut();
                // Safety: writes one handle. A smaller number is a higher priority; what is out of range is brought into it.
                let status = unsafe { sys::cuStreamCreateWithPriority(&mut raw, apart as u32, -1) };
                place.keep("cuStreamCreateWithPriority", raw, status)
            },
        )
        .boxed(),
        Object::DestroyStream => {
            Made::new(move || stream(&context, apart), |stream| stream.end("cuStreamDestroy")).boxed()
        }
        Object::DestroyPendingStream => Made::new(
            move || Ok((stream(&context, apart)?, event(&c, plain_event)?)),
            |(stream, _)| stream.end("cuStreamDestroy"),
        )
        .behind({
            let c = Arc::clone(calls);
            move |(stream, event)| {
                record(&c, event.get()?, own)?;
                // Safety: both are live.
                let status = unsafe { sys::cuStreamWaitEvent(stream.get()?, event.get()?, 0) };
                c.check("cuStreamWaitEvent", status)
            }
        })
        .boxed(),
        Object::GetPriority => Made::new(
            || Ok(()),
            move |()| {
                let mut priority = 0;
                // Safety: the stream is live; writes one integer.
                c.check("cuStreamGetPriority", unsafe { sys::cuStreamGetPriority(own, &mut priority) })
            },
        )
        .boxed(),
        Object::CreateEvent => Made::new(
            move || Ok(Owned::empty(&context, sys::cuEventDestroy_v2)),
            move |place| {
                let mut raw = ptr::null_mut();
                // Safety: writes one handle.
                let status = unsafe { sys::cuEventCreate(&mut raw, plain_event as u32) };
                place.keep("cuEventCreate", raw, status)
            },
        )
        .boxed(),
        Object::DestroyEvent => Made::new(move || event(&c, plain_event), |event| event.end("cuEventDestroy")).boxed(),
        Object::DestroyPendingEvent => {
            let recorder = Arc::clone(calls);
            Made::new(move || event(&c, plain_event), |event| event.end("cuEventDestroy"))
                .behind(move |event| record(&recorder, event.get()?, own))
                .boxed()
        }
    })
}

fn created(calls: &Arc<Calls>, flags: CUstream_flags) -> Box<dyn Steps> {
    let context = calls.context.clone();
    Made::new(
        move || Ok(Owned::empty(&context, sys::cuStreamDestroy_v2)),
        move |place: &mut Owned<CUstream>| {
            let mut raw = ptr::null_mut();
            // Safety: writes one handle.
            let status = unsafe { sys::cuStreamCreate(&mut raw, flags as u32) };
            place.keep("cuStreamCreate", raw, status)
        },
    )
    .boxed()
}
