//! Gates: a word of host memory that streams wait on in hardware, without a thread or a kernel.
//!
//! A stream waits until the word is at least the gate's target, compared around its 32 bits; the host opens the gate
//! by storing the target. The next gate on the same word takes the next target: the word is never set back, so that
//! it can be handed on although a stream may not have looked at it yet.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use cudarc::driver::sys::{self, CUstreamWaitValue_flags};

use crate::device::cuda::context::Context;
use crate::device::cuda::memory::pinned::{Cell, Purpose};
use crate::device::cuda::stream::inner::StreamInner;
use crate::device::engine::{EngineGate, Result};
use crate::error::DeviceError;

/// A gate of a CUDA device. Keeps its context, and opens when it is dropped: no stream can be held for good.
pub(crate) struct CudaGate {
    context: Arc<Context>,
    cell: Cell,
    target: u32,
}

impl CudaGate {
    /// A closed gate.
    ///
    /// Loads all kernels first: to load one behind a closed gate can wait for the stream that the gate holds. Where
    /// there is no compiler, the operations that need one say so.
    pub(crate) fn new(context: Arc<Context>) -> Result<Self> {
        context.bind()?;
        let _ = context.kernels.load_all(&context.primary);
        let cell = context.pinned.take_cell(&context.primary, Purpose::Gate)?;
        let target = word(&cell).load(Ordering::Acquire).wrapping_add(1);
        Ok(Self { context, cell, target })
    }

    /// Enqueues a wait on `queue` for `gate`, if it is one of the same device.
    pub(crate) fn enqueue_wait(gate: &dyn EngineGate, queue: &StreamInner) -> Result<()> {
        let gate: &dyn Any = gate;
        let gate = match gate.downcast_ref::<Self>() {
            Some(gate) if Arc::ptr_eq(&gate.context, &queue.context) => gate,
            _ => {
                let device = queue.context.primary.name().to_owned();
                return Err(DeviceError::ForeignObject { what: "gate", device });
            }
        };
        let flags = CUstreamWaitValue_flags::CU_STREAM_WAIT_VALUE_GEQ as u32;
        // Safety: the word is mapped, aligned, and lives until the device closes, which waits for this stream.
        let status = unsafe { sys::cuStreamWaitValue32_v2(queue.raw(), gate.cell.device(), gate.target, flags) };
        queue.check("cuStreamWaitValue32", status)
    }
}

/// The word that streams wait on.
fn word(cell: &Cell) -> &AtomicU32 {
    // Safety: a cell is aligned and lives as long as its device; the host touches this word only through here.
    unsafe { cell.host::<AtomicU32>().as_ref() }
}

impl EngineGate for CudaGate {
    fn open(&self) {
        word(&self.cell).store(self.target, Ordering::Release);
    }
}

impl Drop for CudaGate {
    fn drop(&mut self) {
        self.open();
        self.context.pinned.return_cell(self.cell, Purpose::Gate);
    }
}
