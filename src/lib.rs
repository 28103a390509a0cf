#![doc = include_str!("../README.md")]

pub mod device;
pub mod error;
pub mod experiment;
pub mod measure;
pub mod tensor;
pub mod units;

#[cfg(feature = "report")]
pub mod run;
