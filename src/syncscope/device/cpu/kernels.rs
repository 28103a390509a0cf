//! What the workers compute. Arithmetic is in fp32 and rounded once, as on every engine.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytemuck::allocation::try_zeroed_vec;
use half::{bf16, f16};
use ndarray::linalg::general_mat_mul;

use super::memory::{Cells, Slice};
use crate::device::engine::Result;
use crate::device::operation::{Binary, Operation, Region};
use crate::device::reserved::{NoRoom, collected};
use crate::device::{DType, Element, Float, MatmulPrecision, philox};
use crate::error::DeviceError;

/// The work of a job; a graph does it again.
pub(super) type Computation = Arc<dyn Fn() -> Computed + Send + Sync>;

/// What comes of the work of a job.
pub(super) type Computed = std::result::Result<(), Fault>;

/// Why the work of a job failed.
#[derive(Debug, PartialEq)]
pub(super) enum Fault {
    /// In words.
    Reason(String),
    /// The host has no memory for it.
    NoRoom(NoRoom),
}

impl From<NoRoom> for Fault {
    fn from(none: NoRoom) -> Self {
        Fault::NoRoom(none)
    }
}

/// Evaluates `$body` with `$T` the Rust type of a real `$dtype`; anything else is an error of the stream.
macro_rules! real {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            DType::F16 => {
                type $T = f16;
                $body
            }
            DType::BF16 => {
                type $T = bf16;
                $body
            }
            DType::F32 => {
                type $T = f32;
                $body
            }
            other => Err(Fault::Reason(format!("expected a real type and found {other}"))),
        }
    };
}

