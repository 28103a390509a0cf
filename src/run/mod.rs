//! Suites in, results out; and two runs beside each other.

mod comparability;
mod compare;
mod diagnoses;
mod environment;
mod migrate;
mod peer;
mod results;
mod runner;
mod suite;

pub use comparability::{Mismatch, mismatches, remarks};
pub use compare::{Compared, Pair, Tolerance, Unpaired, Verdict, compare};
pub use diagnoses::Diagnosed;
pub use environment::{DeviceDescription, Environment, Host, Program};
pub use peer::{FINGERPRINT, Peer, PeerMachine};
pub use results::{ExperimentRun, Run, SCHEMA_VERSION};
pub use runner::{Attendance, device_of, resume, run, run_one};
pub use suite::Suite;
