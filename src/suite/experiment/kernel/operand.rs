//! The arguments of a kernel: what a suite states of them, and what they are on a device.

use half::{bf16, f16};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Number;

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
    number: NumberType,
}

/// What a tensor holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a number, `random` or `index`")]
pub(super) enum Fill {
    /// The same number everywhere.
    Number(Number),
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
pub(super) enum NumberType {
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
        Fill::Number(0.into())
    }
}

impl Given {
    /// The type of a tensor's elements.
    pub(super) fn elements_type(&self) -> Option<DType> {
        match self {
            Given::Tensor(tensor) => Some(tensor.dtype),
            Given::Scalar(_) => None,
        }
    }

    /// How many elements a tensor has, or the bits of a number in its type, where the axes have these values.
    pub(super) fn amount(&self, axes: &Parameters) -> Result<u64, String> {
        match self {
            Given::Tensor(tensor) => tensor.elements(axes),
            Given::Scalar(scalar) => scalar.number.bits(scalar.scalar.exact(axes)?),
        }
    }

    /// The argument on a device, of such an amount.
    pub(super) fn made(&self, stream: &Stream, amount: u64) -> Result<Operand> {
        match self {
            Given::Tensor(tensor) => tensor.made(stream, amount as usize).map(Operand::Tensor),
            Given::Scalar(scalar) => Ok(Operand::Number(scalar.number.argument(amount))),
        }
    }
}

impl GivenTensor {
    fn elements(&self, axes: &Parameters) -> Result<u64, String> {
        if self.fill == Fill::By(Way::Random) && matches!(self.dtype, DType::I64 | DType::U8) {
            return Err(format!("a tensor of {} holds no normal random numbers", self.dtype.name()));
        }
        let sides = self.tensor.all().iter();
        let elements =
            sides.map(|side| side.whole(axes, 0..=MAX_ELEMENTS)).try_fold(1.0, |all, side| Ok(all * side? as f64));
        let elements: f64 = elements.map_err(|why: String| format!("tensor: {why}"))?;
        if elements > MAX_ELEMENTS as f64 {
            return Err(format!("{elements} elements are too many"));
        }
        let largest = match &self.fill {
            Fill::Number(number) => Exact::of(number),
            Fill::By(Way::Index) => Exact::of_computed((elements - 1.0).max(0.0)),
            Fill::By(Way::Random) => Exact::of_computed(0.0),
        };
        match largest.held(self.dtype).map_err(|why| format!("fill: {why}"))? {
            Found::Whole(value) if i128::from(value) != value as f64 as i128 => {
                Err(format!("fill: {value} is beyond what a tensor is filled with exactly, 2 to the power of 53"))
            }
            _ => Ok(elements as u64),
        }
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
        let tensor = match &self.fill {
            Fill::Number(value) => stream.full::<T>([elements], Exact::of(value).number())?,
            Fill::By(_) => {
                let places: Vec<T> = (0..elements).map(|place| T::of(place as f64)).collect();
                stream.tensor(&places, [elements])?
            }
        };
        Ok(Box::new(tensor))
    }
}

impl NumberType {
    /// The bits of a value of the type.
    fn bits(self, value: Exact) -> Result<u64, String> {
        let whole = |least: i128, most: i128| value.whole(least, most);
        Ok(match self {
            NumberType::I32 => whole(i32::MIN.into(), i32::MAX.into())? as u64,
            NumberType::U32 => whole(0, u32::MAX.into())? as u64,
            NumberType::I64 => whole(i64::MIN.into(), i64::MAX.into())? as u64,
            NumberType::U64 => whole(0, u64::MAX.into())? as u64,
            NumberType::Fp16 => {
                f16::from_f64(value.float("fp16", |value| f16::from_f64(value).into())?).to_bits().into()
            }
            NumberType::Bf16 => {
                bf16::from_f64(value.float("bf16", |value| bf16::from_f64(value).into())?).to_bits().into()
            }
            NumberType::Fp32 => (value.float("fp32", |value| (value as f32).into())? as f32).to_bits().into(),
            NumberType::Fp64 => value.number().to_bits(),
        })
    }

    fn argument(self, bits: u64) -> Argument<'static> {
        match self {
            NumberType::I32 | NumberType::U32 => (bits as u32).into(),
            NumberType::I64 | NumberType::U64 => bits.into(),
            NumberType::Fp16 => f16::from_bits(bits as u16).into(),
            NumberType::Bf16 => bf16::from_bits(bits as u16).into(),
            NumberType::Fp32 => f32::from_bits(bits as u32).into(),
            NumberType::Fp64 => f64::from_bits(bits).into(),
        }
    }
}

/// A number as a suite states it, before it is one of a type.
#[derive(Clone, Copy, Debug)]
pub(super) enum Exact {
    Whole(i128),
    Float(f64),
}

/// Below it each whole number is one of floating point; it is also what the next one is rounded to.
const EXACT: f64 = (1_u64 << 53) as f64;

impl Exact {
    pub(super) fn of(number: &Number) -> Self {
        let computed = || Self::of_computed(number.as_f64().unwrap_or(f64::NAN));
        number.as_i128().map_or_else(computed, Exact::Whole)
    }

    /// One of floating point, which is whole where nothing was lost on the way.
    pub(super) fn of_computed(number: f64) -> Self {
        let is_whole = number.fract() == 0.0 && number.abs() < EXACT;
        if is_whole { Exact::Whole(number as i128) } else { Exact::Float(number) }
    }

    fn number(self) -> f64 {
        match self {
            Exact::Whole(number) => number as f64,
            Exact::Float(number) => number,
        }
    }

