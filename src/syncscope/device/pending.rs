//! The copies of a host buffer, in one direction, that may not be over.
//!
//! The list is locked to look at it and to change it, never over a wait or an enqueue: a thread may wait for a copy that a
//! gate holds, or for room in a full queue, while another uses the same buffer and then opens the gate.

use std::sync::{Arc, Mutex, PoisonError};

use super::engine::{EngineEvent, Result};
use super::{Event, Stream};
use crate::device::lock;
use crate::error::DeviceError;

/// The last copy on each stream that used the buffer: earlier ones on the same stream are over when it is.
#[derive(Default)]
pub(super) struct Pending(Mutex<State>);

#[derive(Default)]
struct State {
    copies: Vec<(Stream, Event)>,
    /// The first failure of a copy that is over.
    failure: Option<DeviceError>,
}

impl Pending {
    /// Has `copy` enqueue on `stream`, with the event that it records, and remembers it.
    pub(super) fn enqueue(&self, stream: &Stream, copy: impl FnOnce(&dyn EngineEvent) -> Result<()>) -> Result<()> {
        // A stream must not live on in here once its copies are over.
        let over = lock(&self.0).take_over(|of| !of.is_same(stream));
        drop(over);
        let known = lock(&self.0).copies.iter().find(|(of, _)| of.is_same(stream)).map(|(_, event)| event.clone());
        let event = known.map_or_else(|| stream.device().event(), Ok)?;
        stream.notes_recording(&event, None);
        copy(&*event.raw)?;
        let mut state = lock(&self.0);
        // Another thread may have found the event of before over, and forgotten it.
        if !state.copies.iter().any(|(_, other)| Arc::ptr_eq(&other.raw, &event.raw)) {
            state.copies.push((stream.clone(), event));
        }
        Ok(())
    }

    /// Waits for all of them; then the first failure, which stays.
    pub(super) fn wait(&self) -> Result<()> {
        let events: Vec<Event> = lock(&self.0).copies.iter().map(|(_, event)| event.clone()).collect();
        let outcomes: Vec<Result<()>> = events.iter().map(Event::synchronize).collect();
        let mut state = lock(&self.0);
        // Of a lost device, which waits for nothing, they may not be over.
        let over = state.take_over(|_| true);
        if let Some(failure) = outcomes.into_iter().find_map(Result::err) {
            state.failure.get_or_insert(failure);
        }
        let outcome = state.failure.clone().map_or(Ok(()), Err);
        drop(state);
        drop(over);
        outcome
    }

    /// The failure that is known.
    pub(super) fn failure(&self) -> Result<()> {
        lock(&self.0).failure.clone().map_or(Ok(()), Err)
    }

    /// The failure is of no use any more.
    pub(super) fn forget_failure(&self) {
        lock(&self.0).failure = None;
    }

    /// The events of copies that may not be over.
    pub(super) fn take(&mut self) -> Vec<Arc<dyn EngineEvent>> {
        let state = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        state.copies.drain(..).map(|(_, event)| event.raw).collect()
    }
}

impl State {
    /// Takes the copies that are over on some streams, to be dropped without the lock, and keeps their failure.
    fn take_over(&mut self, on: impl Fn(&Stream) -> bool) -> Vec<(Stream, Event)> {
        let is_over = |(stream, event): &mut (Stream, Event)| on(stream) && event.raw.is_over();
        let over: Vec<_> = self.copies.extract_if(.., is_over).collect();
        if let Some(failure) = over.iter().find_map(|(_, event)| event.raw.is_complete().err()) {
            self.failure.get_or_insert(failure);
        }
        over
    }
}
