//! Where any program that uses CUDA waits for its devices: the analysis of what was recorded of it.
//!
//! `report audit -- COMMAND` runs a program with a library in it (`injected/`), which records the driver's calls and the
//! device's work. `report audit --from FILE` reads the trace of another profiler. Either way the analysis is a function of
//! the recording alone. [`region`] audits a part of a program that uses this library, by the library's own recording.
//!
//! | file | holds |
//! |---|---|
//! | `injected/` | the library that is put into the program, a crate of its own |
//! | `armed` | asking it to record |
//! | `no_wait/` | the library of no-wait tests, another one |
//! | `record` | reading its files |
//! | `foreign`, `pieces`, `chrome`, `kineto`, `homes` | other programs' traces; their text; its events; what profilers say by these, and of whom |
//! | `nsys`, `database` | exports of Nsight Systems |
//! | `own`, `region` | this library's own recordings; the audit of a region |
//! | `symbols` | native frames with their lines, by the feature `symbols` |
//! | `names` | names of kernels and functions as their authors wrote them |
//! | `recording`, `class` | what was recorded; what a call can wait for |
//! | `nesting` | calls within calls |
//! | `evidence` | whether a call waited, and for what |
//! | `iterations` | the iterations of a program, and from when on they are alike |
//! | `stacks` | the stacks of calls of which none was taken |
//! | `shares`, `places` | where the time went; the places that lose it |
//! | `idle`, `ranks` | why a device was idle, and at which line; which rank of a job the others wait for |
//! | `replay` | what an iteration would take without one of these |
//! | `report`, `kept` | what is kept, and read again |
//! | `steps`, `verdict` | budgets; what a budget and a baseline say of a recording |
//! | `tables`, `page`, `lanes` | what is shown: tables, a page, timelines |

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod armed;
mod chrome;
mod class;
#[cfg(feature = "nsys")]
mod database;
mod evidence;
mod foreign;
#[path = "injected/format.rs"]
#[allow(dead_code, reason = "the injected library writes by it, too")]
mod format;
mod homes;
mod idle;
mod iterations;
mod kept;
mod kineto;
mod lanes;
mod names;
mod nesting;
#[cfg(feature = "nsys")]
mod nsys;
mod own;
mod page;
mod pieces;
mod places;
mod ranks;
mod record;
mod recording;
mod region;
mod replay;
mod report;
mod shares;
mod stacks;
mod steps;
#[cfg(feature = "symbols")]
mod symbols;
mod tables;
mod verdict;

use syncscope::{device, timeline};
use syncscope_present::{self as present, clean, units};

pub use armed::{Answer, ArmedProcess, AskedRecording, FOLDER};
pub use class::Activity;
pub use idle::{IdleCause, IdlePlace};
pub use places::{Reason, SteadyCalls, WaitPlace};
pub use ranks::LateRank;
pub use recording::Frame;
pub use region::{Region, region};
pub use report::{AuditReport, DeviceReport, HostShare, OverheadReport, ProcessReport, SteadyReport};
pub use steps::{Allowed, Budget, Step};

pub use self::{
    foreign::read as read_traces,
    kept::{MAX_BYTES as MAX_AUDIT_BYTES, is_audit},
    lanes::timelines,
    record::read as read_records,
    recording::ProgramRecording,
    report::JudgedCalls,
    tables::{of_processes, overhead},
    verdict::{Breach, Verdict, verdict},
};
pub use tables::{
    advice as idle_advice, headline, idle as idle_table, iterations as iterations_words, late, places as places_table,
    start_up, summary, time_of,
};

/// The library that is put into a program; empty where it cannot be built: it is for Linux.
pub const LIBRARY: &[u8] = include_bytes!(env!("SYNCSCOPE_INJECTED"));
