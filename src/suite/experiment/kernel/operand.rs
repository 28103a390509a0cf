//! The arguments of a kernel: what a suite states of them, and what they are on a device.

use half::{bf16, f16};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Amount;
use crate::device::{Argument, DType, Element, Float, Stream};
use crate::experiment::Result;
use crate::results::Parameters;
use crate::tensor::Tensor;

/// The most elements of a tensor: as [`Size`](crate::experiment::counts::Size).
const MAX_ELEMENTS: u64 = 1 << 36;

/// An argument as a suite states it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected a tensor, `{ tensor: elements, type: fp32 }`, or a number, `{ scalar: 2, type: fp32 }`"
)]
pub(super) enum Given {
    /// Memory on the device, of which the kernel gets the address.
    Tensor(GivenTensor),
    /// A number.
    Scalar(GivenScalar),
}

/// A tensor as a suite states it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GivenTensor {
    /// How many elements it has: one number, or the sides, whose product that is.
    tensor: super::Sides,
    /// Their type.
    #[serde(rename = "type", default = "fp32")]
    dtype: DType,
    /// What they are before the first launch.
    #[serde(default)]
    fill: Fill,
}

/// A number as a suite states it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GivenScalar {
    /// The number.
    scalar: Amount,
    /// Its type in the kernel.
    #[serde(rename = "type")]
    number: Number,
}

/// What a tensor holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a number, `random` or `index`")]
pub(super) enum Fill {
    /// The same number everywhere.
    Number(f64),
    /// By a name.
    By(Way),
}

/// A way to fill a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Way {
    /// Normal random numbers.
    Random,
    /// The place of each element, from 0.
    Index,
}

/// The type of a number.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Number {
    I32,
    U32,
    I64,
    U64,
    Fp16,
    Bf16,
    Fp32,
    Fp64,
}

fn fp32() -> DType {
    DType::F32
}

impl Default for Fill {
    fn default() -> Self {
        Fill::Number(0.0)
    }
}

impl Given {
    pub(super) fn is_tensor(&self) -> bool {
        matches!(self, Given::Tensor(_))
    }

    /// How many elements a tensor has, or the value of a number, where the axes have these values.
    pub(super) fn amount(&self, axes: &Parameters) -> Result<f64, String> {
        match self {
            Given::Tensor(tensor) => tensor.elements(axes),
            Given::Scalar(scalar) => scalar.number.holds(scalar.scalar.of(axes)?),
        }
    }

    /// The argument on a device, of such an amount.
    pub(super) fn made(&self, stream: &Stream, amount: f64) -> Result<Operand> {
        match self {
            Given::Tensor(tensor) => tensor.made(stream, amount as usize).map(Operand::Tensor),
            Given::Scalar(scalar) => Ok(Operand::Number(scalar.number.argument(amount))),
        }
    }
}

impl GivenTensor {
    fn elements(&self, axes: &Parameters) -> Result<f64, String> {
        if self.fill == Fill::By(Way::Random) && matches!(self.dtype, DType::I64 | DType::U8) {
            return Err(format!("a tensor of {} holds no normal random numbers", self.dtype.name()));
        }
        let elements =
            self.tensor.all().iter().try_fold(1.0, |all, side| Ok(all * side.whole(axes, MAX_ELEMENTS)? as f64));
        let elements: f64 = elements.map_err(|why: String| format!("tensor: {why}"))?;
        if elements <= MAX_ELEMENTS as f64 { Ok(elements) } else { Err(format!("{elements} elements are too many")) }
    }

    fn made(&self, stream: &Stream, elements: usize) -> Result<Box<dyn Filled>> {
        match self.dtype {
            DType::F16 => self.floats::<f16>(stream, elements),
            DType::BF16 => self.floats::<bf16>(stream, elements),
            DType::F32 => self.floats::<f32>(stream, elements),
            DType::I64 => self.numbers::<i64>(stream, elements),
            DType::U8 => self.numbers::<u8>(stream, elements),
        }
    }

