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
//! | `clock` | how long did this take, on the host and on the device; and how good is the clock |
//! | `protocol`, `warmup`, `stopping` | when is it warm, and when are there enough samples |
//! | `blocking` | what is done while a gate holds streams; does this call wait for the device |
//! | `case`, `sampler` | what runs, and in which order |
//! | `batch` | how many calls of a short function make a sample |
//! | `samples`, `estimate`, `ranks` | what is the median, and what is its interval |
//! | `runs` | what do several runs of one case come to |
//! | `comparison` | do two cases of the same rounds differ |
//! | `verdict` | does a statement about the medians hold |
//! | `evidence` | does a quantity of several runs lie in a region, and do several |
//! | `ratio` | what is the ratio of two values of several runs each |
//! | `chances` | how likely is a finding by chance alone, and which of many findings count |
//! | `change_points` | when did a series of values over many days change its level |
//! | `outliers` | which of many machines differ from the rest |
//! | `diagnose`, `dip` | is there a trend, a second mode, a coarse clock |
//! | `bootstrap` | what is the distribution of any other statistic |
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
mod bootstrap;
mod case;
#[cfg(feature = "report")]
mod chances;
#[cfg(feature = "report")]
mod change_points;
mod clock;
mod comparison;
mod diagnose;
mod dip;
mod estimate;
#[cfg(feature = "report")]
mod evidence;
#[cfg(feature = "report")]
mod outliers;
mod protocol;
mod ranks;
#[cfg(feature = "report")]
mod ratio;
#[cfg(feature = "report")]
mod runs;
mod sampler;
mod samples;
mod stopping;
mod verdict;
mod warmup;

pub use blocking::{Hold, blocks, held};
pub use bootstrap::Bootstrap;
pub use case::{Case, Observation, Stopwatch};
#[cfg(feature = "report")]
pub(crate) use chances::{Student, chance_of_shares, holm};
#[cfg(feature = "report")]
pub use change_points::{ChangePoint, change_points};
pub use clock::{Clock, DeviceClock, device_time, host_time, timer_cost, timer_resolution};
pub use comparison::Comparison;
pub use diagnose::{Diagnosis, diagnose, near_floor};
#[cfg(feature = "report")]
pub(crate) use estimate::median;
pub use estimate::{Estimate, Larger, Spread};
#[cfg(feature = "report")]
pub(crate) use evidence::{Bound, Evidence, Finding, Known, Region, furthest};
#[cfg(feature = "report")]
pub use outliers::{FEWEST, FLEET_LEVEL, Outlier, Outliers, outliers, smallest_shift};
pub use protocol::{Protocol, StoppedBy};
#[cfg(feature = "report")]
pub use ratio::{Change, Ratio};
#[cfg(feature = "report")]
pub(crate) use runs::{LEVEL, mean};
pub use sampler::{Observer, Progress, Rounds, Sampler};
pub use samples::Samples;
pub use verdict::{Verdict, judge};
