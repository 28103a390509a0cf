//! The layers between a program and the launch of a kernel, as calls of a catalogue.

use std::time::Duration;

use super::On;
use super::catalogue::{Action, Call};

/// Launches through a layer, or in a way that the driver offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// So many launches by the driver's own call.
    Driver(usize),
    /// So many launches by the driver's extended call, each of which may start while the one before it ends: as the library
    /// launches.
    Extended(usize),
    /// So many launches by the safe interface of `cudarc`, on a stream of its own.
    Wrapper(usize),
    /// So many launches behind each other by the driver's extended call, and the wait for them.
    Chain {
        /// How many.
        launches: usize,
        /// How long a kernel takes; half of it needs nothing of the one before it.
        length: Duration,
        /// Whether a kernel may start while the one before it ends.
        programmatic: bool,
    },
    /// A launch on a stream of this priority and the wait for it, while a kernel of many blocks has the device.
    Priority {
        /// The highest that there is, or the lowest.
        highest: bool,
    },
}

impl Layer {
    /// As a call.
    pub fn call(self) -> Call {
        let name = match self {
            Layer::Wrapper(_) => "LaunchArgs::launch",
            Layer::Extended(_) | Layer::Chain { .. } => "cuLaunchKernelEx",
            _ => "cuLaunchKernel",
        };
        Call { name, way: None, memory: None, bytes: None, on: On::Stream, action: Action::Layer(self) }
    }
}
