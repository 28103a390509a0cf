//! Reads: barriers that wait for the tensor's stream and bring values to the host.

use std::panic::Location;

use ndarray::{ArrayD, IxDyn};

use super::{Result, Tensor, invalid};
use crate::device::Element;
use crate::device::engine::Operation;

impl<T: Element> Tensor<T> {
    /// Barrier: the elements, row-major.
    ///
    /// # Errors
    /// A failure of work enqueued earlier on the stream.
    #[track_caller]
    pub fn to_vec(&self) -> Result<Vec<T>> {
        let _scope = self.stream.scope("to_vec", Some(Location::caller()));
        let mut values = bytemuck::allocation::zeroed_vec(self.len());
        if self.is_empty() {
            self.stream.synchronize()?;
        } else {
            self.stream.download(self.region(), bytemuck::cast_slice_mut(&mut values))?;
        }
        Ok(values)
    }

    /// Barrier: the elements as a host array of the same shape.
    ///
    /// # Errors
    /// A failure of work enqueued earlier on the stream.
    #[track_caller]
    pub fn to_array(&self) -> Result<ArrayD<T>> {
        let _scope = self.stream.scope("to_array", Some(Location::caller()));
        ArrayD::from_shape_vec(IxDyn(&self.shape), self.to_vec()?).map_err(|e| invalid("to_array", e.to_string()))
    }

    /// Barrier: the one element.
    ///
    /// # Errors
    /// There is not exactly one element, or work enqueued earlier failed.
    #[track_caller]
    pub fn item(&self) -> Result<T> {
        let _scope = self.stream.scope("item", Some(Location::caller()));
        if self.len() != 1 {
            return Err(invalid("item", format!("{:?} has {} elements, not one", self.shape, self.len())));
        }
        let mut value = [T::zeroed()];
        self.stream.download(self.region(), bytemuck::cast_slice_mut(&mut value))?;
        Ok(value[0])
    }

    /// Barrier: whether an element is not zero. NaN is not zero.
    ///
    /// # Errors
    /// A failure of work enqueued earlier on the stream.
    #[track_caller]
    pub fn any(&self) -> Result<bool> {
        let _scope = self.stream.scope("any", Some(Location::caller()));
        let out = self.stream.empty::<u8>([])?;
        if self.is_empty() {
            self.stream.synchronize()?;
            return Ok(false);
        }
        self.stream.enqueue(&Operation::Any { x: self.region(), out: out.region() })?;
        Ok(out.item()? != 0)
    }

    /// Barrier: the positions of the elements that are not zero, ascending, counted row-major: shape `[count]`.
    /// The host waits because the shape depends on the values.
    ///
    /// # Errors
    /// A failure of work enqueued earlier on the stream.
    #[track_caller]
    pub fn nonzero(&self) -> Result<Tensor<i64>> {
        let _scope = self.stream.scope("nonzero", Some(Location::caller()));
        let positions = self.stream.empty::<i64>([self.len()])?;
        if self.is_empty() {
            self.stream.synchronize()?;
            return Ok(positions);
        }
        let count = self.stream.empty::<i64>([])?;
        let (x, out) = (self.region(), positions.region());
        self.stream.enqueue(&Operation::Nonzero { x, positions: out, count: count.region() })?;
        Ok(positions.rows(usize::try_from(count.item()?).unwrap_or(0)))
    }
}
