//! Host buffers of a CUDA device: pageable or pinned memory with known addresses.
//!
//! To page-lock memory and to give it back can wait for the whole GPU. So pinned blocks are kept for the next buffer of
//! their size; a trim gives them back, and so does the next new block, beyond [`MAX_BYTES`], unless a gate holds a stream.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex};

use crate::device::DType;
use crate::device::cuda::driver::{HostBlock, no_room};
use crate::device::cuda::opened::Opened;
use crate::device::engine::{HostKind, HostMemory, Result, own};
use crate::device::injection::Injected;
use crate::device::lock;

/// How much pinned memory is kept for the next buffers.
const MAX_BYTES: usize = 1 << 30;

/// Pinned blocks that no buffer uses.
#[derive(Default)]
pub(crate) struct HostBlocks(Mutex<Vec<HostBlock>>);

impl HostBlocks {
    /// A block of this kind and size.
    fn take(&self, kind: HostKind, bytes: usize) -> Option<HostBlock> {
        let mut blocks = lock(&self.0);
        let place = blocks.iter().rposition(|block| block.kind() == kind && block.size() == bytes)?;
        Some(blocks.remove(place))
    }

    /// Keeps a block of which no copy is pending. A push on a list, as drops need it.
    fn keep(&self, block: HostBlock) {
        lock(&self.0).push(block);
    }

    /// Gives the oldest blocks back to the system, as many as are too much. May wait for the GPU.
    fn release_excess(&self) {
        let (mut blocks, mut excess) = (lock(&self.0), Vec::new());
        while blocks.iter().map(HostBlock::size).sum::<usize>() > MAX_BYTES {
            excess.push(blocks.remove(0));
        }
        drop(blocks);
        excess.into_iter().for_each(HostBlock::release);
    }

    /// How many bytes they are.
    pub(crate) fn bytes(&self) -> usize {
        lock(&self.0).iter().map(HostBlock::size).sum()
    }

    /// Gives all of them back to the system. May wait for the GPU.
    pub(crate) fn release_all(&self) {
        let blocks = std::mem::take(&mut *lock(&self.0));
        blocks.into_iter().for_each(HostBlock::release);
    }
}

/// Host memory that copies of a CUDA device use.
pub(crate) struct CudaHostMemory {
    /// Gone in the drop alone.
    block: Option<HostBlock>,
    device: Arc<Opened>,
}

impl CudaHostMemory {
    /// `len` zeroed elements.
    pub(crate) fn new(device: &Arc<Opened>, kind: HostKind, dtype: DType, len: usize) -> Result<Self> {
        device.check()?;
        device.gpu.sweep_host();
        let bytes = len.saturating_mul(dtype.size());
        let block = match device.gpu.host_blocks.take(kind, bytes) {
            Some(mut known) => {
                known.bytes_mut().fill(0);
                known
            }
            None => {
                // Until the block is there no gate begins to hold.
                let making = if kind == HostKind::Pageable { None } else { device.gpu.may_make() };
                let allocate = || match device.injection.strikes(Injected::Pinning) {
                    true => Err(no_room(bytes)),
                    false => HostBlock::allocate(&device.gpu.context, kind, bytes),
                };
                if making.is_some() {
                    device.gpu.host_blocks.release_excess();
                    device.gpu.with_room(allocate)?
                } else {
                    allocate()?
                }
            }
        };
        Ok(Self { block: Some(block), device: device.clone() })
    }

    /// The block behind the interface, if it is of this opened device.
    pub(crate) fn of<'a>(memory: &'a dyn HostMemory, device: &Arc<Opened>) -> Result<&'a HostBlock> {
        own(memory, |memory: &Self| &memory.device, (device, device.name()), "a host buffer").map(Self::block)
    }

    #[allow(clippy::expect_used, reason = "the block is taken by the drop alone")]
    fn block(&self) -> &HostBlock {
        self.block.as_ref().expect("a buffer has its block until it is dropped")
    }
}

impl HostMemory for CudaHostMemory {
    fn bytes(&self) -> Box<dyn Deref<Target = [u8]> + '_> {
        Box::new(self.block().bytes())
    }

    #[allow(clippy::expect_used, reason = "the block is taken by the drop alone")]
    fn bytes_mut(&mut self) -> Box<dyn DerefMut<Target = [u8]> + '_> {
        Box::new(self.block.as_mut().expect("a buffer has its block until it is dropped").bytes_mut())
    }
}

impl Drop for CudaHostMemory {
    /// No copy is pending: see [`Engine::retire_host`](crate::device::engine::Engine::retire_host).
    fn drop(&mut self) {
        match self.block.take() {
            Some(block) if block.kind() != HostKind::Pageable && block.size() > 0 => {
                self.device.gpu.host_blocks.keep(block);
            }
            _ => {}
        }
    }
}
