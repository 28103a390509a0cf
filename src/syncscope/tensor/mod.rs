//! Tensors: operations that enqueue, reads that block.
//!
//! A [`Tensor`] is contiguous, row-major and belongs to a [`Stream`]: its operations are enqueued there and return at
//! once. All operands of an operation belong to one stream: nothing is ordered between streams except by an event. Using a
//! tensor's memory from another stream is what [`Tensor::on`] is for; it orders nothing either. The reads (`item`, `to_vec`,
//! `to_array`, `any`, `nonzero`, `Display`) are synchronization points: they wait for the stream.
//!
//! Arithmetic is in fp32 and rounded once to the element type. With `ε` the element type's
//! [`EPSILON`](crate::device::Float::EPSILON) and `ε₃₂` that of fp32, an operation differs from exact arithmetic on
//! the same operands by at most
//!
//! | operation | error of an element |
//! |---|---|
//! | `copy`, `gather`, `greater`, `any`, `nonzero` | 0 |
//! | `fill` | `ε/2 · │value│` |
//! | `affine`, `add`, `subtract`, `multiply` | `(ε/2 + 2·ε₃₂) · (│operands│ of the last addition or product)` |
//! | `matmul` over `k` | `ε/2 · │result│ + k · ε₃₂ · Σ│aᵢ·bᵢ│` |
//! | `sum` of `n` | `(⌈log₂ n⌉ + 128 + n / 2²⁰) · ε₃₂ · Σ│xᵢ│` |
//! | `normal` | `ε/2 · │x│ + 4·10⁻⁵` against fp64 Box–Muller of the same words |
//!
//! The term of `matmul` in `k` bounds the error of an inner product in any order of summation (N. Higham, *Accuracy and
//! Stability of Numerical Algorithms*, section 3.1); parts of a sum are added up in fp32, too.
//!
//! Numbers below the smallest normal one of a type are as far apart as its smallest, `η`: 2⁻²⁴ of fp16, 2⁻¹³³ of bf16, 2⁻¹⁴⁹ of
//! fp32. A share of the value bounds no error there: to each bound come `η/2` for the rounding to the element type, and `η₃₂`
//! for each product in fp32, of which an element of `affine` and `multiply` has one and of `matmul` `k`. Neither engine takes
//! such numbers for 0: the CPU engine leaves the processor in the mode of IEEE 754, and the kernels of CUDA are compiled with
//! that, which is the compiler's default (`--ftz=false`). On CUDA `matmul` is cuBLAS, of which this is not known.
//!
//! # Errors
//! What stands under *Errors* of a call is its own. Besides, a call that enqueues on a stream or waits for it fails with
//!
//! * the failure of work that was enqueued earlier on the stream, and that of a device that is lost;
//! * [`OutOfMemory`](DeviceError::OutOfMemory) where there is no room: on the device for a result, on the host for what is read or
//!   taken along. What the CPU engine finds no room for while it works is a failure of the stream, with this error;
//! * [`ForeignObject`](DeviceError::ForeignObject) where a tensor or a host buffer belongs to another device, and
//!   [`InvalidArgument`](DeviceError::InvalidArgument) where an operand belongs to another stream;
//! * [`EngineUnavailable`](DeviceError::EngineUnavailable), [`KernelBuild`](DeviceError::KernelBuild) or
//!   [`CallFailed`](DeviceError::CallFailed) where CUDA lacks what the call is the first to use, or refuses it;
//! * [`Capturing`](DeviceError::Capturing) while the stream's work is [captured](Stream::capture), if it moves data between host and
//!   device or waits: [`tensor`](Stream::tensor), [`copy_from`](Tensor::copy_from), [`copy_to`](Tensor::copy_to),
//!   [`index_select`](Tensor::index_select) and the reads.

mod create;
mod operations;
mod print;
mod read;

use std::marker::PhantomData;
use std::sync::Arc;

use crate::device::code::{Argument, ON, Value};
use crate::device::engine::DeviceMemory;
use crate::device::operation::Region;
use crate::device::{Element, Stream};
use crate::error::DeviceError;

/// The most dimensions that a shape has. Every tensor and every part of one has a shape of its own, and what goes through it
/// dimension by dimension, as printing does, needs some of the stack for each.
pub const MAX_DIMENSIONS: usize = 64;

/// The result of a call on a tensor.
pub type Result<T> = std::result::Result<T, DeviceError>;

