#![doc = include_str!("../README.md")]

pub mod device;
pub mod error;
pub mod measure;
pub mod tensor;
pub mod units;