    fn whole(self, least: i128, most: i128) -> Result<i128, String> {
        match self {
            Exact::Whole(number) if (least..=most).contains(&number) => Ok(number),
            Exact::Whole(number) => Err(format!("{number} is no whole number from {least} to {most}")),
            Exact::Float(number) if number.fract() == 0.0 => Err(format!(
                "{number} may have been rounded: write a whole number from 2 to the power of 53 on out, with no formula"
            )),
            Exact::Float(number) => Err(format!("{number} is no whole number from {least} to {most}")),
        }
    }

    /// The value, where the nearest one of a type is neither infinite nor 0 in its place.
    fn float(self, name: &str, nearest: fn(f64) -> f64) -> Result<f64, String> {
        let (number, held) = (self.number(), nearest(self.number()));
        let is_held = held.is_finite() && (held != 0.0 || number == 0.0);
        if is_held { Ok(number) } else { Err(format!("{number} is none of {name}: it would be {held}")) }
    }

    /// It as an element.
    pub(super) fn held(self, dtype: DType) -> Result<Found, String> {
        let float =
            |nearest: fn(f64) -> f64| self.float(dtype.name(), nearest).map(|number| Found::Float(nearest(number)));
        match dtype {
            DType::F16 => float(|value| f16::from_f64(value).into()),
            DType::BF16 => float(|value| bf16::from_f64(value).into()),
            DType::F32 => float(|value| (value as f32).into()),
            DType::I64 => Ok(Found::Whole(self.whole(i64::MIN.into(), i64::MAX.into())? as i64)),
            DType::U8 => Ok(Found::Whole(self.whole(0, u8::MAX.into())? as i64)),
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
    pub(super) fn values(&self) -> Result<Vec<Found>> {
        match self {
            Operand::Tensor(tensor) => tensor.values(),
            Operand::Number(_) => Ok(Vec::new()),
        }
    }
}

/// An element that a launch left.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Found {
    /// Exactly: not every one is a floating-point number.
    Whole(i64),
    Float(f64),
}

impl Found {
    fn number(self) -> f64 {
        match self {
            Found::Whole(value) => value as f64,
            Found::Float(value) => value,
        }
    }

    /// Why it is not what was wanted, if it is not.
    pub(super) fn differs(self, wanted: Self, tolerance: f64) -> Option<String> {
        let (own, other) = (self.number(), wanted.number());
        if own.is_nan() && other.is_nan() {
            return Some(
                "no number (NaN) after a launch, as in the reference: nothing can be checked by it".to_owned(),
            );
        }
        let distance = match (self, wanted) {
            (Found::Whole(own), Found::Whole(other)) => own.abs_diff(other) as f64,
            // Infinity is within no distance, and at none from itself.
            _ if own == other => 0.0,
            _ => (own - other).abs(),
        };
        let is_near = distance == 0.0 || other.is_finite() && distance <= tolerance * other.abs().max(1.0);
        (!is_near).then(|| format!("{self} after a launch, not {wanted}"))
    }
}

impl std::fmt::Display for Found {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Found::Whole(value) => write!(f, "{value}"),
            Found::Float(value) => write!(f, "{value}"),
        }
    }
}

/// A tensor of any type.
pub(super) trait Filled {
    fn argument(&self) -> Argument<'_>;
    fn copied(&self) -> Result<Box<dyn Filled>>;
    fn values(&self) -> Result<Vec<Found>>;
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

    fn values(&self) -> Result<Vec<Found>> {
        Ok(self.to_vec()?.into_iter().map(Value::found).collect())
    }
}

/// An element, from a number and as it is found.
trait Value: Element {
    fn of(number: f64) -> Self;
    fn found(self) -> Found;
}

macro_rules! values {
    ($($type:ty: $of:expr, $found:expr;)+) => {
        $(impl Value for $type {
            fn of(number: f64) -> Self {
                $of(number)
            }

            fn found(self) -> Found {
                $found(self)
            }
        })+
    };
}
values! {
    f16: f16::from_f64, |value: f16| Found::Float(value.into());
    bf16: bf16::from_f64, |value: bf16| Found::Float(value.into());
    f32: |number| number as f32, |value: f32| Found::Float(value.into());
    i64: |number| number as i64, Found::Whole;
    u8: |number| number as u8, |value: u8| Found::Whole(value.into());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_finite_is_the_same_as_itself_alone_and_nothing_is_checked_by_nan() {
        let differs = |found, wanted| Found::Float(found).differs(Found::Float(wanted), 0.5).is_some();
        assert!(differs(1.0, f64::INFINITY) && differs(f64::INFINITY, 1.0) && differs(-f64::INFINITY, f64::INFINITY));
        assert!(differs(f64::NAN, 1.0) && differs(1.0, f64::NAN) && differs(f64::NAN, f64::NAN));
        assert!(!differs(f64::INFINITY, f64::INFINITY) && !differs(1.4, 1.0) && differs(1.6, 1.0));
        let said = Found::Float(f64::NAN).differs(Found::Float(f64::NAN), 0.5);
        assert!(said.is_some_and(|said| said.contains("nothing can be checked")));
    }

    #[test]
    fn integers_are_compared_exactly() {
        let two_to_53 = 1 << 53;
        assert!(Found::Whole(two_to_53 + 1).differs(Found::Whole(two_to_53), 0.0).is_some());
        assert!(Found::Whole(two_to_53 + 1).differs(Found::Whole(two_to_53 + 1), 0.0).is_none());
        assert!(Found::Whole(2).differs(Found::Float(2.0), 0.0).is_none());
    }
}
