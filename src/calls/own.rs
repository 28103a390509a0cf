//! The calls of an engine's own interface: the catalogue of the CPU engine, which declares what each of them waits for.
//!
//! They test the method where there is no GPU: what a gate shows must be what is declared ([`OwnCall::waits`]).

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

#[cfg(test)]
use super::Gated;
use super::catalogue::Action;
use super::made::plain;
use super::own_waiting::OwnWaiting;
use super::own_ways::OwnTransfers;
use super::ranks::Ranks;
use super::waiting::Waiting;
use super::ways::{MovedBy, Transfers};
use super::{Family, Made, On, Rig, RigStream, Steps, WaitMode};
use crate::Result;
use syncscope::affinity;
use syncscope::device::{Device, Event, Gate, Graph, HostKind, Stream};
use syncscope::error::DeviceError;
use syncscope::tensor::Tensor;

/// How many elements the calls that move some move.
const ELEMENTS: usize = 1024;

/// A call of the interface.
#[allow(missing_docs, reason = "each is named by its method in the table below")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnCall {
    SynchronizeDevice,
    SynchronizeStream,
    SynchronizeEvent,
    QueryStream,
    QueryEvent,
    Record,
    WaitEvent,
    WaitGate,
    Upload,
    Download,
    CopyFromBuffer,
    CopyToBuffer,
    CopyWithinDevice,
    Fill,
    Allocate,
    Free,
    AllocateHost,
    Trim,
    CreateStream,
    DropPendingStream,
    CreateEvent,
    DropPendingEvent,
    Capture,
    LaunchGraph,
    Launch,
    OpenDevice,
}

impl OwnCall {
    const ALL: [(Self, Family, &'static str); 26] = [
        (Self::SynchronizeDevice, Family::Wait, "Device::synchronize"),
        (Self::SynchronizeStream, Family::Wait, "Stream::synchronize"),
        (Self::SynchronizeEvent, Family::Wait, "Event::synchronize"),
        (Self::QueryStream, Family::Wait, "Stream::is_complete"),
        (Self::QueryEvent, Family::Wait, "Event::is_complete"),
        (Self::Record, Family::Wait, "Stream::record"),
        (Self::WaitEvent, Family::Wait, "Stream::wait"),
        (Self::WaitGate, Family::Wait, "Stream::wait_gate"),
        (Self::Upload, Family::Copy, "Stream::tensor"),
        (Self::Download, Family::Copy, "Tensor::to_vec"),
        (Self::CopyFromBuffer, Family::Copy, "Tensor::copy_from"),
        (Self::CopyToBuffer, Family::Copy, "Tensor::copy_to"),
        (Self::CopyWithinDevice, Family::Copy, "Tensor::contiguous"),
        (Self::Fill, Family::Fill, "Stream::full"),
        (Self::Allocate, Family::Memory, "Stream::allocate"),
        (Self::Free, Family::Memory, "Tensor::drop"),
        (Self::AllocateHost, Family::Memory, "Device::host_buffer"),
        (Self::Trim, Family::Memory, "Device::trim"),
        (Self::CreateStream, Family::Object, "Device::stream"),
        (Self::DropPendingStream, Family::Object, "Stream::drop"),
        (Self::CreateEvent, Family::Object, "Device::event"),
        (Self::DropPendingEvent, Family::Object, "Event::drop"),
        (Self::Capture, Family::Graph, "Stream::capture"),
        (Self::LaunchGraph, Family::Graph, "GraphCall::launch"),
        (Self::Launch, Family::Launch, "Stream::spin"),
        (Self::OpenDevice, Family::Device, "Device::open"),
    ];

    /// The calls of a family.
    pub fn of(family: Family) -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(move |(_, of, _)| *of == family).map(|(call, ..)| call)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::ALL.into_iter().find(|(call, ..)| *call == self).map_or("", |(.., name)| name)
    }

