//! Scratch memory of a stream: kernels of one stream follow each other and share it.

use super::StreamGuard;
use crate::device::cuda::driver::{Allocation, PoolSpan};
use crate::device::engine::Result;
use crate::device::lock;

/// Room for the intermediate results of a matrix multiplication: what cuBLAS takes by itself on current devices.
pub(crate) const WORKSPACE_BYTES: usize = 32 << 20;

/// What a stream's scratch memory is for: kernels of one stream follow each other and share it, those of two do not.
#[derive(Clone, Copy)]
pub(crate) enum Scratch {
    /// Of reductions: zero before and after each (see `kernels/reduce.cu`).
    Reduce,
    /// Of the search for non-zeros: zero before and after each (see `kernels/compact.cu`).
    Groups,
    /// Of matrix multiplications, of any content.
    Workspace,
}

/// Scratch memory.
#[derive(Default)]
pub(super) struct Pieces {
    /// By [`Scratch`]: none until it is needed.
    current: [Option<Allocation>; 3],
    /// What became too small; a captured graph may still use it.
    outgrown: Vec<Allocation>,
}

impl Pieces {
    /// All of it: the stream is over.
    pub(super) fn into_all(self) -> impl Iterator<Item = Allocation> {
        self.current.into_iter().flatten().chain(self.outgrown)
    }
}

impl StreamGuard<'_> {
    /// At least `bytes` of this stream's scratch memory for `purpose`; zero at first where it must be.
    pub(crate) fn scratch(&self, purpose: Scratch, bytes: usize) -> Result<PoolSpan> {
        let mut scratch = lock(&self.stream.scratch);
        let known = scratch.current.get(purpose as usize).and_then(Option::as_ref);
        if let Some(known) = known.filter(|known| known.size() >= bytes) {
            return Ok(known.span());
        }
        let piece = self.allocate(bytes.next_power_of_two())?;
        let span = piece.span();
        if !matches!(purpose, Scratch::Workspace) {
            // At once, also while a capture is in progress: each launch of the graph needs it zero.
            if let Err(error) = self.stream.raw.fill(span, 0) {
                self.stream.free(piece);
                return Err(error);
            }
        }
        let outgrown = scratch.current.get_mut(purpose as usize).and_then(|place| place.replace(piece));
        scratch.outgrown.extend(outgrown);
        Ok(span)
    }
}
