//! Devices, streams, events, gates and host buffers.
//!
//! A [`Device`] runs work that a host enqueues on its [`Stream`]s. Every method here either *enqueues* (the host goes
//! on at once) or is a *synchronization point* (the host waits), and says which. Streams are ordered within themselves and in no
//! way among each other, except through an [`Event`] or a [`Gate`].
//!
//! Two engines stand behind the one interface: `cuda`, over the driver, and `cpu`, a real asynchronous engine with a
//! worker thread a stream.

pub(crate) mod code;
mod element;
pub(crate) mod engine;
mod graph;
mod host;
pub(crate) mod injection;
pub(crate) mod kept;
pub mod kind;
pub(crate) mod operation;
pub(crate) mod orphaned;
mod pending;
pub(crate) mod philox;
mod properties;
pub(crate) mod recording;
pub(crate) mod reserved;
mod stream;
mod traced;
pub(crate) mod tracer;

pub mod cpu;
#[cfg(feature = "cuda")]
pub(crate) mod cuda;

use std::fmt;
use std::panic::Location;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub use code::{Argument, Arguments, Code, Kernel, Launch, Module};
#[cfg(feature = "cuda")]
pub use cuda::{kernels, raw};
pub use element::{DType, Element, Float, FloatType};
#[doc(hidden)]
pub use engine::Footprint;
pub use engine::HostKind;
pub use graph::Graph;
pub use host::{HostBuffer, HostSlice, HostSliceMut, available_memory};
#[doc(hidden)]
pub use injection::Injected;
pub use operation::MatmulPrecision;
pub use properties::{Properties, Telemetry};
pub use stream::Stream;

use crate::error::DeviceError;
use engine::{Engine, EngineEvent, EngineGate, Result};
use tracer::{CallInfo, SyncKind, Tracer};

/// A device that runs enqueued work. Cheap to clone; all clones are the same device.
///
/// ```
/// use syncscope::device::Device;
///
/// let device = Device::open("cpu:0")?;
/// assert_eq!((device.name(), device.properties().engine), ("cpu:0", "cpu"));
/// # Ok::<(), syncscope::error::DeviceError>(())
/// ```
#[derive(Clone)]
pub struct Device {
    engine: Arc<dyn Engine>,
}

/// A device that could be opened.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Listing {
    /// The name to open it by: `cuda:0`.
    pub name: String,
    /// The hardware: `NVIDIA H200`.
    pub model: String,
}

impl Device {
    /// Opens a device by name: `cuda:0`, `cpu:1`. Two openings of one name are two devices, whose tensors do not mix:
    /// clone a `Device` to share it.
    ///
    /// # Errors
    /// [`DeviceError::NoSuchDevice`] names the devices there are; where there is none of CUDA, its note says what CUDA lacks on this
    /// machine and where that was looked for. [`DeviceError::EngineUnavailable`] and [`DeviceError::CallFailed`] say why a device
    /// of CUDA that is there cannot be opened.
    pub fn open(name: &str) -> Result<Self> {
        let missing = |note| DeviceError::NoSuchDevice {
            name: name.to_owned(),
            available: Self::list().into_iter().map(|d| d.name).collect(),
            note,
        };
        let (engine, index) = name.split_once(':').ok_or_else(|| missing(None))?;
        let index: usize = index.parse().map_err(|_| missing(None))?;
        match engine {
            "cpu" if index < cpu::DEVICES => Ok(Self { engine: cpu::open(index) }),
            #[cfg(feature = "cuda")]
            "cuda" => match cuda::list() {
                Ok(devices) if index < devices.len() => Ok(Self { engine: cuda::open(index)? }),
                Ok(_) => Err(missing(None)),
                Err(error) => Err(missing(Some(error.to_string()))),
            },
            #[cfg(not(feature = "cuda"))]
            "cuda" => Err(missing(Some("this build has no CUDA engine: the feature `cuda` is off".to_owned()))),
            _ => Err(missing(None)),
        }
    }

    /// The best device of this machine: `cuda:0` where there is one, else `cpu:0`.
    ///
    /// # Errors
    /// A CUDA device that is there and cannot be opened is an error, not a reason to fall back silently.
    pub fn best() -> Result<Self> {
        let name = if Self::cuda_unavailable().is_none() { "cuda:0" } else { "cpu:0" };
        Self::open(name)
    }

    /// All devices of this machine, without opening them.
    pub fn list() -> Vec<Listing> {
        let mut devices = Vec::new();
        #[cfg(feature = "cuda")]
        devices.extend(cuda::list().unwrap_or_default());
        devices.extend(cpu::list());
        devices
    }

