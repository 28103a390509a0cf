//! One trial of a call: made while a gate holds a stream, or timed behind nothing or behind work of a known length.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::{CallUnderTest, On, Result, Steps, StreamRole, WaitMode};
use syncscope::affinity;
use syncscope::device::Gate;
use syncscope::error::DeviceError;

/// A trial is given this many times as long as the call took with nothing pending, beside the patience: fewer times for one that
/// takes most of a second, which varies less.
const ALLOWANCE: u32 = 4;
const ALLOWANCE_OF_LONG: u32 = 2;

/// How long it may take to enqueue what stands before a call.
const PREPARATION: Duration = Duration::from_secs(1);

/// How often a call is rehearsed to know how long it takes with nothing pending: once, where it takes most of a second.
const REHEARSALS: usize = 3;

/// What came of a trial.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tried {
    /// Whether the call came back only after the gate was opened.
    pub waited: bool,
    /// For how long it held the host.
    pub seconds: f64,
}

impl CallUnderTest {
    /// Makes the call some times with nothing pending, so that whatever it loads is loaded, and gives the longest time.
    pub fn rehearse(&mut self) -> Result<Duration> {
        let mut longest = self.time(None, None)?;
        if !self.call.takes_long() {
            // The first one loaded what the call needs, and says nothing of the others.
            longest = 0.0;
            for _ in 1..REHEARSALS {
                longest = self.time(None, None)?.max(longest);
            }
        }
        Ok(Duration::from_secs_f64(longest))
    }

    /// Makes the call while a gate holds a stream. A watchdog opens the gate when the patience is over, and the time that
    /// the call needs by itself, whatever happens.
    ///
    /// # Errors
    /// [`DeviceError::NotApplicable`] where there is no such stream; the call's own.
    pub fn trial(&mut self, held: StreamRole, patience: Duration, alone: Duration) -> Result<Tried> {
        let line = self.line(held)?;
        let allowance = if self.call.takes_long() { ALLOWANCE_OF_LONG } else { ALLOWANCE };
        let patience = patience + alone * allowance;
        self.steps.prepare()?;
        let outcome = self.behind_gate(line, None, patience, |steps, _, opened| {
            let seconds = timed(steps)?;
            Ok(Tried { waited: opened.load(Ordering::SeqCst), seconds })
        });
        self.end(outcome)
    }

    /// Whether the call waits for work where [`time`](Self::time) has it stand behind some: whether it did in any of so many
    /// trials.
    pub fn waits(&mut self, trials: usize, patience: Duration, alone: Duration) -> Result<bool> {
        for _ in 0..trials {
            if self.trial(self.stands_behind(), patience, alone)?.waited {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Enqueues work of this length and what stands before the call behind a closed gate, and then does what `call` says. A
    /// watchdog opens the gate where that takes too long, and sets the flag that `call` is given.
    fn behind_gate<T>(
        &mut self,
        line: StreamRole,
        work: Option<Duration>,
        patience: Duration,
        call: impl FnOnce(&mut dyn Steps, &Gate, &AtomicBool) -> Result<T>,
    ) -> Result<T> {
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
            affinity::beside(scope, watchdog)?;
            let begin = begin;
            if let Some(length) = work {
                self.rig.keep_busy(line, length)?;
            }
            self.steps.enqueue()?;
            if opened.load(Ordering::SeqCst) {
                let reason = "what stands before the call could not be enqueued behind the gate".to_owned();
                return Err(DeviceError::call_failed(String::new(), self.call.name, reason));
            }
            // The watchdog is there as long as the sender is.
            _ = begin.send(());
            let outcome = call(&mut *self.steps, gate, opened);
            drop(begin);
            outcome
        })
    }

    /// The host's time in the call, with nothing pending, when what stands before it is over, too, or behind work of this
    /// length: on the stream that the call is given, else on another one. The work begins when the call does, however long it
    /// takes to enqueue what stands before the call: a gate holds it until then.
    pub fn time(&mut self, behind: Option<Duration>, mode: Option<WaitMode>) -> Result<f64> {
        if let Some(mode) = mode {
            self.rig.wait_by(mode)?;
        }
        let outcome = self.steps.prepare().and_then(|()| match behind {
            None => {
                let enqueued = self.steps.enqueue().and_then(|()| self.rig.drain());
                enqueued.and_then(|()| timed(&mut *self.steps))
            }
            Some(length) => {
                let line = self.line(self.stands_behind())?;
                self.behind_gate(line, Some(length), PREPARATION, |steps, gate, _| {
                    gate.open();
                    timed(steps)
                })
            }
        });
        self.end(outcome)
    }

    /// All work is waited for before anything is ended that it may use.
    pub(super) fn end<T>(&mut self, outcome: Result<T>) -> Result<T> {
        let drained = self.rig.drain();
        self.steps.finish();
        outcome.and_then(|value| drained.map(|()| value))
    }

    /// Which stream the work is on that a timed call stands behind.
    fn stands_behind(&self) -> StreamRole {
        if self.call.on == On::Nothing { StreamRole::Other } else { StreamRole::Given }
    }

    /// The stream of the rig that has this role.
    fn line(&self, held: StreamRole) -> Result<StreamRole> {
        match (held, self.call.on) {
            (StreamRole::Given, On::Legacy) => Ok(StreamRole::Legacy),
            (StreamRole::Given, On::Nothing) => {
                Err(DeviceError::not_applicable("the stream of the call", String::new(), NO_STREAM))
            }
            _ => Ok(held),
        }
    }
}

/// For how long a call holds the host.
#[inline]
fn timed(steps: &mut dyn Steps) -> Result<f64> {
    let start = Instant::now();
    let result = steps.call();
    let seconds = start.elapsed().as_secs_f64();
    result.map(|()| seconds)
}

/// Why there is no trial with the call's own stream held.
const NO_STREAM: &str = "the call is given no stream";

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::super::catalogue::{Call, calls};
    use super::super::cuda::NcclRanks;
    use super::super::ways::{MovedBy, Transfers};
    use super::super::{Family, Made, OwnCalls, Rig, waiting};
    use super::*;
    use syncscope::device::Device;

