//! What an engine offers: the one interface behind [`Device`](super::Device), [`Stream`](super::Stream),
//! [`Event`](super::Event) and [`HostBuffer`](super::HostBuffer).
//!
//! The traits are untyped (a [`DType`] and a length instead of a Rust type) and say nothing of shapes: the layers
//! above check shapes and types once, for every engine. An engine checks only what the layers above cannot know:
//! that an object is its own.
//!
//! All enqueueing calls return before the work has run, unless the hardware's own call does not.

use std::any::Any;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use super::tracer::{Source, Tracer};
use super::{DType, Properties, Telemetry};
use crate::error::DeviceError;

/// The result of a call into an engine.
pub(crate) type Result<T> = std::result::Result<T, DeviceError>;

/// One opened device of an engine.
pub(crate) trait Engine: Send + Sync {
    /// What is known of the device without asking it again.
    fn properties(&self) -> &Properties;

    /// A new stream: an ordered queue of work, independent of every other.
    /// Its number is what the tracer names it by.
    fn create_stream(&self, number: u32) -> Result<Arc<dyn EngineStream>>;

    /// A new event, not recorded yet; `timing` says whether times between events will be asked for.
    fn create_event(&self, timing: bool) -> Result<Arc<dyn EngineEvent>>;

    /// A new closed gate.
    fn create_gate(&self) -> Result<Arc<dyn EngineGate>>;

    /// Host memory of `len` zeroed elements, pageable or pinned.
    fn allocate_host(&self, kind: HostKind, dtype: DType, len: usize) -> Result<Box<dyn HostMemory>>;

    /// Blocks until all work on all streams of the device has completed.
    fn synchronize(&self) -> Result<()>;

    /// Host time of `launches` bare launches of a small kernel with prepared arguments, by the lowest-level call that
    /// the engine stands on: what no library above it can undercut.
    fn raw_launch_loop(&self, stream: &dyn EngineStream, launches: usize) -> Result<Duration>;

    /// What is recorded of the device.
    fn tracer(&self) -> &Arc<Tracer>;

    /// Who reports when work ran, for a recording that begins now.
    fn source(&self) -> Source;

    /// Clocks, temperature, power and throttling now; `None` where the engine has no such sensors.
    fn telemetry(&self) -> Result<Option<Telemetry>>;
}

/// One stream of a device.
pub(crate) trait EngineStream: Send + Sync + Any {
    /// Memory for `len` elements, usable by work enqueued on this stream from now on; its content is undefined.
    ///
    /// It is freed when the last handle is dropped, after all work that was enqueued with it, on whichever stream.
    fn allocate(&self, dtype: DType, len: usize) -> Result<Arc<dyn DeviceMemory>>;

    /// Memory for one element of undefined content, which the device writes and the host then reads: where that saves
    /// the copy, a download of it is a wait alone.
    fn allocate_host_scalar(&self, dtype: DType) -> Result<Arc<dyn DeviceMemory>> {
        self.allocate(dtype, 1)
    }

