//! What is measured: experiments, suites in YAML that choose among them, and the runner.
//!
//! It may import the library, the trials of driver calls and results; it knows no book. Begin with
//! [`experiment`]: an experiment is one file there and one line in its list.

#![forbid(unsafe_code)]

pub mod experiment;
#[cfg(test)]
mod measuring_code;
pub mod runner;

use syncscope::{affinity, device, measure, tensor, timeline};
use syncscope_calls as calls;
use syncscope_present::units;
use syncscope_results::{self as results, error, files, yaml};
