//! Large copies into memory of the host that nobody has touched yet.
//!
//! The pages of a new array come into being one by one when they are first written, which takes longer than the copy
//! across the link. So the copy goes into pinned memory piece by piece, and threads drain the pieces over: while one
//! touches pages, the link and the other threads go on.

use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use cudarc::driver::sys::{self, CUdeviceptr};

use crate::device::cuda::driver::handles::EventHandle;
use crate::device::cuda::driver::primary::Primary;
use crate::device::cuda::stream::inner::StreamInner;
use crate::device::engine::Result;
use crate::error::DeviceError;

/// The size of a piece, and of half a buffer.
pub(crate) const PIECE_BYTES: usize = 1 << 20;

/// What one thread carries over in the time in which another is started, in many times.
const BYTES_A_THREAD: usize = 4 << 20;

/// The size of a piece where one thread does all: the first is soon there, and the last soon carried over.
const SMALL_PIECE_BYTES: usize = 256 << 10;

/// From so many threads on, the link is the limit.
const MOST_THREADS: usize = 8;

/// What one thread works with: two pieces of pinned memory, of which one is filled while the other is emptied.
pub(crate) struct StagingBuffer {
    halves: [(NonNull<u8>, EventHandle); 2],
}

// Safety: the memory lives until the device closes and has one owner at a time.
unsafe impl Send for StagingBuffer {}

impl StagingBuffer {
    /// A buffer over `2 * PIECE_BYTES` bytes that live until the device closes.
    pub(crate) fn new(primary: &Primary, memory: NonNull<u8>) -> Result<Self> {
        let half = |at| {
            // Safety: within the memory.
            EventHandle::new(primary, false).map(|filled| (unsafe { memory.add(at) }, filled))
        };
        Ok(Self { halves: [half(0)?, half(PIECE_BYTES)?] })
    }
}

type Piece<'a> = (usize, &'a mut [MaybeUninit<u8>]);

/// Copies `target.len()` bytes at `from` to the host, all of `target`: a barrier for the stream.
///
/// # Safety
/// `from` names that many bytes, allocated in the order of `queue`.
pub(crate) unsafe fn download(
    queue: &Arc<StreamInner>,
    from: CUdeviceptr,
    target: &mut [MaybeUninit<u8>],
) -> Result<()> {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let threads = (target.len() / BYTES_A_THREAD).clamp(1, processors.min(MOST_THREADS));
    let size = if threads == 1 { SMALL_PIECE_BYTES } else { PIECE_BYTES };
    let pieces = Mutex::new(target.chunks_mut(size).enumerate());
    let next = || pieces.lock().unwrap_or_else(PoisonError::into_inner).next().map(|(i, piece)| (i * size, piece));
    // Safety: the pieces lie within the target.
    let drain = || unsafe { drain(queue, from, &next) };
    if threads == 1 {
        return drain();
    }
    // So that one thread waits for the work before, and not all of them.
    queue.synchronize()?;
    thread::scope(|scope| {
        // A thread that cannot be started leaves more to the others.
        let start = |_| thread::Builder::new().spawn_scoped(scope, drain).ok();
        let others: Vec<_> = (1..threads).filter_map(start).collect();
        let own = drain();
        others.into_iter().fold(own, |all, other| all.and(other.join().unwrap_or_else(|_| Err(panicked(queue)))))
    })
}

#[cold]
fn panicked(queue: &StreamInner) -> DeviceError {
    let (device, reason) = (queue.context.primary.name().to_owned(), "a thread panicked".to_owned());
    DeviceError::CallFailed { device, call: "download", reason }
}

/// Carries pieces over until there are none. After an error the buffer is not used again: a copy may still fill it.
///
/// # Safety
/// `from` and a piece's offset name as many bytes as the piece has, at most [`PIECE_BYTES`].
unsafe fn drain<'a>(queue: &StreamInner, from: CUdeviceptr, next: &impl Fn() -> Option<Piece<'a>>) -> Result<()> {
    let (pinned, primary) = (&queue.context.pinned, &queue.context.primary);
    queue.context.bind()?;
    let buffer = pinned.take_staging_buffer(primary)?;
    let mut filling: Option<(usize, Piece<'a>)> = None;
    for half in (0..2).cycle() {
        let piece = next();
        if let Some((offset, piece)) = &piece {
            let (memory, filled) = &buffer.halves[half];
            // Safety: the half holds a piece, and is not being emptied: that was over a turn ago.
            let status = unsafe {
                let (to, offset) = (memory.as_ptr().cast(), *offset as u64);
                sys::cuMemcpyDtoHAsync_v2(to, from + offset, piece.len(), queue.raw())
            };
            primary.check("cuMemcpyDtoHAsync", status)?;
            // Safety: both handles are live.
            primary.check("cuEventRecord", unsafe { sys::cuEventRecord(filled.raw(), queue.raw()) })?;
        }
        if let Some((half, (_, target))) = filling.take() {
            let (memory, filled) = &buffer.halves[half];
            // Safety: the event is live.
            primary.check("cuEventSynchronize", unsafe { sys::cuEventSynchronize(filled.raw()) })?;
            // Safety: the half holds the piece, and its copy is over.
            unsafe { target.as_mut_ptr().cast::<u8>().copy_from_nonoverlapping(memory.as_ptr(), target.len()) };
        }
        match piece {
            Some(piece) => filling = Some((half, piece)),
            None => break,
        }
    }
    pinned.return_staging_buffer(buffer);
    queue.check_fault()
}
