//! Spans on tracks: what a timeline holds.

use std::fmt;

use crate::device::kind::{Kind, SyncKind};

/// A call of the host, or work of the device.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Span {
    /// The place of its track in [`Timeline::tracks`].
    pub track: usize,
    /// The operation: `matmul`, `item`, `Stream::synchronize`.
    pub name: String,
    /// When it began, in nanoseconds since the start of the recording; 0 for what was already running then.
    pub start_ns: u64,
    /// When it ended.
    pub end_ns: u64,
    /// What it is.
    pub kind: Kind,
    /// The stream on which it runs or enqueues, or for which it waits.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub stream: Option<u32>,
    /// The number of bytes copied.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub bytes: Option<u64>,
    /// The number that a call and the work that it enqueued share. Calls are numbered in the order in which they began.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub correlation: Option<u64>,
    /// Of a synchronization point: what it waits for.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub sync: Option<SyncKind>,
    /// Of a synchronization point on an event: the correlation of the call that recorded the event.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub awaits: Option<u64>,
    /// Of a call: its place in the program, `src/main.rs:12`.
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

/// A row of a timeline, on which spans follow each other.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
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
///
/// ```
/// use syncscope::prelude::*;
///
/// let stream = Device::open("cpu:0")?.stream()?;
/// let (_, timeline) = stream.device().record(|| stream.ones::<f32>([64])?.sum())?;
/// assert!(timeline.spans.iter().any(|span| span.name == "sum"));
/// # Ok::<(), syncscope::error::DeviceError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Timeline {
    /// The device's name: `cuda:0`.
    pub device: String,
    /// Where the device's times come from, and what that source misses.
    pub source: String,
    /// The tracks: host threads first, then streams.
    pub tracks: Vec<Track>,
    /// The spans, sorted by their start.
    pub spans: Vec<Span>,
    /// How many records were lost.
    #[cfg_attr(feature = "serde", serde(default))]
    pub dropped: u64,
    /// When the region returned, in nanoseconds. Work that it left pending ends later.
    pub region_ns: u64,
}