    /// The stream that it is given.
    pub fn on(self) -> On {
        match self {
            Self::SynchronizeDevice
            | Self::AllocateHost
            | Self::Trim
            | Self::CreateStream
            | Self::CreateEvent
            | Self::Capture
            | Self::OpenDevice => On::Nothing,
            _ => On::Stream,
        }
    }

    /// Whether it waits for a gate that holds a stream, as the engine declares.
    #[cfg(test)]
    pub fn waits(self, held: Gated) -> bool {
        match self {
            Self::SynchronizeDevice => held != Gated::Device,
            Self::SynchronizeStream | Self::SynchronizeEvent | Self::Download => held == Gated::Same,
            _ => false,
        }
    }
}

/// A rig of an engine's own streams.
pub(super) struct OwnCalls {
    shared: Rc<Shared>,
    waiting: RefCell<Option<JoinHandle<Result<()>>>>,
}

struct Shared {
    device: Device,
    other_device: Device,
    own: Stream,
    other: Stream,
    of_thread: Stream,
    of_device: Stream,
    tensor: Tensor<f32>,
}

impl OwnCalls {
    /// A rig on a device of the CPU engine.
    pub(super) fn new(device: &Device) -> Result<Self> {
        let elsewhere = if device.name() == "cpu:0" { "cpu:1" } else { "cpu:0" };
        let other_device = Device::open(elsewhere)?;
        let own = device.stream()?;
        let shared = Shared {
            other: device.stream()?,
            of_thread: device.stream()?,
            of_device: other_device.stream()?,
            tensor: own.empty([ELEMENTS])?,
            own,
            other_device,
            device: device.clone(),
        };
        Ok(Self { shared: Rc::new(shared), waiting: RefCell::new(None) })
    }

    fn stream(&self, line: RigStream) -> Result<&Stream> {
        let missing = |what: &str, reason: &str| DeviceError::NotApplicable {
            what: what.to_owned(),
            device: self.shared.device.name().to_owned(),
            reason: reason.to_owned(),
        };
        match line {
            RigStream::Own => Ok(&self.shared.own),
            RigStream::Other => Ok(&self.shared.other),
            RigStream::Thread => Ok(&self.shared.of_thread),
            RigStream::Device => Ok(&self.shared.of_device),
            RigStream::NonBlocking => {
                Err(missing("a non-blocking stream", "all streams of this engine are non-blocking"))
            }
            RigStream::Legacy => Err(missing("the legacy default stream", "this engine has no default stream")),
        }
    }
}

impl Rig for OwnCalls {
    fn steps(&self, action: &Action) -> Result<Box<dyn Steps>> {
        match action {
            Action::Own(call) => Ok(self.shared.steps(*call)),
            Action::Layer(_) | Action::Graph(_) => Err(DeviceError::NotApplicable {
                what: "a call of the driver".to_owned(),
                device: self.shared.device.name().to_owned(),
                reason: "this engine stands on no driver".to_owned(),
            }),
            other => Err(DeviceError::InvalidArgument { operation: "steps", reason: format!("{other:?}") }),
        }
    }

    fn hold(&self, line: RigStream) -> Result<Gate> {
        let stream = self.stream(line)?;
        let gate = stream.device().gate()?;
        stream.wait_gate(&gate)?;
        if line == RigStream::Thread {
            let (waits, waiting) = mpsc::channel::<()>();
            let stream = stream.clone();
            let wait = move || {
                drop(waits);
                stream.synchronize()
            };
            let waiter = affinity::elsewhere(|| std::thread::Builder::new().spawn(wait));
            let waiter = waiter.map_err(|error| affinity::no_thread("the host", &error))?;
            *self.waiting.borrow_mut() = Some(waiter);
            _ = waiting.recv();
        }
        Ok(gate)
    }

    fn keep_busy(&self, line: RigStream, duration: Duration) -> Result<()> {
        self.stream(line)?.spin(duration)
    }

    fn drain(&self) -> Result<()> {
        if let Some(waiting) = self.waiting.borrow_mut().take() {
            waiting.join().unwrap_or(Ok(()))?;
        }
        self.shared.device.synchronize()?;
        self.shared.other_device.synchronize()
    }

