//! What an engine offers: the one interface behind [`Device`](super::Device), [`Stream`](super::Stream),
//! [`Event`](super::Event) and [`HostBuffer`](super::HostBuffer).
//!
//! The traits are untyped (a [`DType`] and a length instead of a Rust type) and say nothing of shapes: the layers
//! above check shapes and types once, for every engine. An engine checks only what the layers above cannot know:
//! that an object is its own, and what state a stream is in. The contract stands at [`Engine`].

use std::any::Any;
use std::collections::HashMap;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use super::code::{Argument, Code, Launch};
use super::injection::Injection;
use super::operation::{Operation, REGIONS, Region};
use super::reserved::NoRoom;
use super::tracer::{TraceSource, Tracer};
use super::{DType, Properties, Telemetry};
use crate::error::DeviceError;

/// The result of a call into an engine.
pub(crate) type Result<T> = std::result::Result<T, DeviceError>;

/// The object behind the interface, if it is one of this opened device, whose name stands beside it.
#[inline]
pub(crate) fn own<'a, T: Any, D: 'a>(
    object: &'a dyn Any,
    device_of: impl FnOnce(&'a T) -> &'a Arc<D>,
    (device, name): (&Arc<D>, &str),
    what: &'static str,
) -> Result<&'a T> {
    let found = object.downcast_ref::<T>().filter(|object| Arc::ptr_eq(device_of(object), device));
    found.ok_or_else(|| DeviceError::ForeignObject { what, device: name.to_owned() })
}

/// What a device holds beside the memory of tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footprint {
    /// How many streams there are, also those whose last handle is gone.
    pub streams: usize,
    /// The pinned memory for transfers, and that of host buffers which are gone.
    pub pinned_bytes: usize,
}

/// One opened device of an engine.
///
/// # The contract
/// Tested on every engine in `tests/engine`:
/// * **Enqueueing** returns before the work has run, unless the hardware's own call does not.
/// * **Objects** of another opened device (streams, events, gates, tensors, host buffers) are refused with
///   [`DeviceError::ForeignObject`], also where both devices are the same hardware.
/// * **Arithmetic** is in fp32 and rounded once to the output's type; `affine` is one fused multiplication and addition.
/// * **Failures** of work are returned by its stream and by the device: by every wait and every read of the stream, by a wait
///   for the device, and by an event that the stream recorded behind the work. A stream that has failed stays failed, and never
///   gives data in place of the failure. Other streams go on, also those that waited for it: whoever uses there what the
///   failed stream made asks that stream. A failure of a stream whose last handle is gone, and of which nobody was told, is
///   returned by the next wait for the device, to one thread and once: before those of streams that can still be asked, and
///   with the number of others that are gone.
/// * **Not before it** may be a failure that an event returns: one in a graph that was captured before the recording and
///   launched after it. Of an event that several threads record at once, it is the failures of one of the recordings.
/// * **A call that fails** has enqueued nothing, and new work succeeds.
/// * **A lost device** fails every later call with the first cause. Drops end all the same.
/// * **Drops** wait for nothing: neither for work, nor for a gate. What work still uses is kept until that is over.
/// * **Captures** belong to a stream. Operations on it are captured, whichever thread they come from; every other call on
///   it, also one that reads the result of its operation, is refused with [`DeviceError::Capturing`], or fails as the stream has.
///   What is captured is not enqueued: a wait for the device does not wait for it, and is allowed meanwhile. Memory that captured
///   operations use lives as long as the graph.
/// * **Threads** may use every object at once. Calls on one stream take effect in some order, each whole. No lock is held
///   over a wait that a gate may make longer, and none that a question takes is held over an enqueue, which may wait for room
///   behind a gate. No value that a user has keeps a lock.
///
/// # Other hardware
/// HIP has all that the CUDA engine asks of a driver, under names that differ in a prefix: streams that are not ordered
/// against a default one, events with and without times, stream-ordered pools, mapped page-locked memory, waits for a word
/// of memory, captured graphs, and run-time compilation (hipRTC) of the kernels, whose few PTX instructions would be
/// written anew. An engine for it is the driver room and the kernels, with hipBLASLt for matrix multiplications; programmatic
/// launches, which only save time, have no counterpart. What it offers instead of CUPTI is rocprofiler.
///
/// Metal and wgpu cannot give what this interface promises. Work is encoded into command buffers and submitted as a whole,
/// so that there is no enqueue of one operation whose cost could be measured. wgpu lets the host see the end of a submission
/// but offers no event that one queue waits for another with, no flag of the host that holds a queue, and no host memory
/// that is mapped while the device uses it. Metal has shared events, with which a gate can be built, but memory is not freed
/// in the order of a queue, and the times of single kernels within a pass are not known on all of its devices. An engine
/// over either would answer gates, events with times and stream-ordered memory with
/// [`DeviceError::NotApplicable`], and be of little use for what is measured here.
pub(crate) trait Engine: Send + Sync + Any {
    /// What is known of the device without asking it again.
    fn properties(&self) -> &Properties;

