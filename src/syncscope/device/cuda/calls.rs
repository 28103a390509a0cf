//! What the driver's calls are tried with: the driver's streams for it, gates that hold them, and a thread that waits.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::driver::calls::Calls;
use super::driver::{HostPiece, context};
use super::gpu::{Gpu, Opened};
use super::kernels::Kernel;
use super::memory::pinned::Purpose;
use super::waiting::CudaWaiting;
use crate::affinity;
use crate::device::calls::catalogue::Action;
use crate::device::calls::ranks::Ranks;
use crate::device::calls::waiting::Waiting;
use crate::device::calls::ways::{MovedBy, Transfers};
use crate::device::calls::{Rig, RigStream, Steps, WaitMode};
use crate::device::engine::{EngineGate, Result};
use crate::error::DeviceError;

/// How long another thread is given to begin its wait: it has nothing else to do.
const ENTRY: Duration = Duration::from_micros(200);

/// The rig of a GPU.
pub(super) struct CudaRig {
    device: Arc<Opened>,
    calls: Arc<Calls>,
    /// The thread that waits for its stream.
    waiting: RefCell<Option<JoinHandle<Result<()>>>>,
    /// How threads wait; none where the driver lets nobody choose.
    mode: Cell<Option<WaitMode>>,
}

impl CudaRig {
    pub(super) fn new(device: &Arc<Opened>) -> Result<Self> {
        device.check()?;
        let gpu = &device.gpu;
        gpu.prepare_to_hold()?;
        if !gpu.waits_for_flags {
            return Err(DeviceError::NotApplicable {
                what: "a gate".to_owned(),
                device: device.name().to_owned(),
                reason: "this driver has no wait of a stream for a word of memory, and a kernel that holds a stream \
                         would be pending work itself"
                    .to_owned(),
            });
        }
        // Any other one.
        let other = (0..context::device_count()?).find(|index| context::name(*index) != gpu.name());
        let other = other.map(|index| Gpu::open(index).map(|other| other.context.clone())).transpose()?;
        let (image, instruments) = (gpu.kernels.image_with(Kernel::SPIN)?, gpu.kernels.image_with(Kernel::MARKER)?);
        let calls = Calls::new(&gpu.context, other, image, &instruments)?;
        let mode = match calls.wait_by(Some(WaitMode::Spin)) {
            Ok(()) => Some(WaitMode::Spin),
            Err(DeviceError::NotApplicable { .. }) => None,
            Err(error) => return Err(error),
        };
        let rig = Self { device: device.clone(), calls, waiting: RefCell::new(None), mode: Cell::new(mode) };
        // The driver starts its thread for functions of the host with the first of them.
        affinity::elsewhere(|| rig.calls.wake(RigStream::Own, &Arc::default()))?;
        rig.drain()?;
        // The driver gives a stream its hardware queue with its first work.
        if rig.calls.has_other_device() {
            drop(rig.hold(RigStream::Device)?);
            rig.drain()?;
        }
        Ok(rig)
    }

    /// Has another thread wait for its stream.
    fn wait_elsewhere(&self) -> Result<()> {
        let (calls, (waits, waiting)) = (self.calls.clone(), mpsc::channel::<()>());
        let wait = move || {
            calls.bind()?;
            drop(waits);
            calls.synchronize(RigStream::Thread)
        };
        let waiter = affinity::elsewhere(|| std::thread::Builder::new().spawn(wait));
        *self.waiting.borrow_mut() = Some(waiter.map_err(|error| affinity::no_thread("the host", &error))?);
        // It has bound the context, or has ended.
        _ = waiting.recv();
        let begun = Instant::now();
        while begun.elapsed() < ENTRY {
            std::hint::spin_loop();
        }
        Ok(())
    }

    fn join(&self) -> Result<()> {
        let waiting = self.waiting.borrow_mut().take();
        waiting.map_or(Ok(()), |thread| thread.join().unwrap_or(Ok(())))
    }
}

impl Rig for CudaRig {
    fn steps(&self, action: &Action) -> Result<Box<dyn Steps>> {
        self.calls.bind()?;
        self.calls.steps(action)
    }

    fn hold(&self, line: RigStream) -> Result<Arc<dyn EngineGate>> {
        let cell = self.device.gpu.pinned.take_cell(Purpose::Gate)?;
        let target = cell.flag().load(Ordering::Acquire).wrapping_add(1);
        self.device.gpu.hold();
        // It opens where a stream cannot be held.
        let gate =
            Arc::new(Flag { device: self.device.clone(), cell: Some(cell), target, holds: AtomicBool::new(true) });
        if let Some(cell) = &gate.cell {
            self.calls.hold(line, cell.span(), target)?;
        }
        if line == RigStream::Thread {
            self.wait_elsewhere()?;
        }
        Ok(gate)
    }

    fn keep_busy(&self, line: RigStream, duration: Duration) -> Result<()> {
        self.calls.keep_busy(line, duration)
    }

    fn drain(&self) -> Result<()> {
        let joined = self.join();
        self.calls.bind()?;
        for line in [RigStream::Own, RigStream::Other, RigStream::NonBlocking, RigStream::Thread, RigStream::Legacy] {
            self.calls.synchronize(line)?;
        }
        if self.calls.has_other_device() {
            self.calls.synchronize(RigStream::Device)?;
        }
        joined
    }

    fn wait_by(&self, mode: WaitMode) -> Result<()> {
        if self.mode.get() == Some(mode) {
            return Ok(());
        }
        self.calls.wait_by(Some(mode))?;
        self.mode.set(Some(mode));
        // What the driver does at the first launch after such a change belongs to no call that is timed.
        self.keep_busy(RigStream::Own, Duration::ZERO)?;
        self.drain()
    }

    fn waiting(&self) -> Result<Arc<dyn Waiting>> {
        CudaWaiting::new(&self.device, &self.calls).map(|waiting| Arc::new(waiting) as _)
    }

    fn transfers(&self, way: MovedBy, bytes: usize) -> Result<Box<dyn Transfers>> {
        self.calls.transfers(way, bytes, || self.device.gpu.kernels.image_with(Kernel::TRANSFER))
    }

    fn ranks(&self, bytes: usize) -> Result<Box<dyn Ranks>> {
        let gpus = (0..context::device_count()?).map(Gpu::open).collect::<Result<Vec<_>>>()?;
        let contexts: Vec<_> = gpus.iter().map(|gpu| gpu.context.clone()).collect();
        self.calls.ranks(&contexts, bytes)
    }
}

impl Drop for CudaRig {
    /// A drop cannot return an error.
    fn drop(&mut self) {
        let _ = self.join();
        if self.mode.get().is_some() {
            let _ = self.calls.wait_by(None);
        }
    }
}

/// A word of page-locked memory that a stream waits for.
struct Flag {
    device: Arc<Opened>,
    /// Gone in the drop alone.
    cell: Option<HostPiece>,
    target: u32,
    holds: AtomicBool,
}

impl EngineGate for Flag {
    fn open(&self) {
        if let Some(cell) = &self.cell {
            cell.flag().store(self.target, Ordering::SeqCst);
        }
        if self.holds.swap(false, Ordering::SeqCst) {
            self.device.gpu.let_go();
        }
    }
}

impl Drop for Flag {
    fn drop(&mut self) {
        self.open();
        if let Some(cell) = self.cell.take() {
            self.device.gpu.pinned.return_cell(cell, Purpose::Gate);
        }
    }
}
