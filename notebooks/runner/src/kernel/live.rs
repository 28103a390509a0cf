//! What a running cell writes, on its way to the notebook.
//!
//! Text waits for a moment, and what was written within it goes as few messages: Jupyter's server drops what exceeds a
//! thousand messages in a second, errors too. If the cell fails with text of the standard error that waits, the failure says
//! it, and it does not stand in the notebook twice. Nothing is lost by that, whenever the moment ends.

use std::sync::mpsc::{self, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::json;

use super::Sender;
use super::wire::Message;
use crate::session::Sink;

/// How long text waits.
const MOMENT: Duration = Duration::from_millis(50);
/// The most messages of one moment. Where the outputs took turns more often, the last two messages hold the rest.
const MOST: usize = 16;

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
    /// The texts that wait, with the names of their streams.
    held: Vec<(&'static str, String)>,
}

fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Live {
    pub(super) fn new(sender: Sender) -> Self {
        let state = Arc::new(Mutex::new(State { sender, cell: None, held: Vec::new() }));
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
            hold(&mut locked(&state).held, stream, text);
            // Where the channel is full, it is known already.
            let _ = waits.try_send(());
        })
    }

    /// The cell of `request` begins.
    pub(super) fn begin(&self, request: &Message) {
        let mut state = locked(&self.state);
        // What was written before belongs to no cell.
        state.held.clear();
        state.cell = Some(request.clone());
    }

    /// The cell is over: what still waits is published, but for the end of the standard error of a cell that failed, which is
    /// given back for its failure.
    pub(super) fn end(&self, failed: bool) -> String {
        let mut state = locked(&self.state);
        let last = state.held.pop_if(|(stream, _)| failed && *stream == "stderr");
        state.release();
        state.cell = None;
        last.map(|(_, text)| text).unwrap_or_default()
    }
}

impl State {
    fn release(&mut self) {
        for (stream, text) in self.held.drain(..) {
            if let Some(cell) = &self.cell {
                self.sender.publish(cell, "stream", &json!({"name": stream, "text": text}));
            }
        }
    }
}

/// Puts a text to those that wait.
fn hold(held: &mut Vec<(&'static str, String)>, stream: &'static str, text: &str) {
    let behind = if held.len() < MOST { held.len().saturating_sub(1) } else { 0 };
    match held[behind..].iter_mut().rfind(|(name, _)| *name == stream) {
        Some((_, own)) => own.push_str(text),
        None => held.push((stream, text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What waits when a cell has written this.
    fn held(written: impl IntoIterator<Item = (&'static str, &'static str)>) -> Vec<(&'static str, String)> {
        let mut held = Vec::new();
        written.into_iter().for_each(|(stream, text)| hold(&mut held, stream, text));
        held
    }

    #[test]
    fn lines_within_a_moment_are_one_message_and_keep_their_order() {
        let held = held([("stdout", "a\n"), ("stdout", "b\n"), ("stderr", "c\n"), ("stdout", "d\n")]);
        let expected = [("stdout", "a\nb\n"), ("stderr", "c\n"), ("stdout", "d\n")];
        assert_eq!(held, expected.map(|(stream, text)| (stream, text.to_owned())));
    }

    #[test]
    fn outputs_that_take_turns_thousands_of_times_are_few_messages_and_lose_nothing() {
        let held = held((0..5000).flat_map(|_| [("stdout", "o\n"), ("stderr", "e\n")]));
        assert!(held.len() <= MOST, "{}", held.len());
        for stream in ["stdout", "stderr"] {
            let texts = held.iter().filter(|(name, _)| *name == stream);
            assert_eq!(texts.map(|(_, text)| text.lines().count()).sum::<usize>(), 5000, "{stream}");
        }
    }
}
