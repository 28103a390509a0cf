//! A queue and the worker thread that empties it: the state of a stream.
//!
//! A failed job fails the stream: later jobs that compute are left out, every later call on the stream reports the
//! failure, and marks are still reached, with the failure, so that nobody waits for a stream that has failed. A stream that
//! waits for such a mark goes on.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::clock::{CpuEvent, Mark};
use super::kernels::Fault;
use super::{CpuDevice, kernels};
use crate::affinity;
use crate::device::engine::{Captured, Result};
use crate::device::injection::Injected;
use crate::device::kept::Name;
use crate::device::lock;
use crate::device::operation::Operation;
use crate::device::reserved::{NoRoom, reserve};
use crate::device::tracer::{DeviceWork, Kind};
use crate::error::{DeviceError, panic_message};

/// What a worker does for one entry of its queue.
pub(super) enum Job {
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
    pub(super) device: Arc<CpuDevice>,
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
    /// Whether somebody has been told of the failure, or the device tells it.
    told: bool,
}

/// An operation's name and its work.
pub(super) type Step = (&'static str, kernels::Computation);

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

    /// Finds room for `more` jobs.
    fn reserve(&mut self, more: usize) -> std::result::Result<(), NoRoom> {
        let len = self.jobs.len().saturating_add(more);
        self.jobs.try_reserve(more).map_err(|_| NoRoom::of::<Entry>(len))
    }

    /// Enqueues a job, for which there is room.
    fn push(&mut self, job: Job, correlation: Option<u64>) {
        self.jobs.push_back(Entry { job, correlation });
        self.enqueued += 1;
    }
}

impl StreamInner {
    /// A stream with its worker.
    pub(super) fn start(device: &Arc<CpuDevice>, number: u32) -> Result<Arc<Self>> {
        let (state, changed) = (Mutex::default(), Condvar::new());
        let inner = Arc::new(Self { device: device.clone(), number, state, changed });
        let (worker, name) = (Arc::clone(&inner), format!("{} stream", device.name));
        let start = || std::thread::Builder::new().name(name).spawn(move || worker.work());
        affinity::elsewhere(start).map_err(|error| affinity::no_thread(&device.name, &error))?;
        Ok(inner)
    }

    /// No handle is left: the worker finishes what is enqueued and ends.
    pub(super) fn close(&self) {
        lock(&self.state).closed = true;
        self.changed.notify_all();
    }

    /// Enqueues jobs that cannot be captured, one behind the other: all or none.
    pub(super) fn push<const N: usize>(&self, call: &'static str, jobs: [Job; N]) -> Result<()> {
        self.device.check()?;
        let correlation = self.device.tracer.correlation();
        let mut state = lock(&self.state);
        state.check()?;
        state.not_captured(call)?;
        state.reserve(N).map_err(|none| none.on(&self.device.name))?;
        jobs.into_iter().for_each(|job| state.push(job, correlation));
        drop(state);
        self.changed.notify_all();
        Ok(())
    }

    /// Enqueues work of a copy, and behind it the recording of an event where there is one.
    pub(super) fn push_copy(
        &self,
        call: &'static str,
        operation: &'static str,
        done: Option<&CpuEvent>,
        run: impl Fn() -> kernels::Computed + Send + Sync + 'static,
    ) -> Result<()> {
        self.device.may_fail(Injected::Copy, operation)?;
        let copy = Job::Compute { operation, run: Arc::new(run) };
        match done {
            Some(event) => event.renew(|mark| self.push(call, [copy, Job::Reach(mark)])),
            None => self.push(call, [copy]),
        }
    }

