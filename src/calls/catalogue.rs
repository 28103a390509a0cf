//! The calls that are measured, by engine and family. Each stands where it is made: those of the driver in `cuda::driver`, those
//! of the CPU engine with its rig.

use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use super::cuda::{self, Calls};
use super::own::{self, OwnMake};
use super::{Family, On, Result, Steps};

/// A call of a catalogue.
#[derive(Clone)]
pub struct Call {
    /// The function's name, without the version that its symbol may carry.
    pub name: &'static str,
    /// What sets it apart from other calls of the same function.
    pub way: Option<&'static str>,
    /// The kind of memory that it is about; where it copies between two kinds of the host's, the one that is copied from.
    pub memory: Option<Memory>,
    /// The kind of the host's memory that is copied to, where it is another one.
    pub to: Option<Memory>,
    /// How many bytes of it.
    pub bytes: Option<usize>,
    /// The stream that it is given.
    pub on: On,
    pub(crate) make: Make,
}

/// What makes a call ready, on the rig of its engine.
#[derive(Clone)]
pub(crate) enum Make {
    Own(OwnMake),
    Driver(Rc<DriverMake>),
}

/// What makes a call of the driver ready.
pub(crate) type DriverMake = dyn Fn(&Arc<Calls>) -> Result<Box<dyn Steps>>;

impl Call {
    pub(crate) fn new(name: &'static str, on: On, make: Make) -> Self {
        Self { name, way: None, memory: None, to: None, bytes: None, on, make }
    }

    /// With what sets it apart.
    pub(crate) fn way(self, way: &'static str) -> Self {
        Self { way: Some(way), ..self }
    }

    /// About so much memory.
    pub(crate) fn of(self, memory: Memory, bytes: usize) -> Self {
        Self { memory: Some(memory), bytes: Some(bytes), ..self }
    }

    /// The kind of memory that it is about, or both where it goes from one kind of host memory to another.
    pub fn memories(&self) -> Option<String> {
        let memory = self.memory?.name();
        Some(self.to.map_or_else(|| memory.to_owned(), |to| format!("{memory} to {}", to.name())))
    }

    /// Whether each time makes and ends a context of the driver, or connects devices, which takes most of a second on a GPU.
    pub fn takes_long(&self) -> bool {
        matches!((self.name, self.way), ("cuCtxCreate" | "cuCtxDestroy", _) | ("ncclAllReduce", Some("first")))
    }

    /// Whether all later calls of the process are slower once this one was made. After `cuStreamAttachMemAsync`, each launch on
    /// an idle device, and each copy of managed memory, takes some ten microseconds longer for as long as the process lives
    /// (seen in each of three processes on an H200, driver 580), and each all-reduce takes three times as long (two H100s).
    pub fn slows_the_process(&self) -> bool {
        self.name == "cuStreamAttachMemAsync"
    }

    /// Whether it connects devices: NCCL enables access between them, which stays.
    pub fn connects(&self) -> bool {
        self.name == "ncclAllReduce"
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Call({}, {:?}, {:?}, {:?} bytes)", self.name, self.way, self.memories(), self.bytes)
    }
}

/// A kind of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// Ordinary host memory.
    Pageable,
    /// Page-locked by its allocation.
    Pinned,
    /// Ordinary host memory that was page-locked afterwards.
    Registered,
    /// Memory that the driver moves between host and device.
    Managed,
    /// Memory of the device.
    Device,
}

impl Memory {
    /// Those that a host thread can read and write.
    pub(crate) const OF_HOST: [Self; 4] = [Self::Pageable, Self::Pinned, Self::Registered, Self::Managed];

    /// All kinds.
    pub(crate) const ALL: [Self; 5] = [Self::Pageable, Self::Pinned, Self::Registered, Self::Managed, Self::Device];

    /// Its name, as a parameter of a row.
    pub fn name(self) -> &'static str {
        ["pageable", "pinned", "registered", "managed", "device"][self as usize]
    }
}

/// The calls of a family on an engine; `sizes` are those of transfers.
pub fn calls(engine: &str, family: Family, sizes: &[usize]) -> Vec<Call> {
    if engine == "cpu" { own::calls(family) } else { cuda::calls(family, sizes) }
}
