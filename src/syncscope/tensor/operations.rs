//! Operations: each enqueues on the tensor's stream and returns a new tensor at once.

use std::panic::Location;
use std::sync::Arc;

use super::{Result, Tensor, invalid};
use crate::device::operation::{Binary, Operation, Region};
use crate::device::reserved::collected;
use crate::device::{Element, Float, MatmulPrecision};

impl<T: Float> Tensor<T> {
    /// The matrix product of `[m, k]` and `[k, n]`: `[m, n]`. Accumulated in fp32; fp32 operands are not rounded.
    ///
    /// On CUDA the first multiplication of a shape asks cuBLASLt for an algorithm and loads its kernels, which can wait for
    /// other streams: warm a shape up before it is measured.
    ///
    /// # Errors
    /// The shapes do not fit; those of [every call](crate::tensor#errors).
    #[track_caller]
    pub fn matmul(&self, other: &Self) -> Result<Self> {
        self.matmul_in(other, MatmulPrecision::Full)
    }

    /// [`matmul`](Self::matmul) with the arithmetic stated.
    ///
    /// # Errors
    /// The shapes do not fit; the engine has no such arithmetic; those of [every call](crate::tensor#errors).
    #[track_caller]
    pub fn matmul_in(&self, other: &Self, precision: MatmulPrecision) -> Result<Self> {
        let (&[m, k], &[inner, n]) = (&self.shape[..], &other.shape[..]) else {
            return Err(invalid("matmul", format!("needs two matrices, not {:?} and {:?}", self.shape, other.shape)));
        };
        if k != inner {
            return Err(invalid("matmul", format!("{:?} and {:?} share no inner dimension", self.shape, other.shape)));
        }
        other.is_operand("matmul", &self.stream)?;
        let out = self.stream.empty([m, n])?;
        if out.is_empty() {
            return Ok(out);
        }
        let operation = match k {
            0 => Operation::Fill { out: out.region(), value: 0.0 },
            _ => Operation::Matmul {
                a: self.region(),
                b: other.region(),
                out: out.region(),
                sizes: [m, k, n],
                precision,
            },
        };
        self.stream.enqueue(&operation)?;
        Ok(out)
    }

    /// `self · scale + shift`, element by element.
    ///
    /// ```
    /// use syncscope::prelude::*;
    ///
    /// let stream = Device::open("cpu:0")?.stream()?;
    /// let x = stream.ones::<f32>([2])?.affine(2.0, 1.0)?;
    /// assert_eq!(x.to_vec()?, [3.0, 3.0]);
    /// # Ok::<(), DeviceError>(())
    /// ```
    ///
    /// # Errors
    /// Those of [every call](crate::tensor#errors).
    #[track_caller]
    pub fn affine(&self, scale: f32, shift: f32) -> Result<Self> {
        let out = self.stream.empty(self.shape.clone())?;
        if !out.is_empty() {
            self.stream.enqueue(&Operation::Affine { x: self.region(), out: out.region(), scale, shift })?;
        }
        Ok(out)
    }

