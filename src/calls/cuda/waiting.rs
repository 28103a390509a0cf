//! The ways in which a host thread can wait for a stream of the driver.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use syncscope::error::DeviceError;

use super::driver::{Calls, Cell, Wake};
use crate::clock::{Answer, ByHost, by_host};
use crate::waiting::{Manner, PATIENCE, Waiting, poll};
use crate::{Result, StreamRole};

/// How often the device is asked for its time, and for how long it waits for a question.
const QUESTIONS: u32 = 16;
const LIMIT: Duration = Duration::from_secs(2);

/// Work on one stream of a rig, whose end a word of page-locked memory marks.
pub(super) struct CudaWaiting {
    device: String,
    calls: Arc<Calls>,
    /// The mark, and when it was made.
    end: Cell,
    /// The question, and the answer.
    clock: Cell,
    /// What the mark becomes by the work that is under way.
    target: AtomicU32,
    wake: Mutex<Arc<Wake>>,
}

impl CudaWaiting {
    pub(super) fn new(device: &str, calls: &Arc<Calls>) -> Result<Self> {
        calls.bind()?;
        let (end, clock) = (Cell::new(calls)?, Cell::new(calls)?);
        let target = AtomicU32::new(end.flag()?.load(Ordering::Acquire));
        Ok(Self { device: device.to_owned(), calls: calls.clone(), end, clock, target, wake: Mutex::default() })
    }

    fn wake(&self) -> Arc<Wake> {
        Arc::clone(&self.wake.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn is_marked(&self) -> Result<bool> {
        let target = self.target.load(Ordering::Relaxed);
        Ok(self.end.flag()?.load(Ordering::Acquire) == target)
    }

    /// What a wait says that has not ended in time.
    fn late(&self, call: &'static str) -> DeviceError {
        let reason = format!("the work was not over after {} s", PATIENCE.as_secs());
        DeviceError::call_failed(self.device.clone(), call, reason)
    }

    /// What the device tells next, after `before`.
    fn told(&self, before: u64) -> Result<u64> {
        let mut told = before;
        let seen = poll(Instant::now() + PATIENCE, || {
            told = self.clock.time()?;
            Ok(told != before)
        })?;
        if seen { Ok(told) } else { Err(self.late("the device's clock")) }
    }

    /// Asks the device for its time, some times: the step of its clock, and the answers.
    fn asked(&self) -> Result<(u64, Vec<Answer>)> {
        let flag = self.clock.flag()?;
        let (first, before) = (flag.load(Ordering::Acquire).wrapping_add(1), self.clock.time()?);
        self.calls.tell_time(StreamRole::Given, self.clock.is(first)?, QUESTIONS, LIMIT)?;
        let step = self.told(before)?;
        let (mut answers, mut before) = (Vec::new(), step);
        for question in 0..QUESTIONS {
            let asked = Instant::now();
            flag.store(first.wrapping_add(question), Ordering::SeqCst);
            before = self.told(before)?;
            answers.push(Answer { asked, told: before, seen: Instant::now() });
        }
        self.calls.synchronize(StreamRole::Given)?;
        Ok((step, answers))
    }
}

impl Waiting for CudaWaiting {
    fn prepare(&self) -> Result<()> {
        self.target.fetch_add(1, Ordering::SeqCst);
        *self.wake.lock().unwrap_or_else(PoisonError::into_inner) = Arc::default();
        Ok(())
    }

    fn begin(&self, manner: Manner, length: Duration) -> Result<()> {
        let marked = self.end.is(self.target.load(Ordering::SeqCst))?;
        // First of all, so that no queue of the GPU holds it behind what waits for it.
        self.calls.mark(StreamRole::Given, length, marked)?;
        match manner {
            Manner::WaitValue => self.calls.hold(StreamRole::NonBlocking, marked),
            Manner::HostFunction => self.calls.wake(StreamRole::Given, &self.wake()),
            _ => Ok(()),
        }
    }

    fn wait(&self, manner: Manner) -> Result<()> {
        let until = Instant::now() + PATIENCE;
        let (is_over, call) = match manner {
            Manner::Driver(_) => return self.calls.synchronize(StreamRole::Given),
            Manner::WaitValue => return self.calls.synchronize(StreamRole::NonBlocking),
            Manner::Query => (poll(until, || self.calls.is_idle(StreamRole::Given))?, "cuStreamQuery"),
            Manner::Flag => (poll(until, || self.is_marked())?, "load"),
            Manner::HostFunction => (self.wake().wait(PATIENCE), "cuLaunchHostFunc"),
        };
        is_over.then_some(()).ok_or_else(|| self.late(call))
    }

    fn launch_beside(&self) -> Result<()> {
        self.calls.keep_busy(StreamRole::Thread, Duration::ZERO)
    }

    fn settle(&self) -> Result<()> {
        for line in [StreamRole::Given, StreamRole::NonBlocking, StreamRole::Thread] {
            self.calls.synchronize(line)?;
        }
        Ok(())
    }

    fn ended(&self) -> Result<ByHost> {
        let end = self.end.time()?;
        let (step, answers) = self.asked()?;
        by_host(end, step, &answers).ok_or_else(|| self.late("the device's clock"))
    }
}

impl Drop for CudaWaiting {
    /// Nothing may use the cells when they are freed. A drop cannot return an error.
    fn drop(&mut self) {
        let _ = self.settle();
    }
}
