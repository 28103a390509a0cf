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

use std::num::NonZeroUsize;
use std::ops::Deref;

use schemars::JsonSchema;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

/// More than 0, and `MAX` at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "NonZeroUsize")]
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

impl<const MAX: usize> TryFrom<NonZeroUsize> for UpTo<MAX> {
    type Error = String;

    fn try_from(count: NonZeroUsize) -> Result<Self, String> {
        match count.get() > MAX {
            true => Err(format!("{count} is more than {MAX}, the most that a machine is asked for")),
            false => Ok(Self(count)),
        }
    }
}

impl<const MAX: usize> Deref for UpTo<MAX> {
    type Target = NonZeroUsize;

    fn deref(&self) -> &NonZeroUsize {
        &self.0
    }
}

/// A number that is at most `MAX`, and more than 0 or, where it may be `ZERO`, not less.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct Bounded<const ZERO: bool, const MAX: u32>(pub f64);

/// How many times as much.
pub type Factor = Bounded<false, 1000>;
/// A length of time in seconds; 0 is none.
pub type Length = Bounded<true, 60>;

impl<'de, const ZERO: bool, const MAX: u32> Deserialize<'de> for Bounded<ZERO, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = f64::deserialize(deserializer)?;
        let least = if ZERO { "at least" } else { "more than" };
        match value <= f64::from(MAX) && (value > 0.0 || ZERO && value == 0.0) {
            true => Ok(Self(value)),
            false => Err(D::Error::custom(format!("expected {least} 0 and at most {MAX}, and found {value}"))),
        }
    }
}