    fn wait_by(&self, mode: WaitMode) -> Result<()> {
        Err(DeviceError::NotApplicable {
            what: format!("the wait mode {}", mode.name()),
            device: self.shared.device.name().to_owned(),
            reason: CONDITION_VARIABLE.to_owned(),
        })
    }

    fn waiting(&self) -> Result<Box<dyn Waiting>> {
        OwnWaiting::new(&self.shared.own).map(|waiting| Box::new(waiting) as _)
    }

    fn transfers(&self, way: MovedBy, bytes: usize) -> Result<Box<dyn Transfers>> {
        OwnTransfers::new(&self.shared.device, way, bytes).map(|transfers| Box::new(transfers) as _)
    }

    fn ranks(&self, _: usize) -> Result<Box<dyn Ranks>> {
        Err(DeviceError::NotApplicable {
            what: "an all-reduce".to_owned(),
            device: self.shared.device.name().to_owned(),
            reason: "the devices of this engine are one host, which has nothing to exchange".to_owned(),
        })
    }
}

/// Why a thread has no other way to wait.
pub(super) const CONDITION_VARIABLE: &str = "a thread of this engine waits for a condition variable";

impl Shared {
    /// A call that needs nothing made.
    fn plain(self: &Rc<Self>, call: impl Fn(&Self) -> Result<()> + 'static) -> Box<dyn Steps> {
        let shared = Rc::clone(self);
        plain(move || call(&shared))
    }

