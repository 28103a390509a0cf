//! A stream: a queue and the worker thread that empties it.
//!
//! A failed job fails the stream: later jobs that compute are left out, every later call on the stream reports the
//! failure, and marks are still reached, so that nobody waits for a stream that has failed.

use std::any::Any;
use std::collections::VecDeque;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::clock::{CpuEvent, CpuGate, Mark};
use super::kernels;
use super::memory::{CpuHostMemory, CpuMemory, Shared, Slice};
use crate::device::DType;
use crate::device::engine::{
    DeviceMemory, EngineEvent, EngineGate, EngineGraph, EngineStream, HostMemory, Operation, Region, Result,
};
use crate::device::tracer::{Activity, Tracer, Work};
use crate::error::{DeviceError, panic_message};

/// What a worker does for one entry of its queue.
enum Job {
    /// Computes; left out once the stream has failed.
    Compute { operation: &'static str, run: kernels::Work },
    /// Reaches a mark, whatever happened before.
    Reach(Arc<Mark>),
    /// Waits for a mark.
    Wait(Arc<Mark>),
}

impl Job {
    /// What a tracer calls it; a mark takes no time and has no name.
    fn noted(&self) -> Option<(&'static str, Activity)> {
        match self {
            Job::Compute { operation: operation @ ("upload" | "download" | "copy"), .. } => {
                Some((operation, Activity::Copy))
            }
            Job::Compute { operation, .. } => Some((operation, Activity::Kernel)),
            Job::Wait(_) => Some(("wait", Activity::Wait)),
            Job::Reach(_) => None,
        }
    }
}

/// A job and the call that enqueued it, where that was recorded.
struct Entry {
    job: Job,
    correlation: Option<u64>,
}

/// The state that a stream's handles, its worker and its device share.
pub(super) struct StreamInner {
    device: String,
    number: u32,
    tracer: Arc<Tracer>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Entry>,
    enqueued: u64,
    completed: u64,
    closed: bool,
    failure: Option<DeviceError>,
}

impl StreamInner {
    fn push(&self, job: Job) -> Result<()> {
        let correlation = self.tracer.correlation();
        let mut state = self.lock();
        if let Some(failure) = &state.failure {
            return Err(failure.clone());
        }
        state.jobs.push_back(Entry { job, correlation });
        state.enqueued += 1;
        drop(state);
        self.changed.notify_all();
        Ok(())
    }

