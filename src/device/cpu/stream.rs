//! A stream: a queue and the worker thread that empties it.
//!
//! A failed job fails the stream: later jobs that compute are left out, every later call on the stream reports the
//! failure, and marks are still reached, with the failure, so that nobody waits for a stream that has failed, and whoever
//! waited for it fails, too.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::clock::{CpuEvent, CpuGate, Mark};
use super::memory::{CpuHostMemory, CpuMemory};
use super::{CpuDevice, kernels, lock};
use crate::device::DType;
use crate::device::engine::{
    Captured, DeviceMemory, EngineEvent, EngineGate, EngineGraph, EngineStream, HostMemory, Operation, Region, Result,
};
use crate::device::injection::Injected;
use crate::device::tracer::{DeviceWork, Kind};
use crate::error::{DeviceError, panic_message};

/// What a worker does for one entry of its queue.
enum Job {
    /// Computes; left out once the stream has failed.
    Compute { operation: &'static str, run: kernels::Computation },
    /// Reaches a mark, whatever happened before.
    Reach(Arc<Mark>),
    /// Waits for a mark.
    Wait(Arc<Mark>),
}

impl Job {
    /// What a tracer calls it; a mark takes no time and has no name.
    fn noted(&self) -> Option<(&'static str, Kind)> {
        match self {
            Job::Compute { operation: operation @ ("upload" | "download" | "copy"), .. } => {
                Some((operation, Kind::Copy))
            }
            Job::Compute { operation, .. } => Some((operation, Kind::Kernel)),
            Job::Wait(_) => Some(("wait", Kind::Wait)),
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
    device: Arc<CpuDevice>,
    number: u32,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Entry>,
    enqueued: u64,
    completed: u64,
    closed: bool,
    capturing: Option<(Vec<Step>, Captured)>,
    failure: Option<DeviceError>,
    /// Whether somebody has been told of the failure.
    told: bool,
}

/// An operation's name and its work.
type Step = (&'static str, kernels::Computation);

impl State {
    /// Fails once work has failed.
    fn check(&mut self) -> Result<()> {
        self.told |= self.failure.is_some();
        self.failure.clone().map_or(Ok(()), Err)
    }

    /// Fails, naming `call`, while operations are captured.
    fn not_captured(&mut self, call: &'static str) -> Result<()> {
        if self.capturing.is_some() { Err(DeviceError::Capturing { call }) } else { Ok(()) }
    }

    fn push(&mut self, job: Job, correlation: Option<u64>) {
        self.jobs.push_back(Entry { job, correlation });
        self.enqueued += 1;
    }
}

impl StreamInner {
    /// Enqueues a job that cannot be captured.
    fn push(&self, call: &'static str, job: Job) -> Result<()> {
        self.device.check()?;
        let correlation = self.device.tracer.correlation();
        let mut state = lock(&self.state);
        state.check()?;
        state.not_captured(call)?;
        state.push(job, correlation);
        drop(state);
        self.changed.notify_all();
        Ok(())
    }

    /// Enqueues work of a copy.
    fn push_copy(
        &self,
        call: &'static str,
        operation: &'static str,
        run: impl Fn() -> std::result::Result<(), String> + Send + Sync + 'static,
    ) -> Result<()> {
        self.device.may_fail(Injected::Copy, operation)?;
        self.push(call, Job::Compute { operation, run: Arc::new(run) })
    }

    /// Enqueues or captures an operation.
    fn enqueue(&self, operation: &Operation<'_>, run: kernels::Computation) -> Result<()> {
        self.device.check()?;
        self.device.may_fail(Injected::Launch, "launch")?;
        let (correlation, name) = (self.device.tracer.correlation(), operation.name());
        let mut state = lock(&self.state);
        state.check()?;
        match &mut state.capturing {
            Some((steps, captured)) => {
                captured.take(operation);
                steps.push((name, run));
                return Ok(());
            }
            None => state.push(Job::Compute { operation: name, run }, correlation),
        }
        drop(state);
        self.changed.notify_all();
        Ok(())
    }

    /// Blocks until everything that is enqueued now has completed.
    fn synchronize(&self) -> Result<()> {
        self.device.check()?;
        self.completed().check()
    }

    /// As [`synchronize`](Self::synchronize), for a wait for the device: a stream without handles tells its failure once.
    pub(super) fn synchronize_for_device(&self) -> Result<()> {
        let mut state = self.completed();
        if state.closed && state.told { Ok(()) } else { state.check() }
    }

    fn completed(&self) -> MutexGuard<'_, State> {
        let mut state = lock(&self.state);
        let target = state.enqueued;
        while state.completed < target {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state
    }

    fn is_complete(&self) -> Result<bool> {
        self.device.check()?;
        let mut state = lock(&self.state);
        state.check()?;
        state.not_captured("is_complete")?;
        Ok(state.completed == state.enqueued)
    }

    /// The worker: takes jobs in order until the stream is closed and its queue is empty.
    fn work(&self) {
        loop {
            let (Entry { job, correlation }, failure) = {
                let mut state = lock(&self.state);
                loop {
                    if let Some(entry) = state.jobs.pop_front() {
                        break (entry, state.failure.clone());
                    }
                    if state.closed {
                        return self.end(&state);
                    }
                    state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
            };
            let (noted, start) = (job.noted(), Instant::now());
            let outcome = match job {
                Job::Compute { .. } if failure.is_some() => Ok(()),
                Job::Compute { operation, run } => self.compute(operation, &run),
                Job::Reach(mark) => {
                    mark.reach(failure);
                    Ok(())
                }
                Job::Wait(mark) => mark.wait(),
            };
            // Before it counts as completed, so that whoever waited for it finds it in the tracer.
            if let (Some(noted), true) = (noted, self.device.tracer.is_on()) {
                self.note(noted, correlation, start);
            }
            let mut state = lock(&self.state);
            state.completed += 1;
            if let Err(failure) = outcome {
                state.failure.get_or_insert(failure);
            }
            drop(state);
            self.changed.notify_all();
        }
    }

    /// A failure that nobody has been told of, and nobody can ask for any more, is the device's.
    fn end(&self, state: &State) {
        if let (Some(failure), false) = (&state.failure, state.told) {
            lock(&self.device.orphaned).get_or_insert_with(|| failure.clone());
        }
    }

    fn note(&self, (name, kind): (&str, Kind), correlation: Option<u64>, start: Instant) {
        let (name, stream, end) = (name.to_owned(), Some(self.number), Instant::now());
        self.device.tracer.worked(DeviceWork { name, kind, stream, correlation, bytes: None, start, end });
    }

    fn compute(&self, operation: &'static str, run: &kernels::Computation) -> Result<()> {
        let reason = match catch_unwind(AssertUnwindSafe(|| run())) {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(reason)) => reason,
            Err(panic) => panic_message(&*panic),
        };
        Err(DeviceError::WorkFailed { device: self.device.name.clone(), operation: operation.to_owned(), reason })
    }
}

/// A handle of a stream. When it is dropped the worker finishes what is enqueued and ends.
pub(super) struct CpuStream {
    inner: Arc<StreamInner>,
}

/// Operations of a stream, to be enqueued again.
struct CpuGraph {
    stream: Arc<StreamInner>,
    steps: Vec<Step>,
}

impl EngineGraph for CpuGraph {
    fn launch(&self) -> Result<()> {
        self.stream.device.check()?;
        self.stream.device.may_fail(Injected::Launch, "launch_graph")?;
        let correlation = self.stream.device.tracer.correlation();
        let mut state = lock(&self.stream.state);
        state.check()?;
        state.not_captured("Graph::launch")?;
        for (operation, run) in &self.steps {
            state.push(Job::Compute { operation, run: Arc::clone(run) }, correlation);
        }
        drop(state);
        self.stream.changed.notify_all();
        Ok(())
    }
}

impl CpuStream {
    pub(super) fn start(device: &Arc<CpuDevice>, number: u32) -> Result<Self> {
        let (state, changed) = (Mutex::default(), Condvar::new());
        let inner = Arc::new(StreamInner { device: device.clone(), number, state, changed });
        let (worker, name) = (Arc::clone(&inner), format!("{} stream", device.name));
        std::thread::Builder::new().name(name).spawn(move || worker.work()).map_err(|error| {
            DeviceError::CallFailed { device: device.name.clone(), call: "thread::spawn", reason: error.to_string() }
        })?;
        Ok(Self { inner })
    }

    pub(super) fn inner(&self) -> &Arc<StreamInner> {
        &self.inner
    }
}

impl Drop for CpuStream {
    fn drop(&mut self) {
        lock(&self.inner.state).closed = true;
        self.inner.changed.notify_all();
    }
}

impl EngineStream for CpuStream {
    fn allocate(&self, dtype: DType, len: usize) -> Result<Arc<dyn DeviceMemory>> {
        let device = &self.inner.device;
        device.check()?;
        if device.injection.strikes(Injected::Allocation) {
            let requested = len.saturating_mul(dtype.size());
            return Err(DeviceError::OutOfMemory { device: device.name.clone(), requested, free: None });
        }
        Ok(Arc::new(CpuMemory::new(device, dtype, len)?))
    }

    fn enqueue(&self, operation: &Operation<'_>) -> Result<()> {
        let device = &self.inner.device;
        let run = kernels::prepare(operation, &mut |region| CpuMemory::slice(region, device))?;
        self.inner.enqueue(operation, run)
    }

    fn enqueue_upload(&self, source: &dyn HostMemory, target: Region<'_>) -> Result<()> {
        let device = &self.inner.device;
        let (source, target) = (CpuHostMemory::content(source, device)?, CpuMemory::slice(&target, device)?);
        self.inner.push_copy("copy_from", "upload", move || {
            let source = source.snapshot();
            target.write_bytes(source.bytes());
            Ok(())
        })
    }

    fn enqueue_download(&self, source: Region<'_>, target: &dyn HostMemory) -> Result<()> {
        let device = &self.inner.device;
        let (source, target) = (CpuMemory::slice(&source, device)?, CpuHostMemory::content(target, device)?);
        self.inner.push_copy("copy_to", "download", move || {
            let cells = source.content.snapshot();
            target.write(|bytes| bytes.bytes_mut().copy_from_slice(source.bytes_of(&cells)));
            Ok(())
        })
    }

    fn upload(&self, source: &[u8], target: Region<'_>) -> Result<()> {
        let (source, target) = (source.to_vec(), CpuMemory::slice(&target, &self.inner.device)?);
        self.inner.push_copy("upload", "upload", move || {
            target.write_bytes(&source);
            Ok(())
        })
    }

    fn download(&self, source: Region<'_>, target: &mut [u8]) -> Result<()> {
        let source = self.read(source)?;
        let cells = source.content.snapshot();
        let bytes = source.bytes_of(&cells);
        if bytes.len() != target.len() {
            let reason = format!("{} bytes on the host and {} on the device", target.len(), bytes.len());
            return Err(DeviceError::InvalidArgument { operation: "download", reason });
        }
        target.copy_from_slice(bytes);
        Ok(())
    }

    fn download_all(&self, source: Region<'_>) -> Result<Box<dyn Any>> {
        Ok(self.read(source)?.to_vec())
    }

    fn record(&self, event: &dyn EngineEvent) -> Result<()> {
        let event = CpuEvent::of(event, &self.inner.device)?;
        event.renew(|mark| self.inner.push("record", Job::Reach(mark)))
    }

    fn wait_event(&self, event: &dyn EngineEvent) -> Result<()> {
        match CpuEvent::of(event, &self.inner.device)?.latest() {
            Some(mark) => self.inner.push("wait", Job::Wait(mark)),
            None => lock(&self.inner.state).not_captured("wait"),
        }
    }

    fn wait_gate(&self, gate: &dyn EngineGate) -> Result<()> {
        let mark = CpuGate::mark_of(gate, &self.inner.device)?;
        self.inner.push("wait_gate", Job::Wait(mark))
    }

    fn begin_capture(&self) -> Result<()> {
        self.inner.device.check()?;
        let mut state = lock(&self.inner.state);
        state.check()?;
        state.not_captured("capture")?;
        state.capturing = Some(Default::default());
        Ok(())
    }

    fn end_capture(&self) -> Result<(Arc<dyn EngineGraph>, Captured)> {
        let mut state = lock(&self.inner.state);
        let taken = state.capturing.take();
        state.check()?;
        let (steps, captured) = taken.unwrap_or_default();
        Ok((Arc::new(CpuGraph { stream: self.inner.clone(), steps }), captured))
    }

    fn give_up_capture(&self) {
        let taken = lock(&self.inner.state).capturing.take();
        // Without the lock: it may hold the last handles of memory.
        drop(taken);
    }

    fn is_capturing(&self) -> bool {
        lock(&self.inner.state).capturing.is_some()
    }

    fn is_complete(&self) -> Result<bool> {
        self.inner.is_complete()
    }

    fn synchronize(&self) -> Result<()> {
        lock(&self.inner.state).not_captured("synchronize")?;
        self.inner.synchronize()
    }
}

impl CpuStream {
    /// A region whose elements can be read: all work before is over.
    fn read(&self, source: Region<'_>) -> Result<super::memory::Slice> {
        let source = CpuMemory::slice(&source, &self.inner.device)?;
        lock(&self.inner.state).not_captured("download")?;
        self.inner.device.may_fail(Injected::Copy, "download")?;
        self.inner.synchronize()?;
        Ok(source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::cpu::CpuDevice;
    use std::sync::{Barrier, OnceLock};

    fn stream() -> (Arc<CpuDevice>, CpuStream) {
        let device = Arc::new(CpuDevice {
            name: "cpu:0".to_owned(),
            tracer: Arc::default(),
            injection: Default::default(),
            lost: OnceLock::new(),
            orphaned: Mutex::default(),
        });
        let stream = CpuStream::start(&device, 0).unwrap();
        (device, stream)
    }

    fn fail(stream: &CpuStream) {
        stream.inner.push_copy("upload", "upload", || panic!("broken")).unwrap();
    }

    #[test]
    fn a_panic_in_a_worker_reaches_the_next_call_and_hangs_nobody() {
        let (device, stream) = stream();
        let (event, gate) = (CpuEvent::new(&device, false), CpuGate::new(&device));
        stream.wait_gate(&gate).unwrap();
        fail(&stream);
        stream.record(&event).unwrap();
        gate.open();
        let failure = stream.inner.synchronize().unwrap_err();
        assert_eq!(failure.to_string(), "work enqueued on cpu:0 failed in `upload`: broken");
        assert_eq!(event.synchronize(), Err(failure.clone()));
        let spin = Operation::Spin { duration: std::time::Duration::ZERO };
        assert_eq!(stream.enqueue(&spin), Err(failure));
    }

    #[test]
    fn a_failure_that_was_not_told_is_left_with_the_device() {
        let (device, stream) = stream();
        fail(&stream);
        let worker = stream.inner.clone();
        drop(stream);
        while Arc::strong_count(&worker) > 1 {
            std::thread::yield_now();
        }
        assert!(lock(&device.orphaned).is_some());
    }

    #[test]
    fn threads_enqueue_on_one_stream_and_nothing_is_lost() {
        const THREADS: usize = 4;
        const EACH: usize = 16;
        let (_, stream) = stream();
        let (count, start) = (Arc::new(Mutex::new(0)), Barrier::new(THREADS));
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    start.wait();
                    for _ in 0..EACH {
                        let count = count.clone();
                        let add = move || {
                            *lock(&count) += 1;
                            Ok(())
                        };
                        stream.inner.push_copy("upload", "upload", add).unwrap();
                    }
                    stream.synchronize().unwrap();
                });
            }
        });
        assert_eq!(*lock(&count), THREADS * EACH);
    }
}
