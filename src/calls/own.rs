//! The calls of the library's own interface: the catalogue of the CPU engine, of which it is known what each of them waits for.
//!
//! They test the method where there is no GPU: what a gate shows must be what is known.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::catalogue::{Call, Make};
use super::clock::ByHost;
use super::cuda::NcclRanks;
use super::waiting::{Manner, PATIENCE, Waiting, poll};
use super::ways::{Heading, MovedBy, Transfers};
use super::{Family, Made, On, Result, Rig, Steps, StreamRole, WaitMode};
use syncscope::affinity;
use syncscope::device::{Device, Event, Gate, Graph, HostBuffer, HostKind, Stream};
use syncscope::error::DeviceError;
use syncscope::tensor::Tensor;

/// How many elements the calls that move some move.
const ELEMENTS: usize = 1024;

/// No work.
const NONE: Duration = Duration::ZERO;

/// A rig of an engine's own streams.
pub(super) struct OwnCalls {
    shared: Rc<Shared>,
    waiting: RefCell<Option<JoinHandle<Result<()>>>>,
}

pub(super) struct Shared {
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

    fn missing(&self, what: &str, reason: &str) -> DeviceError {
        DeviceError::not_applicable(what, self.shared.device.name(), reason)
    }

    fn stream(&self, line: StreamRole) -> Result<&Stream> {
        match line {
            StreamRole::Given => Ok(&self.shared.own),
            StreamRole::Other => Ok(&self.shared.other),
            StreamRole::Thread => Ok(&self.shared.of_thread),
            StreamRole::Device => Ok(&self.shared.of_device),
            StreamRole::NonBlocking => {
                Err(self.missing("a non-blocking stream", "all streams of this engine are non-blocking"))
            }
            StreamRole::Legacy => Err(self.missing("the legacy default stream", "this engine has no default stream")),
        }
    }
}

impl Rig for OwnCalls {
    fn steps(&self, call: &Call) -> Result<Box<dyn Steps>> {
        match call.make {
            Make::Own(make) => Ok(make(&self.shared)),
            Make::Driver(_) => Err(self.missing("a call of the driver", "this engine stands on no driver")),
        }
    }

    fn hold(&self, line: StreamRole) -> Result<Gate> {
        let stream = self.stream(line)?;
        let gate = stream.device().gate()?;
        stream.wait_gate(&gate)?;
        if line == StreamRole::Thread {
            let (waits, waiting) = mpsc::channel::<()>();
            let stream = stream.clone();
            let wait = move || {
                drop(waits);
                stream.synchronize()
            };
            let waiter = affinity::elsewhere(|| std::thread::Builder::new().spawn(wait));
            let waiter =
                waiter.map_err(|error| DeviceError::call_failed("the host", "thread::spawn", error.to_string()))?;
            *self.waiting.borrow_mut() = Some(waiter);
            _ = waiting.recv();
        }
        Ok(gate)
    }

    fn keep_busy(&self, line: StreamRole, duration: Duration) -> Result<()> {
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
        Err(self.missing(&format!("the wait mode {}", mode.name()), CONDITION_VARIABLE))
    }

    fn waiting(&self) -> Result<Box<dyn Waiting>> {
        let Shared { device, own, .. } = &*self.shared;
        Ok(Box::new(OwnWaiting { own: own.clone(), beside: device.stream()?, end: device.event()? }))
    }

    /// The engine says why it has no other memory than pageable: its devices are the host.
    fn transfers(&self, way: MovedBy, bytes: usize) -> Result<Box<dyn Transfers>> {
        let device = &self.shared.device;
        let kind = if way == MovedBy::Pageable { HostKind::Pageable } else { HostKind::Pinned };
        let buffer = || device.host_buffer::<u8>(kind, bytes).map(RefCell::new);
        let streams = [device.stream()?, device.stream()?];
        let tensors = [streams[0].empty([bytes])?, streams[1].empty([bytes])?];
        Ok(Box::new(OwnTransfers { buffers: [buffer()?, buffer()?], streams, tensors }))
    }

    fn ranks(&self, _: usize) -> Result<NcclRanks> {
        let reason = "the devices of this engine are one host, which has nothing to exchange";
        Err(self.missing("an all-reduce", reason))
    }
}

