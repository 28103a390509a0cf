//! The ways in which a host thread can wait for a stream of the driver.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::driver::HostPiece;
use super::driver::calls::{Calls, Wake};
use super::gpu::{Opened, lock};
use super::memory::pinned::Purpose;
use crate::device::calls::RigStream;
use crate::device::calls::clock::{Answer, ByHost, by_host};
use crate::device::calls::waiting::{Manner, PATIENCE, Waiting, poll};
use crate::device::engine::Result;
use crate::error::DeviceError;

/// How often the device is asked for its time, and for how long it waits for a question.
const QUESTIONS: u32 = 16;
const LIMIT: Duration = Duration::from_secs(2);

/// The word of a cell, of 8 bytes, in which the device tells a time.
const TIME: usize = 1;

/// Work on one stream of a rig, whose end a word of page-locked memory marks.
pub(super) struct CudaWaiting {
    device: Arc<Opened>,
    calls: Arc<Calls>,
    /// Gone in the drop alone.
    cells: Option<Cells>,
    /// What the word becomes by the work that is under way.
    target: AtomicU32,
    wake: Mutex<Arc<Wake>>,
}

/// Words of page-locked memory. A stream may still read what they were before: their flags only count up.
struct Cells {
    /// The mark, and when it was made.
    end: HostPiece,
    /// The question, and the answer.
    clock: HostPiece,
}

impl CudaWaiting {
    pub(super) fn new(device: &Arc<Opened>, calls: &Arc<Calls>) -> Result<Self> {
        let cell = || device.gpu.pinned.take_cell(Purpose::Gate);
        let cells = Cells { end: cell()?, clock: cell()? };
        let target = AtomicU32::new(cells.end.flag().load(Ordering::Acquire));
        let (device, calls) = (device.clone(), calls.clone());
        Ok(Self { device, calls, cells: Some(cells), target, wake: Mutex::default() })
    }

    fn cells(&self) -> Result<&Cells> {
        self.cells.as_ref().ok_or_else(|| DeviceError::InvalidArgument {
            operation: "wait",
            reason: "the word that marks the end has been given back".to_owned(),
        })
    }

    fn is_marked(&self) -> Result<bool> {
        let target = self.target.load(Ordering::Relaxed);
        Ok(self.cells()?.end.flag().load(Ordering::Acquire) == target)
    }

    /// What a wait says that has not ended in time.
    fn late(&self, call: &'static str) -> DeviceError {
        DeviceError::CallFailed {
            device: self.device.name().to_owned(),
            call,
            reason: format!("the work was not over after {} s", PATIENCE.as_secs()),
        }
    }

    /// What the device tells next, after `before`.
    fn told(&self, cell: &HostPiece, before: u64) -> Result<u64> {
        let mut told = before;
        let seen = poll(Instant::now() + PATIENCE, || {
            told = cell.word(TIME);
            Ok(told != before)
        })?;
        if seen { Ok(told) } else { Err(self.late("the device's clock")) }
    }

    /// Asks the device for its time, some times: the step of its clock, and the answers.
    fn asked(&self) -> Result<(u64, Vec<Answer>)> {
        let cell = &self.cells()?.clock;
        let (first, before) = (cell.flag().load(Ordering::Acquire).wrapping_add(1), cell.word(TIME));
        self.calls.tell_time(RigStream::Own, cell.span(), first, QUESTIONS, LIMIT)?;
        let step = self.told(cell, before)?;
        let (mut answers, mut before) = (Vec::new(), step);
        for question in 0..QUESTIONS {
            let asked = Instant::now();
            cell.flag().store(first.wrapping_add(question), Ordering::SeqCst);
            before = self.told(cell, before)?;
            answers.push(Answer { asked, told: before, seen: Instant::now() });
        }
        self.calls.synchronize(RigStream::Own)?;
        Ok((step, answers))
    }
}

impl Waiting for CudaWaiting {
    fn prepare(&self) -> Result<()> {
        self.target.fetch_add(1, Ordering::SeqCst);
        *lock(&self.wake) = Arc::default();
        Ok(())
    }

    fn begin(&self, manner: Manner, length: Duration) -> Result<()> {
        let (span, target) = (self.cells()?.end.span(), self.target.load(Ordering::SeqCst));
        // First of all, so that no queue of the GPU holds it behind what waits for it.
        self.calls.mark(RigStream::Own, length, span, target)?;
        match manner {
            Manner::WaitValue => self.calls.hold(RigStream::NonBlocking, span, target),
            Manner::HostFunction => self.calls.wake(RigStream::Own, &Arc::clone(&lock(&self.wake))),
            _ => Ok(()),
        }
    }

    fn wait(&self, manner: Manner) -> Result<()> {
        let until = Instant::now() + PATIENCE;
        match manner {
            Manner::Spin | Manner::Yield | Manner::Block => self.calls.synchronize(RigStream::Own),
            Manner::WaitValue => self.calls.synchronize(RigStream::NonBlocking),
            Manner::Query => poll(until, || self.calls.is_idle(RigStream::Own))?
                .then_some(())
                .ok_or_else(|| self.late("cuStreamQuery")),
            Manner::Flag => poll(until, || self.is_marked())?.then_some(()).ok_or_else(|| self.late("load")),
            Manner::HostFunction => {
                let wake = Arc::clone(&lock(&self.wake));
                wake.wait(PATIENCE).then_some(()).ok_or_else(|| self.late("cuLaunchHostFunc"))
            }
        }
    }

    fn launch_beside(&self) -> Result<()> {
        self.calls.keep_busy(RigStream::Thread, Duration::ZERO)
    }

    fn settle(&self) -> Result<()> {
        for line in [RigStream::Own, RigStream::NonBlocking, RigStream::Thread] {
            self.calls.synchronize(line)?;
        }
        Ok(())
    }

    fn ended(&self) -> Result<ByHost> {
        let end = self.cells()?.end.word(TIME);
        let (step, answers) = self.asked()?;
        by_host(end, step, &answers).ok_or_else(|| self.late("the device's clock"))
    }
}

impl Drop for CudaWaiting {
    /// A drop cannot return an error. Where the device is lost, the words stay allocated.
    fn drop(&mut self) {
        if let (Ok(()), Some(Cells { end, clock })) = (self.settle(), self.cells.take()) {
            [end, clock].into_iter().for_each(|cell| self.device.gpu.pinned.return_cell(cell, Purpose::Gate));
        }
    }
}
