//! What samples say once they are taken: nothing here takes part in a measurement, so that a results file stays one of the
//! same measuring code when a word or a test in here changes.
//!
//! | file | question |
//! |---|---|
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

mod bootstrap;
#[cfg(feature = "report")]
mod chances;
#[cfg(feature = "report")]
mod change_points;
mod comparison;
mod diagnose;
mod dip;
#[cfg(feature = "report")]
mod evidence;
#[cfg(feature = "report")]
mod outliers;
#[cfg(feature = "report")]
mod ratio;
#[cfg(feature = "report")]
mod runs;
mod verdict;

#[cfg(feature = "report")]
pub(crate) use chances::{Student, chance_of_shares, holm};
#[cfg(feature = "report")]
pub use change_points::{ChangePoint, change_points};
pub use comparison::Comparison;
pub use diagnose::{Diagnosis, diagnose, near_floor};
#[cfg(feature = "report")]
pub(crate) use evidence::{AcceptedRegion, Bound, Decision, Evidence, Observations, furthest};
#[cfg(feature = "report")]
pub use outliers::{FEWEST, FLEET_LEVEL, Outlier, Outliers, outliers, smallest_shift};
#[cfg(feature = "report")]
pub use ratio::{Change, Ratio};
#[cfg(feature = "report")]
pub(crate) use runs::{LEVEL, mean};
pub use verdict::{Verdict, judge};
