//! Where any program that uses CUDA waits for its devices: the analysis of what was recorded of it.
//!
//! `report audit -- COMMAND` runs a program with a library in it (`injected/`), which records the driver's calls and the
//! device's work. `report audit --from FILE` reads the trace of another profiler. Either way the analysis is a function of
//! the recording alone. [`region`] audits a part of a program that uses this library, by the library's own recording.
//!
//! | file | holds |
//! |---|---|
//! | `injected/` | the library that is put into the program, a crate of its own |
//! | `record` | reading its files |
//! | `foreign`, `chrome`, `kineto` | other programs' traces; the events of one; those of PyTorch's profiler |
//! | `nsys`, `database` | exports of Nsight Systems |
//! | `own`, `region` | this library's own recordings; the audit of a region |
//! | `symbols` | native frames with their lines, by the feature `symbols` |
//! | `names` | names of kernels and functions as their authors wrote them |
//! | `recording`, `class` | what was recorded; what a call can wait for |
//! | `nesting` | calls within calls |
//! | `evidence` | whether a call waited, and for what |
//! | `shares`, `places` | where the time went; the places that lose it |
//! | `report`, `kept` | what is kept, and read again |
//! | `steps`, `verdict` | budgets; what a budget and a baseline say of a recording |
//! | `tables`, `page`, `exports`, `lanes` | what is shown: tables, a page, JUnit and SARIF, timelines |

#![cfg_attr(test, allow(clippy::unwrap_used))]
#![cfg_attr(not(feature = "report"), allow(dead_code, reason = "the command alone reads files and writes pages"))]

#[cfg(feature = "report")]
mod chrome;
mod class;
#[cfg(feature = "nsys")]
mod database;
mod evidence;
#[cfg(feature = "report")]
mod exports;
#[cfg(feature = "report")]
mod foreign;
#[path = "injected/format.rs"]
#[allow(dead_code, reason = "the injected library writes by it, too")]
mod format;
#[cfg(feature = "report")]
mod kept;
#[cfg(feature = "report")]
mod kineto;
mod lanes;
#[cfg(feature = "report")]
mod names;
mod nesting;
#[cfg(feature = "nsys")]
mod nsys;
mod own;
#[cfg(feature = "report")]
mod page;
mod places;
#[cfg(feature = "report")]
mod record;
mod recording;
mod region;
mod report;
mod shares;
mod steps;
#[cfg(feature = "symbols")]
mod symbols;
mod tables;
mod verdict;

pub use class::Activity;
pub use places::{Reason, WaitPlace};
pub use recording::Frame;
pub use region::{OpenRegion, Region, begin, region};
pub use report::{AuditReport, DeviceReport, HostShare, OverheadReport, ProcessReport};
pub use steps::{Allowed, Budget, Step};

#[cfg(feature = "report")]
pub(crate) use self::{
    exports::{JUNIT_BEGIN, is_sarif, junit, sarif},
    foreign::read as read_trace,
    kept::{is_audit, read as read_kept, text as kept_text},
    lanes::timeline,
    record::read as read_records,
    recording::ProgramRecording,
    report::JudgedCalls,
    tables::{of_processes, overhead, sentence},
    verdict::{Breach, Verdict, verdict},
};
#[cfg(any(feature = "report", feature = "notebook"))]
pub(crate) use tables::{places as places_table, summary, time_of};

/// The library that is put into a program; empty where it cannot be built: it is for Linux.
#[cfg(feature = "report")]
pub(crate) const LIBRARY: &[u8] = include_bytes!(env!("SYNCSCOPE_INJECTED"));