/// An array of elements in a device's memory, contiguous and row-major, bound to a stream, of [`MAX_DIMENSIONS`] at most.
///
/// Cloning shares the memory.
///
/// ```
/// use syncscope::prelude::*;
///
/// let stream = Device::open("cpu:0")?.stream()?;
/// let x = stream.tensor(&[1.0_f32, 2.0, 3.0, 4.0], [2, 2])?;
/// assert_eq!(x.matmul(&x)?.to_vec()?, [7.0, 10.0, 15.0, 22.0]);
/// # Ok::<(), syncscope::error::DeviceError>(())
/// ```
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
    /// before, during or after what the new one does, unless an event says otherwise. That holds for the memory itself,
    /// too: a tensor that was just made may stand where another's memory was freed in the old stream's order, so its first
    /// use on another stream needs an event recorded after it was made.
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

    /// An error unless this tensor is used from `stream`, by which `operation` runs.
    fn is_operand(&self, operation: &'static str, stream: &Stream) -> Result<()> {
        self.belongs_to(stream)?;
        if self.stream.is_same(stream) {
            return Ok(());
        }
        Err(invalid(operation, format!("an operand is of {:?}, and the call of {stream:?}: {ON}", self.stream)))
    }

    /// The same elements in another shape, sharing the memory.
    ///
    /// ```
    /// use syncscope::prelude::*;
    ///
    /// let stream = Device::open("cpu:0")?.stream()?;
    /// assert_eq!(stream.zeros::<f32>([4])?.reshape([2, 2])?.shape(), [2, 2]);
    /// # Ok::<(), syncscope::error::DeviceError>(())
    /// ```
    ///
    /// # Errors
    /// The number of elements differs, or the shape has more than [`MAX_DIMENSIONS`].
    pub fn reshape(&self, shape: impl Into<Vec<usize>>) -> Result<Self> {
        let shape = shape.into();
        if elements("reshape", &shape)? != self.len() {
            let reason = format!("{:?} has {} elements, and {shape:?} another number", self.shape, self.len());
            return Err(invalid("reshape", reason));
        }
        Ok(Self { shape, ..self.clone() })
    }

    /// The part at `index` of the leading dimensions, sharing the memory: a row of a matrix for one index, a scalar for
    /// as many as there are dimensions. A view: nothing is read or enqueued.
    ///
    /// ```
    /// use syncscope::prelude::*;
    ///
    /// let stream = Device::open("cpu:0")?.stream()?;
    /// let x = stream.tensor(&[1.0_f32, 2.0, 3.0, 4.0], [2, 2])?;
    /// assert_eq!(x.get([1, 0])?.item()?, 3.0);
    /// # Ok::<(), syncscope::error::DeviceError>(())
    /// ```
    ///
    /// # Errors
    /// The index is outside of the shape.
    pub fn get(&self, index: impl AsRef<[usize]>) -> Result<Self> {
        let index = index.as_ref();
        if index.len() > self.shape.len() {
            return Err(invalid("get", format!("{} numbers are too many for {:?}", index.len(), self.shape)));
        }
        if index.iter().zip(&self.shape).any(|(i, n)| i >= n) {
            return Err(invalid("get", format!("{index:?} is outside of {:?}", self.shape)));
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

    /// A tensor over all of some memory of a stream.
    #[cfg(feature = "cuda")]
    pub(crate) fn of_memory(
        stream: &Stream,
        memory: Arc<dyn DeviceMemory>,
        len: usize,
        shape: Vec<usize>,
    ) -> Result<Self> {
        let flat = Self { stream: stream.clone(), memory, offset: 0, shape: vec![len], element: PhantomData };
        flat.reshape(shape)
    }

    /// The memory and its length, of a tensor over all of it which nobody shares.
    #[cfg(feature = "cuda")]
    pub(crate) fn into_memory(self) -> Option<(Arc<dyn DeviceMemory>, usize)> {
        let len = self.len();
        (self.offset == 0 && Arc::strong_count(&self.memory) == 1).then_some((self.memory, len))
    }

    fn region(&self) -> Region<'_> {
        Region { memory: &self.memory, offset: self.offset, len: self.len() }
    }
}

/// The address of its first element: for a kernel that is launched on the tensor's stream.
impl<'a, T: Element> From<&'a Tensor<T>> for Argument<'a> {
    #[inline]
    fn from(tensor: &'a Tensor<T>) -> Self {
        Self(Value::Memory(tensor.region(), &tensor.stream))
    }
}

impl<T: Element> std::fmt::Debug for Tensor<T> {
    /// Type, shape and device; never the elements: that would wait.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tensor<{}>({:?}, {})", T::DTYPE, self.shape, self.stream.device().name())
    }
}

/// How many elements a shape has, which somebody asks for in `operation`.
///
/// # Errors
/// Too many dimensions, or a number of elements that no number says.
fn elements(operation: &'static str, shape: &[usize]) -> Result<usize> {
    let dimensions = shape.len();
    if dimensions > MAX_DIMENSIONS {
        return Err(invalid(operation, format!("a shape of {dimensions} dimensions: {MAX_DIMENSIONS} are the most")));
    }
    // Of the parts that are not 0, so that a part of a tensor without elements has a size, too.
    let product = shape.iter().filter(|n| **n > 0).try_fold(1usize, |product, n| product.checked_mul(*n));
    let product = product.ok_or_else(|| invalid(operation, format!("{shape:?} has too many elements")))?;
    Ok(if shape.contains(&0) { 0 } else { product })
}

fn invalid(operation: &'static str, reason: String) -> DeviceError {
    DeviceError::invalid(operation, reason)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::device::Device;

    #[test]
    fn a_shape_of_too_many_dimensions_is_refused_and_the_most_are_printed() {
        let stream = Device::open("cpu:0").unwrap().stream().unwrap();
        let most = stream.ones::<f32>([1; MAX_DIMENSIONS]).unwrap();
        let [open, close] = ["[", "]"].map(|bracket| bracket.repeat(MAX_DIMENSIONS));
        assert_eq!(most.to_string(), format!("{open}1.0{close}"));
        let refused = |made: Result<Tensor<f32>>| match made {
            Err(DeviceError::InvalidArgument { reason, .. }) => reason.len() < 100,
            _ => false,
        };
        for more in [vec![1; MAX_DIMENSIONS + 1], vec![1; 60_000], vec![0; 60_000]] {
            assert!(refused(stream.empty(more.clone())));
            assert!(refused(stream.ones(more.clone())));
            assert!(refused(stream.normal(more.clone())));
            assert!(refused(stream.tensor(&[1.0], more.clone())));
            assert!(refused(most.reshape(more.clone())));
        }
        assert!(refused(Tensor::stack(std::slice::from_ref(&most))));
        assert!(most.get([0; 60_000]).is_err());
    }
}
