//! Events: marks in streams, used again after their drop.

use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use cudarc::driver::sys::{self, CUevent, CUevent_flags, CUresult};

use super::{Context, exit};
use crate::device::engine::Result;

/// An owned event.
pub(crate) struct Event {
    raw: CUevent,
    timing: bool,
    context: Arc<Context>,
}

// Safety: an event may be used from any thread; the driver synchronizes its own calls.
unsafe impl Send for Event {}
// Safety: as above.
unsafe impl Sync for Event {}

impl Event {
    /// An event, which may have been recorded by an earlier owner. Without timing it is cheaper to record.
    pub(crate) fn new(context: &Arc<Context>, timing: bool) -> Result<Self> {
        match Self::at_hand(context, timing) {
            Some(event) => Ok(event),
            None => Ok(Self { raw: create(context, timing)?, timing, context: context.clone() }),
        }
    }

    /// An event of an earlier owner, or of the reserve.
    pub(crate) fn at_hand(context: &Arc<Context>, timing: bool) -> Option<Self> {
        let raw = context.given_up().events[usize::from(timing)].pop()?;
        Some(Self { raw, timing, context: context.clone() })
    }

    /// Has at least so many events without and with timing at hand.
    pub(crate) fn reserve(context: &Context, counts: [usize; 2]) -> Result<()> {
        for (place, count) in counts.into_iter().enumerate() {
            let missing = count.saturating_sub(context.given_up().events[place].len());
            for _ in 0..missing {
                let raw = create(context, place == 1)?;
                context.given_up().events[place].push(raw);
            }
        }
        Ok(())
    }

    #[inline]
    pub(super) fn raw(&self) -> CUevent {
        self.raw
    }

    /// Whether times can be taken with it.
    pub(crate) fn has_timing(&self) -> bool {
        self.timing
    }

    /// Whether the latest recording has been reached. Never blocks.
    pub(crate) fn is_complete(&self) -> Result<bool> {
        self.context.bind()?;
        // Safety: the event is live.
        match unsafe { sys::cuEventQuery(self.raw) } {
            CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            status => self.context.check("cuEventQuery", status).map(|()| true),
        }
    }

    /// Blocks until the latest recording has been reached.
    pub(crate) fn synchronize(&self) -> Result<()> {
        self.context.bind()?;
        let _inside = exit::enter();
        // Safety: the event is live.
        self.context.check("cuEventSynchronize", unsafe { sys::cuEventSynchronize(self.raw) })
    }

    /// The time from `start` to this event; `None` while one of them has not been reached. Both are recorded, with timing.
    pub(crate) fn elapsed_since(&self, start: &Self) -> Result<Option<Duration>> {
        self.context.bind()?;
        match self.context.elapsed_time(start.raw, self.raw) {
            (_, CUresult::CUDA_ERROR_NOT_READY) => Ok(None),
            (milliseconds, status) => {
                self.context.check("cuEventElapsedTime", status)?;
                // An end before its start gives a negative time, which a duration cannot hold.
                Ok(Some(Duration::from_secs_f64(f64::from(milliseconds).max(0.0) / 1e3)))
            }
        }
    }
}

fn create(context: &Context, timing: bool) -> Result<CUevent> {
    context.bind()?;
    let flags = if timing { CUevent_flags::CU_EVENT_DEFAULT } else { CUevent_flags::CU_EVENT_DISABLE_TIMING };
    let mut raw = ptr::null_mut();
    // Safety: writes one handle, which is never destroyed, but used again.
    context.check("cuEventCreate", unsafe { sys::cuEventCreate(&mut raw, flags as u32) }).map(|()| raw)
}

impl Drop for Event {
    /// A recording may be pending: what waits for it keeps it, also when the event is recorded again.
    fn drop(&mut self) {
        self.context.given_up().events[usize::from(self.timing)].push(self.raw);
    }
}
