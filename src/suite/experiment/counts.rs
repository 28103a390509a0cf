//! Counts that a suite states, read up to what a machine can do.
//!
//! A loop of 10¹⁹ steps does not end, and a matrix of as many rows has a size that no number holds. A parameter names its
//! bound where it is declared, so that a suite is refused with the place of the count:
//!
//! ```
//! use std::num::NonZeroUsize;
//! use syncscope_suite::experiment::counts;
//!
//! #[derive(Debug, serde::Deserialize)]
//! struct Loops {
//!     #[serde(deserialize_with = "counts::million")]
//!     iters: NonZeroUsize,
//! }
//! let read = serde_json::from_str::<Loops>;
//! assert_eq!(read(r#"{"iters": 20}"#)?.iters.get(), 20);
//! assert!(read(r#"{"iters": 0}"#).is_err() && read(r#"{"iters": 2000000}"#).is_err());
//! # Ok::<(), serde_json::Error>(())
//! ```

use std::num::NonZeroUsize;

use serde::de::Error;
use serde::{Deserialize, Deserializer};

const MILLION: usize = 1_000_000;
/// Of elements of eight bytes, the memory of the largest device that there is.
const LARGEST: usize = 1 << 36;

/// Iterations of a loop, or the side of a matrix.
///
/// # Errors
/// It is 0 or more than a million.
pub fn million<'de, D: Deserializer<'de>>(deserializer: D) -> Result<NonZeroUsize, D::Error> {
    bounded(NonZeroUsize::deserialize(deserializer)?, MILLION)
}

/// Several of them.
///
/// # Errors
/// As [`million`].
pub fn millions<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<NonZeroUsize>, D::Error> {
    all(deserializer, MILLION)
}

/// Elements of a tensor, or bytes.
///
/// # Errors
/// It is 0 or more than a device has memory for.
pub fn size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<NonZeroUsize, D::Error> {
    bounded(NonZeroUsize::deserialize(deserializer)?, LARGEST)
}

/// Several of them.
///
/// # Errors
/// As [`size`].
pub fn sizes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<NonZeroUsize>, D::Error> {
    all(deserializer, LARGEST)
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

fn all<'de, D: Deserializer<'de>>(deserializer: D, most: usize) -> Result<Vec<NonZeroUsize>, D::Error> {
    Vec::deserialize(deserializer)?.into_iter().map(|count| bounded(count, most)).collect()
}

fn bounded<E: Error>(count: NonZeroUsize, most: usize) -> Result<NonZeroUsize, E> {
    match count.get() > most {
        true => Err(E::custom(format!("{count} is more than {most}, the most that a machine is asked for"))),
        false => Ok(count),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use crate::experiment::Registry;
    use crate::runner::Suite;

    #[test]
    fn every_count_of_every_experiment_has_a_bound_and_the_refusal_its_place() {
        let registry = Registry::builtin();
        let schema = serde_json::to_value(Suite::schema(&registry)).unwrap();
        let mut bounded = 0;
        for entry in schema["properties"]["experiments"]["items"]["oneOf"].as_array().unwrap() {
            let (experiment, parameters) = entry["properties"].as_object().unwrap().iter().next().unwrap();
            let definition = parameters["$ref"].as_str().map(|path| path.trim_start_matches('#'));
            let parameters = definition.map_or(parameters, |path| schema.pointer(path).unwrap());
            for (name, parameter) in parameters["properties"].as_object().unwrap() {
                let huge = match (parameter["type"].as_str(), parameter["items"]["type"].as_str()) {
                    (Some("integer"), _) => "10000000000000000000",
                    (_, Some("integer")) => "[1, 10000000000000000000]",
                    _ => continue,
                };
                let text = format!(
                    "title: T\nsampling: {{ samples: 1 }}\nexperiments:\n  - {experiment}:\n      {name}: {huge}\n"
                );
                let error = Suite::parse(&text, "s.yaml", &registry).err().map(|error| error.to_string());
                let error = error.unwrap_or_else(|| panic!("{experiment}: {name} has no bound"));
                assert!(error.starts_with("s.yaml:5:") && error.contains("more than"), "{error}");
                bounded += 1;
            }
        }
        assert!(bounded > 10, "{bounded}");
    }
}
