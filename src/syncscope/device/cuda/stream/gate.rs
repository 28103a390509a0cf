//! Gates: a flag in host memory that streams wait for.
//!
//! A stream waits until the flag is at least the gate's target, compared around its 32 bits; the host opens the gate
//! by storing the target. The next gate on the same flag takes the next target: the flag is never set back, so that
//! it can be handed on although a stream may not have looked at it yet.
//!
//! CUDA does not promise that a stream which waits for a word of memory holds no other. The driver gives busy streams queues
//! of the GPU, and where there are more of them than queues, two share one (*Stream memory operations* in the driver's
//! manual: order that these operations make "is not visible to CUDA", which may serialize). Streams also get one where they
//! begin at the same moment. So streams enqueue one at a time while a gate is closed, and `CUDA_DEVICE_MAX_CONNECTIONS=32`
//! makes the most queues there are (8 unless it is set).
//!
//! Where the driver lets a stream wait for a word of memory, it does so in hardware, without a thread or a kernel. Some
//! drivers do not, which is tried when the GPU is opened: there a kernel of one thread polls the flag (`kernels/hold.cu`).
//! The device's facts say which.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::guard::StreamGuard;
use crate::device::cuda::driver::{HostPiece, arguments};
use crate::device::cuda::kernels::Kernel;
use crate::device::cuda::memory::pinned::Purpose;
use crate::device::cuda::opened::Opened;
use crate::device::cuda::raw;
use crate::device::engine::{EngineGate, Result, own};
use crate::error::DeviceError;

/// What a gate's streams wait for.
pub(crate) struct Flag {
    cell: HostPiece,
    target: u32,
}

impl Flag {
    /// Lets the streams go on.
    pub(crate) fn open(&self) {
        self.cell.flag().store(self.target, Ordering::SeqCst);
    }

    fn is_open(&self) -> bool {
        self.cell.flag().load(Ordering::SeqCst) == self.target
    }
}

/// A gate of a CUDA device. It opens when it is dropped, and at the latest when the process ends.
pub(crate) struct CudaGate {
    device: Arc<Opened>,
    /// Gone in the drop alone.
    flag: Option<Arc<Flag>>,
    /// Whether the GPU counts it as one that holds: a stream is told to wait and it is closed.
    holds: AtomicBool,
}

impl CudaGate {
    /// A closed gate.
    pub(crate) fn new(device: &Arc<Opened>) -> Result<Self> {
        device.check()?;
        device.gpu.prepare_to_hold()?;
        let cell = device.gpu.cell(Purpose::Gate)?;
        let target = cell.flag().load(Ordering::Acquire).wrapping_add(1);
        let flag = Arc::new(Flag { cell, target });
        device.gpu.remember_gate(&flag);
        Ok(Self { device: device.clone(), flag: Some(flag), holds: AtomicBool::new(false) })
    }

    /// The gate behind the interface, if it is one of this opened device.
    pub(crate) fn of<'a>(gate: &'a dyn EngineGate, device: &Arc<Opened>) -> Result<&'a Self> {
        own(gate, |gate: &Self| &gate.device, (device, device.name()), "a gate")
    }

    /// Counts it as one that holds a stream, as long as it is closed.
    fn begin_to_hold(&self) {
        if !self.is_open() && !self.holds.load(Ordering::SeqCst) {
            // Counted before it is said: who finds it said enqueues at once.
            self.device.gpu.hold();
            if self.holds.swap(true, Ordering::SeqCst) {
                self.device.gpu.let_go();
            } else if self.is_open() {
                self.let_go();
            }
        }
    }

    /// What a stream waits for that is not the engine's.
    pub(crate) fn lend(&self) -> Result<raw::Flag> {
        let not_applicable = || {
            DeviceError::not_applicable(
                "a gate",
                self.device.name(),
                "this driver has no wait of a stream for a word of memory, and a kernel that holds a stream would be \
                     pending work itself",
            )
        };
        let flag = self.flag.as_ref().filter(|_| self.device.waits_for_flags()).ok_or_else(not_applicable)?;
        self.begin_to_hold();
        Ok(raw::Flag { address: flag.cell.span().address(), target: flag.target })
    }

    /// Enqueues a wait.
    pub(crate) fn enqueue_wait(&self, guard: &StreamGuard<'_>) -> Result<()> {
        let Some(flag) = self.flag.as_ref() else { return Ok(()) };
        self.begin_to_hold();
        guard.begin_to_hold(|| {
            if self.device.waits_for_flags() {
                return guard.wait_flag(flag.cell.span(), flag.target);
            }
            let (address, target) = (flag.cell.span().address(), flag.target);
            guard.launch(Kernel::HOLD, 1, 1, &mut arguments![address, target])
        })
    }

    fn is_open(&self) -> bool {
        self.flag.as_ref().is_none_or(|flag| flag.is_open())
    }

    fn let_go(&self) {
        if self.holds.swap(false, Ordering::SeqCst) {
            self.device.gpu.let_go();
        }
    }
}

impl EngineGate for CudaGate {
    fn open(&self) {
        if let Some(flag) = &self.flag {
            flag.open();
        }
        self.let_go();
    }
}

impl Drop for CudaGate {
    fn drop(&mut self) {
        self.open();
        // The end of the process may have it, too.
        if let Some(Flag { cell, .. }) = self.flag.take().and_then(Arc::into_inner) {
            self.device.gpu.pinned.return_cell(cell, Purpose::Gate);
        }
    }
}
