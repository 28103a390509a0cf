//! What a running cell writes, on its way to the notebook.
//!
//! Text of the standard output goes at once. Text of the standard error waits for a moment: if the cell fails with it, the
//! failure says it, and it does not stand in the notebook twice. Nothing is lost by that, whenever the moment ends.

use std::sync::mpsc::{self, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::json;

use super::Sender;
use super::wire::Message;
use crate::session::Sink;

/// How long text of the standard error waits.
const MOMENT: Duration = Duration::from_millis(50);

/// Publishes what cells write.
pub(super) struct Live {
    state: Arc<Mutex<State>>,
    /// Says that there is text that waits.
    waits: SyncSender<()>,
}

struct State {
    sender: Sender,
    /// The request whose cell runs.
    cell: Option<Message>,
    held: String,
}

fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Live {
    pub(super) fn new(sender: Sender) -> Self {
        let state = Arc::new(Mutex::new(State { sender, cell: None, held: String::new() }));
        let (waits, wait) = mpsc::sync_channel(1);
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            while wait.recv().is_ok() {
                std::thread::sleep(MOMENT);
                locked(&shared).release();
            }
        });
        Self { state, waits }
    }

    /// Where a session puts texts.
    pub(super) fn sink(&self) -> Sink {
        let (state, waits) = (Arc::clone(&self.state), self.waits.clone());
        Box::new(move |stream, text| {
            let mut state = locked(&state);
            if stream == "stderr" {
                state.held.push_str(text);
                // Where the channel is full, it is known already.
                let _ = waits.try_send(());
            } else {
                state.release();
                state.publish(stream, text);
            }
        })
    }

    /// The cell of `request` begins.
    pub(super) fn begin(&self, request: &Message) {
        let mut state = locked(&self.state);
        // What was written before belongs to no cell.
        state.held.clear();
        state.cell = Some(request.clone());
    }

    /// The cell is over: what still waits is published, or given back for its failure.
    pub(super) fn end(&self, failed: bool) -> String {
        let mut state = locked(&self.state);
        if !failed {
            state.release();
        }
        state.cell = None;
        std::mem::take(&mut state.held)
    }
}

impl State {
    fn release(&mut self) {
        let held = std::mem::take(&mut self.held);
        if !held.is_empty() {
            self.publish("stderr", &held);
        }
    }

    fn publish(&self, stream: &str, text: &str) {
        if let Some(cell) = &self.cell {
            self.sender.publish(cell, "stream", &json!({"name": stream, "text": text}));
        }
    }
}
