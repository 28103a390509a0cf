//! Memory that was freed in a stream's order, kept for the stream's next allocations.
//!
//! What a stream freed it may use again at once: its work follows in order. So no call of the driver is needed, which
//! would cost more than half a microsecond for each allocation and each free. Only a piece of the same size is used
//! again, the one that was freed last first: its content may still lie in the cache.

use crate::device::cuda::driver::Allocation;

/// How much a stream keeps at most once it asks for new memory.
const MAX_BYTES: usize = 1 << 30;
const MAX_PIECES: usize = 64;

/// What one stream keeps, in the order in which it was freed.
#[derive(Default)]
pub(crate) struct FreeList {
    pieces: Vec<Allocation>,
    bytes: usize,
}

/// The size that is allocated for `bytes`: close sizes share their pieces.
pub(crate) fn rounded(bytes: usize) -> usize {
    bytes.checked_next_multiple_of(512).unwrap_or(bytes)
}

impl FreeList {
    /// A piece of just this rounded size.
    #[inline]
    pub(crate) fn take(&mut self, bytes: usize) -> Option<Allocation> {
        let at = self.pieces.iter().rposition(|piece| piece.size() == bytes)?;
        self.bytes -= bytes;
        Some(self.pieces.remove(at))
    }

    /// Keeps a piece. A push on a list, as drops need it; what is then too much goes with [`take_excess`](Self::take_excess).
    #[inline]
    pub(crate) fn keep(&mut self, piece: Allocation) {
        self.bytes += piece.size();
        self.pieces.push(piece);
    }

    /// The oldest pieces, as many as are too much.
    pub(crate) fn take_excess(&mut self) -> Vec<Allocation> {
        let (mut bytes, mut count) = (self.bytes, self.pieces.len());
        let excess = self.pieces.iter().take_while(|piece| {
            let over = bytes > MAX_BYTES || count > MAX_PIECES;
            bytes -= piece.size();
            count -= 1;
            over
        });
        let excess = excess.count();
        let excess: Vec<_> = self.pieces.drain(..excess).collect();
        self.bytes -= excess.iter().map(Allocation::size).sum::<usize>();
        excess
    }

    /// All pieces.
    pub(crate) fn take_all(&mut self) -> Vec<Allocation> {
        self.bytes = 0;
        std::mem::take(&mut self.pieces)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(pieces: &[Allocation]) -> Vec<u64> {
        pieces.iter().map(|piece| piece.span().address()).collect()
    }

    #[test]
    fn the_piece_of_the_size_that_was_freed_last_is_used_first() {
        let mut free = FreeList::default();
        for (bytes, address) in [(512, 1), (1024, 2), (512, 3)] {
            free.keep(Allocation::of_test(address, bytes));
        }
        let mut take = |bytes| free.take(bytes).map(|piece| piece.span().address());
        assert_eq!([take(512), take(512), take(512)], [Some(3), Some(1), None]);
        assert_eq!((take(1024), free.bytes), (Some(2), 0));
    }

    #[test]
    fn what_is_too_much_goes_the_oldest_first() {
        let mut free = FreeList::default();
        free.keep(Allocation::of_test(1, MAX_BYTES));
        assert!(free.take_excess().is_empty());
        free.keep(Allocation::of_test(2, 512));
        assert_eq!(addresses(&free.take_excess()), [1]);
        (0..MAX_PIECES as u64).for_each(|address| free.keep(Allocation::of_test(10 + address, 512)));
        assert_eq!(addresses(&free.take_excess()), [2]);
        assert_eq!(free.bytes, 512 * MAX_PIECES);
        assert_eq!((free.take_all().len(), free.bytes), (MAX_PIECES, 0));
    }

    #[test]
    fn sizes_are_rounded_up_and_never_overflow() {
        assert_eq!([rounded(1), rounded(512), rounded(513)], [512, 512, 1024]);
        assert_eq!(rounded(usize::MAX), usize::MAX);
    }
}
