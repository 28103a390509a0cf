//! A tensor of any type, and its elements as integers: all values of a program are integers that its types hold exactly.

use half::{bf16, f16};
use syncscope::device::{DType, Stream};
use syncscope::error::DeviceError;
use syncscope::tensor::Tensor;

use crate::Outcome;

/// A tensor of any type.
#[derive(Clone)]
pub(crate) enum Held {
    F16(Tensor<f16>),
    BF16(Tensor<bf16>),
    F32(Tensor<f32>),
    I64(Tensor<i64>),
    U8(Tensor<u8>),
}

/// Evaluates `$body` for the tensor in `$held`, of whichever type.
macro_rules! of_any {
    ($held:expr, $x:ident => $body:expr) => {
        match $held {
            Held::F16($x) => $body,
            Held::BF16($x) => $body,
            Held::F32($x) => $body,
            Held::I64($x) => $body,
            Held::U8($x) => $body,
        }
    };
}

/// As `of_any`, with the result held again; an error for types that are not real.
macro_rules! of_real {
    ($held:expr, $x:ident => $body:expr) => {
        match $held {
            Held::F16($x) => Held::F16($body),
            Held::BF16($x) => Held::BF16($body),
            Held::F32($x) => Held::F32($body),
            Held::I64(_) | Held::U8(_) => return Err("a real type is needed".to_owned()),
        }
    };
}

/// As `of_real`, for two tensors of one type.
macro_rules! of_two {
    ($one:expr, $other:expr, $x:ident, $y:ident => $body:expr) => {
        match ($one, $other) {
            (Held::F16($x), Held::F16($y)) => Held::F16($body),
            (Held::BF16($x), Held::BF16($y)) => Held::BF16($body),
            (Held::F32($x), Held::F32($y)) => Held::F32($body),
            _ => return Err("two tensors of one real type are needed".to_owned()),
        }
    };
}

pub(crate) use {of_any, of_real, of_two};

/// An element as an integer.
pub(crate) trait Integer {
    /// The integer that it is; `None` for a fraction, an infinity and NaN.
    fn integer(self) -> Option<i64>;
}

impl Integer for f32 {
    fn integer(self) -> Option<i64> {
        (self.fract() == 0.0).then_some(self as i64)
    }
}

impl Integer for f16 {
    fn integer(self) -> Option<i64> {
        self.to_f32().integer()
    }
}

impl Integer for bf16 {
    fn integer(self) -> Option<i64> {
        self.to_f32().integer()
    }
}

impl Integer for i64 {
    fn integer(self) -> Option<i64> {
        Some(self)
    }
}

impl Integer for u8 {
    fn integer(self) -> Option<i64> {
        Some(self.into())
    }
}

impl Held {
    /// A tensor of host values.
    pub(crate) fn upload(stream: &Stream, dtype: DType, values: &[i64]) -> Result<Self, DeviceError> {
        let shape = [values.len()];
        let real = || values.iter().map(|&x| x as f32);
        Ok(match dtype {
            DType::F16 => Held::F16(stream.tensor(&real().map(f16::from_f32).collect::<Vec<_>>(), shape)?),
            DType::BF16 => Held::BF16(stream.tensor(&real().map(bf16::from_f32).collect::<Vec<_>>(), shape)?),
            DType::F32 => Held::F32(stream.tensor(&real().collect::<Vec<_>>(), shape)?),
            DType::I64 => Held::I64(stream.tensor(values, shape)?),
            DType::U8 => Held::U8(stream.tensor(&values.iter().map(|&x| x as u8).collect::<Vec<_>>(), shape)?),
        })
    }

    /// A tensor of one value.
    pub(crate) fn full(stream: &Stream, dtype: DType, len: usize, value: i64) -> Result<Self, DeviceError> {
        let value = value as f64;
        Ok(match dtype {
            DType::F16 => Held::F16(stream.full([len], value)?),
            DType::BF16 => Held::BF16(stream.full([len], value)?),
            DType::F32 => Held::F32(stream.full([len], value)?),
            DType::I64 => Held::I64(stream.full([len], value)?),
            DType::U8 => Held::U8(stream.full([len], value)?),
        })
    }

    /// The same memory, used from `stream`.
    pub(crate) fn on(&self, stream: &Stream) -> Result<Self, DeviceError> {
        Ok(match self {
            Held::F16(x) => Held::F16(x.on(stream)?),
            Held::BF16(x) => Held::BF16(x.on(stream)?),
            Held::F32(x) => Held::F32(x.on(stream)?),
            Held::I64(x) => Held::I64(x.on(stream)?),
            Held::U8(x) => Held::U8(x.on(stream)?),
        })
    }

    /// Row `row` of the elements in rows of `width`.
    pub(crate) fn row(&self, width: usize, row: usize) -> Result<Self, DeviceError> {
        Ok(match self {
            Held::F16(x) => Held::F16(x.reshape([x.len() / width, width])?.get([row])?),
            Held::BF16(x) => Held::BF16(x.reshape([x.len() / width, width])?.get([row])?),
            Held::F32(x) => Held::F32(x.reshape([x.len() / width, width])?.get([row])?),
            Held::I64(x) => Held::I64(x.reshape([x.len() / width, width])?.get([row])?),
            Held::U8(x) => Held::U8(x.reshape([x.len() / width, width])?.get([row])?),
        })
    }

    /// The elements; waits for the stream.
    pub(crate) fn read(&self) -> Outcome<Vec<Option<i64>>> {
        of_any!(self, x => Ok(integers(&x.to_vec().map_err(|error| error.to_string())?)))
    }
}

/// Elements as integers.
pub(crate) fn integers<T: Integer + Copy>(elements: &[T]) -> Vec<Option<i64>> {
    elements.iter().map(|x| x.integer()).collect()
}

/// An error that shows the first element that differs.
pub(crate) fn compare(got: &[Option<i64>], expected: &[i64]) -> Outcome<()> {
    if got.len() != expected.len() {
        return Err(format!("{} elements instead of {}", got.len(), expected.len()));
    }
    let differs = |(got, expected): (&Option<i64>, &i64)| *got != Some(*expected);
    match got.iter().zip(expected).position(differs) {
        None => Ok(()),
        Some(at) => {
            let count = got.iter().zip(expected).filter(|pair| differs(*pair)).count();
            let value = got[at].map_or("no integer".to_owned(), |value| value.to_string());
            Err(format!("element {at} is {value} instead of {}; {count} of {} differ", expected[at], got.len()))
        }
    }
}
