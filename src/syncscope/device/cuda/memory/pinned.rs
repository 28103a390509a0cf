//! Small pinned memory: flags, fault words, slots for small transfers.
//!
//! Work that is still enqueued may read or write such memory after its stream or gate has been dropped, and giving
//! pinned memory back can wait for the device. So pieces are recycled, and their blocks are given back by a trim alone.
//!
//! Slots come in three sizes, so that a thousand pending uploads of a word take a thousand times 256 bytes. Who has used a
//! slot keeps it until its stream is past that (`stream::limbo`): there is no search for a free one.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::device::HostKind;
use crate::device::cuda::driver::{Context, HostBlock, HostPiece, Stream};
use crate::device::engine::Result;
use crate::device::lock;
use crate::error::DeviceError;

/// The sizes of slots.
const SLOTS: [usize; 3] = [256, 4 << 10, SLOT_BYTES];

/// The size of the largest slot, and the largest transfer that goes through one.
pub(crate) const SLOT_BYTES: usize = 64 << 10;

/// What a slot shows until its value has arrived: bytes that no truth or count has, and few numbers.
const NOTHING: u64 = 0xA5A5_A5A5_A5A5_A5A5;

/// How long the host looks for a value before it has the driver wait.
const LOOK: Duration = Duration::from_micros(50);

/// The size of a cell: a cache line, so that the host's polling of one disturbs no other.
const CELL_BYTES: usize = 64;

/// The size of a block of cells, and the least of one of slots.
const BLOCK_BYTES: usize = 64 << 10;

/// How many cells and slots of each size are left at least when a gate is made.
const FEWEST_CELLS: usize = 256;
const FEWEST_SLOTS: [usize; SLOTS.len()] = [256, 16, 16];

/// What a cell is used for, once and for all: a gate's flag must never be set back, as clearing fault words would.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Gate,
    Fault,
}

/// Pinned memory for one small transfer. Dropped, it can be handed out again: where enqueued work uses it, it is kept until
/// the stream is past that.
pub(crate) struct Slot {
    piece: Option<HostPiece>,
    size: usize,
    pinned: Arc<Pinned>,
}

impl Deref for Slot {
    type Target = HostPiece;

    #[allow(clippy::expect_used, reason = "the piece is taken by the drop alone")]
    fn deref(&self) -> &HostPiece {
        self.piece.as_ref().expect("a slot has its piece until it is dropped")
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(piece) = self.piece.take() {
            // The last that was given back is the first to be handed out: the next read finds it in the cache.
            lock(&self.pinned.pieces).slots[self.size].push(piece);
        }
    }
}

impl Slot {
    /// Fills its head.
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        if let Some(piece) = &mut self.piece {
            piece.write(bytes);
        }
    }

    /// Prepares the slot for one value of the device: see [`has_arrived`](Self::has_arrived).
    pub(crate) fn expect(&self) {
        self.store(NOTHING);
    }

    /// Whether a value of 1, 2, 4 or 8 bytes, which the device writes in one, is there: then nothing before it on its
    /// stream is pending. One that looks like nothing is never seen to arrive, and neither is one that takes long: then a
    /// wait by the driver tells when it is there, a microsecond or two later.
    pub(crate) fn has_arrived(&self, bytes: usize) -> bool {
        let nothing = NOTHING & (u64::MAX >> (64 - 8 * bytes.clamp(1, 8)));
        let begin = Instant::now();
        while self.load(bytes) == nothing {
            if begin.elapsed() > LOOK {
                return false;
            }
            std::hint::spin_loop();
        }
        true
    }
}

/// Which size of slots has room for `bytes`.
fn size_of_slot(bytes: usize) -> Result<usize> {
    SLOTS
        .iter()
        .position(|size| *size >= bytes)
        .ok_or_else(|| DeviceError::invalid("slot", format!("{bytes} bytes are more than a slot has")))
}

/// The pinned pieces of a GPU.
pub(crate) struct Pinned {
    context: Arc<Context>,
    pieces: Mutex<Pieces>,
}

#[derive(Default)]
struct Pieces {
    blocks: Vec<Arc<HostBlock>>,
    /// Never handed out yet.
    cells: Vec<HostPiece>,
    gates: Vec<HostPiece>,
    faults: Vec<HostPiece>,
    slots: [Vec<HostPiece>; SLOTS.len()],
}

impl Pinned {
    /// Allocates the first pieces now: pinning later may wait for the device.
    pub(crate) fn new(context: &Arc<Context>) -> Result<Self> {
        let pinned = Self { context: context.clone(), pieces: Mutex::default() };
        pinned.more_cells()?;
        (0..SLOTS.len()).try_for_each(|size| pinned.more_slots(size))?;
        Ok(pinned)
    }

    /// Whether a stream can wait for a flag by itself, tried on one that is set.
    pub(crate) fn probe_flag(&self, context: &Arc<Context>) -> Result<bool> {
        let cell = self.take_cell(Purpose::Gate)?;
        let stream = Stream::new(context)?;
        let set = cell.flag().load(Ordering::Acquire);
        let waits = stream.wait_flag(cell.span(), set).is_ok();
        stream.synchronize()?;
        self.return_cell(cell, Purpose::Gate);
        Ok(waits)
    }