    /// Enqueues `operation`.
    fn enqueue(&self, operation: &Operation<'_>) -> Result<()>;

    /// Enqueues a copy of all of `source` into `target`, of the same size.
    ///
    /// The caller keeps `source` alive and unwritten until the copy has completed.
    fn enqueue_upload(&self, source: &dyn HostMemory, target: Region<'_>) -> Result<()>;

    /// Enqueues a copy of `source` into all of `target`, of the same size.
    ///
    /// The caller keeps `target` alive and untouched until the copy has completed.
    fn enqueue_download(&self, source: Region<'_>, target: &dyn HostMemory) -> Result<()>;

    /// Copies borrowed host bytes into `target` and returns once `source` has been read.
    fn upload(&self, source: &[u8], target: Region<'_>) -> Result<()>;

    /// Copies `source` into borrowed host bytes: blocks until all work before it on this stream has completed. When it
    /// succeeds, all of `target` has been written; it never makes an initialised byte uninitialised.
    fn download(&self, source: Region<'_>, target: &mut [MaybeUninit<u8>]) -> Result<()>;

    /// Whether a transfer that only enqueues elsewhere blocks on this engine.
    fn waits(&self, _: Transfer) -> bool {
        false
    }

    /// Enqueues the recording of `event`.
    fn record(&self, event: &dyn EngineEvent) -> Result<()>;

    /// Work enqueued from now on waits for the latest recording of `event`; the host does not.
    fn wait_event(&self, event: &dyn EngineEvent) -> Result<()>;

    /// Work enqueued from now on waits until `gate` is opened; the host does not.
    fn wait_gate(&self, gate: &dyn EngineGate) -> Result<()>;

    /// From now on operations are captured instead of enqueued; nothing else is asked of the stream meanwhile, but
    /// memory.
    fn begin_capture(&self) -> Result<()>;

    /// Ends a capture.
    fn end_capture(&self) -> Result<Arc<dyn EngineGraph>>;

    /// Whether all work enqueued so far has completed. Never blocks.
    fn is_complete(&self) -> Result<bool>;

    /// Blocks until all work enqueued so far has completed.
    fn synchronize(&self) -> Result<()>;
}

/// A transfer between the host and a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transfer {
    /// From memory that is the caller's again when the call returns.
    Borrowed {
        /// How much.
        bytes: usize,
    },
    /// Into a host buffer.
    ToHost(HostKind),
}

/// A mark in a stream.
pub(crate) trait EngineEvent: Send + Sync + Any {
    /// Whether the latest recording has been reached. An event never recorded is complete. Never blocks.
    fn is_complete(&self) -> Result<bool>;

    /// Blocks until the latest recording has been reached.
    fn synchronize(&self) -> Result<()>;

    /// The time from `start` to this event; both complete, recorded, and made with timing.
    fn elapsed_since(&self, start: &dyn EngineEvent) -> Result<Duration>;
}

/// Captured operations of one stream.
pub(crate) trait EngineGraph: Send + Sync {
    /// Enqueues them on that stream. Their memory is kept alive by the caller.
    fn launch(&self) -> Result<()>;
}

/// A flag that a stream can wait on and the host opens.
pub(crate) trait EngineGate: Send + Sync + Any {
    /// Lets every stream that waits go on. Opening twice is allowed.
    fn open(&self);
}

/// Memory of a device.
pub(crate) trait DeviceMemory: Send + Sync + Any {
    /// The type of its elements.
    fn dtype(&self) -> DType;
}

/// Where a host buffer's memory lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HostKind {
    /// Ordinary memory, which the operating system may move or swap.
    Pageable,
    /// Page-locked memory, which a device reads and writes by itself.
    Pinned,
    /// Page-locked and write-combined: fast to fill in order, very slow for the host to read.
    WriteCombined,
}

/// Host memory that an engine allocated.
///
/// The layer above calls [`bytes`](Self::bytes) only when no copy into the memory is pending, and
/// [`bytes_mut`](Self::bytes_mut) only when none from or into it is.
pub(crate) trait HostMemory: Send + Sync + Any {
    /// The content.
    fn bytes(&self) -> Box<dyn Deref<Target = [u8]> + '_>;

    /// The content, to change.
    fn bytes_mut(&mut self) -> Box<dyn DerefMut<Target = [u8]> + '_>;
}

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

/// How a matrix product in fp32 is computed.
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
pub enum Binary {
    /// `a + b`
    Add,
    /// `a - b`
    Subtract,
    /// `a · b`
    Multiply,
}

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
        /// How an fp32 product is computed.
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
        let regions = match *self {
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
            Operation::Spin { .. } => [None; 3],
        };
        regions.into_iter().flatten()
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

impl std::fmt::Display for HostKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            HostKind::Pageable => "pageable",
            HostKind::Pinned => "pinned",
            HostKind::WriteCombined => "write-combined",
        })
    }
}
