//! A call of a crate, and what is measured of it.
//!
//! - *blocks*: a closed gate holds a stream while the call is made. It opens when the patience is over, and five times what the
//!   call takes by itself. A call that comes back only then has waited.
//! - *ready*: the host's time in the call with nothing pending.
//! - *behind*: the host's time in the call behind work of a known length on its stream.
//! - *recorded*: behind work of a known length, the driver's records hold a wait for it. It is asked where a plan asks for it alone:
//!   to record slows the later calls of the process.
//! - *pending*: with nothing pending before it, the call came back before the work was over that it left on its stream.
//!
//! Limits: whether work is left is asked once, right behind the call. Work that is over by then was there, and is not seen.

use std::rc::Rc;
use std::time::{Duration, Instant};

use syncscope::device::Stream;
use syncscope::error::DeviceError;
use syncscope::measure::blocks;

use crate::{Result, not_applicable};

/// After how long a call behind a closed gate counts as one that waits: well above what most of them cost by themselves.
const PATIENCE: Duration = Duration::from_millis(4);
/// A call is given this many times as long as it takes with nothing pending: fewer times for one that takes long, which varies
/// less.
const ALLOWANCE: u32 = 5;
const ALLOWANCE_OF_LONG: u32 = 2;
/// From which length on a call takes long.
const LONG: Duration = Duration::from_millis(50);
/// The length of the work before a timed call.
const WORK: Duration = Duration::from_millis(1);

/// Why what a call leaves pending is not seen.
const LAUNCHED_LATER: &str = "the crate launches a call's work on a thread of its own, after the call has returned";

/// A call, ready to be made again and again.
pub struct Call {
    stream: Stream,
    other: Option<Stream>,
    /// What stands before the call, behind the gate.
    enqueue: Box<dyn Fn() -> Result<()>>,
    steps: Box<dyn Steps>,
    /// What has the crate launch all that was called, where it does so later, on a thread of its own.
    launch: Option<Box<dyn Fn() -> Result<()>>>,
    /// How long it takes by itself, once that is known.
    alone: Option<Duration>,
}

/// A call, step by step.
trait Steps {
    /// Makes what it takes, with nothing pending.
    fn prepare(&mut self) -> Result<()>;
    fn call(&mut self) -> Result<()>;
    /// Drops what it returned; all work is over.
    fn finish(&mut self);
}

struct Prepared<I, R, P, C> {
    prepare: P,
    call: C,
    input: Option<I>,
    output: Option<R>,
}

impl<I, R, P: FnMut() -> Result<I>, C: FnMut(I) -> Result<R>> Steps for Prepared<I, R, P, C> {
    fn prepare(&mut self) -> Result<()> {
        self.input = Some((self.prepare)()?);
        Ok(())
    }

    fn call(&mut self) -> Result<()> {
        let input = self.input.take().ok_or("the call was not prepared")?;
        self.output = Some((self.call)(input)?);
        Ok(())
    }

    fn finish(&mut self) {
        (self.input, self.output) = (None, None);
    }
}