    /// Replaces each element by `self · scale + shift`: an enqueue that allocates nothing.
    ///
    /// # Errors
    /// Those of [every call](crate::tensor#errors).
    #[track_caller]
    pub fn affine_in_place(&self, scale: f32, shift: f32) -> Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        self.stream.enqueue(&Operation::Affine { x: self.region(), out: self.region(), scale, shift })
    }

    /// `self + value`, element by element.
    ///
    /// # Errors
    /// Those of [every call](crate::tensor#errors).
    #[track_caller]
    pub fn add_scalar(&self, value: f32) -> Result<Self> {
        self.affine(1.0, value)
    }

    /// `self · value`, element by element. Zeros keep their sign: `-0.0 · 1` is `-0.0`.
    ///
    /// # Errors
    /// Those of [every call](crate::tensor#errors).
    #[track_caller]
    pub fn multiply_scalar(&self, value: f32) -> Result<Self> {
        // Adding -0.0 changes nothing, while -0.0 + 0.0 is 0.0.
        self.affine(value, -0.0)
    }

    /// `self + other`, element by element; the shapes are equal.
    ///
    /// ```
    /// use syncscope::prelude::*;
    ///
    /// let stream = Device::open("cpu:0")?.stream()?;
    /// let (a, b) = (stream.tensor(&[1.0_f32, 2.0], [2])?, stream.ones::<f32>([2])?);
    /// assert_eq!(a.add(&b)?.to_vec()?, [2.0, 3.0]);
    /// # Ok::<(), DeviceError>(())
    /// ```
    ///
    /// # Errors
    /// The shapes differ; those of [every call](crate::tensor#errors).
    #[track_caller]
    pub fn add(&self, other: &Self) -> Result<Self> {
        self.elementwise(Binary::Add, other)
    }

    /// `self - other`, element by element; the shapes are equal.
    ///
    /// # Errors
    /// The shapes differ; those of [every call](crate::tensor#errors).
    #[track_caller]
    pub fn subtract(&self, other: &Self) -> Result<Self> {
        self.elementwise(Binary::Subtract, other)
    }

    /// `self · other`, element by element; the shapes are equal.
    ///
    /// # Errors
    /// The shapes differ; those of [every call](crate::tensor#errors).
    #[track_caller]
    pub fn multiply(&self, other: &Self) -> Result<Self> {
        self.elementwise(Binary::Multiply, other)
    }

    #[track_caller]
    fn elementwise(&self, kind: Binary, other: &Self) -> Result<Self> {
        let operation = match kind {
            Binary::Add => "add",
            Binary::Subtract => "subtract",
            Binary::Multiply => "multiply",
        };
        self.same_shape(operation, other)?;
        let out = self.stream.empty(self.shape.clone())?;
        if !out.is_empty() {
            let (a, b, out) = (self.region(), other.region(), out.region());
            self.stream.enqueue(&Operation::Elementwise { kind, a, b, out })?;
        }
        Ok(out)
    }

    /// 1 where an element is greater than `threshold`, else 0.
    ///
    /// ```
    /// use syncscope::prelude::*;
    ///
    /// let stream = Device::open("cpu:0")?.stream()?;
    /// let x = stream.tensor(&[-1.0_f32, 1.0], [2])?;
    /// assert_eq!(x.gt(0.0)?.to_vec()?, [0, 1]);
    /// # Ok::<(), DeviceError>(())
    /// ```
    ///
    /// # Errors
    /// Those of [every call](crate::tensor#errors).
    #[track_caller]
    pub fn gt(&self, threshold: f32) -> Result<Tensor<u8>> {
        let out = self.stream.empty(self.shape.clone())?;
        if !out.is_empty() {
            self.stream.enqueue(&Operation::Greater { x: self.region(), out: out.region(), threshold })?;
        }
        Ok(out)
    }

    /// The sum of all elements, in fp32, as a scalar on the device.
    ///
    /// ```
    /// use syncscope::prelude::*;
    ///
    /// let stream = Device::open("cpu:0")?.stream()?;
    /// assert_eq!(stream.ones::<f32>([10])?.sum()?.item()?, 10.0);
    /// # Ok::<(), DeviceError>(())
    /// ```
    ///
    /// # Errors
    /// Those of [every call](crate::tensor#errors).
    #[track_caller]
    pub fn sum(&self) -> Result<Tensor<f32>> {
        let out = self.stream.empty([])?;
        self.stream.enqueue(&self.sum_into(&out))?;
        Ok(out)
    }

    /// The mean of all elements, in fp32, as a scalar on the device; NaN for an empty tensor.
    ///
    /// # Errors
    /// Those of [every call](crate::tensor#errors).
    #[track_caller]
    pub fn mean(&self) -> Result<Tensor<f32>> {
        let _scope = self.stream.scope("mean", Some(Location::caller()));
        let (sum, out) = (self.stream.empty([])?, self.stream.empty([])?);
        // As `multiply_scalar`.
        let (scale, shift) = (1.0 / self.len() as f32, -0.0);
        let scaled = Operation::Affine { x: sum.region(), out: out.region(), scale, shift };
        self.stream.enqueue_all(&[self.sum_into(&sum), scaled])?;
        Ok(out)
    }

    fn sum_into<'a>(&'a self, out: &'a Tensor<f32>) -> Operation<'a> {
        let (x, out) = (self.region(), out.region());
        if self.is_empty() { Operation::Fill { out, value: 0.0 } } else { Operation::Sum { x, out } }
    }

    /// The rows `rows` of this tensor, chosen by host-side numbers: they are checked here and copied to the device.
    /// Rows are parts along the first dimension.
    ///
    /// ```
    /// use syncscope::prelude::*;
    ///
    /// let stream = Device::open("cpu:0")?.stream()?;
    /// let x = stream.tensor(&[1.0_f32, 2.0, 3.0], [3, 1])?;
    /// assert_eq!(x.index_select(&[2, 0])?.to_vec()?, [3.0, 1.0]);
    /// # Ok::<(), syncscope::error::DeviceError>(())
    /// ```
    ///
    /// # Errors
    /// A row number outside of the tensor; a scalar; those of [every call](crate::tensor#errors).
    #[track_caller]
    pub fn index_select(&self, rows: &[usize]) -> Result<Self> {
        let _scope = self.stream.scope("index_select", Some(Location::caller()));
        let height = self.height("index_select")?;
        // First without a branch for each: a number outside, or what it leaves to the last row, has its highest bit set.
        let seen = rows.iter().fold(0, |seen, &row| seen | row | height.wrapping_sub(1).wrapping_sub(row));
        if seen > isize::MAX as usize
            && let Some(bad) = rows.iter().find(|&&row| row >= height)
        {
            return Err(invalid("index_select", format!("row {bad} is outside of {:?}", self.shape)));
        }
        // As they lie: each is below a height, so it is the same number as an `i64`.
        self.gather_rows(&self.stream.tensor::<i64>(bytemuck::must_cast_slice(rows), [rows.len()])?, true)
    }

    /// The rows `rows` of this tensor, chosen by numbers on the device. The host does not know them: a number outside
    /// of the tensor fails the stream, and the next call on it says so.
    ///
    /// # Errors
    /// `rows` is not one-dimensional; this tensor is a scalar; those of [every call](crate::tensor#errors).
    #[track_caller]
    pub fn gather(&self, rows: &Tensor<i64>) -> Result<Self> {
        self.gather_rows(rows, false)
    }

    #[track_caller]
    fn gather_rows(&self, rows: &Tensor<i64>, from_host: bool) -> Result<Self> {
        self.height("gather")?;
        rows.is_operand("gather", &self.stream)?;
        let &[count] = rows.shape() else {
            return Err(invalid("gather", format!("row numbers have the shape {:?}, not one dimension", rows.shape())));
        };
        let mut shape = self.shape.clone();
        shape[0] = count;
        let out = self.stream.empty(shape)?;
        if !out.is_empty() {
            let width = self.shape[1..].iter().product();
            self.stream.enqueue(&Operation::Gather {
                x: self.region(),
                rows: rows.region(),
                out: out.region(),
                width,
                from_host,
            })?;
        }
        Ok(out)
    }

    fn height(&self, operation: &'static str) -> Result<usize> {
        self.shape.first().copied().ok_or_else(|| invalid(operation, "a scalar has no rows".to_owned()))
    }

    /// Tensors of one shape, one behind the other along a new first dimension. Enqueued on the stream of the first.
    ///
    /// ```
    /// use syncscope::prelude::*;
    ///
    /// let stream = Device::open("cpu:0")?.stream()?;
    /// let x = stream.ones::<f32>([2])?;
    /// assert_eq!(Tensor::stack(&[x.clone(), x])?.shape(), [2, 2]);
    /// # Ok::<(), syncscope::error::DeviceError>(())
    /// ```
    ///
    /// # Errors
    /// No tensor; shapes that differ, or of so many dimensions that there is no room for one more; those of
    /// [every call](crate::tensor#errors).
    #[track_caller]
    pub fn stack(parts: &[Self]) -> Result<Self> {
        let first = parts.first().ok_or_else(|| invalid("stack", "there is no tensor to stack".to_owned()))?;
        let _scope = first.stream.scope("stack", Some(Location::caller()));
        parts.iter().try_for_each(|part| first.same_shape("stack", part))?;
        let shape: Vec<usize> = std::iter::once(parts.len()).chain(first.shape.iter().copied()).collect();
        let out: Self = first.stream.empty(shape)?;
        if !out.is_empty() {
            let place = |i| Region { memory: &out.memory, offset: i * first.len(), len: first.len() };
            let copies = parts.iter().enumerate().map(|(i, part)| Operation::Copy { x: part.region(), out: place(i) });
            let copies = collected(copies).map_err(|none| none.on(first.stream.device().name()))?;
            first.stream.enqueue_all(&copies)?;
        }
        Ok(out)
    }
}

impl<T: Element> Tensor<T> {
    /// Enqueues a copy of `source`'s elements into this tensor's, on this tensor's stream.
    ///
    /// # Errors
    /// The shapes differ; both share memory; those of [every call](crate::tensor#errors).
    #[track_caller]
    pub fn assign(&self, source: &Self) -> Result<()> {
        self.same_shape("assign", source)?;
        if Arc::ptr_eq(&self.memory, &source.memory) {
            return Err(invalid("assign", "source and target share memory".to_owned()));
        }
        if self.is_empty() {
            return Ok(());
        }
        self.stream.enqueue(&Operation::Copy { x: source.region(), out: self.region() })
    }

    fn same_shape(&self, operation: &'static str, other: &Self) -> Result<()> {
        other.is_operand(operation, &self.stream)?;
        if self.shape == other.shape {
            return Ok(());
        }
        Err(invalid(operation, format!("the shapes {:?} and {:?} differ", self.shape, other.shape)))
    }
}