    /// A new stream: an ordered queue of work, independent of every other.
    /// Its number is what the tracer names it by.
    fn create_stream(&self, number: u32) -> Result<Arc<dyn EngineStream>>;

    /// A new event, not recorded yet; `timing` says whether times between events will be asked for.
    fn create_event(&self, timing: bool) -> Result<Arc<dyn EngineEvent>>;

    /// A new closed gate.
    fn create_gate(&self) -> Result<Arc<dyn EngineGate>>;

    /// Host memory of `len` zeroed elements, pageable or pinned. Their bytes can be counted; where there is no room for them, that is
    /// said as of device memory.
    fn allocate_host(&self, kind: HostKind, dtype: DType, len: usize) -> Result<Box<dyn HostMemory>>;

    /// Takes host memory back of which copies are pending, and keeps it until `pending` are reached. Never blocks.
    fn retire_host(&self, memory: Box<dyn HostMemory>, pending: Vec<Arc<dyn EngineEvent>>);

    /// Blocks until all work on all streams of the device has completed.
    fn synchronize(&self) -> Result<()>;

    /// Loads code of the user's.
    fn load(&self, code: &Code) -> Result<Arc<dyn EngineModule>> {
        let why = "kernels need a GPU with CUDA";
        Err(DeviceError::not_applicable(format!("`{}`", code.name), &self.properties().name, why))
    }

    /// Fails with the first cause once the device is lost.
    fn check(&self) -> Result<()>;

    /// Gives memory that is cached and not used back to the system.
    fn trim(&self) -> Result<()>;

    /// What the device holds for the calls to come.
    fn footprint(&self) -> Footprint;

    /// The failures that tests ask for.
    fn injection(&self) -> &Injection;

    /// How much work a stream's queue holds before a launch makes the host wait for room; `None` where it never does.
    fn launch_queue(&self) -> Option<usize> {
        None
    }

    /// What is recorded of the device.
    fn tracer(&self) -> &Arc<Tracer>;

    /// Who reports when work ran, for a recording that begins now.
    fn source(&self) -> TraceSource;

    /// Clocks, temperature, power and throttling now; `None` where the engine has no such sensors.
    fn telemetry(&self) -> Result<Option<Telemetry>>;
}

/// One stream of a device.
pub(crate) trait EngineStream: Send + Sync + Any {
    /// Memory for `len` elements, usable by work enqueued on this stream from now on; its content is undefined.
    ///
    /// It is freed when the last handle is dropped, after all work that was enqueued with it, on whichever stream.
    fn allocate(&self, dtype: DType, len: usize) -> Result<Arc<dyn DeviceMemory>>;

