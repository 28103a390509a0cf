//! From an operation to its launches.
//!
//! The host cost of an operation is to be its launch: no allocation, lock or hash on the way of the elementwise
//! operations and the generator. Only three operations do more: a matmul looks its plan up, and a reduction and the
//! search for non-zeros their scratch memory.

use std::sync::Arc;
use std::time::{Duration, Instant};

use half::{bf16, f16};

use super::guard::{Scratch, StreamGuard, StreamInner};
use crate::device::cuda::driver::{PoolSpan, arguments};
use crate::device::cuda::kernels::Kernel;
use crate::device::cuda::memory::device::CudaMemory;
use crate::device::engine::Result;
use crate::device::operation::{Binary, Operation, Region};
use crate::device::philox;
use crate::device::{DType, Float};

/// Threads in a block, except where a kernel says otherwise.
const THREADS: u32 = 256;

/// Threads of a block of `kernels/compact.cu`, the elements of its tile, and the tiles of a group.
const TILE_THREADS: u32 = 128;
const TILE: usize = 8192;
const GROUP: usize = 256;

/// The largest grid of a reduction. The same on every device, so that sums are too.
const REDUCE_BLOCKS: u32 = 1024;

/// What a reduction needs: two words and a result a block.
const REDUCE_BYTES: usize = 4 * (2 + REDUCE_BLOCKS as usize);

/// The bytes that a warp moves, as `kernels/types.cuh` has them, and from which width on a row is worth one.
const PIECE: usize = 4096;
const WIDE_ROW: usize = 32;

/// How many copies a launch makes, as `kernels/transfer.cu` has them.
const MAX_COPIES: usize = 8;

/// Enqueues the operations of one call, each of which writes at least one element. Copies of one size share a launch: by itself each
/// would wait for the one before.
#[inline]
pub(crate) fn enqueue(guard: &mut StreamGuard<'_>, operations: &[Operation<'_>]) -> Result<()> {
    if let [operation] = operations {
        return one(guard, operation);
    }
    let go_together = |a: &_, b: &_| copied(a).zip(copied(b)).is_some_and(|(a, b)| a == b);
    operations.chunk_by(go_together).try_for_each(|group| match (group, group.first().and_then(copied)) {
        ([_, _, ..], Some(bytes)) => group.chunks(MAX_COPIES).try_for_each(|few| copies(guard, few, bytes)),
        _ => group.iter().try_for_each(|operation| one(guard, operation)),
    })
}

/// The bytes of a copy.
fn copied(operation: &Operation<'_>) -> Option<usize> {
    match operation {
        Operation::Copy { out, .. } => Some(out.len * out.dtype().size()),
        _ => None,
    }
}

#[inline]
fn one(guard: &mut StreamGuard<'_>, operation: &Operation<'_>) -> Result<()> {
    match *operation {
        Operation::Fill { out, value } => fill(guard, out, value),
        Operation::Normal { out, seed, sequence } => normal(guard, out, seed, sequence),
        Operation::Matmul { a, b, out, sizes, precision } => {
            let operands = [
                CudaMemory::of(a, guard.stream())?,
                CudaMemory::of(b, guard.stream())?,
                CudaMemory::of(out, guard.stream())?,
            ];
            guard.stream().device.matmul.enqueue(guard, out.dtype(), sizes, precision, operands)
        }
        Operation::Affine { x, out, scale, shift } => affine(guard, x, out, scale, shift),
        Operation::Elementwise { kind, a, b, out } => elementwise(guard, kind, a, b, out),
        Operation::Greater { x, out, threshold } => greater(guard, x, out, threshold),
        Operation::Sum { x, out } => reduce(guard, Kernel::SUM.of(x.dtype()), x, out),
        Operation::Any { x, out } => reduce(guard, Kernel::ANY.of(x.dtype()), x, out),
        Operation::Nonzero { x, positions, count } => nonzero(guard, x, positions, count),
        Operation::Gather { x, rows, out, width, .. } => gather(guard, x, rows, out, width),
        Operation::Copy { x, out } => {
            guard.copy(CudaMemory::of(x, guard.stream())?, CudaMemory::of(out, guard.stream())?)
        }
        Operation::Spin { duration } => {
            let nanoseconds = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
            guard.launch(Kernel::SPIN, 1, 1, &mut arguments![nanoseconds])
        }
    }
}

/// A grid for `items` threads. The largest that a device takes, of 2³¹ - 1 blocks, is one for 8 TiB of elements.
#[inline]
fn blocks(items: usize) -> u32 {
    u32::try_from(items.div_ceil(THREADS as usize)).unwrap_or(u32::MAX).max(1)
}

/// Threads for `len` elements in packs of 16 bytes.
#[inline]
fn packs(len: usize, dtype: DType) -> usize {
    (len * dtype.size()).div_ceil(16)
}

