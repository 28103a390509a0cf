//! Counts that a suite states, read up to what a machine can do.
//!
//! A loop of 10¹⁹ steps does not end, and a matrix of as many rows has a size that no number holds. The type of a
//! parameter is its bound, so that a suite is refused with the place of the count:
//!
//! ```
//! use syncscope_suite::experiment::counts::Count;
//!
//! #[derive(Debug, serde::Deserialize)]
//! struct Loops {
//!     iters: Count,
//! }
//! let read = serde_json::from_str::<Loops>;
//! assert_eq!(read(r#"{"iters": 20}"#)?.iters.get(), 20);
//! assert!(read(r#"{"iters": 0}"#).is_err() && read(r#"{"iters": 2000000}"#).is_err());
//! # Ok::<(), serde_json::Error>(())
//! ```

use std::borrow::Cow;
use std::num::NonZeroUsize;
use std::ops::{Deref, DerefMut};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

/// More than 0, and `MAX` at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct UpTo<const MAX: usize>(NonZeroUsize);

/// Iterations of a loop, or the side of a matrix.
pub type Count = UpTo<1_000_000>;
/// Elements of a tensor, or bytes: of elements of eight bytes, the memory of the largest device that there is.
pub type Size = UpTo<{ 1 << 36 }>;

/// A count that is known not to be 0 and to be within its bound.
pub const fn count<const MAX: usize>(value: usize) -> UpTo<MAX> {
    match NonZeroUsize::new(value) {
        Some(value) => UpTo(value),
        None => UpTo(NonZeroUsize::MIN),
    }
}

impl<'de, const MAX: usize> Deserialize<'de> for UpTo<MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let count = NonZeroUsize::deserialize(deserializer)?;
        match count.get() > MAX {
            true => Err(D::Error::custom(format!("{count} is more than {MAX}, the most that a machine is asked for"))),
            false => Ok(Self(count)),
        }
    }
}

impl<const MAX: usize> JsonSchema for UpTo<MAX> {
    fn schema_name() -> Cow<'static, str> {
        NonZeroUsize::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        NonZeroUsize::json_schema(generator)
    }

    fn inline_schema() -> bool {
        true
    }
}

impl<const MAX: usize> Deref for UpTo<MAX> {
    type Target = NonZeroUsize;

    fn deref(&self) -> &NonZeroUsize {
        &self.0
    }
}

impl<const MAX: usize> DerefMut for UpTo<MAX> {
    fn deref_mut(&mut self) -> &mut NonZeroUsize {
        &mut self.0
    }
}

/// Factors.
///
/// # Errors
/// One is not more than 0 and at most a thousand.
pub fn positives<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<f64>, D::Error> {
    let factors: Vec<f64> = Vec::deserialize(deserializer)?;
    match factors.iter().find(|factor| !(**factor > 0.0 && **factor <= 1000.0)) {
        Some(wrong) => {
            Err(D::Error::custom(format!("expected factors, more than 0 and at most 1000, and found {wrong}")))
        }
        None => Ok(factors),
    }
}

/// Lengths of time in seconds; 0 is none.
///
/// # Errors
/// One is less than 0 or more than a minute.
pub fn lengths<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<f64>, D::Error> {
    let lengths: Vec<f64> = Vec::deserialize(deserializer)?;
    match lengths.iter().find(|length| !(**length >= 0.0 && **length <= 60.0)) {
        Some(wrong) => Err(D::Error::custom(format!("expected seconds, at least 0 and at most 60, and found {wrong}"))),
        None => Ok(lengths),
    }
}