    /// A call on what is made anew for each time.
    fn made<T: 'static>(
        self: &Rc<Self>,
        make: impl Fn(&Self) -> Result<T> + 'static,
        call: impl Fn(&Self, &mut T) -> Result<()> + 'static,
    ) -> Made<T> {
        let (maker, caller) = (Rc::clone(self), Rc::clone(self));
        Made::new(move || make(&maker), move |made| call(&caller, made))
    }

    /// A call on an event that is recorded behind the gate.
    fn recorded(self: &Rc<Self>, call: impl Fn(&Self, &Event) -> Result<()> + 'static) -> Box<dyn Steps> {
        let recorder = Rc::clone(self);
        self.made(|s| s.device.event(), move |s, event| call(s, event))
            .behind(move |event| recorder.own.record(event))
            .boxed()
    }

    /// The drop of what `make` makes, and what then stands before it.
    fn dropped<T: 'static>(
        self: &Rc<Self>,
        make: impl Fn(&Self) -> Result<T> + 'static,
        behind: impl Fn(&Self, &T) -> Result<()> + 'static,
    ) -> Box<dyn Steps> {
        let shared = Rc::clone(self);
        let drops = |_: &Self, made: &mut Option<T>| {
            drop(made.take());
            Ok(())
        };
        self.made(move |s| make(s).map(Some), drops)
            .behind(move |made| made.as_ref().map_or(Ok(()), |made| behind(&shared, made)))
            .boxed()
    }

    fn steps(self: &Rc<Self>, call: OwnCall) -> Box<dyn Steps> {
        let buffer = |s: &Self| s.device.host_buffer::<f32>(HostKind::Pageable, ELEMENTS);
        match call {
            OwnCall::SynchronizeDevice => self.plain(|s| s.device.synchronize()),
            OwnCall::SynchronizeStream => self.plain(|s| s.own.synchronize()),
            OwnCall::SynchronizeEvent => self.recorded(|_, event| event.synchronize()),
            OwnCall::QueryStream => self.plain(|s| s.own.is_complete().map(drop)),
            OwnCall::QueryEvent => self.recorded(|_, event| event.is_complete().map(drop)),
            OwnCall::Record => self.made(|s| s.device.event(), |s, event| s.own.record(event)).boxed(),
            OwnCall::WaitEvent => self.recorded(|s, event| s.own.wait(event)),
            OwnCall::WaitGate => {
                let opened = |s: &Self| s.device.gate().inspect(Gate::open);
                self.made(opened, |s, gate| s.own.wait_gate(gate)).boxed()
            }
            OwnCall::Upload => self.plain(|s| s.own.tensor(&[0.0f32; ELEMENTS], [ELEMENTS]).map(drop)),
            OwnCall::Download => self.plain(|s| s.tensor.to_vec().map(drop)),
            OwnCall::CopyFromBuffer => self.made(buffer, |s, buffer| s.tensor.copy_from(buffer)).boxed(),
            OwnCall::CopyToBuffer => self.made(buffer, |s, buffer| s.tensor.copy_to(buffer)).boxed(),
            OwnCall::CopyWithinDevice => {
                self.made(|s| s.own.empty::<f32>([ELEMENTS]), |s, out| out.assign(&s.tensor)).boxed()
            }
            OwnCall::Fill => self.plain(|s| s.own.full::<f32>([ELEMENTS], 1.0).map(drop)),
            OwnCall::Allocate => {
                let kept = |s: &Self, made: &mut Option<Tensor<f32>>| {
                    *made = Some(s.own.empty([ELEMENTS])?);
                    Ok(())
                };
                self.made(|_| Ok(None), kept).boxed()
            }
            OwnCall::Free => self.dropped(|s| s.own.empty::<f32>([ELEMENTS]), |_, _| Ok(())),
            OwnCall::AllocateHost => self.plain(move |s| buffer(s).map(drop)),
            OwnCall::Trim => self.plain(|s| s.device.trim()),
            OwnCall::CreateStream => self.plain(|s| s.device.stream().map(drop)),
            OwnCall::DropPendingStream => {
                let made = |s: &Self| Ok((s.device.stream()?, s.device.event()?));
                self.dropped(made, |s, (stream, event)| s.own.record(event).and_then(|()| stream.wait(event)))
            }
            OwnCall::CreateEvent => self.plain(|s| s.device.event().map(drop)),
            OwnCall::DropPendingEvent => self.dropped(|s| s.device.event(), |s, event| s.own.record(event)),
            OwnCall::Capture => {
                let capture = |_: &Self, stream: &mut Stream| stream.capture(|| stream.spin(Duration::ZERO)).map(drop);
                self.made(|s| s.device.stream(), capture).boxed()
            }
            OwnCall::LaunchGraph => {
                let captured = |s: &Self| s.own.capture(|| s.own.spin(Duration::ZERO)).map(|(_, graph)| graph);
                self.made(captured, |_, graph: &mut Graph| graph.launch()).boxed()
            }
            OwnCall::Launch => self.plain(|s| s.own.spin(Duration::ZERO)),
            OwnCall::OpenDevice => self.plain(|s| Device::open(s.device.name()).map(drop)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CallUnderTest;
    use crate::catalogue::calls;

    const FAMILIES: [Family; 9] = [
        Family::Wait,
        Family::Copy,
        Family::Fill,
        Family::Memory,
        Family::Code,
        Family::Object,
        Family::Graph,
        Family::Launch,
        Family::Device,
    ];

    /// A call that does not wait comes back however long that takes; one that waits is let go by the watchdog.
    #[test]
    fn a_gate_shows_what_the_engine_declares_of_each_of_its_calls() {
        let device = Device::open("cpu:0").unwrap();
        let mut tried = 0;
        for call in FAMILIES.into_iter().flat_map(|family| calls("cpu", family, &[4])) {
            let Action::Own(own) = call.action else { panic!("{call:?}") };
            let mut tested = CallUnderTest::new(&device, &call).unwrap();
            tested.rehearse().unwrap();
            for held in Gated::ALL {
                let declared = own.waits(held);
                let patience = Duration::from_millis(if declared { 20 } else { 60_000 });
                match tested.trial(held, patience, Duration::ZERO) {
                    Ok(trial) => {
                        assert_eq!(trial.waited, declared, "{} with {held:?} held", call.name);
                        tried += 1;
                    }
                    Err(DeviceError::NotApplicable { .. }) => {}
                    Err(error) => panic!("{}: {error}", call.name),
                }
            }
        }
        assert!(tried > 80, "{tried}");
    }
}
