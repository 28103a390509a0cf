//! Timelines: what the host and the device did, and when, on one clock.
//!
//! [`Device::record`](crate::device::Device::record) records a region. Each call of the library that enqueued or
//! blocked is a [`Span`] on the track of its host thread, from its begin to its return; each kernel and copy is one on
//! the track of its stream. A correlation ties the two. Times are nanoseconds since the recording began.
//!
//! | file | holds |
//! |---|---|
//! | `record` | from a region to a timeline |
//! | `analysis`, `critical` | what follows from one: shares, latencies, depth, overlap; the critical path |
//! | `audit` | the barriers within a region, and `assert_no_sync!` |
//! | `trace` | the Chrome trace, which Perfetto reads |
//!
//! # What it does not cover
//! * Recording costs: a lock and two clock readings a call, and what the source of device times costs. No timing is
//!   taken from a recorded region.
//! * A call that blocks within, such as the search for a product's plan, is seen as an implicit barrier within an
//!   enqueue where the source of times knows of it (CUPTI), and as a long enqueue elsewhere.
//! * What the source of device times misses is named in [`Timeline::source`].

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod analysis;
mod audit;
mod critical;
mod record;
mod trace;

use std::fmt;

pub use crate::device::kind::{BarrierKind, Kind};
pub use analysis::{Depth, Latency};
pub use audit::{Audit, Barrier};
pub use critical::{CriticalPath, Segment};
pub use trace::to_trace;

/// Something that took time.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "report", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Span {
    /// The place of its track in [`Timeline::tracks`].
    pub track: usize,
    /// The operation: `matmul`, `item`, `Stream::synchronize`.
    pub name: String,
    /// When it began, in nanoseconds since the recording did; 0 for what was under way then.
    pub start_ns: u64,
    /// When it ended.
    pub end_ns: u64,
    /// What it is.
    pub kind: Kind,
    /// The stream that it runs on, enqueues on or waits for, where there is one.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub stream: Option<u32>,
    /// How much is copied.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub bytes: Option<u64>,
    /// What a call and the work that it enqueued have in common. Calls are numbered in the order in which they began.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub correlation: Option<u64>,
    /// Of a barrier: what it waits for.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub barrier: Option<BarrierKind>,
    /// Of a barrier on an event: the correlation of the call that recorded the event.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub awaits: Option<u64>,
    /// Of a call: where it stands in the program, `src/main.rs:12`.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub site: Option<String>,
    /// Of a kernel: its own name, where the source of times knows it.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub detail: Option<String>,
}

impl Span {
    /// How long it took, in nanoseconds.
    pub fn duration_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns)
    }
}

/// Where spans follow each other.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "report", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Track {
    /// A thread of the host, by its name.
    Host(String),
    /// A stream, by its number.
    Stream(u32),
    /// Work of streams that are not the library's, or whose stream is not known.
    OtherStreams,
}

impl Track {
    /// Whether it is a thread of the host.
    pub fn is_host(&self) -> bool {
        matches!(self, Track::Host(_))
    }
}

impl fmt::Display for Track {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Track::Host(thread) => write!(f, "host, {thread}"),
            Track::Stream(number) => write!(f, "stream {number}"),
            Track::OtherStreams => f.write_str("other streams"),
        }
    }
}

/// What a host and a device did in a region.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "report", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Timeline {
    /// The device's name: `cuda:0`.
    pub device: String,
    /// Who knew when the device worked, and what that misses.
    pub source: String,
    /// The tracks: host threads first, then streams.
    pub tracks: Vec<Track>,
    /// The spans, by their begin.
    pub spans: Vec<Span>,
    /// How many records were lost.
    #[cfg_attr(feature = "serde", serde(default))]
    pub dropped: u64,
    /// When the region was over for the host, in nanoseconds. Work that it left pending ends later.
    pub region_ns: u64,
}
