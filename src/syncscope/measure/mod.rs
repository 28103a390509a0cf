//! Measures what a host and a device do, and estimates the uncertainty.
//!
//! # Protocol
//! A [`Sampler`] runs [`Case`]s in [`Rounds`], by a [`Protocol`]. In a round every case runs exactly once, in random order,
//! so that drift (a rising clock rate, a warming device) affects all cases equally and does not look like a difference.
//! The first rounds are warm-up and not kept. All later samples are kept, raw and in order: sample *i* of every case is of
//! round *i*, so that cases can be subtracted round by round. No sample is discarded as an outlier.
//!
//! | file | question |
//! |---|---|
//! | `clock`, `device_clock` | how long did this take, on the host and on the device; and how good is the clock |
//! | `protocol`, `warmup`, `stopping` | when is it warm, and when are there enough samples |
//! | `host` | is the host as fast as it can be |
//! | `blocking` | what is done while a gate holds streams; does this call wait for the device |
//! | `case`, `sampler`, `compared` | what runs, in which order, and by how much cases differ |
//! | `optimised` | is this a build that is worth measuring |
//! | `stopwatches` | do the stopwatches of a device agree |
//! | `batch` | how many calls of a short function make a sample |
//! | `samples`, `estimate`, `ranks` | what is the median, and what is its interval |
//! | `statistics` | what samples, runs, days and machines say once they are taken |
//!
//! # What it does not cover
//! * **Dependence.** Intervals assume independent samples. Drift or a slow oscillation within one case makes them too
//!   narrow; interleaving protects the *difference* of two cases, not each median alone.
//! * **Another run.** The interval of the samples of one process is about that process. What several runs come to is
//!   estimated by `runs`; another boot or board is in no interval.
//! * **Many comparisons.** Each difference is tested separately, with about 5 % false claims: of twenty rows without a
//!   difference, one is expected to show one.
//! * **Early stopping.** A protocol with [`Protocol::relative_error`] stops when the interval happens to be narrow, so its
//!   coverage can be lower than stated; by how much was not measured. A fixed number of samples has no such effect.
//! * **Throttling.** Samples taken at a reduced clock rate are kept. The results contain the telemetry of each experiment.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod batch;
mod blocking;
mod case;
mod clock;
mod compared;
mod device_clock;
mod estimate;
mod host;
pub(crate) mod optimised;
mod peaks;
mod protocol;
mod ranks;
mod sampler;
mod samples;
mod statistics;
mod stopping;
mod stopwatches;
mod sweep;
mod warmup;

pub use blocking::{Hold, blocks, held};
pub use case::{Case, Observation, Outcome, Stopwatch};
pub use clock::{Clock, host_time, timer_cost, timer_resolution};
pub use compared::{Cases, Compared, Timed};
pub use device_clock::{DeviceClock, IntoDeviceClock, device_time};
pub use estimate::{median, quantile};
pub use host::HostSpeed;
pub use peaks::Peaks;
pub use protocol::{Protocol, StoppedBy};
pub use sampler::{Observer, Progress, Rounds, Sampler};
pub use samples::Samples;
pub use statistics::{Comparison, Diagnosis, Verdict, diagnose, judge, near_floor};
pub use stopwatches::{Reading, Stopwatches};
pub use sweep::{Axis, Swept, axis};
pub use syncscope_present::{Estimate, Larger, Spread};
