//! Where any program that uses CUDA waits for its devices: the analysis of what was recorded of it.
//!
//! `report audit -- COMMAND` runs a program with a library in it (`injected/`), which records the driver's calls and the
//! device's work. `report audit --from FILE` reads the trace of another profiler. Either way the analysis is a function of
//! the recording alone.
//!
//! | file | holds |
//! |---|---|
//! | `injected/` | the library that is put into the program, a crate of its own |
//! | `record`, `foreign` | reading its files, and other programs' traces |
//! | `symbols` | native frames with their lines |
//! | `recording`, `class` | what was recorded; what a call can wait for |
//! | `evidence` | whether a call waited, and for what |
//! | `shares`, `places` | where the time went; the places that lose it |
//! | `report`, `kept`, `steps` | what is kept, and read again; budgets and baselines |
//! | `tables`, `page`, `exports`, `lanes` | what is shown: tables, a page, JUnit and SARIF, timelines |

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod class;
mod evidence;
mod exports;
mod foreign;
#[path = "injected/format.rs"]
#[allow(dead_code, reason = "the injected library writes by it, too")]
mod format;
mod kept;
mod lanes;
mod page;
mod places;
mod record;
mod recording;
mod report;
mod shares;
mod steps;
mod symbols;
mod tables;

pub use class::Activity;
pub use places::{Reason, WaitPlace};
pub use recording::Frame;
pub use report::{AuditReport, DeviceReport, HostShare, OverheadReport, ProcessReport};
pub use steps::{Allowed, Budget, Step};

pub(crate) use exports::{junit, sarif};
pub(crate) use foreign::read as read_trace;
pub(crate) use kept::{is_audit, read as read_kept, text as kept_text};
pub(crate) use lanes::timeline;
pub(crate) use page::{PageParts, parts};
pub(crate) use record::read as read_records;
pub(crate) use recording::ProgramRecording;
pub(crate) use report::JudgedCalls;
pub(crate) use steps::{Breach, beyond, budget, over};
pub(crate) use tables::{of_processes, overhead, places as places_table, sentence, summary, time_of};

/// The library that is put into a program; empty where it cannot be built: it is for Linux.
pub(crate) const LIBRARY: &[u8] = include_bytes!(env!("SYNCSCOPE_INJECTED"));
