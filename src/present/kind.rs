//! What a call of a host or the work of a device is, for timelines.

/// What a span is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
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
        // In the order of the kinds.
        ["enqueue", "synchronize", "host work", "kernel", "copy", "wait"][self as usize]
    }
}
