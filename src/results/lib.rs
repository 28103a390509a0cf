//! Results: what runs left, as it is kept in a file, and what is found in it.
//!
//! A results file explains itself: nothing here knows an experiment.
//!
//! | file | what |
//! |---|---|
//! | `row`, `work` | what a row is: identifier, heading, label, unit, parameters, provenance, work |
//! | `roofline` | the share of a measured peak rate |
//! | `run`, `environment`, `selection` | the content of a file: its runs, where they were made, what was chosen |
//! | `file`, `digest` | reading and writing files, and their digest |
//! | `system` | what another program measured of the same work, put into a results file |
//! | `import` | what other benchmarks measured: nvbench, criterion |
//! | `lookup`, `catalog` | finding rows, and what rows there could be |
//! | `metric` | what the samples of a row come to |
//! | `expression` | formulas, and what tests and sentences compute of rows |
//! | `spelled` | how an expression writes a row's name |
//! | `diagnose` | the diagnoses of the samples |
//! | `steady` | whether what a row came to has an interval |
//! | `sources` | what a computed row has of the measured rows that it comes of |
//! | `agreement` | how well two sets of runs agree |
//! | `compare`, `comparability`, `direction` | two files, row by row, whether they may be compared, and which value is faster |
//! | `by_turns` | two programs by turns, row by row, until each is decided |

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod agreement;
mod anonymous;
mod by_turns;
mod catalog;
mod comparability;
mod compare;
mod diagnose;
mod digest;
mod direction;
mod environment;
pub mod error;
mod expression;
mod file;
pub mod files;
pub mod host_clock;
mod import;
mod lookup;
mod metric;
mod missing;
mod provenance;
mod recompute;
mod roofline;
mod row;
mod rows;
mod run;
mod same_code;
mod selection;
mod sources;
mod spelled;
pub mod statistics;
mod steady;
pub mod store;
mod system;
mod work;
pub mod yaml;

use syncscope::{affinity, device, measure, timeline};
use syncscope_present::{clean, units};

pub use agreement::{Agreement, HalfWidths};
pub use by_turns::look;
pub use catalog::{Catalog, UnknownParameter, most_alike, nearest, nearest_name, nearest_number};
pub use comparability::{Mismatch, mismatches, remarks, shared_runs};
pub use compare::{Compared, Pair, Shift, Tolerance, Unpaired, compare};
pub use diagnose::Diagnosed;
pub use direction::Direction;
pub use environment::{DeviceDescription, Environment, Host, Program, now, without_folders};
pub use expression::{Dimension, Expression, Extreme, FILTERS as EXPRESSION_FILTERS, FormulaOperand, SyntaxError};
pub use file::{MAX_BYTES as LONGEST_FILE, MAX_RUNS};
pub use import::NEWEST_BASELINE;
pub use lookup::{Lookup, agrees, holds, preferred};
pub use metric::{Metric, share_interval};
pub use missing::{Lacking, MissingReason};
pub use provenance::{code_of, code_of_system, declare_code};
pub use recompute::{Contradiction, Recomputation};
pub use roofline::{PeakShare, RooflinePoint, memory_rate, roofline_points, share_of_peak, stated_kernel};
pub use row::{
    Derivation, Measured, MetricSpec, Outcome, Parameter, Parameters, Pass, Provenance, Row, Sample, Series, begins,
    by_size, grouped, in_another_unit, in_words, titled,
};
pub use rows::Rows;
pub use run::{
    ExperimentRun, Piece, Plan, Recorded, RecordedTimeline, Results, Run, RunOutcome, SCHEMA_VERSION, SYNCSCOPE,
    TelemetrySample, throttle_reasons,
};
pub use same_code::{Comparisons, SameCode};
pub use selection::Selection;
pub use spelled::{Selector, Spelled, name_of};
pub use steady::no_interval_of;
pub use system::{FINGERPRINT, MEASURING_CODE, Machine, PeerPlan, SYSTEM_SCHEMA_VERSION, System, SystemRow};
pub use work::{Limit, Work};
