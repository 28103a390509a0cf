//! Large copies into memory of the host that nobody has touched yet.
//!
//! The pages of a new array come into being one by one when they are first written, which takes longer than the copy
//! across the link. So the copy goes into pinned memory piece by piece, and threads drain the pieces: while one
//! touches pages, the link and the other threads go on.

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::affinity;
use crate::device::cuda::driver::{Context, Event, HostBlock, HostPiece, PoolSpan};
use crate::device::cuda::gpu::lock;
use crate::device::cuda::memory::pinned::Pinned;
use crate::device::cuda::stream::guard::{StreamGuard, StreamInner};
use crate::device::cuda::stream::limbo::{Kept, LimboState};
use crate::device::engine::Result;
use crate::error::DeviceError;

/// The size of a piece, and of half a staging buffer.
pub(crate) const PIECE_BYTES: usize = 1 << 20;

/// What one thread drains in the time in which another is started, in many times.
const BYTES_A_THREAD: usize = 4 << 20;

/// The size of a piece where one thread does all: the first is soon there, and the last soon drained.
const SMALL_PIECE_BYTES: usize = 256 << 10;

/// From so many threads on, the link is the limit.
const MAX_THREADS: usize = 8;

/// Two pieces of pinned memory, of which one is filled while the other is drained.
pub(crate) struct Halves([(HostPiece, Event); 2]);

impl Halves {
    /// The two over a block of `2 * PIECE_BYTES` bytes.
    pub(crate) fn new(context: &Arc<Context>, block: &Arc<HostBlock>) -> Result<Self> {
        let half = |offset| {
            let piece = block
                .piece(offset, PIECE_BYTES)
                .ok_or_else(|| DeviceError::invalid("staging buffer", format!("{} bytes are too few", block.size())))?;
            Ok((piece, Event::new(context, false)?))
        };
        Ok(Self([half(0)?, half(PIECE_BYTES)?]))
    }
}

/// What one thread works with. Dropped, it can be handed out again: where a copy may still fill it, it is kept until the stream is
/// past that.
pub(crate) struct StagingBuffer {
    halves: Option<Halves>,
    pinned: Arc<Pinned>,
}

impl StagingBuffer {
    pub(crate) fn new(halves: Halves, pinned: Arc<Pinned>) -> Self {
        Self { halves: Some(halves), pinned }
    }

    #[allow(clippy::expect_used, reason = "the halves are taken by the drop alone")]
    fn halves(&self) -> &[(HostPiece, Event); 2] {
        &self.halves.as_ref().expect("a staging buffer has its halves until it is dropped").0
    }
}

impl Drop for StagingBuffer {
    fn drop(&mut self) {
        self.halves.take().into_iter().for_each(|halves| self.pinned.return_halves(halves));
    }
}

type Piece<'a> = (usize, &'a mut [MaybeUninit<u8>]);

/// Copies all of `from` to the host, all of `target`, of the same size: a synchronization point.
///
/// Where others enqueued between two pieces, who may have written there, a copy on the device is read in its place: that is one
/// entry of the queue. It is read by another stream, on which no piece stands behind what the others enqueue.
pub(crate) fn download(stream: &Arc<StreamInner>, from: PoolSpan, target: &mut [MaybeUninit<u8>]) -> Result<()> {
    if download_pieces(stream, from, target, Beside::Ends)? {
        return Ok(());
    }
    let (copied, copy) = (stream.device.gpu.event(false)?, stream.allocate(target.len())?);
    let enqueue = |guard: StreamGuard<'_>| guard.copy(from, copy.span()).and_then(|()| guard.record(&copied));
    let enqueued = stream.enter_uncaptured("download").and_then(enqueue);
    // While a gate is closed there may be no other.
    let reader = StreamInner::new(&stream.device).unwrap_or_else(|_| stream.clone());
    let read = enqueued.and_then(|()| reader.enter()?.wait(&copied));
    match read.and_then(|()| download_pieces(&reader, copy.span(), target, Beside::GoesOn)) {
        Ok(_) => {
            stream.free(copy);
            stream.check_failure()
        }
        Err(error) => {
            // A piece may yet be read.
            reader.keep(Kept::Memory { _memory: Arc::new(LimboState::new(copy, stream.clone())) });
            Err(error)
        }
    }
}

