//! Reads: synchronization points, which wait for the tensor's stream and bring values to the host.

use std::panic::Location;

use ndarray::{ArrayD, IxDyn};

use super::{Result, Tensor, invalid};
use crate::device::Element;
use crate::device::operation::Operation;

impl<T: Element> Tensor<T> {
    /// Synchronization point: the elements, row-major. Where other threads enqueue on the stream meanwhile, a large tensor may be copied
    /// on the device first, which takes room for a second one.
    ///
    /// # Errors
    /// Those of [every call](crate::tensor#errors).
    #[track_caller]
    pub fn to_vec(&self) -> Result<Vec<T>> {
        let _scope = self.stream.scope("to_vec", Some(Location::caller()));
        if self.is_empty() {
            return self.stream.synchronize().map(|()| Vec::new());
        }
        self.stream.download_all(self.region())
    }

    /// Synchronization point: the elements as a host array of the same shape.
    ///
    /// # Errors
    /// A shape that no host array has: one without elements whose other lengths have a product beyond `isize::MAX`; those of
    /// [every call](crate::tensor#errors).
    #[track_caller]
    pub fn to_array(&self) -> Result<ArrayD<T>> {
        let _scope = self.stream.scope("to_array", Some(Location::caller()));
        ArrayD::from_shape_vec(IxDyn(&self.shape), self.to_vec()?).map_err(|e| invalid("to_array", e.to_string()))
    }

    /// Synchronization point: the one element.
    ///
    /// ```
    /// use syncscope::prelude::*;
    ///
    /// let stream = Device::open("cpu:0")?.stream()?;
    /// assert_eq!(stream.ones::<f32>([3])?.sum()?.item()?, 3.0);
    /// # Ok::<(), syncscope::error::DeviceError>(())
    /// ```
    ///
    /// # Errors
    /// There is not exactly one element; those of [every call](crate::tensor#errors).
    #[track_caller]
    pub fn item(&self) -> Result<T> {
        let _scope = self.stream.scope("item", Some(Location::caller()));
        if self.len() != 1 {
            return Err(invalid("item", format!("{:?} has {} elements, not one", self.shape, self.len())));
        }
        self.stream.download_one(self.region())
    }

    /// Synchronization point: whether an element is not zero. NaN is not zero.
    ///
    /// # Errors
    /// Those of [every call](crate::tensor#errors).
    #[track_caller]
    pub fn any(&self) -> Result<bool> {
        let _scope = self.stream.scope("any", Some(Location::caller()));
        if self.is_empty() {
            self.stream.synchronize()?;
            return Ok(false);
        }
        let out = self.stream.empty::<u8>([])?;
        self.stream.enqueue(&Operation::Any { x: self.region(), out: out.region() })?;
        Ok(out.item()? != 0)
    }

    /// Synchronization point: the positions of the elements that are not zero, ascending, counted row-major: shape `[count]`.
    /// The host waits because the shape depends on the values: until the count is known. What reads the positions follows
    /// in the stream's order.
    ///
    /// ```
    /// use syncscope::prelude::*;
    ///
    /// let stream = Device::open("cpu:0")?.stream()?;
    /// let x = stream.tensor(&[0.0_f32, 5.0, 0.0, 1.0], [4])?;
    /// assert_eq!(x.nonzero()?.to_vec()?, [1, 3]);
    /// # Ok::<(), syncscope::error::DeviceError>(())
    /// ```
    ///
    /// # Errors
    /// Those of [every call](crate::tensor#errors).
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
