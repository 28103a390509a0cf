//! What samples say once they are taken: nothing here takes part in a measurement, so that a results file stays one of the
//! same measuring code when a word or a test in here changes.
//!
//! | file | question |
//! |---|---|
//! | `comparison` | do two cases of the same rounds differ |
//! | `verdict` | does a statement about the medians hold |
//! | `diagnose`, `dip` | is there a trend, a second mode, a coarse clock |
//! | `bootstrap` | what is the distribution of any other statistic |

mod bootstrap;
mod comparison;
mod diagnose;
mod dip;
mod verdict;

pub use comparison::Comparison;
pub use diagnose::{Diagnosis, diagnose, near_floor};
pub use verdict::{Verdict, judge};
