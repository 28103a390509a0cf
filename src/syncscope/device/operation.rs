//! What a stream can do: operations, and the memory that they read and write.

use std::sync::Arc;
use std::time::Duration;

use super::DType;
use super::engine::DeviceMemory;

/// A run of elements in device memory.
#[derive(Clone, Copy)]
pub(crate) struct Region<'a> {
    /// The memory.
    pub(crate) memory: &'a Arc<dyn DeviceMemory>,
    /// The first element.
    pub(crate) offset: usize,
    /// The number of elements.
    pub(crate) len: usize,
}

impl Region<'_> {
    /// The type of the elements.
    pub(crate) fn dtype(&self) -> DType {
        self.memory.dtype()
    }
}

/// How a matrix multiplication in fp32 is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum MatmulPrecision {
    /// In the arithmetic of the operands: true fp32 for fp32; fp16 and bf16 accumulate in fp32.
    #[default]
    Full,
    /// fp32 operands rounded to tf32 for NVIDIA tensor cores (10 bits of mantissa).
    Tf32,
}

/// An elementwise operation of two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Binary {
    /// `a + b`
    Add,
    /// `a - b`
    Subtract,
    /// `a · b`
    Multiply,
}

/// The most regions that an operation has.
pub(crate) const REGIONS: usize = 3;

/// Work that a stream can do. Regions are contiguous, row-major and of checked sizes.
///
/// `real` below means fp16, bf16 or fp32. Arithmetic is in fp32, rounded once to the output's type.
#[derive(Clone, Copy)]
pub(crate) enum Operation<'a> {
    /// Sets every element of `out` (real, `i64` or `u8`) to `value`.
    Fill {
        /// Any type.
        out: Region<'a>,
        /// The value, converted to the type of `out`.
        value: f64,
    },
    /// Standard normals: element `i` of `out` is element `i` of the sequence of `seed` and `sequence`
    /// (see [`philox`](crate::device::philox) for the method that every engine follows).
    Normal {
        /// Float.
        out: Region<'a>,
        /// The key of the generator.
        seed: u64,
        /// Which of the independent sequences of that key.
        sequence: u64,
    },
    /// `out[m, n] = a[m, k] · b[k, n]`; one real type for all three.
    Matmul {
        /// Float, `m · k` elements.
        a: Region<'a>,
        /// Float, `k · n` elements.
        b: Region<'a>,
        /// Float, `m · n` elements.
        out: Region<'a>,
        /// `[m, k, n]`
        sizes: [usize; 3],
        /// How it is computed in fp32.
        precision: MatmulPrecision,
    },
    /// `out = x · scale + shift`, rounded once.
    Affine {
        /// Float.
        x: Region<'a>,
        /// Float, the same type and size.
        out: Region<'a>,
        /// Factor.
        scale: f32,
        /// Summand.
        shift: f32,
    },
    /// `out = a ∘ b`.
    Elementwise {
        /// Which operation.
        kind: Binary,
        /// Float.
        a: Region<'a>,
        /// Float, the same type and size.
        b: Region<'a>,
        /// Float, the same type and size.
        out: Region<'a>,
    },
    /// `out = x > threshold ? 1 : 0`.
    Greater {
        /// Float.
        x: Region<'a>,
        /// `u8`, the same size.
        out: Region<'a>,
        /// What an element is compared with, in fp32.
        threshold: f32,
    },
    /// `out[0] = Σ x`, accumulated in fp32 in a fixed order (blocks, then a tree), so that it repeats bit for bit.
    Sum {
        /// Float.
        x: Region<'a>,
        /// `f32`, one element.
        out: Region<'a>,
    },
    /// `out[0] = 1` if an element of `x` is not zero, else 0. NaN is not zero.
    Any {
        /// Any type.
        x: Region<'a>,
        /// `u8`, one element.
        out: Region<'a>,
    },
    /// The positions of the elements of `x` that are not zero, ascending, and how many there are.
    Nonzero {
        /// Any type.
        x: Region<'a>,
        /// `i64`, as many elements as `x`; those past the count are undefined.
        positions: Region<'a>,
        /// `i64`, one element.
        count: Region<'a>,
    },
    /// Row `i` of `out` is row `rows[i]` of `x`; a row number outside of `x` fails the stream.
    Gather {
        /// Float.
        x: Region<'a>,
        /// `i64`.
        rows: Region<'a>,
        /// Float, the same type, `rows.len · width` elements.
        out: Region<'a>,
        /// Elements in a row, at least 1.
        width: usize,
        /// Whether `rows` was copied from the host by the same call.
        from_host: bool,
    },
    /// `out = x`, element by element.
    Copy {
        /// Any type.
        x: Region<'a>,
        /// The same type and size; not overlapping `x`.
        out: Region<'a>,
    },
    /// Keeps the stream busy for a set time.
    Spin {
        /// How long.
        duration: Duration,
    },
}

impl<'a> Operation<'a> {
    /// The memory that it reads and writes.
    pub(crate) fn regions(&self) -> impl Iterator<Item = Region<'a>> {
        let regions: [_; REGIONS] = match *self {
            Operation::Fill { out, .. } | Operation::Normal { out, .. } => [Some(out), None, None],
            Operation::Matmul { a, b, out, .. } | Operation::Elementwise { a, b, out, .. } => {
                [Some(a), Some(b), Some(out)]
            }
            Operation::Affine { x, out, .. }
            | Operation::Greater { x, out, .. }
            | Operation::Sum { x, out }
            | Operation::Any { x, out }
            | Operation::Copy { x, out } => [Some(x), Some(out), None],
            Operation::Nonzero { x, positions, count } => [Some(x), Some(positions), Some(count)],
            Operation::Gather { x, rows, out, .. } => [Some(x), Some(rows), Some(out)],
            Operation::Spin { .. } => [None; REGIONS],
        };
        regions.into_iter().flatten()
    }

    /// Whether it is a part of a call that cannot be captured as a whole: the host reads its result at once, or has copied what it
    /// reads.
    #[inline]
    pub(crate) fn is_never_captured(&self) -> bool {
        matches!(self, Operation::Any { .. } | Operation::Nonzero { .. } | Operation::Gather { from_host: true, .. })
    }

    /// The operation's name, as errors and timelines show it.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Operation::Fill { .. } => "fill",
            Operation::Normal { .. } => "normal",
            Operation::Matmul { .. } => "matmul",
            Operation::Affine { .. } => "affine",
            Operation::Elementwise { kind: Binary::Add, .. } => "add",
            Operation::Elementwise { kind: Binary::Subtract, .. } => "subtract",
            Operation::Elementwise { kind: Binary::Multiply, .. } => "multiply",
            Operation::Greater { .. } => "greater",
            Operation::Sum { .. } => "sum",
            Operation::Any { .. } => "any",
            Operation::Nonzero { .. } => "nonzero",
            Operation::Gather { .. } => "gather",
            Operation::Copy { .. } => "copy",
            Operation::Spin { .. } => "spin",
        }
    }
}
