//! Suites in, results out.

mod environment;
mod results;
mod runner;
mod suite;

pub use environment::{DeviceDescription, Environment, Host, Program};
pub use results::{ExperimentRun, Run, SCHEMA_VERSION};
pub use runner::{Attendance, device_of, resume, run, run_one};
pub use suite::Suite;