fn fill(guard: &StreamGuard<'_>, out: Region<'_>, value: f64) -> Result<()> {
    let to = CudaMemory::of(out, guard.stream())?.address();
    let (bytes, pattern) = ((out.len * out.dtype().size()) as u64, pattern(out.dtype(), value));
    let blocks = blocks(packs(out.len, out.dtype()));
    guard.launch(Kernel::FILL, blocks, THREADS, &mut arguments![to, bytes, pattern])
}

/// The bytes of `value` as a `dtype`, repeated to 8.
fn pattern(dtype: DType, value: f64) -> u64 {
    let repeat = |bits: u64| (0..8 / dtype.size()).fold(0, |all, i| all | bits << (8 * dtype.size() * i));
    repeat(match dtype {
        DType::F16 => f16::nearest(value).to_bits().into(),
        DType::BF16 => bf16::nearest(value).to_bits().into(),
        DType::F32 => (value as f32).to_bits().into(),
        DType::I64 => value as i64 as u64,
        DType::U8 => (value as u8).into(),
    })
}

fn normal(guard: &StreamGuard<'_>, out: Region<'_>, seed: u64, sequence: u64) -> Result<()> {
    let (to, n, keys) = (at(out, guard)?, out.len as u64, philox::keys(seed));
    let blocks = blocks(packs(out.len, out.dtype()));
    guard.launch(Kernel::NORMAL.of(out.dtype()), blocks, THREADS, &mut arguments![to, n, keys, sequence])
}

/// Where a region begins, for work of this guard.
#[inline]
fn at(region: Region<'_>, guard: &StreamGuard<'_>) -> Result<u64> {
    CudaMemory::of(region, guard.stream()).map(PoolSpan::address)
}

#[inline]
fn affine(guard: &StreamGuard<'_>, x: Region<'_>, out: Region<'_>, scale: f32, shift: f32) -> Result<()> {
    let (from, to, n) = (at(x, guard)?, at(out, guard)?, out.len as u64);
    let (blocks, backward) = (blocks(packs(out.len, x.dtype())), guard.stream().direction());
    let arguments = &mut arguments![from, to, n, backward, scale, shift];
    guard.launch(Kernel::AFFINE.of(x.dtype()), blocks, THREADS, arguments)
}

#[inline]
fn elementwise(guard: &StreamGuard<'_>, kind: Binary, a: Region<'_>, b: Region<'_>, out: Region<'_>) -> Result<()> {
    let kernel = match kind {
        Binary::Add => Kernel::ADD,
        Binary::Subtract => Kernel::SUBTRACT,
        Binary::Multiply => Kernel::MULTIPLY,
    };
    let (left, right, to, n) = (at(a, guard)?, at(b, guard)?, at(out, guard)?, out.len as u64);
    let (blocks, backward) = (blocks(packs(out.len, out.dtype())), guard.stream().direction());
    guard.launch(kernel.of(out.dtype()), blocks, THREADS, &mut arguments![left, right, to, n, backward])
}

fn greater(guard: &StreamGuard<'_>, x: Region<'_>, out: Region<'_>, threshold: f32) -> Result<()> {
    let (from, to, n) = (at(x, guard)?, at(out, guard)?, out.len as u64);
    let (blocks, backward) = (blocks(packs(out.len, x.dtype())), guard.stream().direction());
    let arguments = &mut arguments![from, to, n, backward, threshold];
    guard.launch(Kernel::GREATER.of(x.dtype()), blocks, THREADS, arguments)
}

/// Of at least one element.
fn reduce(guard: &StreamGuard<'_>, kernel: Kernel, x: Region<'_>, out: Region<'_>) -> Result<()> {
    let (from, to, n) = (at(x, guard)?, at(out, guard)?, x.len as u64);
    let scratch = guard.scratch(Scratch::Reduce, REDUCE_BYTES)?.address();
    // By the length alone, so that a sum is the same on every device.
    let blocks = u32::try_from(packs(x.len, x.dtype()).div_ceil(THREADS as usize)).unwrap_or(u32::MAX);
    let arguments = &mut arguments![from, to, n, scratch];
    guard.launch(kernel, blocks.clamp(1, REDUCE_BLOCKS), THREADS, arguments)
}

