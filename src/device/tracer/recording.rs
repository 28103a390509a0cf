//! A recording: from the moment when a tracer is turned on to its log.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::{Activity, Log, Source, State, Work};
use crate::device::Device;
use crate::device::engine::{EngineEvent, Result};
use crate::error::DeviceError;

/// Events around calls, against one that was reached at a known time.
pub(super) struct EventPairs {
    base: Arc<dyn EngineEvent>,
    reached: Instant,
    pub(super) pairs: Vec<(EventPair, Pair)>,
}

pub(super) type Pair = (Arc<dyn EngineEvent>, Arc<dyn EngineEvent>);

#[derive(Clone, Copy)]
pub(super) struct EventPair {
    pub(super) name: &'static str,
    pub(super) doing: Activity,
    pub(super) stream: Option<u32>,
    pub(super) bytes: Option<u64>,
    pub(super) correlation: u64,
}

/// A recording in progress; without [`finish`](Self::finish) it ends and is forgotten.
pub(crate) struct Recording {
    device: Device,
    source: String,
    origin: Instant,
}

impl Recording {
    /// Begins to record the calls on `device`.
    ///
    /// # Errors
    /// [`DeviceError::AlreadyRecording`] while another recording of the device is in progress.
    pub(crate) fn begin(device: &Device) -> Result<Self> {
        Self::with_source(device, None)
    }

    /// As [`begin`](Self::begin), with times from events whatever else the engine offers.
    pub(crate) fn with_source(device: &Device, by_events: Option<&str>) -> Result<Self> {
        let tracer = device.engine().tracer();
        if tracer.recording.compare_exchange(false, true, Ordering::SeqCst, Ordering::SeqCst).is_err() {
            return Err(DeviceError::AlreadyRecording { device: device.name().to_owned() });
        }
        // From here on dropping it turns the tracer off again.
        let mut recording = Self { device: device.clone(), source: String::new(), origin: Instant::now() };
        let source = by_events.map_or_else(|| device.engine().source(), |why| Source::Events(why.to_owned()));
        let (mut activities, mut pairs) = (None, None);
        recording.source = match source {
            Source::Engine(label) => label,
            Source::Recorder(own, label) => {
                activities = Some(own);
                label
            }
            Source::Events(why) => {
                pairs = Some(EventPairs::new(device)?);
                format!("events around each call ({why}): a span holds its call where the stream was idle")
            }
        };
        let mut state = tracer.lock();
        let generation = state.generation + 1;
        *state = State { generation, activities, pairs, ..State::default() };
        drop(state);
        recording.origin = Instant::now();
        Ok(recording)
    }

    /// Waits for the device's work and ends.
    ///
    /// # Errors
    /// A failure of work.
    pub(crate) fn finish(self) -> Result<Log> {
        let end = Instant::now();
        self.device.engine().synchronize()?;
        let tracer = self.device.engine().tracer();
        let mut state = std::mem::take(&mut *tracer.lock());
        let traced = state.activities.take().map(|source| source.finish()).unwrap_or_default();
        state.work.extend(traced.work);
        if let Some(pairs) = state.pairs.take() {
            state.work.extend(pairs.work()?);
        }
        // The generation goes on, so that what is still open is not taken for a part of the next recording.
        tracer.lock().generation = state.generation + 1;
        Ok(Log {
            calls: state.calls,
            work: state.work,
            stalls: traced.stalls,
            threads: state.threads.into_iter().map(|(id, thread)| (id, thread.name)).collect(),
            dropped: state.dropped + traced.dropped,
            source: self.source.clone(),
            origin: self.origin,
            end,
        })
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        let tracer = self.device.engine().tracer();
        let mut state = tracer.lock();
        if let Some(source) = state.activities.take() {
            // A recording that was given up: its records are of no use, and the tracer must end.
            let _ = source.finish();
        }
        *state = State { generation: state.generation + 1, ..State::default() };
        drop(state);
        tracer.recording.store(false, Ordering::SeqCst);
    }
}

impl EventPairs {
    fn new(device: &Device) -> Result<Self> {
        let stream = device.engine().create_stream(u32::MAX)?;
        let base = device.engine().create_event(true)?;
        stream.record(&*base)?;
        base.synchronize()?;
        Ok(Self { base, reached: Instant::now(), pairs: Vec::new() })
    }

    fn work(self) -> Result<Vec<Work>> {
        let at = |event: &dyn EngineEvent| -> Result<Instant> {
            event.elapsed_since(&*self.base).map(|time: Duration| self.reached + time)
        };
        let work = self.pairs.iter().map(|(bracket, (start, end))| {
            let EventPair { name, doing, stream, bytes, correlation } = *bracket;
            let (start, end) = (at(&**start)?, at(&**end)?);
            Ok(Work { name: name.to_owned(), doing, stream, correlation: Some(correlation), bytes, start, end })
        });
        work.collect()
    }
}
