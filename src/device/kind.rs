//! The kinds of calls and of work, for the tracer and for timelines.

use std::fmt;

/// What a span is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "report", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Kind {
    /// The host enqueues.
    Enqueue,
    /// The host waits.
    Synchronize,
    /// The host runs the program's own work.
    HostWork,
    /// The device computes.
    Kernel,
    /// The device copies.
    Copy,
    /// A stream waits for an event or a gate.
    Wait,
}

impl Kind {
    /// Whether the device is busy with it: it computes or copies.
    pub fn is_busy(self) -> bool {
        matches!(self, Kind::Kernel | Kind::Copy)
    }

    /// Whether it lies on a stream.
    pub fn is_on_device(self) -> bool {
        matches!(self, Kind::Kernel | Kind::Copy | Kind::Wait)
    }

    /// Its name, as traces and figures write it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Enqueue => "enqueue",
            Kind::Synchronize => "synchronize",
            Kind::HostWork => "host work",
            Kind::Kernel => "kernel",
            Kind::Copy => "copy",
            Kind::Wait => "wait",
        }
    }
}

/// What a synchronization point waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "report", derive(schemars::JsonSchema))]
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