fn nonzero(guard: &StreamGuard<'_>, x: Region<'_>, positions: Region<'_>, count: Region<'_>) -> Result<()> {
    let total = CudaMemory::of(count, guard.stream())?;
    let (from, n, to, total) = (at(x, guard)?, x.len as u64, at(positions, guard)?, total.address());
    let tiles = x.len.div_ceil(TILE);
    let (groups, blocks) = (tiles.div_ceil(GROUP), u32::try_from(tiles).unwrap_or(u32::MAX));
    let words = guard.scratch(Scratch::Groups, 8 * (1 + groups))?.address();
    // A bit an element, then a count of 4 bytes for each tile and for each group.
    let bit_map = tiles * TILE / 8;
    let memory = guard.allocate(bit_map + 4 * (tiles + groups))?;
    let marks = memory.span().address();
    let counts = marks + bit_map as u64;
    let sums = counts + 4 * tiles as u64;
    let mark = &mut arguments![from, n, marks, counts, sums, words, total];
    let marked = guard.launch(Kernel::MARK_NONZERO.of(x.dtype()), blocks, TILE_THREADS, mark);
    let write = &mut arguments![marks, counts, sums, to];
    let launched = marked.and_then(|()| guard.launch(Kernel::POSITIONS, blocks, TILE_THREADS, write));
    guard.stream().free(memory);
    launched
}

/// Threads that move so many runs of so many bytes: a warp for each piece.
fn movers(runs: usize, bytes: usize) -> usize {
    runs.saturating_mul(bytes.div_ceil(PIECE)).saturating_mul(32)
}

/// At most [`MAX_COPIES`] copies, each of `bytes` bytes.
fn copies(guard: &StreamGuard<'_>, operations: &[Operation<'_>], bytes: usize) -> Result<()> {
    let mut each = [[0u64; MAX_COPIES]; 2];
    let [sources, targets] = &mut each;
    for ((operation, from), to) in operations.iter().zip(sources).zip(targets) {
        if let Operation::Copy { x, out } = *operation {
            (*from, *to) = (at(x, guard)?, at(out, guard)?);
        }
    }
    let (count, blocks, bytes) = (operations.len() as u64, blocks(movers(operations.len(), bytes)), bytes as u64);
    guard.launch(Kernel::COPIES, blocks, THREADS, &mut arguments![each, count, bytes])
}

fn gather(guard: &mut StreamGuard<'_>, x: Region<'_>, rows: Region<'_>, out: Region<'_>, width: usize) -> Result<()> {
    // A matrix without rows lies nowhere, and is not read.
    let from = if x.len == 0 { 0 } else { at(x, guard)? };
    let (numbers, to) = (at(rows, guard)?, at(out, guard)?);
    let (rows_out, rows_in, columns) = (rows.len as u64, (x.len / width) as u64, width as u64);
    let (fault, ticket) = (guard.stream().fault(), guard.ticket());
    let (kernel, items) = match width {
        WIDE_ROW.. => (Kernel::GATHER_WIDE, movers(rows.len, width * x.dtype().size())),
        _ => (Kernel::GATHER_NARROW, out.len),
    };
    let arguments = &mut arguments![from, numbers, to, rows_out, rows_in, columns, fault, ticket];
    guard.launch(kernel.of_width(x.dtype()), blocks(items), THREADS, arguments)
}

/// The host time of `launches` bare launches of a small `affine`, with everything prepared: what an enqueue costs at
/// least. Not captured.
pub(crate) fn raw_launch_loop(stream: &Arc<StreamInner>, launches: usize) -> Result<Duration> {
    const LEN: u64 = 1024; // one block of fp32
    const BYTES: usize = 2 * 4 * LEN as usize;
    let guard = stream.enter_uncaptured("raw_launch_loop")?;
    let function = guard.function(Kernel::AFFINE.of(DType::F32))?;
    let memory = guard.allocate(BYTES)?;
    let from = memory.span().address();
    let (to, n, backward, scale, shift) = (from + 4 * LEN, LEN, 0u32, 1.0f32, 0.0f32);
    let arguments = &mut arguments![from, to, n, backward, scale, shift];
    let run = guard.fill(memory.span(), 0).and_then(|()| {
        let start = Instant::now();
        (0..launches).try_for_each(|_| guard.launch_bare(function, THREADS, arguments))?;
        Ok(start.elapsed())
    });
    guard.count_more(launches);
    stream.free(memory);
    run
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fill_pattern_repeats_the_element_to_eight_bytes() {
        assert_eq!(pattern(DType::U8, 3.0), 0x0303_0303_0303_0303);
        assert_eq!(pattern(DType::F16, 1.0), 0x3c00_3c00_3c00_3c00);
        assert_eq!(pattern(DType::F16, 1.0 + 0.5 / 1024.0 + 1e-12), 0x3c01_3c01_3c01_3c01);
        assert_eq!(pattern(DType::BF16, 1.0), 0x3f80_3f80_3f80_3f80);
        assert_eq!(pattern(DType::F32, 1.0), 0x3f80_0000_3f80_0000);
        assert_eq!(pattern(DType::I64, -2.0), -2i64 as u64);
    }
}