/// What a copy does beside others who enqueue on its stream.
#[derive(PartialEq)]
enum Beside {
    Ends,
    GoesOn,
}

/// Copies piece by piece; whether all were copied, and nobody else enqueued on the stream from the first to the last unless it is to
/// go on all the same.
fn download_pieces(
    stream: &Arc<StreamInner>,
    from: PoolSpan,
    target: &mut [MaybeUninit<u8>],
    beside: Beside,
) -> Result<bool> {
    let processors = affinity::processors();
    let threads = (target.len() / BYTES_A_THREAD).clamp(1, processors.min(MAX_THREADS));
    let size = if threads == 1 { SMALL_PIECE_BYTES } else { PIECE_BYTES };
    let (before, count) = (stream.left(), target.len().div_ceil(size) as u64);
    let pieces = Mutex::new(target.chunks_mut(size).enumerate());
    let has_ended = AtomicBool::new(false);
    let next = || {
        let (i, piece) = lock(&pieces).next()?;
        // A guard for each piece before this one at most.
        if beside == Beside::Ends && stream.left() - before > i as u64 {
            has_ended.store(true, Ordering::Relaxed);
        }
        (!has_ended.load(Ordering::Relaxed)).then_some((i * size, piece))
    };
    let is_whole =
        || beside == Beside::GoesOn || (!has_ended.load(Ordering::Relaxed) && stream.left() - before == count);
    let gpu = &stream.device.gpu;
    let own = || drain(stream, from, &next, gpu.for_a_read(stream, || gpu.staging_buffer())?);
    if threads == 1 {
        return own().map(|()| is_whole());
    }
    // Without a buffer a thread leaves its share to the others.
    let other = || gpu.staging_buffer()?.map_or(Ok(()), |buffer| drain(stream, from, &next, buffer));
    // So that one thread waits for the work before, and not all of them.
    stream.synchronize()?;
    let drained = thread::scope(|scope| {
        // A thread that cannot be started leaves more to the others.
        let start = |_| affinity::elsewhere(|| thread::Builder::new().spawn_scoped(scope, other)).ok();
        let others: Vec<_> = (1..threads).filter_map(start).collect();
        let own = own();
        others.into_iter().fold(own, |all, other| all.and(other.join().unwrap_or_else(|_| Err(panicked(stream)))))
    });
    drained.map(|()| is_whole())
}

#[cold]
fn panicked(stream: &StreamInner) -> DeviceError {
    let (device, reason) = (stream.device.name().to_owned(), "a thread panicked".to_owned());
    DeviceError::call_failed(device, "download", reason)
}

/// Drains pieces until there are none.
fn drain<'a>(
    stream: &Arc<StreamInner>,
    from: PoolSpan,
    next: &impl Fn() -> Option<Piece<'a>>,
    buffer: StagingBuffer,
) -> Result<()> {
    let drained = drain_through(stream, from, next, &buffer);
    if drained.is_err() {
        // A copy may still fill it.
        stream.keep(Kept::Staging { _buffer: buffer });
    }
    drained.and_then(|()| stream.check_failure())
}

fn drain_through<'a>(
    stream: &Arc<StreamInner>,
    from: PoolSpan,
    next: &impl Fn() -> Option<Piece<'a>>,
    buffer: &StagingBuffer,
) -> Result<()> {
    let mut filling: Option<(usize, Piece<'a>)> = None;
    for half in (0..2).cycle() {
        let piece = next();
        if let Some((offset, piece)) = &piece {
            let (memory, filled) = &buffer.halves()[half];
            let from = from.part(*offset, piece.len()).ok_or_else(|| outside(stream))?;
            let guard = stream.enter_uncaptured("download")?;
            guard.download_piece(from, memory)?;
            guard.record(filled)?;
        }
        if let Some((half, (_, target))) = filling.take() {
            let (memory, filled) = &buffer.halves()[half];
            filled.synchronize()?;
            memory.drain(target);
        }
        match piece {
            Some(piece) => filling = Some((half, piece)),
            None => break,
        }
    }
    Ok(())
}

#[cold]
fn outside(stream: &StreamInner) -> DeviceError {
    let reason = format!("a piece lies outside of its memory on {}", stream.device.name());
    DeviceError::invalid("download", reason)
}