/// Why a thread has no other way to wait.
const CONDITION_VARIABLE: &str = "a thread of this engine waits for a condition variable";

impl Shared {
    /// A call that needs nothing made.
    fn plain(self: &Rc<Self>, call: impl Fn(&Self) -> Result<()> + 'static) -> Box<dyn Steps> {
        self.made(|_| Ok(()), move |shared, ()| call(shared)).boxed()
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
        let steps = self.made(|s| s.device.event(), move |s, event| call(s, event));
        steps.behind(move |event| recorder.own.record(event)).boxed()
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
        let steps = self.made(move |s| make(s).map(Some), drops);
        steps.behind(move |made| made.as_ref().map_or(Ok(()), |made| behind(&shared, made))).boxed()
    }
}

/// What makes a call ready on a rig.
pub(super) type OwnMake = fn(&Rc<Shared>) -> Box<dyn Steps>;

fn buffer(shared: &Shared) -> Result<HostBuffer<f32>> {
    shared.device.host_buffer(HostKind::Pageable, ELEMENTS)
}

/// The calls of a family, by the names of their methods.
pub(super) fn calls(family: Family) -> Vec<Call> {
    let on = |on| move |name, make: OwnMake| Call::new(name, on, Make::Own(make));
    let (given, none) = (on(On::Stream), on(On::Nothing));
    match family {
        Family::Wait => vec![
            none("Device::synchronize", |s| s.plain(|s| s.device.synchronize())),
            given("Stream::synchronize", |s| s.plain(|s| s.own.synchronize())),
            given("Event::synchronize", |s| s.recorded(|_, event| event.synchronize())),
            given("Stream::is_complete", |s| s.plain(|s| s.own.is_complete().map(drop))),
            given("Event::is_complete", |s| s.recorded(|_, event| event.is_complete().map(drop))),
            given("Stream::record", |s| s.made(|s| s.device.event(), |s, event| s.own.record(event)).boxed()),
            given("Stream::wait", |s| s.recorded(|s, event| s.own.wait(event))),
            given("Stream::wait_gate", |s| {
                s.made(|s| s.device.gate().inspect(Gate::open), |s, gate| s.own.wait_gate(gate)).boxed()
            }),
        ],
        Family::Copy => vec![
            given("Stream::tensor", |s| s.plain(|s| s.own.tensor(&[0.0f32; ELEMENTS], [ELEMENTS]).map(drop))),
            given("Tensor::to_vec", |s| s.plain(|s| s.tensor.to_vec().map(drop))),
            given("Tensor::copy_from", |s| s.made(buffer, |s, buffer| s.tensor.copy_from(buffer)).boxed()),
            given("Tensor::copy_to", |s| s.made(buffer, |s, buffer| s.tensor.copy_to(buffer)).boxed()),
            given("Tensor::contiguous", |s| {
                s.made(|s| s.own.empty::<f32>([ELEMENTS]), |s, out| out.assign(&s.tensor)).boxed()
            }),
        ],
        Family::Fill => {
            vec![given("Stream::full", |s| s.plain(|s| s.own.full::<f32>([ELEMENTS], 1.0).map(drop)))]
        }
        Family::Memory => vec![
            given("Stream::allocate", |s| {
                let kept = |s: &Shared, made: &mut Option<Tensor<f32>>| {
                    *made = Some(s.own.empty([ELEMENTS])?);
                    Ok(())
                };
                s.made(|_| Ok(None), kept).boxed()
            }),
            given("Tensor::drop", |s| s.dropped(|s| s.own.empty::<f32>([ELEMENTS]), |_, _| Ok(()))),
            none("Device::host_buffer", |s| s.plain(|s| buffer(s).map(drop))),
            none("Device::trim", |s| s.plain(|s| s.device.trim())),
        ],
        Family::Code => Vec::new(),
        Family::Object => vec![
            none("Device::stream", |s| s.plain(|s| s.device.stream().map(drop))),
            given("Stream::drop", |s| {
                let made = |s: &Shared| Ok((s.device.stream()?, s.device.event()?));
                s.dropped(made, |s, (stream, event)| s.own.record(event).and_then(|()| stream.wait(event)))
            }),
            none("Device::event", |s| s.plain(|s| s.device.event().map(drop))),
            given("Event::drop", |s| s.dropped(|s| s.device.event(), |s, event| s.own.record(event))),
        ],
        Family::Graph => vec![
            none("Stream::capture", |s| {
                let capture = |_: &Shared, stream: &mut Stream| stream.capture(|| stream.spin(NONE)).map(drop);
                s.made(|s| s.device.stream(), capture).boxed()
            }),
            given("GraphCall::launch", |s| {
                let captured = |s: &Shared| s.own.capture(|| s.own.spin(NONE)).map(|(_, graph)| graph);
                s.made(captured, |_, graph: &mut Graph| graph.launch()).boxed()
            }),
        ],
        Family::Launch => vec![given("Stream::spin", |s| s.plain(|s| s.own.spin(NONE)))],
        Family::Device => vec![none("Device::open", |s| s.plain(|s| Device::open(s.device.name()).map(drop)))],
    }
}

