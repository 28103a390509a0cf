//! What is kept apart: waits for a whole context, and captures, beside which the driver does not allow them, and gates that begin
//! to hold a stream, which they would wait for.
//!
//! Every [`Capture`](super::Capture) is counted here, whoever makes it, and a context is waited for through here alone.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

use cudarc::driver::sys;

use super::{Context, exit};
use crate::device::engine::Result;
use crate::device::lock;

/// What of it there is in a context.
#[derive(Default)]
pub(super) struct Apart {
    state: Mutex<State>,
    /// A wait is over.
    waited: Condvar,
}

#[derive(Default)]
struct State {
    captures: usize,
    /// Waits that are not over.
    waits: usize,
    /// Captures and gates that wait for the end of those, and let no other begin.
    next: usize,
}

impl Apart {
    /// Once no wait is under way: nobody can see when one has reached the driver, which then would not wait for what begins now.
    /// Such waits end by themselves, as no closed gate holds what they wait for.
    fn unless_waited_for<R>(&self, begin: impl FnOnce(&mut State) -> R) -> R {
        let mut state = lock(&self.state);
        state.next += 1;
        while state.waits > 0 {
            state = self.waited.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.next -= 1;
        begin(&mut state)
    }
}

/// A capture in progress, until it is dropped.
pub(super) struct CaptureInProgress(Arc<Context>);

impl Drop for CaptureInProgress {
    fn drop(&mut self) {
        lock(&self.0.apart.state).captures -= 1;
    }
}

impl Context {
    /// To be kept while a stream captures: until then, the context as a whole is not waited for.
    pub(super) fn begin_capture(self: &Arc<Self>) -> CaptureInProgress {
        self.apart.unless_waited_for(|state| state.captures += 1);
        CaptureInProgress(self.clone())
    }

    /// Has something begin that a wait for the context would wait for, while none is under way.
    pub(crate) fn unless_waited_for<R>(&self, begin: impl FnOnce() -> R) -> R {
        self.apart.unless_waited_for(|_| begin())
    }

    /// Blocks until all work of the context has completed, on whichever stream. Not while a capture is in progress, nor while a
    /// closed gate `holds` a stream, nor where one of either is about to begin.
    pub(crate) fn synchronize(&self, holds: impl FnOnce() -> bool) -> Result<()> {
        let mut state = lock(&self.apart.state);
        if state.captures + state.next > 0 || holds() {
            return Ok(());
        }
        state.waits += 1;
        drop(state);
        let outcome = self.bind().and_then(|()| {
            let _inside = exit::enter();
            // Safety: the context is current.
            self.check("cuCtxSynchronize", unsafe { sys::cuCtxSynchronize() })
        });
        lock(&self.apart.state).waits -= 1;
        self.apart.waited.notify_all();
        outcome
    }
}
