//! The ways in which a host thread can wait for a stream of the driver.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::driver::HostPiece;
use super::driver::calls::{Calls, Wake};
use super::gpu::{Opened, lock};
use super::memory::pinned::Purpose;
use crate::device::calls::RigStream;
use crate::device::calls::waiting::{Manner, PATIENCE, Waiting, poll};
use crate::device::engine::Result;
use crate::error::DeviceError;

/// Work on one stream of a rig, whose end a word of page-locked memory marks.
pub(super) struct CudaWaiting {
    device: Arc<Opened>,
    calls: Arc<Calls>,
    /// Gone in the drop alone.
    cell: Option<HostPiece>,
    /// What the word becomes by the work that is under way.
    target: AtomicU32,
    wake: Mutex<Arc<Wake>>,
}

impl CudaWaiting {
    pub(super) fn new(device: &Arc<Opened>, calls: &Arc<Calls>) -> Result<Self> {
        let cell = device.gpu.pinned.take_cell(Purpose::Gate)?;
        let target = AtomicU32::new(cell.flag().load(Ordering::Acquire));
        let (device, calls) = (device.clone(), calls.clone());
        Ok(Self { device, calls, cell: Some(cell), target, wake: Mutex::default() })
    }

    fn cell(&self) -> Result<&HostPiece> {
        self.cell.as_ref().ok_or_else(|| DeviceError::InvalidArgument {
            operation: "wait",
            reason: "the word that marks the end has been given back".to_owned(),
        })
    }
}

impl Waiting for CudaWaiting {
    fn prepare(&self) -> Result<()> {
        self.target.fetch_add(1, Ordering::SeqCst);
        *lock(&self.wake) = Arc::default();
        Ok(())
    }

    fn begin(&self, manner: Manner, length: Duration) -> Result<()> {
        let (span, target) = (self.cell()?.span(), self.target.load(Ordering::SeqCst));
        // First of all, so that no queue of the GPU holds it behind what waits for it.
        self.calls.mark(RigStream::Own, length, span, target)?;
        match manner {
            Manner::WaitValue => self.calls.hold(RigStream::NonBlocking, span, target),
            Manner::HostFunction => self.calls.wake(RigStream::Own, &Arc::clone(&lock(&self.wake))),
            _ => Ok(()),
        }
    }

    fn is_marked(&self) -> bool {
        let target = self.target.load(Ordering::Relaxed);
        self.cell.as_ref().is_some_and(|cell| cell.flag().load(Ordering::Acquire) == target)
    }

    fn wait(&self, manner: Manner) -> Result<()> {
        let late = |call| DeviceError::CallFailed {
            device: self.device.name().to_owned(),
            call,
            reason: format!("the work was not over after {} s", PATIENCE.as_secs()),
        };
        let until = Instant::now() + PATIENCE;
        match manner {
            Manner::Spin | Manner::Yield | Manner::Block => self.calls.synchronize(RigStream::Own),
            Manner::WaitValue => self.calls.synchronize(RigStream::NonBlocking),
            Manner::Query => {
                poll(until, || self.calls.is_idle(RigStream::Own))?.then_some(()).ok_or_else(|| late("cuStreamQuery"))
            }
            Manner::Flag => poll(until, || Ok(self.is_marked()))?.then_some(()).ok_or_else(|| late("load")),
            Manner::HostFunction => {
                let wake = Arc::clone(&lock(&self.wake));
                wake.wait(PATIENCE).then_some(()).ok_or_else(|| late("cuLaunchHostFunc"))
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
}

impl Drop for CudaWaiting {
    /// A drop cannot return an error. Where the device is lost, the word stays allocated.
    fn drop(&mut self) {
        if let (Ok(()), Some(cell)) = (self.settle(), self.cell.take()) {
            self.device.gpu.pinned.return_cell(cell, Purpose::Gate);
        }
    }
}
