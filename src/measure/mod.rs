//! Takes samples of what a host and a device do, and says how well they are known.
//!
//! # Protocol
//! A [`Sampler`] runs [`Case`]s in rounds. In a round every case runs exactly once, in an order shuffled anew from the
//! plan's seed, so that drift (a clock that rises, a device that warms) falls on all cases alike and is not read as a
//! difference. The first rounds are warm-up and not kept. All later samples are kept, raw and in order: sample *i* of
//! every case is of round *i*, so cases can be subtracted round by round. Nothing is discarded as an outlier.
//!
//! | file | question |
//! |---|---|
//! | `clock` | how long did this take, on the host, on the device; and how good is the clock |
//! | `sampling`, `stopping` | when is it enough |
//! | `blocking` | does this call wait for the device |
//! | `case`, `sampler` | what runs, and in which order |
//! | `samples`, `estimate`, `ranks` | what is the median, and within which interval |
//! | `comparison` | is there a difference between two cases of one sampling |
//! | `verdict` | does a statement about the medians hold |
//! | `ratio` | by which factor do two samplings differ that share no rounds |
//! | `diagnose`, `dip` | do the samples look as if an interval says less than it seems to |
//! | `bootstrap` | how far does any other statistic scatter |
//!
//! # What it does not cover
//! * **Dependence.** Intervals take the samples as independent draws. Drift or a slow oscillation within one case makes
//!   them too narrow; interleaving protects the *difference* of two cases, not either median alone.
//! * **Another run.** An interval is about this process, on this machine, now: not about another boot, memory layout
//!   or board.
//! * **Many comparisons.** Each difference is judged by itself, at about 5 % false claims; of twenty rows without a
//!   difference, one is expected to show one.
//! * **Early stopping.** A plan with [`Protocol::relative_error`] stops when the interval happens to be narrow, so its
//!   coverage can be below the stated one; by how much was not measured. Plans with a number of samples have no such fault.
//! * **Throttling.** Samples taken under a lowered clock are kept. The sensors before and after an experiment are in
//!   its results.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod blocking;
mod bootstrap;
mod case;
mod clock;
mod comparison;
mod diagnose;
mod dip;
mod estimate;
mod protocol;
mod ranks;
mod ratio;
mod sampler;
mod samples;
mod stopping;
mod verdict;

pub use blocking::blocks;
pub use bootstrap::Bootstrap;
pub use case::{Case, Stopwatch};
pub use clock::{DeviceClock, device_time, host_time, timer_cost, timer_resolution};
pub use comparison::Comparison;
pub use diagnose::{Diagnosis, diagnose, near_floor};
pub use dip::dip;
pub use estimate::Estimate;
#[cfg(feature = "report")]
pub(crate) use estimate::median;
pub use protocol::{Clock, Protocol, StoppedBy};
pub use ratio::{Change, Ratio};
pub use sampler::{Observer, Progress, Rounds, Sampler};
pub use samples::Samples;
pub use verdict::{Verdict, judge};
