//! One trial of a call: made while a gate holds a stream, or timed behind nothing or behind work of a known length.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::{CallUnderTest, Gated, On, RigStream, WaitMode};
use crate::affinity;
use crate::device::engine::Result;
use crate::error::DeviceError;

/// A trial is given this many times as long as the call took with nothing pending, beside the patience.
const ALLOWANCE: u32 = 4;

/// How long it may take to enqueue what stands before a call.
const PREPARATION: Duration = Duration::from_secs(1);

/// How often a call is rehearsed to know how long it takes with nothing pending.
const REHEARSALS: usize = 3;

/// What came of a trial.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Tried {
    /// Whether the call came back only after the gate was opened.
    pub(crate) waited: bool,
    /// For how long it held the host.
    pub(crate) seconds: f64,
}

impl CallUnderTest {
    /// Makes the call some times with nothing pending, so that whatever it loads is loaded, and gives the longest time.
    pub(crate) fn rehearse(&mut self) -> Result<Duration> {
        let mut longest = 0.0f64;
        let rehearsals = if self.call.makes_a_context() { 2 } else { REHEARSALS };
        for rehearsal in 0..rehearsals {
            let seconds = self.time(None, None)?;
            // The first one loads what the call needs.
            longest = if rehearsal == 0 { 0.0 } else { longest.max(seconds) };
        }
        Ok(Duration::from_secs_f64(longest))
    }

    /// Makes the call while a gate holds a stream. A watchdog opens the gate when the patience is over, and the time that
    /// the call needs by itself, whatever happens.
    ///
    /// # Errors
    /// [`DeviceError::NotApplicable`] where there is no such stream; the call's own.
    pub(crate) fn trial(&mut self, held: Gated, patience: Duration, alone: Duration) -> Result<Tried> {
        let line = self.line(held)?;
        let patience = patience + alone * ALLOWANCE;
        self.steps.prepare()?;
        let outcome = self.held(line, patience);
        self.end(outcome)
    }

    fn held(&mut self, line: RigStream, patience: Duration) -> Result<Tried> {
        let gate = self.rig.hold(line)?;
        let opened = AtomicBool::new(false);
        let (begin, watched) = mpsc::channel::<()>();
        std::thread::scope(|scope| {
            let (gate, opened) = (&gate, &opened);
            let watchdog = move || {
                // The sender is dropped when the call has returned, also by a panic.
                let over = |patience| match watched.recv_timeout(patience) {
                    Ok(()) => false,
                    Err(RecvTimeoutError::Disconnected) => true,
                    Err(RecvTimeoutError::Timeout) => {
                        opened.store(true, Ordering::SeqCst);
                        true
                    }
                };
                // Until the call begins, and then until it ends.
                _ = over(PREPARATION) || over(patience);
                gate.open();
            };
            affinity::elsewhere(|| scope.spawn(watchdog));
            let begin = begin;
            self.steps.enqueue()?;
            if opened.load(Ordering::SeqCst) {
                let reason = "what stands before the call could not be enqueued behind the gate".to_owned();
                return Err(DeviceError::CallFailed { device: String::new(), call: self.call.name, reason });
            }
            // The watchdog is there as long as the sender is.
            _ = begin.send(());
            let start = Instant::now();
            let result = self.steps.call();
            let seconds = start.elapsed().as_secs_f64();
            let waited = opened.load(Ordering::SeqCst);
            drop(begin);
            result.map(|()| Tried { waited, seconds })
        })
    }

    /// The host's time in the call, with nothing pending or behind work of this length: on the stream that the call is given,
    /// else on another one.
    pub(crate) fn time(&mut self, behind: Option<Duration>, mode: Option<WaitMode>) -> Result<f64> {
        if let Some(mode) = mode {
            self.rig.wait_by(mode)?;
        }
        let outcome = self.steps.prepare().and_then(|()| self.timed(behind));
        self.end(outcome)
    }

    fn timed(&mut self, behind: Option<Duration>) -> Result<f64> {
        if let Some(length) = behind {
            self.rig.keep_busy(self.line(Gated::Same).unwrap_or(RigStream::Other), length)?;
        }
        self.steps.enqueue()?;
        let start = Instant::now();
        let result = self.steps.call();
        let seconds = start.elapsed().as_secs_f64();
        result.map(|()| seconds)
    }

    /// All work is waited for before anything is ended that it may use.
    pub(super) fn end<T>(&mut self, outcome: Result<T>) -> Result<T> {
        let drained = self.rig.drain();
        self.steps.finish();
        outcome.and_then(|value| drained.map(|()| value))
    }

    fn line(&self, held: Gated) -> Result<RigStream> {
        match (held, self.call.on) {
            (Gated::Same, On::Stream) => Ok(RigStream::Own),
            (Gated::Same, On::Legacy) | (Gated::Legacy, _) => Ok(RigStream::Legacy),
            (Gated::Same, On::Nothing) => Err(DeviceError::NotApplicable {
                what: "the stream of the call".to_owned(),
                device: String::new(),
                reason: NO_STREAM.to_owned(),
            }),
            (Gated::Other, _) => Ok(RigStream::Other),
            (Gated::NonBlocking, _) => Ok(RigStream::NonBlocking),
            (Gated::Thread, _) => Ok(RigStream::Thread),
            (Gated::Device, _) => Ok(RigStream::Device),
        }
    }
}

/// Why there is no trial with the call's own stream held.
const NO_STREAM: &str = "the call is given no stream";