    /// Why there is no CUDA device here; `None` where there is one.
    pub fn cuda_unavailable() -> Option<DeviceError> {
        #[cfg(feature = "cuda")]
        return cuda::list().err();
        #[cfg(not(feature = "cuda"))]
        return Some(DeviceError::EngineUnavailable {
            engine: "cuda",
            reason: "the feature `cuda` is off in this build".to_owned(),
        });
    }

    /// What is known of the device.
    pub fn properties(&self) -> &Properties {
        self.engine.properties()
    }

    /// The device's name: `cuda:0`.
    pub fn name(&self) -> &str {
        &self.engine.properties().name
    }

    /// A new stream, ordered against no other.
    ///
    /// # Errors
    /// The device gives no stream: it is lost, its engine can take no more, or a [gate](Gate) is closed and those at hand are
    /// in use.
    pub fn stream(&self) -> Result<Stream> {
        Stream::new(self, self.engine.tracer().next_stream())
    }

    /// A new event for ordering; cheaper to record than one with timing.
    ///
    /// # Errors
    /// The device gives no event.
    pub fn event(&self) -> Result<Event> {
        self.new_event(false)
    }

    /// A new event with which times are taken.
    ///
    /// # Errors
    /// The device gives no event.
    pub fn timing_event(&self) -> Result<Event> {
        self.new_event(true)
    }

    fn new_event(&self, timing: bool) -> Result<Event> {
        let recorded = Recorded { tracer: Arc::clone(self.engine.tracer()), by: AtomicU64::new(0) };
        Ok(Event { raw: self.engine.create_event(timing)?, recorded: Arc::new(recorded) })
    }

    /// A new closed gate. What the device would make when it is first needed, and what could then wait for a held stream, it
    /// makes now.
    ///
    /// # Errors
    /// The device gives no memory for the gate.
    pub fn gate(&self) -> Result<Gate> {
        Ok(Gate { raw: self.engine.create_gate()? })
    }

    /// A host buffer of `len` zeros for copies from and to this device. To page-lock memory can wait for all of a GPU:
    /// allocate a buffer before a gate is closed.
    ///
    /// # Errors
    /// [`DeviceError::NotApplicable`] for pinned and write-combined memory on an engine that has none; no room; a length that no
    /// machine can address.
    pub fn host_buffer<T: Element>(&self, kind: HostKind, len: usize) -> Result<HostBuffer<T>> {
        HostBuffer::new(self, kind, len)
    }

    /// Synchronization point: waits until all work on all streams of this device has completed. What a stream captures is
    /// not enqueued, and not waited for.
    ///
    /// # Errors
    /// A failure of work enqueued earlier. Those of streams whose last handle is gone come first, as nobody can ask for them any
    /// more: once, to one thread, and as one error, which says how many such streams there are.
    #[track_caller]
    pub fn synchronize(&self) -> Result<()> {
        let _call = self
            .engine
            .tracer()
            .call(CallInfo::barrier("Device::synchronize", SyncKind::Device), Some(Location::caller()));
        self.engine.synchronize()
    }

    /// Whether the device is lost, as after an access outside of its memory: every further call fails with the first cause, in
    /// this process. This asks the device for nothing: of what another library was told, the first call that asks knows.
    pub fn is_lost(&self) -> bool {
        self.engine.check().is_err()
    }

    /// Gives memory that the device keeps for the next allocations, and that nobody uses, back to the system. Allocations do
    /// it by themselves where there is no room. While a gate holds a stream, what may wait for the stream is left out.
    ///
    /// # Errors
    /// The device is lost.
    pub fn trim(&self) -> Result<()> {
        self.engine.trim()
    }

    /// Has the `nth` call of a kind from now on fail: for tests of what a failure does.
    #[doc(hidden)]
    pub fn inject(&self, what: Injected, nth: u64) {
        self.engine.injection().request(what, nth);
    }

    /// What the engine holds for the calls to come: for tests of what must not grow.
    #[doc(hidden)]
    pub fn footprint(&self) -> Footprint {
        self.engine.footprint()
    }

    /// Clocks, temperature, power and throttling now; `None` where there are no such sensors.
    ///
    /// # Errors
    /// The sensors are there and cannot be read.
    pub fn telemetry(&self) -> Result<Option<Telemetry>> {
        self.engine.telemetry()
    }

    pub(crate) fn engine(&self) -> &Arc<dyn Engine> {
        &self.engine
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Device({}, {})", self.name(), self.properties().model)
    }
}

