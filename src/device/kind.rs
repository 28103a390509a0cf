//! What calls and work are: the words of the tracer and of timelines.

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
    /// The host does work of the program's own.
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

/// What a barrier waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "report", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum BarrierKind {
    /// A stream, by a synchronize of it.
    Stream,
    /// An event, by a synchronize of it.
    Event,
    /// All streams, by a synchronize of the device.
    Device,
    /// What an operation needs that has to know values: a read.
    Implicit,
}

impl fmt::Display for BarrierKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            BarrierKind::Stream => "stream",
            BarrierKind::Event => "event",
            BarrierKind::Device => "device",
            BarrierKind::Implicit => "implicit",
        })
    }
}