/// The work of `operation`, with the memory that it needs (`slice` finds it for a region).
pub(super) fn prepare(
    operation: &Operation<'_>,
    slice: &mut dyn FnMut(&Region<'_>) -> Result<Slice>,
) -> Result<Computation> {
    Ok(match *operation {
        Operation::Fill { out, value } => {
            let (dtype, out) = (out.dtype(), slice(&out)?);
            Arc::new(move || fill(dtype, &out, value))
        }
        Operation::Normal { out, seed, sequence } => {
            let (dtype, out) = (out.dtype(), slice(&out)?);
            Arc::new(move || real!(dtype, T => out.write::<T>(|out| normal(out, seed, sequence))))
        }
        Operation::Matmul { a, b, out, sizes, precision } => {
            if precision == MatmulPrecision::Tf32 && out.dtype() == DType::F32 {
                return Err(DeviceError::not_applicable(
                    "tf32",
                    "the CPU engine",
                    "it is a mode of NVIDIA tensor cores",
                ));
            }
            let (dtype, a, b, out) = (out.dtype(), slice(&a)?, slice(&b)?, slice(&out)?);
            Arc::new(move || real!(dtype, T => matmul::<T>(&a, &b, &out, sizes)))
        }
        Operation::Affine { x, out, scale, shift } => {
            let (dtype, x, out) = (x.dtype(), slice(&x)?, slice(&out)?);
            Arc::new(
                move || real!(dtype, T => map::<T, T>(&x, &out, |x| T::from_f32(x.to_f32().mul_add(scale, shift)))),
            )
        }
        Operation::Elementwise { kind, a, b, out } => {
            let (dtype, a, b, out) = (a.dtype(), slice(&a)?, slice(&b)?, slice(&out)?);
            Arc::new(move || real!(dtype, T => elementwise::<T>(kind, &a, &b, &out)))
        }
        Operation::Greater { x, out, threshold } => {
            let (dtype, x, out) = (x.dtype(), slice(&x)?, slice(&out)?);
            Arc::new(move || real!(dtype, T => map::<T, u8>(&x, &out, |x| u8::from(x.to_f32() > threshold))))
        }
        Operation::Sum { x, out } => {
            let (dtype, x, out) = (x.dtype(), slice(&x)?, slice(&out)?);
            Arc::new(move || {
                let total = real!(dtype, T => x.of::<T>(&x.content.snapshot()).map(sum))?;
                out.write::<f32>(|out| out[0] = total)
            })
        }
        Operation::Any { x, out } => {
            let (dtype, x, out) = (x.dtype(), slice(&x)?, slice(&out)?);
            Arc::new(move || {
                let any = positions_of_nonzero(dtype, &x, &x.content.snapshot())?.next().is_some();
                out.write::<u8>(|out| out[0] = u8::from(any))
            })
        }
        Operation::Nonzero { x, positions, count } => {
            let (dtype, x, positions, count) = (x.dtype(), slice(&x)?, slice(&positions)?, slice(&count)?);
            Arc::new(move || {
                let (cells, mut total) = (x.content.snapshot(), 0);
                let found = positions_of_nonzero(dtype, &x, &cells)?;
                positions.write::<i64>(|out| {
                    for (out, position) in out.iter_mut().zip(found) {
                        *out = position;
                        total += 1;
                    }
                })?;
                count.write::<i64>(|out| out[0] = total)
            })
        }
        Operation::Gather { x, rows, out, width, .. } => {
            let (dtype, x, rows, out) = (x.dtype(), slice(&x)?, slice(&rows)?, slice(&out)?);
            Arc::new(move || real!(dtype, T => gather::<T>(&x, &rows, &out, width)))
        }
        Operation::Copy { x, out } => {
            let (x, out) = (slice(&x)?, slice(&out)?);
            Arc::new(move || {
                let cells = x.content.snapshot();
                Ok(out.write_bytes(x.bytes_of(&cells))?)
            })
        }
        Operation::Spin { duration } => Arc::new(move || {
            spin(duration);
            Ok(())
        }),
    })
}

fn fill(dtype: DType, out: &Slice, value: f64) -> Computed {
    match dtype {
        DType::I64 => out.write::<i64>(|out| out.fill(value as i64)),
        DType::U8 => out.write::<u8>(|out| out.fill(value as u8)),
        real => real!(real, T => out.write::<T>(|out| out.fill(T::nearest(value)))),
    }
}

fn normal<T: Float>(out: &mut [T], seed: u64, sequence: u64) {
    for (block, out) in (0u64..).zip(out.chunks_mut(4)) {
        let normals = philox::normals(philox::block(seed, sequence, block));
        for (out, normal) in out.iter_mut().zip(normals) {
            *out = T::from_f32(normal);
        }
    }
}

fn map<T: Element, U: Element>(x: &Slice, out: &Slice, f: impl Fn(T) -> U) -> Computed {
    let cells = x.content.snapshot();
    let x = x.of::<T>(&cells)?;
    out.write::<U>(|out| {
        for (out, &x) in out.iter_mut().zip(x) {
            *out = f(x);
        }
    })
}

fn elementwise<T: Float>(kind: Binary, a: &Slice, b: &Slice, out: &Slice) -> Computed {
    let (a_cells, b_cells) = (a.content.snapshot(), b.content.snapshot());
    let (a, b) = (a.of::<T>(&a_cells)?, b.of::<T>(&b_cells)?);
    let f = match kind {
        Binary::Add => |a: f32, b: f32| a + b,
        Binary::Subtract => |a, b| a - b,
        Binary::Multiply => |a, b| a * b,
    };
    out.write::<T>(|out| {
        for ((out, a), b) in out.iter_mut().zip(a).zip(b) {
            *out = T::from_f32(f(a.to_f32(), b.to_f32()));
        }
    })
}

/// Operands are widened to fp32, multiplied in fp32 and rounded once.
fn matmul<T: Float>(a: &Slice, b: &Slice, out: &Slice, [m, k, n]: [usize; 3]) -> Computed {
    let widen = |x: &Slice| -> std::result::Result<Vec<f32>, Fault> {
        Ok(collected(x.of::<T>(&x.content.snapshot())?.iter().map(|x| x.to_f32()))?)
    };
    let matrix = |rows, columns, values| {
        ndarray::Array2::from_shape_vec((rows, columns), values).map_err(|e| Fault::Reason(e.to_string()))
    };
    let (a, b) = (matrix(m, k, widen(a)?)?, matrix(k, n, widen(b)?)?);
    let mut product = matrix(m, n, try_zeroed_vec(m * n).map_err(|()| NoRoom::of::<f32>(m * n))?)?;
    general_mat_mul(1.0, &a, &b, 0.0, &mut product);
    out.write::<T>(|out| {
        for (out, &x) in out.iter_mut().zip(product.iter()) {
            *out = T::from_f32(x);
        }
    })
}

/// Pairwise in blocks, so that the rounding error grows with the logarithm of the length (N. J. Higham, *The accuracy
/// of floating point summation*, SIAM J. Sci. Comput. 14, 1993).
fn sum<T: Float>(x: &[T]) -> f32 {
    const BLOCK: usize = 128;
    if x.len() <= BLOCK {
        return x.iter().map(|x| x.to_f32()).sum();
    }
    let (left, right) = x.split_at((x.len() / 2).next_multiple_of(BLOCK).min(x.len() - 1));
    sum(left) + sum(right)
}

/// The positions of elements that are not zero, ascending, each found when it is asked for.
fn positions_of_nonzero<'a>(
    dtype: DType,
    x: &Slice,
    cells: &'a Cells,
) -> std::result::Result<Box<dyn Iterator<Item = i64> + 'a>, Fault> {
    fn find<'a, T: Element>(x: &'a [T], nonzero: impl Fn(&T) -> bool + 'a) -> Box<dyn Iterator<Item = i64> + 'a> {
        Box::new((0..).zip(x).filter(move |(_, x)| nonzero(x)).map(|(i, _)| i))
    }
    match dtype {
        DType::U8 => Ok(find(x.of::<u8>(cells)?, |x| *x != 0)),
        DType::I64 => Ok(find(x.of::<i64>(cells)?, |x| *x != 0)),
        real => real!(real, T => Ok(find(x.of::<T>(cells)?, |x| x.to_f32() != 0.0))),
    }
}

fn gather<T: Float>(x: &Slice, rows: &Slice, out: &Slice, width: usize) -> Computed {
    let (x_cells, rows_cells) = (x.content.snapshot(), rows.content.snapshot());
    let (x, rows) = (x.of::<T>(&x_cells)?, rows.of::<i64>(&rows_cells)?);
    let height = x.len() / width;
    let row = |row: i64| usize::try_from(row).ok().filter(|row| *row < height);
    if let Some(bad) = rows.iter().find(|&&r| row(r).is_none()) {
        return Err(Fault::Reason(format!("row {bad} is outside of a tensor of {height} rows")));
    }
    out.write::<T>(|out| {
        for (out, from) in out.chunks_mut(width).zip(rows.iter().filter_map(|&r| row(r))) {
            out.copy_from_slice(&x[from * width..(from + 1) * width]);
        }
    })
}

/// Sleeps through most of the time, so that a busy stream does not take a core from the threads that are measured.
fn spin(duration: Duration) {
    const PRECISE: Duration = Duration::from_micros(200);
    let start = Instant::now();
    if let Some(rest) = duration.checked_sub(PRECISE) {
        std::thread::sleep(rest);
    }
    while start.elapsed() < duration {
        std::hint::spin_loop();
    }
}