    /// Blocks until everything that is enqueued now has completed.
    pub(super) fn synchronize(&self) -> Result<()> {
        let mut state = self.lock();
        let target = state.enqueued;
        while state.completed < target {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.failure.clone().map_or(Ok(()), Err)
    }

    fn is_complete(&self) -> Result<bool> {
        let state = self.lock();
        match &state.failure {
            Some(failure) => Err(failure.clone()),
            None => Ok(state.completed == state.enqueued),
        }
    }

    /// The worker: takes jobs in order until the stream is closed and its queue is empty.
    fn work(&self) {
        loop {
            let (Entry { job, correlation }, failed) = {
                let mut state = self.lock();
                loop {
                    if let Some(entry) = state.jobs.pop_front() {
                        break (entry, state.failure.is_some());
                    }
                    if state.closed {
                        return;
                    }
                    state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
            };
            let (noted, start) = (job.noted(), Instant::now());
            let outcome = match job {
                Job::Compute { .. } if failed => Ok(()),
                Job::Compute { operation, run } => self.compute(operation, &run),
                Job::Reach(mark) => {
                    mark.reach();
                    Ok(())
                }
                Job::Wait(mark) => {
                    mark.wait();
                    Ok(())
                }
            };
            // Before it counts as completed, so that whoever waited for it finds it in the tracer.
            if let (Some(noted), true) = (noted, self.tracer.is_on()) {
                self.note(noted, correlation, start);
            }
            let mut state = self.lock();
            state.completed += 1;
            if let Err(failure) = outcome {
                state.failure.get_or_insert(failure);
            }
            drop(state);
            self.changed.notify_all();
        }
    }

    fn note(&self, (name, doing): (&str, Activity), correlation: Option<u64>, start: Instant) {
        let (name, stream, end) = (name.to_owned(), Some(self.number), Instant::now());
        self.tracer.worked(Work { name, doing, stream, correlation, bytes: None, start, end });
    }

    fn compute(&self, operation: &'static str, run: &kernels::Work) -> Result<()> {
        let reason = match catch_unwind(AssertUnwindSafe(|| run())) {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(reason)) => reason,
            Err(panic) => panic_message(&*panic),
        };
        Err(DeviceError::WorkFailed { device: self.device.clone(), operation: operation.to_owned(), reason })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

/// What a panic left is whole: each change is one assignment.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A handle of a stream. When it is dropped the worker finishes what is enqueued and ends.
pub(super) struct CpuStream {
    queue: Arc<StreamInner>,
    captured: Mutex<Option<Vec<Step>>>,
}

/// An operation's name and its work.
type Step = (&'static str, kernels::Work);

/// Operations of a stream, to be enqueued again.
struct CpuGraph {
    queue: Arc<StreamInner>,
    steps: Vec<Step>,
}

impl EngineGraph for CpuGraph {
    fn launch(&self) -> Result<()> {
        let mut steps = self.steps.iter();
        steps.try_for_each(|(operation, run)| self.queue.push(Job::Compute { operation, run: Arc::clone(run) }))
    }
}

impl CpuStream {
    pub(super) fn start(device: &str, number: u32, tracer: &Arc<Tracer>) -> Result<Self> {
        let queue = Arc::new(StreamInner {
            device: device.to_owned(),
            number,
            tracer: Arc::clone(tracer),
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        let worker = Arc::clone(&queue);
        std::thread::Builder::new().name(format!("{device} stream")).spawn(move || worker.work()).map_err(|error| {
            DeviceError::CallFailed { device: device.to_owned(), call: "thread::spawn", reason: error.to_string() }
        })?;
        Ok(Self { queue, captured: Mutex::default() })
    }

    pub(super) fn queue(&self) -> &Arc<StreamInner> {
        &self.queue
    }

    fn compute(
        &self,
        operation: &'static str,
        run: impl Fn() -> std::result::Result<(), String> + Send + Sync + 'static,
    ) -> Result<()> {
        self.queue.push(Job::Compute { operation, run: Arc::new(run) })
    }

    fn foreign(&self, what: &'static str) -> DeviceError {
        DeviceError::ForeignObject { what, device: self.queue.device.clone() }
    }

    fn slice(&self, region: &Region<'_>) -> Result<Slice> {
        let memory = (&**region.memory as &dyn Any).downcast_ref::<CpuMemory>();
        let memory = memory.ok_or_else(|| self.foreign("a tensor"))?;
        Ok(Slice { content: memory.content.clone(), range: region.offset..region.offset + region.len })
    }

    fn host(&self, memory: &dyn HostMemory) -> Result<Shared> {
        let memory = (memory as &dyn Any).downcast_ref::<CpuHostMemory>();
        Ok(memory.ok_or_else(|| self.foreign("a host buffer"))?.content.clone())
    }
}

impl Drop for CpuStream {
    fn drop(&mut self) {
        self.queue.lock().closed = true;
        self.queue.changed.notify_all();
    }
}

impl EngineStream for CpuStream {
    fn allocate(&self, dtype: DType, len: usize) -> Result<Arc<dyn DeviceMemory>> {
        Ok(Arc::new(CpuMemory::new(&self.queue.device, dtype, len)?))
    }

    fn enqueue(&self, operation: &Operation<'_>) -> Result<()> {
        let run = kernels::prepare(operation, &mut |region| self.slice(region))?;
        let (operation, mut captured) = (operation.name(), lock(&self.captured));
        match &mut *captured {
            Some(steps) => steps.push((operation, run)),
            None => self.queue.push(Job::Compute { operation, run })?,
        }
        Ok(())
    }

    fn enqueue_upload(&self, source: &dyn HostMemory, target: Region<'_>) -> Result<()> {
        let (source, target) = (self.host(source)?, self.slice(&target)?);
        self.compute("upload", move || {
            let source = source.snapshot();
            target.write_bytes(source.bytes());
            Ok(())
        })
    }

    fn enqueue_download(&self, source: Region<'_>, target: &dyn HostMemory) -> Result<()> {
        let (source, target) = (self.slice(&source)?, self.host(target)?);
        self.compute("download", move || {
            let cells = source.content.snapshot();
            target.write(|bytes| bytes.bytes_mut().copy_from_slice(source.bytes_of(&cells)));
            Ok(())
        })
    }

    fn upload(&self, source: &[u8], target: Region<'_>) -> Result<()> {
        let (source, target) = (source.to_vec(), self.slice(&target)?);
        self.compute("upload", move || {
            target.write_bytes(&source);
            Ok(())
        })
    }

    fn download(&self, source: Region<'_>, target: &mut [MaybeUninit<u8>]) -> Result<()> {
        let source = self.slice(&source)?;
        self.queue.synchronize()?;
        let cells = source.content.snapshot();
        let bytes = source.bytes_of(&cells);
        if bytes.len() != target.len() {
            let reason = format!("{} bytes on the host and {} on the device", target.len(), bytes.len());
            return Err(DeviceError::InvalidArgument { operation: "download", reason });
        }
        for (to, byte) in target.iter_mut().zip(bytes) {
            to.write(*byte);
        }
        Ok(())
    }

    fn record(&self, event: &dyn EngineEvent) -> Result<()> {
        let event = (event as &dyn Any).downcast_ref::<CpuEvent>().ok_or_else(|| self.foreign("an event"))?;
        let mark = Arc::new(Mark::default());
        self.queue.push(Job::Reach(Arc::clone(&mark)))?;
        event.renew(mark);
        Ok(())
    }

    fn wait_event(&self, event: &dyn EngineEvent) -> Result<()> {
        let event = (event as &dyn Any).downcast_ref::<CpuEvent>().ok_or_else(|| self.foreign("an event"))?;
        event.latest().map_or(Ok(()), |mark| self.queue.push(Job::Wait(mark)))
    }

    fn wait_gate(&self, gate: &dyn EngineGate) -> Result<()> {
        let gate = (gate as &dyn Any).downcast_ref::<CpuGate>().ok_or_else(|| self.foreign("a gate"))?;
        self.queue.push(Job::Wait(gate.mark()))
    }

    fn begin_capture(&self) -> Result<()> {
        *lock(&self.captured) = Some(Vec::new());
        Ok(())
    }

    fn end_capture(&self) -> Result<Arc<dyn EngineGraph>> {
        let steps = lock(&self.captured).take().unwrap_or_default();
        Ok(Arc::new(CpuGraph { queue: Arc::clone(&self.queue), steps }))
    }

    fn is_complete(&self) -> Result<bool> {
        self.queue.is_complete()
    }

    fn synchronize(&self) -> Result<()> {
        self.queue.synchronize()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_in_a_worker_reaches_the_next_call_and_hangs_nobody() {
        let stream = CpuStream::start("cpu:0", 0, &Arc::default()).unwrap();
        let event = CpuEvent::new(false);
        stream.compute("matmul", || panic!("broken")).unwrap();
        let _ = stream.record(&event);
        let failure = stream.synchronize().unwrap_err();
        assert_eq!(failure.to_string(), "work enqueued on cpu:0 failed in `matmul`: broken");
        event.synchronize().unwrap();
        assert_eq!(stream.enqueue_spin(), Err(failure));
    }

    impl CpuStream {
        fn enqueue_spin(&self) -> Result<()> {
            self.enqueue(&Operation::Spin { duration: std::time::Duration::ZERO })
        }
    }
}
