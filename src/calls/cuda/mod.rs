//! What the driver's calls are tried with: the driver's streams for it, gates that hold them, and a thread that waits.

#[allow(unsafe_code, reason = "the driver's calls")]
mod driver;
mod waiting;

use std::cell::{Cell, RefCell};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use syncscope::affinity;
use syncscope::device::raw::{self, Context};
use syncscope::device::{Device, Gate};
use syncscope::error::DeviceError;

use crate::catalogue::{Call, Make};
use crate::waiting::Waiting;
use crate::ways::{MovedBy, Transfers};
use crate::{Result, Rig, Steps, StreamRole, WaitMode};
pub(crate) use driver::first::first_kernel;
pub use driver::layers;
pub(crate) use driver::ranks::NcclRanks;
pub(crate) use driver::{Calls, calls};
use waiting::CudaWaiting;

/// How long another thread is given to begin its wait: it has nothing else to do.
const ENTRY: Duration = Duration::from_micros(200);

/// The rig of a GPU.
pub(super) struct CudaRig {
    device: Device,
    calls: Arc<Calls>,
    /// The thread that waits for its stream.
    waiting: RefCell<Option<JoinHandle<Result<()>>>>,
    /// How threads wait; none where the driver lets nobody choose.
    mode: Cell<Option<WaitMode>>,
}

impl CudaRig {
    /// Makes what could wait for a gate, before there is one.
    pub(super) fn new(device: &Device, context: &Arc<Context>) -> Result<Self> {
        // Fails where streams cannot be held.
        raw::flag(&device.gate()?)?;
        // A second GPU, for copies and holds between two.
        let other = Device::list().into_iter().find(|listed| is_gpu(&listed.name) && listed.name != device.name());
        let other = other.map(|listed| opened(&listed.name)).transpose()?;
        let (image, instruments) = (raw::image(context, "spin.cu")?, raw::image(context, "instruments.cu")?);
        let calls = Calls::new(context, other, image, &instruments)?;
        let mode = match calls.wait_by(Some(WaitMode::Spin)) {
            Ok(()) => Some(WaitMode::Spin),
            Err(DeviceError::NotApplicable { .. }) => None,
            Err(error) => return Err(error),
        };
        let rig = Self { device: device.clone(), calls, waiting: RefCell::new(None), mode: Cell::new(mode) };
        // The driver starts its thread for functions of the host with the first of them.
        affinity::elsewhere(|| rig.calls.wake(StreamRole::Given, &Arc::default()))?;
        rig.drain()?;
        // The driver gives a stream its hardware queue with its first work.
        if rig.calls.has_other_device() {
            drop(rig.hold(StreamRole::Device)?);
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
            calls.synchronize(StreamRole::Thread)
        };
        let waiter = affinity::elsewhere(|| std::thread::Builder::new().spawn(wait));
        *self.waiting.borrow_mut() =
            Some(waiter.map_err(|error| DeviceError::call_failed("the host", "thread::spawn", error.to_string()))?);
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
    fn steps(&self, call: &Call) -> Result<Box<dyn Steps>> {
        self.calls.bind()?;
        match &call.make {
            Make::Driver(make) => make(&self.calls),
            Make::Own(_) => Err(DeviceError::invalid("steps", format!("{call:?}"))),
        }
    }

    fn hold(&self, line: StreamRole) -> Result<Gate> {
        // It opens where a stream cannot be held.
        let gate = self.device.gate()?;
        if let Some(flag) = raw::flag(&gate)? {
            self.calls.hold(line, flag)?;
        }
        if line == StreamRole::Thread {
            self.wait_elsewhere()?;
        }
        Ok(gate)
    }

    fn keep_busy(&self, line: StreamRole, duration: Duration) -> Result<()> {
        self.calls.keep_busy(line, duration)
    }

    fn drain(&self) -> Result<()> {
        let joined = self.join();
        self.calls.bind()?;
        let is_there = |line: &StreamRole| *line != StreamRole::Device || self.calls.has_other_device();
        StreamRole::ALL.into_iter().filter(is_there).try_for_each(|line| self.calls.synchronize(line))?;
        joined
    }

    fn wait_by(&self, mode: WaitMode) -> Result<()> {
        if self.mode.get() == Some(mode) {
            return Ok(());
        }
        self.calls.wait_by(Some(mode))?;
        self.mode.set(Some(mode));
        // What the driver does at the first launch after such a change belongs to no call that is timed.
        self.keep_busy(StreamRole::Given, Duration::ZERO)?;
        self.drain()
    }

    fn waiting(&self) -> Result<Box<dyn Waiting>> {
        CudaWaiting::new(self.device.name(), &self.calls).map(|waiting| Box::new(waiting) as _)
    }

    fn transfers(&self, way: MovedBy, bytes: usize) -> Result<Box<dyn Transfers>> {
        self.calls.transfers(way, bytes)
    }

    fn ranks(&self, bytes: usize) -> Result<NcclRanks> {
        let gpus = Device::list().into_iter().filter(|listed| is_gpu(&listed.name));
        let contexts = gpus.map(|listed| opened(&listed.name)).collect::<Result<Vec<_>>>()?;
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

fn is_gpu(name: &str) -> bool {
    name.starts_with("cuda:")
}

/// The context of the GPU of this name, which lives as long as the process.
fn opened(name: &str) -> Result<Arc<Context>> {
    raw::context(&Device::open(name)?)?
        .ok_or_else(|| DeviceError::not_applicable("a call of the driver", name, "this engine stands on no driver"))
}
