//! Making tensors on a stream.

use std::marker::PhantomData;
use std::panic::Location;

use super::{Result, Tensor, elements, invalid};
use crate::device::operation::Operation;
use crate::device::{Element, Float, HostBuffer, Stream};

/// Making tensors. All but [`tensor`](Stream::tensor) enqueue and return.
impl Stream {
    /// A tensor whose elements are undefined until something is enqueued that writes them.
    ///
    /// # Errors
    /// No room; a shape of more than [`MAX_DIMENSIONS`](crate::tensor::MAX_DIMENSIONS) or whose number of elements does not fit
    /// in memory.
    pub fn empty<T: Element>(&self, shape: impl Into<Vec<usize>>) -> Result<Tensor<T>> {
        let shape = shape.into();
        let len = elements("empty", &shape)?;
        if len.checked_mul(T::DTYPE.size()).is_none_or(|bytes| isize::try_from(bytes).is_err()) {
            return Err(invalid("empty", format!("{shape:?} has too many elements")));
        }
        let memory = self.allocate(T::DTYPE, len)?;
        Ok(Tensor { stream: self.clone(), memory, offset: 0, shape, element: PhantomData })
    }

    /// A tensor whose elements are all `value`, converted to their type. A floating-point type gets the nearest number, ties to
    /// even. An integer type gets `value` without its fraction, its own smallest or largest number where `value` lies outside,
    /// and 0 for NaN.
    ///
    /// ```
    /// use syncscope::prelude::*;
    ///
    /// let stream = Device::open("cpu:0")?.stream()?;
    /// assert_eq!(stream.full::<f32>([2], 0.5)?.to_vec()?, [0.5, 0.5]);
    /// # Ok::<(), DeviceError>(())
    /// ```
    ///
    /// # Errors
    /// A shape that [`empty`](Self::empty) refuses; those of [every call](crate::tensor#errors).
    #[track_caller]
    pub fn full<T: Element>(&self, shape: impl Into<Vec<usize>>, value: f64) -> Result<Tensor<T>> {
        let out = self.empty(shape)?;
        if !out.is_empty() {
            self.enqueue(&Operation::Fill { out: out.region(), value })?;
        }
        Ok(out)
    }

    /// A tensor of zeros.
    ///
    /// # Errors
    /// A shape that [`empty`](Self::empty) refuses; those of [every call](crate::tensor#errors).
    #[track_caller]
    pub fn zeros<T: Element>(&self, shape: impl Into<Vec<usize>>) -> Result<Tensor<T>> {
        self.full(shape, 0.0)
    }

    /// A tensor of ones.
    ///
    /// # Errors
    /// A shape that [`empty`](Self::empty) refuses; those of [every call](crate::tensor#errors).
    #[track_caller]
    pub fn ones<T: Element>(&self, shape: impl Into<Vec<usize>>) -> Result<Tensor<T>> {
        self.full(shape, 1.0)
    }

    /// Standard normals, other ones at each call on this stream: sequence 0, 1, 2, … of the stream's seed, which is 0
    /// unless [`set_seed`](Stream::set_seed) set another. The same seed gives the same numbers on every device, up to rounding:
    /// those of Philox 4x32-10 (J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, *Parallel random numbers: as easy as 1, 2, 3*,
    /// SC 2011) and Box–Muller.
    ///
    /// ```
    /// use syncscope::prelude::*;
    ///
    /// let stream = Device::open("cpu:0")?.stream()?;
    /// let a = stream.normal::<f32>([3])?.to_vec()?;
    /// stream.set_seed(0);
    /// assert_eq!(a, stream.normal::<f32>([3])?.to_vec()?);
    /// # Ok::<(), DeviceError>(())
    /// ```
    ///
    /// # Errors
    /// A shape that [`empty`](Self::empty) refuses; those of [every call](crate::tensor#errors).
    #[track_caller]
    pub fn normal<T: Float>(&self, shape: impl Into<Vec<usize>>) -> Result<Tensor<T>> {
        let (seed, sequence) = self.next_sequence();
        let out = self.empty(shape)?;
        if !out.is_empty() {
            self.enqueue(&Operation::Normal { out: out.region(), seed, sequence })?;
        }
        Ok(out)
    }

    /// A tensor of host values. Returns once they have been read, which may block; see [`copy_from`](Tensor::copy_from)
    /// for a copy that leaves the host free.
    ///
    /// # Errors
    /// The shape has another number of elements than `values`, or is one that [`empty`](Self::empty) refuses; those of
    /// [every call](crate::tensor#errors).
    #[track_caller]
    pub fn tensor<T: Element>(&self, values: &[T], shape: impl Into<Vec<usize>>) -> Result<Tensor<T>> {
        let out = self.empty(shape)?;
        if out.len() != values.len() {
            return Err(invalid("tensor", format!("{} values do not fill {:?}", values.len(), out.shape)));
        }
        if !out.is_empty() {
            self.upload(bytemuck::cast_slice(values), out.region())?;
        }
        Ok(out)
    }
}

/// Copies from and to host buffers. They enqueue; the hardware may block all the same (pageable memory).
impl<T: Element> Tensor<T> {
    /// Enqueues a copy of `source`'s whole content into this tensor, on this tensor's stream.
    ///
    /// # Errors
    /// The sizes differ; a copy into the buffer has failed; those of [every call](crate::tensor#errors).
    #[track_caller]
    pub fn copy_from(&self, source: &HostBuffer<T>) -> Result<()> {
        self.same_size("copy_from", source.len())?;
        source.enqueue_upload(&self.stream, self.region(), Some(Location::caller()))
    }

    /// Enqueues a copy of this tensor into all of `target`, on this tensor's stream.
    ///
    /// # Errors
    /// The sizes differ; those of [every call](crate::tensor#errors).
    #[track_caller]
    pub fn copy_to(&self, target: &mut HostBuffer<T>) -> Result<()> {
        self.same_size("copy_to", target.len())?;
        target.enqueue_download(&self.stream, self.region(), Some(Location::caller()))
    }

    fn same_size(&self, operation: &'static str, len: usize) -> Result<()> {
        if len == self.len() {
            return Ok(());
        }
        Err(invalid(operation, format!("the tensor has {} elements and the buffer {len}", self.len())))
    }
}