    /// A cell, with the content that its last owner left; zero at first.
    pub(crate) fn take_cell(&self, purpose: Purpose) -> Result<HostPiece> {
        loop {
            if let Some(cell) = self.cell_at_hand(purpose) {
                return Ok(cell);
            }
            self.more_cells()?;
        }
    }

    /// As [`take_cell`](Self::take_cell), where there is one.
    pub(crate) fn cell_at_hand(&self, purpose: Purpose) -> Option<HostPiece> {
        let mut pieces = lock(&self.pieces);
        pieces.used(purpose).pop().or_else(|| pieces.cells.pop())
    }

    /// Gives a cell back to its purpose. Nothing enqueued may write it any more; a stream may still read a gate's.
    pub(crate) fn return_cell(&self, cell: HostPiece, purpose: Purpose) {
        lock(&self.pieces).used(purpose).push(cell);
    }

    /// A slot for `bytes`, at most [`SLOT_BYTES`], that nothing enqueued uses. Never waits for a stream: where all are in use
    /// there will be more.
    pub(crate) fn take_slot(self: &Arc<Self>, bytes: usize) -> Result<Slot> {
        loop {
            if let Some(slot) = self.slot_at_hand(bytes, 0)? {
                return Ok(slot);
            }
            self.more_slots(size_of_slot(bytes)?)?;
        }
    }

    /// As [`take_slot`](Self::take_slot), where there is one beside `left` others.
    pub(crate) fn slot_at_hand(self: &Arc<Self>, bytes: usize, left: usize) -> Result<Option<Slot>> {
        let (mut pieces, size) = (lock(&self.pieces), size_of_slot(bytes)?);
        let piece = if pieces.slots[size].len() > left { pieces.slots[size].pop() } else { None };
        Ok(piece.map(|piece| Slot { piece: Some(piece), size, pinned: self.clone() }))
    }

    /// Has pieces of every kind at hand: as many as were made at first.
    pub(crate) fn reserve(&self) -> Result<()> {
        if lock(&self.pieces).cells.len() < FEWEST_CELLS {
            self.more_cells()?;
        }
        for (size, fewest) in FEWEST_SLOTS.into_iter().enumerate() {
            if lock(&self.pieces).slots[size].len() < fewest {
                self.more_slots(size)?;
            }
        }
        Ok(())
    }

    fn more_cells(&self) -> Result<()> {
        let more = self.pieces_of(CELL_BYTES)?;
        lock(&self.pieces).cells.extend(more);
        Ok(())
    }

    fn more_slots(&self, size: usize) -> Result<()> {
        let more = self.pieces_of(SLOTS[size])?;
        lock(&self.pieces).slots[size].extend(more);
        Ok(())
    }

    /// New pieces of `size`.
    fn pieces_of(&self, size: usize) -> Result<Vec<HostPiece>> {
        let count = (BLOCK_BYTES / size).max(16);
        let block = self.block(count * size)?;
        Ok((0..count).rev().filter_map(|place| block.piece(place * size, size)).collect())
    }

    /// How many bytes there are, in use or not.
    pub(crate) fn bytes(&self) -> usize {
        lock(&self.pieces).blocks.iter().map(|block| block.size()).sum()
    }

    /// A new block. It is page-locked without the lock, which drops need: that may wait for the whole GPU.
    fn block(&self, bytes: usize) -> Result<Arc<HostBlock>> {
        let block = Arc::new(HostBlock::allocate(&self.context, HostKind::Pinned, bytes)?);
        lock(&self.pieces).blocks.push(block.clone());
        Ok(block)
    }

    /// Gives blocks of slots back to the system of which no slot is in use, but for what [`reserve`](Self::reserve) has at
    /// hand: a gate that has been made may begin to hold next. May wait for the device.
    pub(crate) fn release_unused(&self) {
        let mut guard = lock(&self.pieces);
        let pieces = &mut *guard;
        for (slots, fewest) in pieces.slots.iter_mut().zip(FEWEST_SLOTS) {
            let mut free: HashMap<*const HostBlock, usize> = HashMap::new();
            slots.iter().for_each(|piece| *free.entry(Arc::as_ptr(piece.block())).or_default() += 1);
            let mut spare = slots.len().saturating_sub(fewest);
            // By block, whether it goes: none of its slots is in use, and enough are left without them.
            let mut goes: HashMap<*const HostBlock, bool> = HashMap::new();
            slots.retain(|piece| {
                let (block, count) = (piece.block(), piece.block().size() / piece.size());
                let key = Arc::as_ptr(block);
                !*goes.entry(key).or_insert_with(|| {
                    let unused = free.get(&key) == Some(&count) && count <= spare;
                    spare -= if unused { count } else { 0 };
                    unused
                })
            });
        }
        let unused = |block: &mut Arc<HostBlock>| Arc::strong_count(block) == 1;
        let unused: Vec<_> = pieces.blocks.extract_if(.., unused).collect();
        drop(guard);
        unused.into_iter().filter_map(Arc::into_inner).for_each(HostBlock::release);
    }
}

impl Pieces {
    fn used(&mut self, purpose: Purpose) -> &mut Vec<HostPiece> {
        match purpose {
            Purpose::Gate => &mut self.gates,
            Purpose::Fault => &mut self.faults,
        }
    }
}
