//! The kinds of calls and of work, for the tracer and for timelines.

use std::fmt;

pub use syncscope_present::Kind;

/// What a synchronization point waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum SyncKind {
    /// A stream: `Stream::synchronize`.
    Stream,
    /// An event: `Event::synchronize`.
    Event,
    /// All streams: `Device::synchronize`.
    Device,
    /// The work whose result an operation needs on the host, as a read does.
    Implicit,
}

impl fmt::Display for SyncKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            SyncKind::Stream => "stream",
            SyncKind::Event => "event",
            SyncKind::Device => "device",
            SyncKind::Implicit => "implicit",
        })
    }
}