    /// Enqueues the operations of one call, one behind the other: nothing of other threads comes between, no capture begins or ends
    /// there, and one that fails is part of no graph, with all before it. One that [is never captured](Operation::is_never_captured)
    /// is refused while the stream captures, by a look that is one with the enqueueing: a capture may begin at any moment, on
    /// another thread.
    fn enqueue(&self, operations: &[Operation<'_>]) -> Result<()>;

    /// Enqueues a launch of a kernel of this device, whose arguments are tensors of this stream and have been checked against its
    /// parameters.
    fn launch(&self, kernel: &dyn EngineKernel, _: &Launch, _: &[Argument<'_>]) -> Result<()> {
        let reason = format!("no engine loads a kernel of {} parameters and launches none", kernel.parameters().len());
        Err(DeviceError::invalid("launch", reason))
    }

    /// Enqueues a copy of all of `source` into `target`, of the same size, and behind it the recording of `done`: both or
    /// neither, so that no copy is ever pending unknown.
    ///
    /// The caller keeps `source` alive and unwritten until the copy has completed.
    fn enqueue_upload(&self, source: &dyn HostMemory, target: Region<'_>, done: &dyn EngineEvent) -> Result<()>;

    /// Enqueues a copy of `source` into all of `target`, of the same size, and behind it the recording of `done`: both or
    /// neither.
    ///
    /// The caller keeps `target` alive and untouched until the copy has completed.
    fn enqueue_download(&self, source: Region<'_>, target: &dyn HostMemory, done: &dyn EngineEvent) -> Result<()>;

    /// Copies borrowed host bytes into `target` and returns once `source` has been read.
    fn upload(&self, source: &[u8], target: Region<'_>) -> Result<()>;

    /// Copies `source`, of a few bytes, into borrowed host bytes: blocks until all work before it on this stream has
    /// completed.
    fn download(&self, source: Region<'_>, target: &mut [u8]) -> Result<()>;

    /// The elements of `source`, as a `Vec` of their Rust type: blocks until all work before it on this stream has completed.
    fn download_all(&self, source: Region<'_>) -> Result<Box<dyn Any>>;

    /// Whether a transfer that only enqueues elsewhere blocks on this engine.
    fn waits(&self, _: Transfer) -> bool {
        false
    }

    /// Whether a transfer that only enqueues may make the host stand in the call while it runs: a recording then looks at
    /// the times of both.
    fn may_wait(&self, _: Transfer) -> bool {
        false
    }

    /// Enqueues the recording of `event`.
    fn record(&self, event: &dyn EngineEvent) -> Result<()>;

    /// Work enqueued from now on waits for the latest recording of `event`; the host does not.
    fn wait_event(&self, event: &dyn EngineEvent) -> Result<()>;

    /// Work enqueued from now on waits until `gate` is opened; the host does not.
    fn wait_gate(&self, gate: &dyn EngineGate) -> Result<()>;

    /// From now on operations are captured instead of enqueued.
    fn begin_capture(&self) -> Result<()>;

    /// Ends a capture: the work, and what it uses.
    fn end_capture(&self) -> Result<(Arc<dyn EngineGraph>, Captured)>;

    /// Ends a capture whose work is of no use; nothing where there is none.
    fn give_up_capture(&self);

    /// A number that grows with all that is enqueued; none where others enqueue, too, without being counted.
    fn enqueued(&self) -> Option<u64>;

    /// Whether a capture is in progress.
    fn is_capturing(&self) -> bool;

    /// Whether all work enqueued so far has completed. Never blocks.
    fn is_complete(&self) -> Result<bool>;

    /// Blocks until all work enqueued so far has completed.
    fn synchronize(&self) -> Result<()>;
}

/// Loaded code.
pub(crate) trait EngineModule: Send + Sync {
    /// The names of its kernels.
    fn kernels(&self) -> Result<Vec<String>>;

    /// A kernel by one of these names.
    fn kernel(&self, name: &str) -> Result<Arc<dyn EngineKernel>>;

    /// The machine code.
    fn image(&self) -> &[u8];
}

/// A kernel of loaded code.
pub(crate) trait EngineKernel: Send + Sync + Any {
    /// The size of each parameter in bytes.
    fn parameters(&self) -> &[usize];
}

/// A transfer between the host and a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transfer {
    /// From memory that is the caller's again when the call returns.
    Borrowed {
        /// How much.
        bytes: usize,
    },
    /// Into a host buffer.
    ToHost(HostKind),
    /// From a host buffer.
    FromHost(HostKind),
}

/// A mark in a stream.
pub(crate) trait EngineEvent: Send + Sync + Any {
    /// Whether the latest recording has been reached. An event never recorded is complete. Never blocks; fails if the work
    /// before the recording did.
    fn is_complete(&self) -> Result<bool>;

    /// Blocks until the latest recording has been reached; fails if the work before it did.
    fn synchronize(&self) -> Result<()>;

    /// Whether nothing before the latest recording runs any more, whether it failed or the device is lost. Never blocks.
    fn is_over(&self) -> bool;

    /// The time from `start` to this event; both complete, recorded, and made with timing.
    fn elapsed_since(&self, start: &dyn EngineEvent) -> Result<Duration>;

    /// When the latest recording was reached, where the host's clock tells: not where the device has a clock of its own.
    fn reached(&self) -> Result<Option<std::time::Instant>> {
        Ok(None)
    }
}

/// What a capture has taken in.
#[derive(Default)]
pub(crate) struct Captured {
    /// The number of operations.
    pub(crate) operations: usize,
    /// What they read and write, by its address.
    pub(crate) memory: HashMap<usize, Arc<dyn DeviceMemory>>,
}

impl Captured {
    /// Finds room for what `operations` more use.
    pub(crate) fn reserve(&mut self, operations: usize) -> std::result::Result<(), NoRoom> {
        let more = operations.saturating_mul(REGIONS);
        let len = self.memory.len().saturating_add(more);
        self.memory.try_reserve(more).map_err(|_| NoRoom::of::<(usize, Arc<dyn DeviceMemory>)>(len))
    }

    /// Notes an operation. The memory of one that failed is kept, too: a part of it may have been captured.
    #[cold]
    pub(crate) fn take<'a>(&mut self, regions: impl Iterator<Item = Region<'a>>, succeeded: bool) {
        self.operations += usize::from(succeeded);
        for region in regions {
            let address = Arc::as_ptr(region.memory).addr();
            self.memory.entry(address).or_insert_with(|| Arc::clone(region.memory));
        }
    }
}

/// Captured operations of one stream.
pub(crate) trait EngineGraph: Send + Sync {
    /// Enqueues them on that stream. Their memory is kept alive by the caller.
    fn launch(&self) -> Result<()>;
}

/// A flag that a stream can wait on and the host opens.
pub(crate) trait EngineGate: Send + Sync + Any {
    /// Lets every stream that waits go on. Opening twice is allowed.
    fn open(&self);
}

/// Memory of a device.
pub(crate) trait DeviceMemory: Send + Sync + Any {
    /// The type of its elements.
    fn dtype(&self) -> DType;
}

/// Where a host buffer's memory lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HostKind {
    /// Ordinary memory, which the operating system may move or swap.
    Pageable,
    /// Page-locked memory, which a device reads and writes by itself.
    Pinned,
    /// Page-locked and write-combined: fast to fill in order, very slow for the host to read.
    WriteCombined,
}

/// Host memory that an engine allocated.
///
/// The layer above calls [`bytes`](Self::bytes) only when no copy into the memory is pending, and
/// [`bytes_mut`](Self::bytes_mut) only when none from or into it is, right after [`own`](Self::own).
pub(crate) trait HostMemory: Send + Sync + Any {
    /// The content.
    fn bytes(&self) -> Box<dyn Deref<Target = [u8]> + '_>;

    /// Makes a copy of the content where somebody may still look at it, who keeps it as it is.
    fn own(&mut self) -> Result<()> {
        Ok(())
    }

    /// The content, to change.
    fn bytes_mut(&mut self) -> Box<dyn DerefMut<Target = [u8]> + '_>;
}

impl std::fmt::Display for HostKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            HostKind::Pageable => "pageable",
            HostKind::Pinned => "pinned",
            HostKind::WriteCombined => "write-combined",
        })
    }
}
