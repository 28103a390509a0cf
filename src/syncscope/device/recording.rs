//! A recording: from the moment when a tracer is turned on to its log; and events around calls, where nobody else knows
//! when work ran.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;
use std::time::Instant;

use super::engine::{Engine, EngineEvent, EngineStream, Result};
use super::kept::{ByteBudget, ChunkedVec, Name};
use super::tracer::{ActivitySource, CallInfo, DeviceWork, Kind, OpenCall, Stall, TraceSource, Traced, TracedCall};
use crate::device::lock;
use crate::error::DeviceError;

/// What a recording kept.
#[derive(Debug)]
pub(crate) struct Log {
    pub(crate) calls: ChunkedVec<TracedCall>,
    pub(crate) work: ChunkedVec<DeviceWork>,
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
    /// Why its times are those of events.
    by_events: Option<String>,
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
        let origin = Instant::now();
        let mut recording = Self { engine: engine.clone(), source: String::new(), by_events: None, origin };
        let source = by_events.map_or_else(|| engine.source(), |why| TraceSource::Events(why.to_owned()));
        let (source, label): (Option<Arc<dyn ActivitySource>>, _) = match source {
            TraceSource::Engine(label) => (None, label),
            TraceSource::Recorder(own, label) => (Some(own), label),
            TraceSource::Events(why) => {
                let label = format!("events around each call ({why}): a span holds its call where the stream was idle");
                recording.by_events = Some(why);
                (Some(Arc::new(EventPairs::new(engine)?)), label)
            }
        };
        recording.source = label;
        engine.tracer().report(source);
        recording.origin = Instant::now();
        Ok(recording)
    }

    /// Why its times are those of events around calls, where nobody records when the device worked.
    pub(crate) fn by_events(&self) -> Option<&str> {
        self.by_events.as_deref()
    }

    /// Waits for the device's work and ends.
    ///
    /// # Errors
    /// A failure of work.
    pub(crate) fn finish(self) -> Result<Log> {
        let end = Instant::now();
        self.engine.tracer().close();
        self.engine.synchronize()?;
        let (Traced { work, stalls, dropped, failure }, calls, threads) = self.engine.tracer().finish();
        let (mut source, origin) = (self.source.clone(), self.origin);
        if let Some(failure) = failure {
            source += &format!("; the work of some calls is missing: {failure}");
        }
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

/// What an event takes, with its handle.
const EVENT_BYTES: usize = 256;

#[derive(Default)]
struct Pairs {
    pairs: ChunkedVec<(CallInfo, u64, Pair)>,
    room: ByteBudget,
    dropped: u64,
    /// Of the first call that has no times.
    failure: Option<DeviceError>,
}

impl Pairs {
    const BYTES: usize = size_of::<(CallInfo, u64, Pair)>() + 2 * EVENT_BYTES + DeviceWork::BYTES;

    /// A call has no times, for this reason.
    fn miss(&mut self, failure: DeviceError) {
        self.dropped += 1;
        self.failure.get_or_insert(failure);
    }
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
            name: Name::Own(info.name),
            kind: info.enqueues.unwrap_or(Kind::Kernel),
            stream: info.stream,
            correlation: Some(correlation),
            bytes: info.bytes,
            start: at(&*start)?,
            end: at(&*end)?,
        })
    }
}

/// Runs a call that enqueues work on `stream`, between two events where those are the source of times. Where they cannot be
/// had, the call is what it would be without a recording, and its work is missing in the log, which says why: unless the stream
/// has failed, which is then said by this call and not by the next.
pub(crate) fn enqueued<R>(
    call: &OpenCall<'_>,
    stream: &Arc<dyn EngineStream>,
    engine: &Arc<dyn Engine>,
    run: impl FnOnce() -> Result<R>,
) -> Result<R> {
    let info = call.info();
    let source = call.source().filter(|_| info.enqueues.is_some());
    let pairs = source.and_then(|source| (&**source as &dyn Any).downcast_ref::<EventPairs>());
    let Some(pairs) = pairs else { return run() };
    if !lock(&pairs.kept).room.take(Pairs::BYTES) {
        lock(&pairs.kept).dropped += 1;
        return run();
    }
    let begun = begin_pair(stream, engine);
    let result = run()?;
    let ended = begun.and_then(|[start, end]| stream.record(&*end).map(|()| [start, end]));
    match ended {
        Ok(pair) => lock(&pairs.kept).pairs.push((info, call.correlation(), pair)),
        // The stream's own, of which nobody else is told once it was told here.
        Err(failure)
            if !matches!(failure, DeviceError::Capturing { .. })
                && stream.is_complete().err().as_ref() == Some(&failure) =>
        {
            lock(&pairs.kept).miss(failure.clone());
            return Err(failure);
        }
        Err(failure) => lock(&pairs.kept).miss(failure),
    }
    Ok(result)
}

/// Two events, of which the first is recorded.
fn begin_pair(stream: &Arc<dyn EngineStream>, engine: &Arc<dyn Engine>) -> Result<Pair> {
    let (start, end) = (engine.create_event(true)?, engine.create_event(true)?);
    stream.record(&*start).map(|()| [start, end])
}

impl ActivitySource for EventPairs {
    fn enter(&self, _: u64) {}

    fn leave(&self) {}

    fn finish(&self, _: &mut ChunkedVec<TracedCall>) -> Traced {
        let mut kept = std::mem::take(&mut *lock(&self.kept));
        let mut work = ChunkedVec::default();
        for (info, correlation, events) in std::mem::take(&mut kept.pairs).into_values() {
            match self.work(info, correlation, events) {
                Ok(known) => work.push(known),
                // Times of a stream that failed are lost.
                Err(failure) => kept.miss(failure),
            }
        }
        Traced { work, stalls: Vec::new(), dropped: kept.dropped, failure: kept.failure }
    }

    fn abandon(&self) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Device;

    #[test]
    fn a_call_keeps_its_result_where_its_events_fail_and_the_log_says_why() {
        let device = Device::open("cpu:0").unwrap();
        let stream = device.stream().unwrap();
        let recording = Recording::with_source(device.engine(), Some("asked for")).unwrap();
        let note = CallInfo::enqueue("begin", Some(Kind::Kernel));
        // A stream that captures takes no events: neither the closing one of this call, nor any of the next.
        let begun = stream.noted(note, None, || stream.raw().begin_capture().map(|()| 5));
        assert_eq!(begun, Ok(5));
        assert_eq!(stream.noted(note, None, || Ok(6)), Ok(6));
        stream.raw().give_up_capture();
        let failed = DeviceError::EventNotReady { reason: "scripted" };
        assert_eq!(stream.noted(note, None, || Err::<(), _>(failed.clone())), Err(failed));
        let log = recording.finish().unwrap();
        assert_eq!((log.calls.len(), log.work.len(), log.dropped), (3, 0, 2));
        let reason = DeviceError::Capturing { call: "record" }.to_string();
        assert!(log.source.ends_with(&format!("the work of some calls is missing: {reason}")), "{}", log.source);
    }
}
