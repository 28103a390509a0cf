//! The types that tensors and host buffers hold.

use std::fmt::{Debug, Display};

use bytemuck::Pod;
use half::{bf16, f16};

/// The type of an element, as a value.
///
/// ```
/// use syncscope::device::DType;
///
/// assert_eq!((DType::F16.size(), DType::F16.name()), (2, "fp16"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum DType {
    /// IEEE half precision.
    #[cfg_attr(feature = "serde", serde(rename = "fp16"))]
    F16,
    /// bfloat16: the upper half of an fp32.
    #[cfg_attr(feature = "serde", serde(rename = "bf16"))]
    BF16,
    /// IEEE single precision.
    #[cfg_attr(feature = "serde", serde(rename = "fp32"))]
    F32,
    /// 64-bit signed integer: positions and counts.
    I64,
    /// One byte: truth values.
    U8,
}

impl DType {
    /// The size of an element in bytes.
    pub fn size(self) -> usize {
        match self {
            DType::F16 | DType::BF16 => 2,
            DType::F32 => 4,
            DType::I64 => 8,
            DType::U8 => 1,
        }
    }

    /// The name, as in suites and results: `fp16`.
    pub fn name(self) -> &'static str {
        match self {
            DType::F16 => "fp16",
            DType::BF16 => "bf16",
            DType::F32 => "fp32",
            DType::I64 => "i64",
            DType::U8 => "u8",
        }
    }
}

impl Display for DType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// A type that tensors and host buffers can hold: [`f16`](struct@f16), [`bf16`], `f32`, `i64` or `u8`.
///
/// The trait is sealed: engines know these types and no others.
pub trait Element: Pod + Debug + Display + PartialEq + Send + Sync + sealed::Sealed {
    /// The type as a value.
    const DTYPE: DType;
}

/// A floating-point element: [`f16`](struct@f16), [`bf16`] or `f32`.
pub trait Float: Element {
    /// The distance from 1 to the next larger number: 2⁻¹⁰, 2⁻⁷, 2⁻²³.
    const EPSILON: f32;

    /// The value, exactly.
    fn to_f32(self) -> f32;

    /// The nearest value, ties to even.
    fn from_f32(value: f32) -> Self;

    /// The nearest value, ties to even: rounded once, where a way over the nearest fp32 can round to a tie and from there to the
    /// wrong side.
    ///
    /// ```
    /// use half::f16;
    /// use syncscope::device::Float;
    ///
    /// // A little more than half way from 1 to the next number, by less than an fp32 tells.
    /// let value = 1.0 + 0.5 * f64::from(f16::EPSILON) + 1e-12;
    /// assert_eq!(f16::nearest(value), f16::from_f32(1.0) + f16::EPSILON);
    /// assert_eq!(f16::from_f32(value as f32), f16::from_f32(1.0));
    /// ```
    fn nearest(value: f64) -> Self;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! elements {
    ($($type:ty => $dtype:ident),+ $(,)?) => {$(
        impl sealed::Sealed for $type {}
        impl Element for $type {
            const DTYPE: DType = DType::$dtype;
        }
    )+};
}

elements!(f16 => F16, bf16 => BF16, f32 => F32, i64 => I64, u8 => U8);

impl Float for f32 {
    const EPSILON: f32 = f32::EPSILON;

    fn to_f32(self) -> f32 {
        self
    }

    fn from_f32(value: f32) -> Self {
        value
    }

    fn nearest(value: f64) -> Self {
        value as f32
    }
}

/// `value` where an fp32 says it, else that of its two neighbours whose last bit is 1. A type of at least two bits less rounds
/// that as it would round `value` itself (S. Boldo and G. Melquiond, *Emulation of FMA and correctly rounded sums: proved
/// algorithms using rounding to odd*, IEEE Trans. Computers 57(4), 2008).
fn to_odd(value: f64) -> f32 {
    let near = value as f32;
    if f64::from(near) == value || value.is_nan() {
        return near;
    }
    let toward_zero = near.to_bits() - u32::from(f64::from(near.abs()) > value.abs());
    f32::from_bits(toward_zero | 1)
}

macro_rules! half_floats {
    ($($type:ty),+) => {$(
        impl Float for $type {
            const EPSILON: f32 = <$type>::EPSILON.to_f32_const();

            fn to_f32(self) -> f32 {
                <$type>::to_f32(self)
            }

            fn from_f32(value: f32) -> Self {
                <$type>::from_f32(value)
            }

            fn nearest(value: f64) -> Self {
                <$type>::from_f32(to_odd(value))
            }
        }
    )+};
}

half_floats!(f16, bf16);

/// A floating-point element type, as a value: what a suite may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum FloatType {
    /// IEEE half precision.
    #[cfg_attr(feature = "serde", serde(rename = "fp16"))]
    F16,
    /// bfloat16.
    #[cfg_attr(feature = "serde", serde(rename = "bf16"))]
    BF16,
    /// IEEE single precision.
    #[cfg_attr(feature = "serde", serde(rename = "fp32"))]
    F32,
}

impl FloatType {
    /// All of them, in the documents' order.
    pub const ALL: [Self; 3] = [FloatType::F16, FloatType::BF16, FloatType::F32];

    /// The name, as in suites and results: `fp16`.
    pub fn name(self) -> &'static str {
        DType::from(self).name()
    }
}

impl From<FloatType> for DType {
    fn from(dtype: FloatType) -> Self {
        match dtype {
            FloatType::F16 => DType::F16,
            FloatType::BF16 => DType::BF16,
            FloatType::F32 => DType::F32,
        }
    }
}

impl std::str::FromStr for FloatType {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|dtype| dtype.name() == text);
        found.ok_or_else(|| format!("expected one of fp16, bf16, fp32 and found `{text}`"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What lies half way between two neighbours goes to the even one, and what lies beside that to the nearer one: the half way of
    /// two numbers of so few bits is an fp64, and so are its neighbours. Infinity stands where the next number would.
    fn rounds_once<T: Float>(from_bits: impl Fn(u16) -> T, infinity: u16) {
        let value = |bits| f64::from(from_bits(bits).to_f32());
        let last = value(infinity - 1);
        let end = last + (last - value(infinity - 2));
        for bits in 0..infinity {
            let (low, high) = (from_bits(bits), from_bits(bits + 1));
            let half = (value(bits) + value(bits + 1).min(end)) / 2.0;
            let even = if bits % 2 == 0 { low } else { high };
            let cases = [(value(bits), low), (half.next_down(), low), (half, even), (half.next_up(), high)];
            for (value, nearest) in cases {
                assert_eq!(T::nearest(value), nearest, "{value:e}");
                assert_eq!(T::nearest(-value).to_f32(), -nearest.to_f32(), "-{value:e}");
            }
        }
        assert!(T::nearest(f64::NAN).to_f32().is_nan());
        for (value, nearest) in [(-0.0, -0.0), (f64::MAX, f32::INFINITY), (5e-324, 0.0), (-5e-324, -0.0)] {
            assert_eq!(T::nearest(value).to_f32().to_bits(), f32::to_bits(nearest), "{value:e}");
        }
    }

    #[test]
    fn an_fp64_is_rounded_once_to_a_half_float() {
        rounds_once(f16::from_bits, f16::INFINITY.to_bits());
        rounds_once(bf16::from_bits, bf16::INFINITY.to_bits());
    }
}
