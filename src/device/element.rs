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
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "report", derive(schemars::JsonSchema))]
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
        }
    )+};
}

half_floats!(f16, bf16);

/// A floating-point element type, as a value: what a suite may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "report", derive(schemars::JsonSchema))]
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

/// Evaluates an expression with a Rust type in the place of a [`FloatType`]: `with_float!(dtype, T => f::<T>())`.
#[cfg(feature = "report")]
macro_rules! with_float {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            $crate::device::FloatType::F16 => {
                type $T = ::half::f16;
                $body
            }
            $crate::device::FloatType::BF16 => {
                type $T = ::half::bf16;
                $body
            }
            $crate::device::FloatType::F32 => {
                type $T = f32;
                $body
            }
        }
    };
}
#[cfg(feature = "report")]
pub(crate) use with_float;