/// A mark in a stream. Recording it again moves it; waits that were enqueued before keep the earlier mark.
///
/// ```
/// use syncscope::prelude::*;
///
/// let stream = Device::open("cpu:0")?.stream()?;
/// let event = stream.device().event()?;
/// stream.ones::<f32>([4])?;
/// stream.record(&event)?;
/// event.synchronize()?;
/// assert!(event.is_complete()?);
/// # Ok::<(), syncscope::error::DeviceError>(())
/// ```
#[derive(Clone)]
pub struct Event {
    raw: Arc<dyn EngineEvent>,
    recorded: Arc<Recorded>,
}

/// Which call recorded an event last, where that was while somebody recorded the device; 0 otherwise.
struct Recorded {
    tracer: Arc<Tracer>,
    by: AtomicU64,
}

impl Event {
    /// Whether the last recording has been reached; true for an event never recorded. Never blocks.
    ///
    /// # Errors
    /// A failure of the work before it.
    pub fn is_complete(&self) -> Result<bool> {
        self.raw.is_complete()
    }

    /// Synchronization point: waits until the last recording has been reached.
    ///
    /// # Errors
    /// A failure of the work before it.
    #[track_caller]
    pub fn synchronize(&self) -> Result<()> {
        let awaits = Some(self.recorded.by.load(Ordering::Relaxed)).filter(|by| *by > 0);
        let note = CallInfo { awaits, ..CallInfo::barrier("Event::synchronize", SyncKind::Event) };
        let _call = self.recorded.tracer.call(note, Some(Location::caller()));
        self.raw.synchronize()
    }

    /// Device time from `start` to this event; 0 where this one was reached first. Never blocks.
    ///
    /// # Errors
    /// [`DeviceError::EventNotReady`] unless both were made with timing, recorded and reached; [`DeviceError::ForeignObject`] for
    /// events of two devices; a failure of the work before either.
    pub fn elapsed_since(&self, start: &Event) -> Result<Duration> {
        self.raw.elapsed_since(&*start.raw)
    }

    /// When the last recording was reached, where the host's clock tells: `None` for an engine whose devices have a clock of their
    /// own.
    ///
    /// # Errors
    /// A failure of the work before it.
    pub fn reached(&self) -> Result<Option<std::time::Instant>> {
        self.raw.reached()
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Event").finish_non_exhaustive()
    }
}

/// A flag that streams wait on and the host opens: the way to hold a stream for exactly as long as is needed.
///
/// Dropping the last handle opens it, and so does the end of the process, so that no stream can wait for a gate that nobody can
/// open. Drops of other objects wait for no gate. While a stream is held, the thread that is to open the gate must not make a call that waits for the
/// device: besides the synchronization points, the first matrix multiplication of a shape, the first pinned host buffer of
/// a size, and a launch or an upload behind some nine hundred others, for which the stream's queue has no room. Questions and
/// drops wait for nothing, and a thread that waits keeps no other from calls that do not.
///
/// What a GPU would have to wait for when it is made is made with the first gate: flags for 256 gates and streams, 1,024
/// events without times and 256 with times, 16 streams at least, of which a capture takes one for as long as it lasts, and room
/// for the graphs of 32 captures at least. While a gate is closed, more of them are refused with an error.
/// A gate begins to hold a stream once calls under way that wait for the whole GPU have returned.
///
/// On a GPU, streams share its queues: 8 of them, or as many as the environment variable `CUDA_DEVICE_MAX_CONNECTIONS` says
/// (1 to 32) when the process begins. Where more streams are busy, a gate can hold work of another stream, too. Whoever makes
/// calls of unknown kind behind a gate opens it after a time, whatever happens: see [`held`](crate::measure::held).
///
/// ```
/// use syncscope::prelude::*;
///
/// let stream = Device::open("cpu:0")?.stream()?;
/// let gate = stream.device().gate()?;
/// stream.wait_gate(&gate)?;
/// stream.ones::<f32>([4])?;
/// assert!(!stream.is_complete()?, "the gate holds the stream");
/// gate.open();
/// stream.synchronize()?;
/// # Ok::<(), syncscope::error::DeviceError>(())
/// ```
#[derive(Clone)]
pub struct Gate {
    raw: Arc<dyn EngineGate>,
}

impl Gate {
    /// Lets every waiting stream go on. A gate stays open.
    pub fn open(&self) {
        self.raw.open();
    }

    #[cfg(feature = "cuda")]
    pub(crate) fn raw(&self) -> &dyn EngineGate {
        &*self.raw
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").finish_non_exhaustive()
    }
}

/// Locks a mutex, also where a thread panicked that had it: each change of what is guarded here is one step.
#[inline]
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