    fn floats<T: Float + Value>(&self, stream: &Stream, elements: usize) -> Result<Box<dyn Filled>> {
        match self.fill {
            Fill::By(Way::Random) => Ok(Box::new(stream.normal::<T>([elements])?)),
            _ => self.numbers::<T>(stream, elements),
        }
    }

    fn numbers<T: Value>(&self, stream: &Stream, elements: usize) -> Result<Box<dyn Filled>> {
        let tensor = match self.fill {
            Fill::Number(value) => stream.full::<T>([elements], value)?,
            Fill::By(_) => {
                let places: Vec<T> = (0..elements).map(|place| T::of(place as f64)).collect();
                stream.tensor(&places, [elements])?
            }
        };
        Ok(Box::new(tensor))
    }
}

impl Number {
    /// The value, where it is one of the type.
    fn holds(self, value: f64) -> Result<f64, String> {
        let (least, most) = match self {
            Number::I32 => (i32::MIN.into(), i32::MAX.into()),
            Number::U32 => (0.0, u32::MAX.into()),
            Number::I64 => (i64::MIN as f64, i64::MAX as f64),
            Number::U64 => (0.0, u64::MAX as f64),
            Number::Fp16 | Number::Bf16 | Number::Fp32 | Number::Fp64 => return Ok(value),
        };
        let is_whole = value.fract() == 0.0 && (least..=most).contains(&value);
        if is_whole { Ok(value) } else { Err(format!("{value} is no whole number from {least} to {most}")) }
    }

    fn argument(self, value: f64) -> Argument<'static> {
        match self {
            Number::I32 => (value as i32).into(),
            Number::U32 => (value as u32).into(),
            Number::I64 => (value as i64).into(),
            Number::U64 => (value as u64).into(),
            Number::Fp16 => f16::from_f64(value).into(),
            Number::Bf16 => bf16::from_f64(value).into(),
            Number::Fp32 => (value as f32).into(),
            Number::Fp64 => value.into(),
        }
    }
}

/// An argument on a device.
pub(super) enum Operand {
    Tensor(Box<dyn Filled>),
    Number(Argument<'static>),
}

impl Operand {
    pub(super) fn argument(&self) -> Argument<'_> {
        match self {
            Operand::Tensor(tensor) => tensor.argument(),
            Operand::Number(number) => *number,
        }
    }

    /// The same in other memory.
    pub(super) fn copied(&self) -> Result<Self> {
        match self {
            Operand::Tensor(tensor) => tensor.copied().map(Operand::Tensor),
            Operand::Number(number) => Ok(Operand::Number(*number)),
        }
    }

    /// The elements; none of a number.
    pub(super) fn values(&self) -> Result<Vec<f64>> {
        match self {
            Operand::Tensor(tensor) => tensor.values(),
            Operand::Number(_) => Ok(Vec::new()),
        }
    }
}

/// A tensor of any type.
pub(super) trait Filled {
    fn argument(&self) -> Argument<'_>;
    fn copied(&self) -> Result<Box<dyn Filled>>;
    fn values(&self) -> Result<Vec<f64>>;
}

impl<T: Value> Filled for Tensor<T> {
    fn argument(&self) -> Argument<'_> {
        self.into()
    }

    fn copied(&self) -> Result<Box<dyn Filled>> {
        let copy = self.stream().empty::<T>(self.shape())?;
        copy.assign(self)?;
        Ok(Box::new(copy))
    }

    fn values(&self) -> Result<Vec<f64>> {
        Ok(self.to_vec()?.into_iter().map(Value::number).collect())
    }
}

/// An element, from and to a number.
trait Value: Element {
    fn of(number: f64) -> Self;
    fn number(self) -> f64;
}

macro_rules! values {
    ($($type:ty: $of:expr, $number:expr;)+) => {
        $(impl Value for $type {
            fn of(number: f64) -> Self {
                $of(number)
            }

            fn number(self) -> f64 {
                $number(self)
            }
        })+
    };
}
values! {
    f16: f16::from_f64, f64::from;
    bf16: bf16::from_f64, f64::from;
    f32: |number| number as f32, f64::from;
    i64: |number| number as i64, |value| value as f64;
    u8: |number| number as u64 as u8, f64::from;
}
