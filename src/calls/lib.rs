//! What the calls of CUDA's driver wait for: the trials behind the experiments about them.
//!
//! An engine offers a catalogue of calls ([`catalogue`]) and a rig: streams that can be held or kept busy, and each
//! call of the catalogue as steps. A call is prepared while nothing is pending, made while a gate holds a stream, and
//! what it made is ended when the gate is open and all work is over. A watchdog opens the gate, so that no call hangs.
//!
//! On a GPU the calls are the driver's: the rig has streams of its own, and touches nothing that a user of the device has
//! ([`syncscope::device::raw`]). On the CPU engine they are those of the library, whose waits are known: they test the method.
//!
//! This crate imports the library alone. Begin with [`CallUnderTest`].

// Allowed where the driver is called, `cuda::driver`, alone.
#![deny(unsafe_code)]

pub mod catalogue;
mod clock;
mod cuda;
mod made;
mod own;
pub mod parts;
pub mod process;
pub mod ranks;
mod trial;
pub mod waiting;
pub mod ways;

use std::time::Duration;

pub use cuda::layers;
use made::Made;
use own::OwnCalls;

use catalogue::Call;
use syncscope::device::{Device, Gate, raw};
use syncscope::error::DeviceError;

/// The result of a trial.
type Result<T> = std::result::Result<T, DeviceError>;

/// A kind of calls: one page of the reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Waiting, asking, and what is enqueued to order streams.
    Wait,
    /// Copies.
    Copy,
    /// Setting memory to a value.
    Fill,
    /// Allocating and freeing memory of all kinds.
    Memory,
    /// Loading code and asking about it.
    Code,
    /// Streams and events.
    Object,
    /// Graphs.
    Graph,
    /// Launches, and settings of the context that concern them.
    Launch,
    /// Contexts and other devices.
    Device,
}

/// The stream that a call is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    /// None.
    Nothing,
    /// A stream that was created with the default flags.
    Stream,
    /// The legacy default stream.
    Legacy,
}

/// A stream by what it is to a call: which one a gate holds while the call is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamRole {
    /// The stream that the call is given.
    Given,
    /// Another stream of the same thread, created with the default flags: it is ordered against the legacy default stream.
    Other,
    /// Another stream that is ordered against no other.
    NonBlocking,
    /// The legacy default stream.
    Legacy,
    /// A stream of another thread, which waits for it meanwhile.
    Thread,
    /// A stream of another device.
    Device,
}

impl StreamRole {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Given, Self::Other, Self::NonBlocking, Self::Legacy, Self::Thread, Self::Device];

    /// Its name, as a parameter of a row.
    pub fn name(self) -> &'static str {
        ["same", "other", "non-blocking", "legacy", "thread", "device"][self as usize]
    }
}

/// How a thread waits in the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitMode {
    /// It asks again and again.
    Spin,
    /// It asks, and lets other threads run in between.
    Yield,
    /// It sleeps until an interrupt.
    Block,
}

impl WaitMode {
    /// Those that an engine has; none is the only one of an engine that has no choice.
    pub fn of(engine: &str) -> &'static [Option<Self>] {
        if engine == "cpu" { &[None] } else { &[Some(Self::Spin), Some(Self::Yield), Some(Self::Block)] }
    }

    /// Its name, as a parameter of a row.
    pub fn name(self) -> &'static str {
        ["spin", "yield", "block"][self as usize]
    }
}

/// What calls are tried with. It belongs to one thread.
trait Rig {
    /// A call of the catalogue.
    ///
    /// # Errors
    /// [`NotApplicable`](DeviceError::NotApplicable) says what it needs that is not here.
    fn steps(&self, call: &Call) -> Result<Box<dyn Steps>>;

    /// Has a stream wait for a gate, which is closed and opens when it is dropped.
    ///
    /// # Errors
    /// As [`steps`](Self::steps), for a stream that is not here.
    fn hold(&self, line: StreamRole) -> Result<Gate>;

    /// Keeps a stream busy for this long.
    fn keep_busy(&self, line: StreamRole, duration: Duration) -> Result<()>;

    /// Waits until all streams of the rig are idle; all gates are open.
    fn drain(&self) -> Result<()>;

    /// Has threads wait in this way from now on, as long as the rig is there. A new one spins, where there is a choice.
    fn wait_by(&self, mode: WaitMode) -> Result<()>;

    /// The ways to wait for work of its own, as long as the rig is there.
    fn waiting(&self) -> Result<Box<dyn waiting::Waiting>>;

    /// The transfers of a way for so many bytes, as long as the rig is there.
    ///
    /// # Errors
    /// [`NotApplicable`](DeviceError::NotApplicable) says what is not here.
    fn transfers(&self, way: ways::MovedBy, bytes: usize) -> Result<Box<dyn ways::Transfers>>;

    /// The ranks of an all-reduce over all devices of the engine, of so many bytes each.
    ///
    /// # Errors
    /// [`NotApplicable`](DeviceError::NotApplicable) says what is not here.
    fn ranks(&self, bytes: usize) -> Result<cuda::NcclRanks>;
}

/// What calls of a device are tried with.
fn rig(device: &Device) -> Result<Box<dyn Rig>> {
    match raw::context(device)? {
        Some(context) => Ok(Box::new(cuda::CudaRig::new(device, &context)?)),
        None => Ok(Box::new(OwnCalls::new(device)?)),
    }
}

/// A call, step by step.
trait Steps {
    /// What it needs, made anew for each time. Nothing is held.
    fn prepare(&mut self) -> Result<()>;

    /// What stands before the call, behind the gate where one holds its stream: an event that is recorded there.
    fn enqueue(&mut self) -> Result<()>;

    /// The call itself.
    fn call(&mut self) -> Result<()>;

    /// Ends what was made; all work is over.
    fn finish(&mut self);
}

/// A call of the catalogue, ready to be tried.
pub struct CallUnderTest {
    rig: Box<dyn Rig>,
    steps: Box<dyn Steps>,
    call: Call,
}

impl CallUnderTest {
    /// A call of the device's catalogue.
    ///
    /// # Errors
    /// [`NotApplicable`](DeviceError::NotApplicable) says what it needs that is not here.
    pub fn new(device: &Device, call: &Call) -> Result<Self> {
        Self::on(rig(device)?, call)
    }

    fn on(rig: Box<dyn Rig>, call: &Call) -> Result<Self> {
        let steps = rig.steps(call)?;
        Ok(Self { rig, steps, call: call.clone() })
    }
}
