//! Tensors: operations that enqueue, reads that block.
//!
//! A [`Tensor`] is contiguous, row-major and belongs to a [`Stream`]: its operations are enqueued there and return at
//! once. Using it from another stream is explicit ([`Tensor::on`]) and orders nothing. The reads (`item`, `to_vec`,
//! `to_array`, `any`, `nonzero`, `Display`) are barriers: they wait for the stream.
//!
//! Arithmetic is in fp32 and rounded once to the element type. With `ε` the element type's
//! [`EPSILON`](crate::device::Real::EPSILON) and `ε₃₂` that of fp32, an operation differs from exact arithmetic on
//! the same operands by at most
//!
//! | operation | error of an element |
//! |---|---|
//! | `fill`, `copy`, `gather`, `greater`, `any`, `nonzero` | 0 |
//! | `affine`, `add`, `subtract`, `multiply` | `(ε/2 + 2·ε₃₂) · (│operands│ of the last addition or product)` |
//! | `matmul` over `k` | `ε/2 · │result│ + k · ε₃₂ · Σ│aᵢ·bᵢ│` |
//! | `sum` of `n` | `(⌈log₂ n⌉ + 128) · ε₃₂ · Σ│xᵢ│` |
//! | `normal` | `ε/2 · │x│ + 4·10⁻⁵` against fp64 Box–Muller of the same words |

mod create;
mod operations;
mod print;
mod read;

use std::marker::PhantomData;
use std::sync::Arc;

use crate::device::engine::{DeviceMemory, Region};
use crate::device::{Element, Stream};
use crate::error::DeviceError;

/// The result of a call on a tensor.
pub type Result<T> = std::result::Result<T, DeviceError>;

/// An array of elements in a device's memory, contiguous and row-major, bound to a stream.
///
/// Cloning shares the memory.
#[derive(Clone)]
pub struct Tensor<T: Element> {
    stream: Stream,
    memory: Arc<dyn DeviceMemory>,
    offset: usize,
    shape: Vec<usize>,
    element: PhantomData<T>,
}

impl<T: Element> Tensor<T> {
    /// The length of each dimension; empty for a scalar.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The size of the elements in bytes.
    pub fn bytes(&self) -> usize {
        self.len() * T::DTYPE.size()
    }

    /// The stream on which this tensor's operations are enqueued.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// The same memory, used from `stream`. Orders nothing: what the old stream has yet to do to the memory may happen
    /// before, during or after what the new one does, unless an event says otherwise.
    ///
    /// # Errors
    /// The stream belongs to another device.
    pub fn on(&self, stream: &Stream) -> Result<Self> {
        self.belongs_to(stream)?;
        Ok(Self { stream: stream.clone(), ..self.clone() })
    }

    /// An error unless this tensor lies in the memory of `stream`'s device.
    fn belongs_to(&self, stream: &Stream) -> Result<()> {
        if Arc::ptr_eq(stream.device().engine(), self.stream.device().engine()) {
            return Ok(());
        }
        Err(DeviceError::ForeignObject { what: "a tensor", device: stream.device().name().to_owned() })
    }

    /// The same elements in another shape, sharing the memory.
    ///
    /// # Errors
    /// The number of elements differs.
    pub fn reshape(&self, shape: impl Into<Vec<usize>>) -> Result<Self> {
        let shape = shape.into();
        let len: usize = shape.iter().product();
        if len != self.len() {
            return Err(invalid(
                "reshape",
                format!("{:?} has {} elements and {shape:?} has {len}", self.shape, self.len()),
            ));
        }
        Ok(Self { shape, ..self.clone() })
    }

    /// The part at `index` of the leading dimensions, sharing the memory: a row of a matrix for one index, a scalar for
    /// as many as there are dimensions. A view: nothing is read or enqueued.
    ///
    /// # Errors
    /// The index is outside of the shape.
    pub fn at(&self, index: impl AsRef<[usize]>) -> Result<Self> {
        let index = index.as_ref();
        let inside = index.len() <= self.shape.len() && index.iter().zip(&self.shape).all(|(i, n)| i < n);
        if !inside {
            return Err(invalid("at", format!("{index:?} is outside of {:?}", self.shape)));
        }
        let shape = self.shape[index.len()..].to_vec();
        let part: usize = shape.iter().product();
        let position = index.iter().zip(&self.shape).fold(0, |position, (i, n)| position * n + i);
        Ok(Self { offset: self.offset + position * part, shape, ..self.clone() })
    }

    /// The first `count` rows, sharing the memory.
    fn rows(&self, count: usize) -> Self {
        let mut shape = self.shape.clone();
        if let Some(rows) = shape.first_mut() {
            *rows = count.min(*rows);
        }
        Self { shape, ..self.clone() }
    }

    fn region(&self) -> Region<'_> {
        Region { memory: &self.memory, offset: self.offset, len: self.len() }
    }
}

impl<T: Element> std::fmt::Debug for Tensor<T> {
    /// Type, shape and device; never the elements: that would be a barrier.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tensor<{}>({:?}, {})", T::DTYPE, self.shape, self.stream.device().name())
    }
}

fn invalid(operation: &'static str, reason: String) -> DeviceError {
    DeviceError::InvalidArgument { operation, reason }
}