    /// The rig of the CPU engine, with one call: enqueueing what stands before it may take long, and it may fail while a certain
    /// stream is held.
    struct Changed {
        rig: OwnCalls,
        enqueueing: Duration,
        fails: Option<StreamRole>,
        held: Rc<Cell<Option<StreamRole>>>,
        stands: Rc<Stands>,
    }

    /// Whether what stands before the call is not over, and whether it was not when the call was last made.
    #[derive(Default)]
    struct Stands {
        now: Cell<bool>,
        at_call: Cell<bool>,
    }

    impl Changed {
        fn call(name: &str, enqueueing: Duration, fails: Option<StreamRole>) -> CallUnderTest {
            Self::watched(name, enqueueing, fails, Rc::default())
        }

        fn watched(name: &str, enqueueing: Duration, fails: Option<StreamRole>, stands: Rc<Stands>) -> CallUnderTest {
            let rig = OwnCalls::new(&Device::open("cpu:0").unwrap()).unwrap();
            let call = calls("cpu", Family::Wait, &[]).into_iter().find(|call| call.name == name).unwrap();
            CallUnderTest::on(Box::new(Self { rig, enqueueing, fails, held: Rc::default(), stands }), &call).unwrap()
        }
    }

    impl Rig for Changed {
        fn steps(&self, call: &Call) -> Result<Box<dyn Steps>> {
            let (mut own, enqueueing) = (self.rig.steps(call)?, self.enqueueing);
            own.prepare()?;
            let (held, fails, stands) = (Rc::clone(&self.held), self.fails, Rc::clone(&self.stands));
            let enqueued = Rc::clone(&self.stands);
            let call = move |(): &mut ()| {
                stands.at_call.set(stands.now.get());
                match held.get().is_some() && held.get() == fails {
                    true => {
                        let (operation, reason) = ("call", "the state does not suit it".to_owned());
                        Err(DeviceError::invalid(operation, reason))
                    }
                    false => own.call(),
                }
            };
            let enqueue = move |(): &mut ()| {
                std::thread::sleep(enqueueing);
                enqueued.now.set(true);
                Ok(())
            };
            Ok(Made::new(|| Ok(()), call).behind(enqueue).boxed())
        }

        fn hold(&self, line: StreamRole) -> Result<Gate> {
            self.held.set(Some(line));
            self.rig.hold(line)
        }

        fn keep_busy(&self, line: StreamRole, duration: Duration) -> Result<()> {
            self.rig.keep_busy(line, duration)
        }

        fn drain(&self) -> Result<()> {
            self.stands.now.set(false);
            self.rig.drain()
        }

        fn wait_by(&self, mode: WaitMode) -> Result<()> {
            self.rig.wait_by(mode)
        }

        fn waiting(&self) -> Result<Box<dyn waiting::Waiting>> {
            self.rig.waiting()
        }

        fn transfers(&self, way: MovedBy, bytes: usize) -> Result<Box<dyn Transfers>> {
            self.rig.transfers(way, bytes)
        }

        fn ranks(&self, bytes: usize) -> Result<NcclRanks> {
            self.rig.ranks(bytes)
        }
    }

    #[test]
    fn a_call_is_timed_behind_all_work_however_long_that_takes_to_enqueue() {
        const WORK: Duration = Duration::from_millis(20);
        let mut call = Changed::call("Stream::synchronize", WORK, None);
        let seconds = call.time(Some(WORK), None).unwrap();
        assert!(seconds >= WORK.as_secs_f64(), "{seconds}");
    }

    #[test]
    fn with_nothing_pending_a_call_is_timed_when_what_stands_before_it_is_over_too() {
        let stands = Rc::new(Stands::default());
        let mut call = Changed::watched("Event::synchronize", Duration::ZERO, None, Rc::clone(&stands));
        call.time(None, None).unwrap();
        assert!(!stands.at_call.get());
        call.time(Some(Duration::ZERO), None).unwrap();
        assert!(stands.at_call.get());
    }

    #[test]
    fn a_call_that_fails_in_one_state_is_measured_in_the_others() {
        let mut call = Changed::call("Stream::synchronize", Duration::ZERO, Some(StreamRole::Other));
        let mut waited =
            |held| call.trial(held, Duration::from_millis(4), Duration::ZERO).map(|tried| tried.waited).map_err(drop);
        let states = [StreamRole::Given, StreamRole::Other, StreamRole::Thread, StreamRole::Given];
        assert_eq!(states.map(&mut waited), [Ok(true), Err(()), Ok(false), Ok(true)]);
    }
}
