//! What becomes of memory that a stream's user has given up.

use super::StreamInner;
use crate::device::cuda::driver::{Allocation, Event};
use crate::device::cuda::gpu::PAUSE;
use crate::device::cuda::stream::limbo::Kept;
use crate::device::engine::Result;
use crate::device::lock;

impl StreamInner {
    /// Frees memory that was used on this stream alone, after the work enqueued so far. A push on a list.
    #[inline]
    pub(crate) fn free(&self, allocation: Allocation) {
        lock(&self.free).keep(allocation);
    }

    /// Keeps something until this stream is past the work enqueued so far. A push on a list.
    pub(crate) fn keep(&self, kept: Kept) {
        lock(&self.limbo).keep(kept);
    }

    /// Lets go of what the stream is past, and marks the rest, unless another thread is enqueueing, or the mark could wait for
    /// room behind a gate: what is not marked now is a later call's.
    pub(crate) fn reclaim(&self) {
        if lock(&self.limbo).is_empty() {
            return;
        }
        let mut past = Vec::new();
        // Nobody enqueues from here on: where no gate is closed now, none holds what the queue has.
        if let Some(state) = self.undisturbed() {
            let unmarked = lock(&self.limbo).unmarked();
            if self.is_idle() {
                past = unmarked;
            } else if self.device.gpu.is_held() && !self.is_nearly_idle() {
                lock(&self.limbo).still_unmarked(unmarked);
            } else {
                self.mark(unmarked);
            }
            drop(state);
        }
        past.extend(lock(&self.limbo).reached());
        // Without a lock.
        drop(past);
    }

    /// Waits as [`wait_unless_idle`](Self::wait_unless_idle), and lets go of what was given up before: a stream whose memory others used
    /// is not held on to by them.
    pub(crate) fn wait_and_let_go(&self) -> Result<()> {
        let kept = lock(&self.limbo).all();
        let waited = self.wait_unless_idle();
        match waited {
            // Without a lock.
            Ok(()) => drop(kept),
            Err(_) => lock(&self.limbo).still_unmarked(kept),
        }
        waited
    }

    /// Puts a mark behind what was given up; the caller holds the state. The list is not locked over the driver's call, which
    /// may block: a drop adds to it.
    pub(super) fn mark(&self, kept: Vec<Kept>) {
        if kept.is_empty() {
            return;
        }
        let recorded = self.device.gpu.event(false).and_then(|event| self.raw.record(&event).map(|()| event));
        self.count();
        let mut limbo = lock(&self.limbo);
        match recorded {
            Ok(event) => limbo.marked(event, kept),
            Err(_) => limbo.still_unmarked(kept),
        }
    }

    /// A mark behind all that is pending and behind what was given up, for a call that waits for it; nothing where another
    /// thread is enqueueing, or the mark could wait for room behind a gate. The caller `has_state`, or it is taken here.
    pub(crate) fn marked(&self, has_state: bool) -> Option<Event> {
        let _state = if has_state { None } else { Some(self.pause(PAUSE)?) };
        if self.device.gpu.is_held() && !self.is_nearly_idle() {
            return None;
        }
        let unmarked = lock(&self.limbo).unmarked();
        self.mark(unmarked);
        let mark = self.device.gpu.event(false).ok()?;
        let recorded = self.raw.record(&mark);
        self.count();
        recorded.is_ok().then_some(mark)
    }

    /// Whether all work enqueued so far has completed: then it is past what was given up before. The caller holds the state, or
    /// the right to make.
    pub(crate) fn is_past(&self) -> bool {
        let unmarked = lock(&self.limbo).unmarked();
        let is_over = self.is_over();
        let past = if is_over {
            unmarked
        } else {
            lock(&self.limbo).still_unmarked(unmarked);
            Vec::new()
        };
        // Without a lock.
        drop(past);
        is_over
    }

    /// Gives the memory that is kept for the next allocations back to the pool. Where no gate `can_hold` the stream, whatever
    /// another thread does: it comes to an end. Else nothing while another enqueues, who may be stuck, or where the call could
    /// wait for room.
    pub(crate) fn give_back_free(&self, can_hold: bool) {
        if !can_hold {
            self.give_back();
        } else if let Some(state) = self.undisturbed() {
            self.give_back_own();
            drop(state);
        }
    }

    /// As [`give_back_free`](Self::give_back_free), of who holds the state.
    pub(crate) fn give_back_own(&self) {
        if !self.device.gpu.is_held() || self.is_over() {
            self.give_back();
        }
    }

    fn give_back(&self) {
        let freed = lock(&self.free).take_all();
        freed.into_iter().for_each(|allocation| self.raw.free(allocation));
    }
}
