//! What several runs, days and machines say.
//!
//! | file | question |
//! |---|---|
//! | `runs` | what do several runs of one case come to |
//! | `evidence` | does a quantity of several runs lie in a region, and do several |
//! | `ratio` | what is the ratio of two values of several runs each |
//! | `permutation` | which of many rows differ between two sets of runs |
//! | `pairs` | which of many rows differ between two programs that are measured by turns, at any stop |
//! | `power` | how many runs a verdict takes, and which changes so many runs find |
//! | `chances` | how likely is a finding by chance alone, and which of many findings count |
//! | `change_points` | when did a series of values over many days change its level |
//! | `outliers` | which of many machines differ from the rest |

mod chances;
mod change_points;
mod evidence;
mod outliers;
mod pairs;
mod permutation;
mod power;
mod ratio;
mod runs;

pub use chances::{Student, holm};
pub use change_points::{ChangePoint, change_points};
pub use evidence::{AcceptedRegion, Bound, Decision, Evidence, Observations, furthest};
pub use outliers::{FEWEST, FLEET_LEVEL, Outlier, Outliers, Tail, outliers, smallest_shift};
pub use pairs::{
    FIRST_LOOK, RowByPair, chances_over_pairs, drawn_orders, is_within, least_chance_of_pairs, looks, pairs_to_decide,
    share_of_look,
};
pub use permutation::{MAX_RELABELLINGS, RowByRun, chances_over_rows, least_chance};
pub use power::{Power, Scattered};
pub use ratio::{Change, Ratio};
pub use runs::{LEVEL, estimate_of_runs, mean};