impl Call {
    /// A call on this stream. What it returns is dropped outside of the time, when all work is over.
    pub fn new<R: 'static>(stream: &Stream, mut call: impl FnMut() -> Result<R> + 'static) -> Self {
        Self::on(stream, || Ok(()), move |()| call())
    }

    /// A call on this stream that takes what `prepare` makes: anew for each time, with nothing pending.
    pub fn on<I: 'static, R: 'static>(
        stream: &Stream,
        prepare: impl FnMut() -> Result<I> + 'static,
        call: impl FnMut(I) -> Result<R> + 'static,
    ) -> Self {
        let steps = Box::new(Prepared { prepare, call, input: None, output: None });
        Self { stream: stream.clone(), other: None, steps, enqueue: Box::new(|| Ok(())), launch: None, alone: None }
    }

    /// The same, where both are made of what calls share.
    pub fn sharing<F: 'static, I: 'static, R: 'static>(
        stream: &Stream,
        shared: &Rc<F>,
        prepare: impl Fn(&F) -> Result<I> + 'static,
        call: impl Fn(&F, I) -> Result<R> + 'static,
    ) -> Self {
        let (first, second) = (Rc::clone(shared), Rc::clone(shared));
        Self::on(stream, move || prepare(&first), move |input| call(&second, input))
    }

    /// With what is enqueued before the call each time: behind the gate where one holds the stream.
    #[must_use]
    pub fn behind_work(mut self, enqueue: impl Fn() -> Result<()> + 'static) -> Self {
        self.enqueue = Box::new(enqueue);
        self
    }

    /// Of a crate that launches on a thread of its own, after its calls have returned: `launch` has all of them launched.
    #[must_use]
    pub fn launched_by(mut self, launch: impl Fn() -> Result<()> + 'static) -> Self {
        self.launch = Some(Box::new(launch));
        self
    }

    /// With this one as the other stream that a gate holds: one that has to do with the call. Else it is a stream of its own.
    #[must_use]
    pub fn beside(mut self, other: &Stream) -> Self {
        self.other = Some(other.clone());
        self
    }

    /// Whether it waits for its stream, or for the other one: 1, else 0.
    pub(crate) fn blocks(&mut self, waits_for: Held) -> Result<f64> {
        let allowance = if self.takes_long()? { ALLOWANCE_OF_LONG } else { ALLOWANCE };
        let limit = PATIENCE.max(self.alone()? * allowance);
        let held = match (waits_for, &self.other) {
            (Held::Own, _) => self.stream.clone(),
            (Held::Other, Some(other)) => other.clone(),
            (Held::Other, None) => self.stream.device().stream()?,
        };
        self.steps.prepare()?;
        self.synchronize()?;
        let mut call = || (self.enqueue)().and_then(|()| self.steps.call());
        let waited = blocks(&held, limit, || call().map_err(of_device));
        self.end(waited.map(|waited| f64::from(u8::from(waited))).map_err(Into::into))
    }

    /// The seconds that it holds the host, with nothing pending.
    pub(crate) fn ready(&mut self) -> Result<f64> {
        self.prepare()?;
        let seconds = self.timed();
        self.end(seconds)
    }

    /// The seconds that it holds the host, behind work on its stream.
    pub(crate) fn behind(&mut self) -> Result<f64> {
        self.steps.prepare()?;
        self.synchronize()?;
        self.stream.spin(WORK)?;
        (self.enqueue)()?;
        let seconds = self.timed();
        self.end(seconds)
    }

    /// Whether a recording shows that it waits for work on its stream: 1, else 0.
    pub(crate) fn recorded(&mut self) -> Result<f64> {
        self.steps.prepare()?;
        self.synchronize()?;
        let (stream, enqueue, steps) = (&self.stream, &self.enqueue, &mut self.steps);
        let audited = stream.device().audit(|| {
            stream.spin(WORK)?;
            enqueue()?;
            steps.call()
        });
        let is_cuda = stream.device().properties().engine == "cuda";
        let waits = audited.and_then(|((), audit)| {
            if is_cuda && !audit.source.contains("CUPTI") {
                return Err(not_applicable(&format!(
                    "the calls of other libraries are not recorded: {}",
                    audit.source
                )));
            }
            Ok(f64::from(u8::from(audit.stalls(&[]).next().is_some())))
        });
        self.end(waits)
    }

    /// Whether work is left on its stream when it comes back: 1, else 0.
    pub(crate) fn pending(&mut self) -> Result<f64> {
        if self.launch.is_some() {
            return Err(not_applicable(LAUNCHED_LATER));
        }
        self.prepare()?;
        let called = self.steps.call();
        let complete = self.stream.is_complete();
        let pending = called.and_then(|()| Ok(f64::from(u8::from(!complete?))));
        self.end(pending)
    }

    /// Makes what it takes; what stands before it is over.
    fn prepare(&mut self) -> Result<()> {
        self.steps.prepare()?;
        (self.enqueue)()?;
        self.synchronize()
    }

    /// Waits until all work is over.
    fn synchronize(&self) -> Result<()> {
        self.launch.as_ref().map_or(Ok(()), |launch| launch())?;
        Ok(self.stream.device().synchronize()?)
    }

    /// Whether it takes so long by itself that a few times say enough.
    pub(crate) fn takes_long(&mut self) -> Result<bool> {
        Ok(self.alone()? >= LONG)
    }

    /// How long it takes by itself. What it loads and allocates for the first time is not what it does each time.
    fn alone(&mut self) -> Result<Duration> {
        if let Some(alone) = self.alone {
            return Ok(alone);
        }
        self.ready()?;
        let alone = Duration::from_secs_f64(self.ready()?);
        self.alone = Some(alone);
        Ok(alone)
    }

    fn timed(&mut self) -> Result<f64> {
        let start = Instant::now();
        let called = self.steps.call();
        let seconds = start.elapsed().as_secs_f64();
        called.map(|()| seconds)
    }

    /// All work is waited for before anything is dropped that it may use.
    fn end(&mut self, outcome: Result<f64>) -> Result<f64> {
        let drained = self.synchronize();
        self.steps.finish();
        outcome.and_then(|value| drained.map(|()| value))
    }
}

/// Which stream the gate holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Held {
    Own,
    Other,
}

/// An error of the crate as one of the library, which the gate passes on.
fn of_device(error: crate::Error) -> DeviceError {
    match error.downcast::<DeviceError>() {
        Ok(own) => *own,
        Err(error) => DeviceError::call_failed("the crate", "the call", error.to_string()),
    }
}