    /// Enqueues or captures operations, one behind the other: all or none.
    pub(super) fn enqueue(&self, operations: &[Operation<'_>], runs: Vec<kernels::Computation>) -> Result<()> {
        self.device.check()?;
        operations.iter().try_for_each(|_| self.device.may_fail(Injected::Launch, "launch"))?;
        let correlation = self.device.tracer.correlation();
        let mut state = lock(&self.state);
        state.check()?;
        if let Some(operation) = operations.iter().find(|operation| operation.is_never_captured()) {
            state.not_captured(operation.name())?;
        }
        match &mut state.capturing {
            Some((steps, captured)) => {
                captured.reserve(operations.len()).and_then(|()| reserve(steps, operations.len()))
            }
            None => state.reserve(operations.len()),
        }
        .map_err(|none| none.on(&self.device.name))?;
        for (operation, run) in operations.iter().zip(runs) {
            match &mut state.capturing {
                Some((steps, captured)) => {
                    captured.take(operation.regions(), true);
                    steps.push((operation.name(), run));
                }
                None => state.push(Job::Compute { operation: operation.name(), run }, correlation),
            }
        }
        drop(state);
        self.changed.notify_all();
        Ok(())
    }

    /// Enqueues captured operations.
    pub(super) fn launch(&self, steps: &[Step]) -> Result<()> {
        self.device.check()?;
        self.device.may_fail(Injected::Launch, "launch_graph")?;
        let correlation = self.device.tracer.correlation();
        let mut state = lock(&self.state);
        state.check()?;
        state.not_captured("Graph::launch")?;
        state.reserve(steps.len()).map_err(|none| none.on(&self.device.name))?;
        for (operation, run) in steps {
            state.push(Job::Compute { operation, run: Arc::clone(run) }, correlation);
        }
        drop(state);
        self.changed.notify_all();
        Ok(())
    }

    /// What [`push`](Self::push) finds, for a call that enqueues nothing.
    pub(super) fn check(&self, call: &'static str) -> Result<()> {
        self.push(call, [])
    }

    /// From now on operations are captured.
    pub(super) fn begin_capture(&self) -> Result<()> {
        self.device.check()?;
        let mut state = lock(&self.state);
        state.check()?;
        state.not_captured("capture")?;
        state.capturing = Some(Default::default());
        Ok(())
    }

    /// What was captured, which ends here.
    pub(super) fn end_capture(&self) -> Result<(Vec<Step>, Captured)> {
        let mut state = lock(&self.state);
        let taken = state.capturing.take();
        let outcome = self.device.check().and_then(|()| state.check());
        drop(state);
        // Without the lock, also where it is of no use: it may hold the last handles of memory.
        outcome.map(|()| taken.unwrap_or_default())
    }

    /// Ends a capture, whose work is forgotten.
    pub(super) fn give_up_capture(&self) {
        let taken = lock(&self.state).capturing.take();
        // Without the lock: it may hold the last handles of memory.
        drop(taken);
    }

    pub(super) fn is_capturing(&self) -> bool {
        lock(&self.state).capturing.is_some()
    }

    /// Blocks until everything that is enqueued now has completed.
    pub(super) fn synchronize(&self) -> Result<()> {
        self.device.check()?;
        self.completed().check()
    }

    /// As [`synchronize`](Self::synchronize), and says nothing of a failure.
    pub(super) fn wait(&self) {
        drop(self.completed());
    }

    /// Whether no handle is left.
    pub(super) fn is_closed(&self) -> bool {
        lock(&self.state).closed
    }

    /// Fails if work has.
    pub(super) fn check_failure(&self) -> Result<()> {
        lock(&self.state).check()
    }

    /// Leaves a failure that nobody was told of with the device, which tells it: the last handle is gone.
    pub(super) fn leave_failure(&self) {
        self.leave(&mut lock(&self.state));
    }

    fn leave(&self, state: &mut State) {
        if let (Some(failure), false) = (&state.failure, state.told) {
            self.device.orphaned.leave(failure.clone());
            state.told = true;
        }
    }

    fn completed(&self) -> MutexGuard<'_, State> {
        let mut state = lock(&self.state);
        let target = state.enqueued;
        while state.completed < target {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state
    }

    /// How many jobs were enqueued.
    pub(super) fn enqueued(&self) -> u64 {
        lock(&self.state).enqueued
    }

    /// Whether everything enqueued so far has completed.
    pub(super) fn is_complete(&self) -> Result<bool> {
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
                        return self.leave(&mut state);
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
                Job::Wait(mark) => {
                    // A failure is told by the stream that has it.
                    _ = mark.wait();
                    Ok(())
                }
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

    fn note(&self, (name, kind): (&'static str, Kind), correlation: Option<u64>, start: Instant) {
        let (name, stream, end) = (Name::Own(name), Some(self.number), Instant::now());
        self.device.tracer.worked(DeviceWork { name, kind, stream, correlation, bytes: None, start, end });
    }

    fn compute(&self, operation: &'static str, run: &kernels::Computation) -> Result<()> {
        let reason = match catch_unwind(AssertUnwindSafe(|| run())) {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(Fault::NoRoom(none))) => return Err(none.on(&self.device.name)),
            Ok(Err(Fault::Reason(reason))) => reason,
            Err(panic) => panic_message(&*panic),
        };
        Err(DeviceError::WorkFailed { device: self.device.name.clone(), operation: operation.to_owned(), reason })
    }
}
