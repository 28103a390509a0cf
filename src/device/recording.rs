//! A recording: from the moment when a tracer is turned on to its log; and events around calls, where nobody else knows
//! when work ran.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::ThreadId;
use std::time::Instant;

use super::engine::{Engine, EngineEvent, EngineStream, Result};
use super::tracer::{
    ActivitySource, CAPACITY, CallInfo, DeviceWork, Kind, OpenCall, Stall, TraceSource, Traced, TracedCall,
};
use crate::error::DeviceError;

/// What a recording kept.
#[derive(Debug)]
pub(crate) struct Log {
    pub(crate) calls: Vec<TracedCall>,
    pub(crate) work: Vec<DeviceWork>,
    pub(crate) stalls: Vec<Stall>,
    pub(crate) threads: HashMap<ThreadId, String>,
    pub(crate) dropped: u64,
    /// How much work a stream's queue holds before a launch waits for room.
    pub(crate) launch_queue: Option<usize>,
    /// Who knew when the device worked.
    pub(crate) source: String,
    pub(crate) origin: Instant,
    /// When the recorded region was over.
    pub(crate) end: Instant,
}

/// A recording in progress; without [`finish`](Self::finish) it ends and is forgotten.
pub(crate) struct Recording {
    engine: Arc<dyn Engine>,
    source: String,
    origin: Instant,
}

impl Recording {
    /// Begins to record the calls on a device.
    ///
    /// # Errors
    /// [`DeviceError::AlreadyRecording`] while another recording of the device is in progress.
    pub(crate) fn begin(engine: &Arc<dyn Engine>) -> Result<Self> {
        Self::with_source(engine, None)
    }

    /// As [`begin`](Self::begin), with times from events whatever else the engine offers.
    pub(crate) fn with_source(engine: &Arc<dyn Engine>, by_events: Option<&str>) -> Result<Self> {
        if !engine.tracer().begin() {
            return Err(DeviceError::AlreadyRecording { device: engine.properties().name.clone() });
        }
        // From here on dropping it turns the tracer off again.
        let mut recording = Self { engine: engine.clone(), source: String::new(), origin: Instant::now() };
        let source = by_events.map_or_else(|| engine.source(), |why| TraceSource::Events(why.to_owned()));
        let (source, label): (Option<Arc<dyn ActivitySource>>, _) = match source {
            TraceSource::Engine(label) => (None, label),
            TraceSource::Recorder(own, label) => (Some(own), label),
            TraceSource::Events(why) => {
                let label = format!("events around each call ({why}): a span holds its call where the stream was idle");
                (Some(Arc::new(EventPairs::new(engine)?)), label)
            }
        };
        recording.source = label;
        engine.tracer().report(source);
        recording.origin = Instant::now();
        Ok(recording)
    }

    /// Waits for the device's work and ends.
    ///
    /// # Errors
    /// A failure of work.
    pub(crate) fn finish(self) -> Result<Log> {
        let end = Instant::now();
        self.engine.synchronize()?;
        let (Traced { work, stalls, dropped }, calls, threads) = self.engine.tracer().finish();
        let (source, origin) = (self.source.clone(), self.origin);
        let launch_queue = self.engine.launch_queue();
        Ok(Log { calls, work, stalls, threads, dropped, launch_queue, source, origin, end })
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        self.engine.tracer().end();
    }
}

/// Events around calls, against one that was reached at a known time.
struct EventPairs {
    base: Arc<dyn EngineEvent>,
    reached: Instant,
    kept: Mutex<Pairs>,
}

/// Before and behind a call.
type Pair = [Arc<dyn EngineEvent>; 2];

#[derive(Default)]
struct Pairs {
    pairs: Vec<(CallInfo, u64, Pair)>,
    dropped: u64,
}

impl EventPairs {
    /// The time of the first event is known as well as its wait is short: the best of several is taken (F. Cristian,
    /// *Probabilistic clock synchronization*, 1989).
    fn new(engine: &Arc<dyn Engine>) -> Result<Self> {
        const TRIES: usize = 8;
        let stream = engine.create_stream(u32::MAX)?;
        let attempt = || {
            let base = engine.create_event(true)?;
            let begun = Instant::now();
            stream.record(&*base)?;
            base.synchronize()?;
            let reached = Instant::now();
            Ok((reached - begun, base, reached))
        };
        let (mut shortest, mut base, mut reached) = attempt()?;
        for _ in 1..TRIES {
            let (took, next, at) = attempt()?;
            if took < shortest {
                (shortest, base, reached) = (took, next, at);
            }
        }
        Ok(Self { base, reached, kept: Mutex::default() })
    }

    fn work(&self, info: CallInfo, correlation: u64, events: Pair) -> Result<DeviceWork> {
        let at = |event: &dyn EngineEvent| event.elapsed_since(&*self.base).map(|time| self.reached + time);
        let [start, end] = events;
        Ok(DeviceWork {
            name: info.name.to_owned(),
            kind: info.enqueues.unwrap_or(Kind::Kernel),
            stream: info.stream,
            correlation: Some(correlation),
            bytes: info.bytes,
            start: at(&*start)?,
            end: at(&*end)?,
        })
    }
}

/// Runs a call that enqueues work on `stream`, between two events where those are the source of times.
pub(crate) fn enqueued<R>(
    call: &OpenCall<'_>,
    stream: &Arc<dyn EngineStream>,
    engine: &Arc<dyn Engine>,
    run: impl FnOnce() -> Result<R>,
) -> Result<R> {
    let info = call.info();
    let source = info.enqueues.and_then(|_| call.tracer().source());
    let pairs = source.as_deref().and_then(|source| (source as &dyn Any).downcast_ref::<EventPairs>());
    let Some(pairs) = pairs else { return run() };
    let (start, end) = (engine.create_event(true)?, engine.create_event(true)?);
    stream.record(&*start)?;
    let result = run()?;
    stream.record(&*end)?;
    let mut kept = pairs.kept.lock().unwrap_or_else(PoisonError::into_inner);
    if kept.pairs.len() < CAPACITY {
        kept.pairs.push((info, call.correlation(), [start, end]));
    } else {
        kept.dropped += 1;
    }
    Ok(result)
}

impl ActivitySource for EventPairs {
    fn enter(&self, _: u64) {}

    fn leave(&self) {}

    fn finish(&self) -> Traced {
        let Pairs { pairs, mut dropped } =
            std::mem::take(&mut *self.kept.lock().unwrap_or_else(PoisonError::into_inner));
        let mut work = Vec::with_capacity(pairs.len());
        for (info, correlation, events) in pairs {
            match self.work(info, correlation, events) {
                Ok(known) => work.push(known),
                // Times of a stream that failed are lost.
                Err(_) => dropped += 1,
            }
        }
        Traced { work, stalls: Vec::new(), dropped }
    }

    fn abandon(&self) {}
}
