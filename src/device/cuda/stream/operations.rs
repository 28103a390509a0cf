//! From an operation to its launches.
//!
//! The host cost of an operation is to be its launch: no allocation, lock or hash on the way of the elementwise
//! operations and the generator. Only three operations do more: a product looks its plan up, and a reduction and the
//! search for non-zeros their scratch memory.

use std::ffi::c_void;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cudarc::driver::sys;
use half::{bf16, f16};

use crate::device::DType;
use crate::device::cuda::kernels::Kernel;
use crate::device::cuda::memory::device::CudaMemory;
use crate::device::cuda::stream::inner::{Scratch, StreamInner, WORKSPACE_BYTES};
use crate::device::engine::{Binary, Operation, Region, Result};
use crate::device::philox;

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

/// From this width on a row is worth a warp.
const WIDE_ROW: usize = 32;

/// The addresses of the arguments, as a launch takes them.
macro_rules! arguments {
    ($($argument:ident),+ $(,)?) => { [$((&raw const $argument).cast::<c_void>().cast_mut()),+] };
}

/// Enqueues `operation`; the context is current.
#[inline]
pub(crate) fn enqueue(queue: &Arc<StreamInner>, operation: &Operation<'_>) -> Result<()> {
    match *operation {
        Operation::Fill { out, value } => fill(queue, out, value),
        Operation::Normal { out, seed, sequence } => normal(queue, out, seed, sequence),
        // Sums of no products.
        Operation::Matmul { out, sizes: [_, 0, _], .. } => fill(queue, out, 0.0),
        Operation::Matmul { a, b, out, sizes, precision } => {
            if out.len == 0 {
                return Ok(());
            }
            let pointers = [CudaMemory::of(a, queue)?, CudaMemory::of(b, queue)?, CudaMemory::of(out, queue)?];
            queue.context.matmul.enqueue(queue, out.dtype(), sizes, precision, pointers)
        }
        Operation::Affine { x, out, scale, shift } => affine(queue, x, out, scale, shift),
        Operation::Elementwise { kind, a, b, out } => elementwise(queue, kind, a, b, out),
        Operation::Greater { x, out, threshold } => greater(queue, x, out, threshold),
        Operation::Sum { x, out } => reduce(queue, Kernel::SUM.of(x.dtype()), x, out),
        Operation::Any { x, out } => reduce(queue, Kernel::ANY.of(x.dtype()), x, out),
        Operation::Nonzero { x, positions, count } => nonzero(queue, x, positions, count),
        Operation::Gather { x, rows, out, width } => gather(queue, x, rows, out, width),
        Operation::Copy { x, out } => copy(queue, x, out),
        Operation::Spin { duration } => spin(queue, duration),
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

fn fill(queue: &Arc<StreamInner>, out: Region<'_>, value: f64) -> Result<()> {
    if out.len == 0 {
        return Ok(());
    }
    let to = CudaMemory::of(out, queue)?;
    let (bytes, pattern) = ((out.len * out.dtype().size()) as u64, pattern(out.dtype(), value));
    let blocks = blocks(packs(out.len, out.dtype()));
    // Safety: the arguments of `fill`; the region holds that many bytes.
    unsafe { queue.launch(Kernel::FILL, blocks, THREADS, &mut arguments![to, bytes, pattern]) }
}

/// The bytes of `value` as a `dtype`, repeated to 8.
fn pattern(dtype: DType, value: f64) -> u64 {
    let repeat = |bits: u64| (0..8 / dtype.size()).fold(0, |all, i| all | bits << (8 * dtype.size() * i));
    repeat(match dtype {
        DType::F16 => f16::from_f32(value as f32).to_bits().into(),
        DType::BF16 => bf16::from_f32(value as f32).to_bits().into(),
        DType::F32 => (value as f32).to_bits().into(),
        DType::I64 => value as i64 as u64,
        DType::U8 => (value as u8).into(),
    })
}

fn normal(queue: &Arc<StreamInner>, out: Region<'_>, seed: u64, sequence: u64) -> Result<()> {
    if out.len == 0 {
        return Ok(());
    }
    // Safety: the region is of this queue's device and holds that many elements.
    unsafe { launch_normal(queue, out.dtype(), CudaMemory::of(out, queue)?, out.len, seed, sequence) }
}

/// Enqueues normals into bare memory.
///
/// # Safety
/// `to` names `len` elements of a real type, allocated in the order of `queue`.
#[inline]
pub(crate) unsafe fn launch_normal(
    queue: &StreamInner,
    dtype: DType,
    to: u64,
    len: usize,
    seed: u64,
    sequence: u64,
) -> Result<()> {
    let (n, blocks, keys) = (len as u64, blocks(packs(len, dtype)), philox::keys(seed));
    let arguments = &mut arguments![to, n, keys, sequence];
    // Safety: the arguments of `normal_*`, and the caller's promise.
    unsafe { queue.launch(Kernel::NORMAL.of(dtype), blocks, THREADS, arguments) }
}

#[inline]
fn affine(queue: &Arc<StreamInner>, x: Region<'_>, out: Region<'_>, scale: f32, shift: f32) -> Result<()> {
    if out.len == 0 {
        return Ok(());
    }
    let (from, to, n) = (CudaMemory::of(x, queue)?, CudaMemory::of(out, queue)?, out.len as u64);
    let (blocks, backward) = (blocks(packs(out.len, x.dtype())), queue.direction());
    let arguments = &mut arguments![from, to, n, backward, scale, shift];
    // Safety: the arguments of `affine_*`; both regions hold `n` elements.
    unsafe { queue.launch(Kernel::AFFINE.of(x.dtype()), blocks, THREADS, arguments) }
}

#[inline]
fn elementwise(queue: &Arc<StreamInner>, kind: Binary, a: Region<'_>, b: Region<'_>, out: Region<'_>) -> Result<()> {
    if out.len == 0 {
        return Ok(());
    }
    let kernel = match kind {
        Binary::Add => Kernel::ADD,
        Binary::Subtract => Kernel::SUBTRACT,
        Binary::Multiply => Kernel::MULTIPLY,
    };
    let (left, right) = (CudaMemory::of(a, queue)?, CudaMemory::of(b, queue)?);
    let (to, n) = (CudaMemory::of(out, queue)?, out.len as u64);
    let (blocks, backward) = (blocks(packs(out.len, out.dtype())), queue.direction());
    let arguments = &mut arguments![left, right, to, n, backward];
    // Safety: the arguments of `add_*` and its like; all regions hold `n` elements.
    unsafe { queue.launch(kernel.of(out.dtype()), blocks, THREADS, arguments) }
}

fn greater(queue: &Arc<StreamInner>, x: Region<'_>, out: Region<'_>, threshold: f32) -> Result<()> {
    if out.len == 0 {
        return Ok(());
    }
    let (from, to, n) = (CudaMemory::of(x, queue)?, CudaMemory::of(out, queue)?, out.len as u64);
    let (blocks, backward) = (blocks(packs(out.len, x.dtype())), queue.direction());
    let arguments = &mut arguments![from, to, n, backward, threshold];
    // Safety: the arguments of `greater_*`; both regions hold `n` elements.
    unsafe { queue.launch(Kernel::GREATER.of(x.dtype()), blocks, THREADS, arguments) }
}

/// Also of no elements, whose sum is 0.
fn reduce(queue: &Arc<StreamInner>, kernel: Kernel, x: Region<'_>, out: Region<'_>) -> Result<()> {
    let (from, to, n) = (CudaMemory::of(x, queue)?, CudaMemory::of(out, queue)?, x.len as u64);
    let scratch = queue.scratch(Scratch::Reduce, REDUCE_BYTES)?;
    // By the length alone, so that a sum is the same on every device.
    let blocks = u32::try_from(packs(x.len, x.dtype()).div_ceil(THREADS as usize)).unwrap_or(u32::MAX);
    let arguments = &mut arguments![from, to, n, scratch];
    // Safety: the arguments of `sum_*` and `any_*`; `x` holds `n` elements, `out` one, the scratch a result a block.
    unsafe { queue.launch(kernel, blocks.clamp(1, REDUCE_BLOCKS), THREADS, arguments) }
}

fn nonzero(queue: &Arc<StreamInner>, x: Region<'_>, positions: Region<'_>, count: Region<'_>) -> Result<()> {
    let (from, n) = (CudaMemory::of(x, queue)?, x.len as u64);
    let (to, total) = (CudaMemory::of(positions, queue)?, CudaMemory::of(count, queue)?);
    if n == 0 {
        // Safety: the region holds one i64.
        return unsafe { queue.clear(total, 8) };
    }
    let tiles = x.len.div_ceil(TILE);
    let (groups, blocks) = (tiles.div_ceil(GROUP), u32::try_from(tiles).unwrap_or(u32::MAX));
    let words = queue.scratch(Scratch::Groups, 8 * (1 + groups))?;
    // A bit an element, then a count of 4 bytes for each tile and for each group.
    let (bit_map, bytes) = (tiles * TILE / 8, tiles * TILE / 8 + 4 * (tiles + groups));
    let marks = queue.allocate(bytes)?;
    let counts = marks + bit_map as u64;
    let sums = counts + 4 * tiles as u64;
    let mark = &mut arguments![from, n, marks, counts, sums, words, total];
    let write = &mut arguments![marks, counts, sums, to];
    // Safety: the arguments of `mark_nonzero_*` and `positions`; the regions hold `n`, `n` and 1 elements, and the scratch
    // memory what the kernels put there.
    let launched = unsafe {
        let marked = queue.launch(Kernel::MARK_NONZERO.of(x.dtype()), blocks, TILE_THREADS, mark);
        marked.and_then(|()| queue.launch(Kernel::POSITIONS, blocks, TILE_THREADS, write))
    };
    queue.free(marks, bytes);
    launched
}

fn gather(queue: &Arc<StreamInner>, x: Region<'_>, rows: Region<'_>, out: Region<'_>, width: usize) -> Result<()> {
    if out.len == 0 {
        return Ok(());
    }
    let (from, numbers, to) = (CudaMemory::of(x, queue)?, CudaMemory::of(rows, queue)?, CudaMemory::of(out, queue)?);
    let (rows_out, rows_in, columns) = (rows.len as u64, (x.len / width) as u64, width as u64);
    let fault = queue.fault();
    let (kernel, items) = match width {
        WIDE_ROW.. => (Kernel::GATHER_WIDE, rows.len.saturating_mul(32)),
        _ => (Kernel::GATHER_NARROW, out.len),
    };
    let arguments = &mut arguments![from, numbers, to, rows_out, rows_in, columns, fault];
    // Safety: the arguments of `gather_*`; the kernel reads no row outside of `x`, and the other regions hold
    // `rows_out` numbers and as many rows of `columns` elements.
    unsafe { queue.launch(kernel.of_width(x.dtype()), blocks(items), THREADS, arguments) }
}

fn copy(queue: &Arc<StreamInner>, x: Region<'_>, out: Region<'_>) -> Result<()> {
    if out.len == 0 {
        return Ok(());
    }
    let (from, to, bytes) = (CudaMemory::of(x, queue)?, CudaMemory::of(out, queue)?, out.len * out.dtype().size());
    // Safety: both regions hold `bytes` bytes and do not overlap.
    queue.check("cuMemcpyDtoDAsync", unsafe { sys::cuMemcpyDtoDAsync_v2(to, from, bytes, queue.raw()) })
}

pub(crate) fn spin(queue: &StreamInner, duration: Duration) -> Result<()> {
    let nanoseconds = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    // Safety: the argument of `spin`.
    unsafe { queue.launch(Kernel::SPIN, 1, 1, &mut arguments![nanoseconds]) }
}

/// Makes the scratch memory that captured operations may need, as none can be made while they are captured.
pub(crate) fn prepare_scratch(queue: &StreamInner) -> Result<()> {
    queue.scratch(Scratch::Reduce, REDUCE_BYTES)?;
    queue.scratch(Scratch::Workspace, WORKSPACE_BYTES).map(drop)
}

/// The host time of `launches` bare launches of a small `affine`, with everything prepared: what an enqueue costs at
/// least.
pub(crate) fn raw_launch_loop(queue: &Arc<StreamInner>, launches: usize) -> Result<Duration> {
    const LEN: u64 = 1024; // one block of fp32
    queue.begin()?;
    let function = queue.function(Kernel::AFFINE.of(DType::F32))?;
    const BYTES: usize = 2 * 4 * LEN as usize;
    let memory = queue.allocate(BYTES)?;
    let (from, to, n, backward, scale, shift) = (memory, memory + 4 * LEN, LEN, 0u32, 1.0f32, 0.0f32);
    let arguments = &mut arguments![from, to, n, backward, scale, shift];
    // Safety: the memory is that long.
    let run = unsafe { queue.clear(memory, BYTES) }.and_then(|()| {
        let start = Instant::now();
        for _ in 0..launches {
            // Safety: the arguments of `affine_fp32`; both halves hold `n` elements.
            let status = unsafe {
                let (stream, none) = (queue.raw(), std::ptr::null_mut());
                sys::cuLaunchKernel(function, 1, 1, 1, THREADS, 1, 1, 0, stream, arguments.as_mut_ptr(), none)
            };
            queue.check("cuLaunchKernel", status)?;
        }
        Ok(start.elapsed())
    });
    queue.free(memory, BYTES);
    run
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fill_pattern_repeats_the_element_to_eight_bytes() {
        assert_eq!(pattern(DType::U8, 3.0), 0x0303_0303_0303_0303);
        assert_eq!(pattern(DType::F16, 1.0), 0x3c00_3c00_3c00_3c00);
        assert_eq!(pattern(DType::BF16, 1.0), 0x3f80_3f80_3f80_3f80);
        assert_eq!(pattern(DType::F32, 1.0), 0x3f80_0000_3f80_0000);
        assert_eq!(pattern(DType::I64, -2.0), -2i64 as u64);
    }
}
