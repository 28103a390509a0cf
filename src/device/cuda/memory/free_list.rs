//! Memory that was freed in a stream's order, kept for the stream's next allocations.
//!
//! What a stream freed it may use again at once: its work follows in order. So no call of the driver is needed, which
//! would cost more than half a microsecond for each allocation and each free. Only a piece of the same size is used
//! again, the one that was freed last first: its content may still lie in the cache.

use cudarc::driver::sys::CUdeviceptr;

/// How much a stream keeps at most.
const MOST_BYTES: usize = 1 << 30;
const MOST_PIECES: usize = 64;

/// What one stream keeps, in the order in which it was freed.
#[derive(Default)]
pub(crate) struct FreeList {
    pieces: Vec<(usize, CUdeviceptr)>,
    bytes: usize,
}

/// The size that is allocated for `bytes`: close sizes share their pieces.
pub(crate) fn rounded(bytes: usize) -> usize {
    bytes.checked_next_multiple_of(512).unwrap_or(bytes)
}

impl FreeList {
    /// A piece of just this rounded size.
    #[inline]
    pub(crate) fn take(&mut self, bytes: usize) -> Option<CUdeviceptr> {
        let at = self.pieces.iter().rposition(|piece| piece.0 == bytes)?;
        self.bytes -= bytes;
        Some(self.pieces.remove(at).1)
    }

    /// Keeps a piece of a rounded size; what is then too much is returned by [`excess`](Self::excess).
    #[inline]
    pub(crate) fn keep(&mut self, bytes: usize, pointer: CUdeviceptr) {
        self.pieces.push((bytes, pointer));
        self.bytes += bytes;
    }

    /// The oldest piece while more is kept than should be.
    #[inline]
    pub(crate) fn excess(&mut self) -> Option<CUdeviceptr> {
        let over = self.bytes > MOST_BYTES || self.pieces.len() > MOST_PIECES;
        if over { self.oldest() } else { None }
    }

    /// The oldest piece.
    pub(crate) fn oldest(&mut self) -> Option<CUdeviceptr> {
        (!self.pieces.is_empty()).then(|| {
            let (bytes, pointer) = self.pieces.remove(0);
            self.bytes -= bytes;
            pointer
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_piece_of_the_size_that_was_freed_last_is_used_first() {
        let mut spare = FreeList::default();
        for (bytes, pointer) in [(512, 1), (1024, 2), (512, 3)] {
            spare.keep(bytes, pointer);
        }
        assert_eq!([spare.take(512), spare.take(512), spare.take(512)], [Some(3), Some(1), None]);
        assert_eq!((spare.take(1024), spare.bytes), (Some(2), 0));
    }

    #[test]
    fn what_is_too_much_goes_the_oldest_first() {
        let mut spare = FreeList::default();
        spare.keep(MOST_BYTES, 1);
        assert_eq!(spare.excess(), None);
        spare.keep(512, 2);
        assert_eq!((spare.excess(), spare.excess()), (Some(1), None));
        (0..MOST_PIECES as u64).for_each(|pointer| spare.keep(512, 10 + pointer));
        assert_eq!((spare.excess(), spare.excess()), (Some(2), None));
    }

    #[test]
    fn sizes_are_rounded_up_and_never_overflow() {
        assert_eq!([rounded(1), rounded(512), rounded(513)], [512, 512, 1024]);
        assert_eq!(rounded(usize::MAX), usize::MAX);
    }
}