/// Work on a stream of the engine, whose end an event marks.
struct OwnWaiting {
    own: Stream,
    beside: Stream,
    end: Event,
}

impl Waiting for OwnWaiting {
    fn prepare(&self) -> Result<()> {
        Ok(())
    }

    fn begin(&self, _: Manner, length: Duration) -> Result<()> {
        self.own.spin(length)?;
        self.own.record(&self.end)
    }

    fn wait(&self, manner: Manner) -> Result<()> {
        let until = Instant::now() + PATIENCE;
        let over = match manner {
            // The thread that works wakes the one that waits by a condition variable.
            Manner::HostFunction => return self.own.synchronize(),
            Manner::Query => poll(until, || self.own.is_complete())?,
            Manner::Flag => poll(until, || self.end.is_complete())?,
            Manner::Driver(_) | Manner::WaitValue => {
                let what = format!("the wait mode {}", manner.name());
                return Err(DeviceError::not_applicable(what, self.own.device().name(), CONDITION_VARIABLE));
            }
        };
        over.then_some(()).ok_or_else(|| {
            let reason = format!("the work was not over after {} s", PATIENCE.as_secs());
            DeviceError::call_failed(self.own.device().name(), "is_complete", reason)
        })
    }

    fn launch_beside(&self) -> Result<()> {
        self.beside.spin(Duration::ZERO)
    }

    fn settle(&self) -> Result<()> {
        self.own.synchronize()?;
        self.beside.synchronize()
    }

    fn ended(&self) -> Result<ByHost> {
        let never = || DeviceError::EventNotReady { reason: "no work was begun" };
        self.end.reached()?.map(|at| ByHost { at, within: Duration::ZERO }).ok_or_else(never)
    }
}

/// A block of each side for each direction, each direction with a stream of its own.
struct OwnTransfers {
    streams: [Stream; 2],
    buffers: [RefCell<HostBuffer<u8>>; 2],
    tensors: [Tensor<u8>; 2],
}

impl Transfers for OwnTransfers {
    fn prepare(&self) -> Result<()> {
        Ok(())
    }

    fn transfer(&self, heading: Heading) -> Result<()> {
        if heading != Heading::Back {
            self.tensors[0].copy_from(&self.buffers[0].borrow())?;
        }
        if heading != Heading::Away {
            self.tensors[1].copy_to(&mut self.buffers[1].borrow_mut())?;
        }
        self.streams.iter().try_for_each(Stream::synchronize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::calls;
    use crate::{CallUnderTest, StreamRole};

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

    /// Whether a call waits for a gate that holds a stream, as the engine declares.
    fn waits(call: &str, held: StreamRole) -> bool {
        match call {
            "Device::synchronize" => held != StreamRole::Device,
            "Stream::synchronize" | "Event::synchronize" | "Tensor::to_vec" => held == StreamRole::Given,
            _ => false,
        }
    }

    /// A call that does not wait comes back however long that takes; one that waits is let go by the watchdog.
    #[test]
    fn a_gate_shows_what_the_engine_declares_of_each_of_its_calls() {
        let device = Device::open("cpu:0").unwrap();
        let mut tried = 0;
        for call in FAMILIES.into_iter().flat_map(|family| calls("cpu", family, &[4])) {
            let mut tested = CallUnderTest::new(&device, &call).unwrap();
            tested.rehearse().unwrap();
            for held in StreamRole::ALL {
                let declared = waits(call.name, held);
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
