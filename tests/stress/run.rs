//! Runs a program on two devices with its threads, compares what it reads, and notices when it hangs.

use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use syncscope::device::{Device, Event, Gate, Graph, HostBuffer, HostKind, Stream};
use syncscope::error::DeviceError;
use syncscope::tensor::Tensor;

use crate::Outcome;
use crate::held::{Held, compare, integers, of_any, of_real, of_two};
use crate::program::{Action, DEVICES, Id, Kind, Part, Program, Step, THREADS};

/// How the report of a hang begins.
pub(crate) const HANGS: &str = "no step ended";

/// How long a program that hangs may take once its gates are open.
const GRACE: Duration = Duration::from_secs(5);

/// What a step made.
enum Object {
    Stream(Stream),
    Tensor(Held),
    Graph(Graph),
    Gate(Gate),
    Buffer(HostBuffer<f32>),
}

/// A program that runs.
struct World {
    program: Program,
    devices: [Device; DEVICES],
    objects: Vec<Mutex<Option<Object>>>,
    events: Vec<OnceLock<Event>>,
    /// Open all of them, and no stream is held.
    gates: Mutex<Vec<Gate>>,
    progress: Mutex<Progress>,
    advanced: Condvar,
    /// By thread: its step and one more; 0 before the first.
    at: [AtomicUsize; THREADS],
}

struct Progress {
    done: Vec<bool>,
    /// What went wrong first.
    failed: Option<String>,
    since: Instant,
}

/// Runs a program; the error says what went wrong, and where.
/// It hangs when no step ends for `patience`.
pub(crate) fn run(program: &Program, devices: &[Device; DEVICES], patience: Duration) -> Outcome<()> {
    let steps = program.steps.len();
    let world = Arc::new(World {
        program: program.clone(),
        devices: devices.clone(),
        objects: (0..steps).map(|_| Mutex::new(None)).collect(),
        events: (0..steps).map(|_| OnceLock::new()).collect(),
        gates: Mutex::default(),
        progress: Mutex::new(Progress { done: vec![false; steps], failed: None, since: Instant::now() }),
        advanced: Condvar::new(),
        at: Default::default(),
    });
    let (ended, ends) = mpsc::channel();
    for thread in 0..THREADS {
        let (world, ended) = (Arc::clone(&world), ended.clone());
        std::thread::spawn(move || {
            world.thread(thread);
            drop(world);
            let _ = ended.send(());
        });
    }
    world.watch(&ends, THREADS, patience, "")?;
    // Whatever is left goes in some order, with streams held and copies pending. No handle of the world is left behind.
    let tearing_down = Arc::clone(&world);
    std::thread::spawn(move || {
        tearing_down.tear_down();
        drop(tearing_down);
        let _ = ended.send(());
    });
    world.watch(&ends, 1, patience, "the end, where what is left is dropped")?;
    let failed = world.progress().failed.take();
    failed.map_or(Ok(()), Err)
}

/// A poisoned lock is as good as another: a panic is noted by itself.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn text(error: DeviceError) -> String {
    error.to_string()
}

impl World {
    fn progress(&self) -> MutexGuard<'_, Progress> {
        lock(&self.progress)
    }

    /// Waits for `count` ends. After a hang the gates are opened, so that threads which only wait for them come to an end.
    fn watch(&self, ends: &mpsc::Receiver<()>, count: usize, patience: Duration, phase: &str) -> Outcome<()> {
        let mut ended = 0;
        while ended < count {
            match ends.recv_timeout(Duration::from_millis(200)) {
                Ok(()) => ended += 1,
                Err(RecvTimeoutError::Disconnected) => return Err("a thread was lost".to_owned()),
                Err(RecvTimeoutError::Timeout) if self.progress().since.elapsed() < patience => {}
                Err(RecvTimeoutError::Timeout) => {
                    let said = self.hang(patience, phase);
                    // Whoever waits for another step gives up at once, and the others when their gates are open.
                    let freed = (ended..count).all(|_| ends.recv_timeout(GRACE).is_ok());
                    let after = if freed { "it went on" } else { "it did not go on" };
                    return Err(format!("{said}; {after} when the gates of the program were opened"));
                }
            }
        }
        Ok(())
    }

    /// What hangs; opens the gates.
    #[cold]
    fn hang(&self, patience: Duration, phase: &str) -> String {
        let mut said = format!("{HANGS} for {} s", patience.as_secs());
        if !phase.is_empty() {
            let _ = write!(said, " in {phase}");
        }
        let mut progress = self.progress();
        for (thread, at) in self.at.iter().enumerate() {
            match at.load(Ordering::Relaxed).checked_sub(1) {
                Some(id) if !progress.done[id] => {
                    let _ = write!(said, "; thread {thread} is in step {id}, {}", self.program.steps[id]);
                }
                _ => {}
            }
        }
        progress.failed.get_or_insert_with(|| said.clone());
        drop(progress);
        self.advanced.notify_all();
        lock(&self.gates).iter().for_each(Gate::open);
        said
    }

    /// The steps of one thread, until one fails on any.
    fn thread(&self, thread: usize) {
        for (id, step) in self.program.steps.iter().enumerate().filter(|(_, step)| step.thread == thread) {
            if !self.wait_for(&step.after) {
                return;
            }
            self.at[thread].store(id + 1, Ordering::Relaxed);
            let outcome = catch_unwind(AssertUnwindSafe(|| self.step(id, step)));
            let outcome = outcome.unwrap_or_else(|panic| {
                let said = panic.downcast_ref::<String>().cloned();
                let said = said.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()));
                Err(format!("a panic: {}", said.unwrap_or_default()))
            });
            let mut progress = self.progress();
            progress.done[id] = true;
            progress.since = Instant::now();
            if let Err(error) = outcome {
                progress.failed.get_or_insert(format!("step {id}, {step}: {error}"));
                // Nobody is to wait for what this thread would have opened.
                lock(&self.gates).iter().for_each(Gate::open);
            }
            drop(progress);
            self.advanced.notify_all();
        }
    }

    /// Waits for steps; false where a step has failed.
    fn wait_for(&self, after: &[Id]) -> bool {
        let mut progress = self.progress();
        loop {
            if progress.failed.is_some() {
                return false;
            }
            if after.iter().all(|&id| progress.done[id]) {
                return true;
            }
            progress = self.advanced.wait(progress).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Drops what is left, in an order that depends on the program alone.
    fn tear_down(&self) {
        lock(&self.gates).clear();
        let steps = self.objects.len();
        let mut order: Vec<Id> = (0..steps).collect();
        order.sort_by_key(|id| (id + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(steps << 40) >> 20);
        for id in order {
            self.take(id);
            self.progress().since = Instant::now();
        }
    }

    /// Drops what a step made.
    fn take(&self, id: Id) {
        // Not while the lock is held: a drop may take its time.
        let object = lock(&self.objects[id]).take();
        drop(object);
    }

    fn put(&self, id: Id, object: Object) {
        *lock(&self.objects[id]) = Some(object);
    }

    fn stream(&self, id: Id) -> Outcome<Stream> {
        match &*lock(&self.objects[id]) {
            Some(Object::Stream(stream)) => Ok(stream.clone()),
            _ => Err(format!("there is no stream {id}")),
        }
    }

    fn tensor(&self, id: Id) -> Outcome<Held> {
        match &*lock(&self.objects[id]) {
            Some(Object::Tensor(tensor)) => Ok(tensor.clone()),
            _ => Err(format!("there is no tensor {id}")),
        }
    }

    fn graph(&self, id: Id) -> Outcome<Graph> {
        match &*lock(&self.objects[id]) {
            Some(Object::Graph(graph)) => Ok(graph.clone()),
            _ => Err(format!("there is no graph {id}")),
        }
    }

    fn gate(&self, id: Id) -> Outcome<Gate> {
        match &*lock(&self.objects[id]) {
            Some(Object::Gate(gate)) => Ok(gate.clone()),
            _ => Err(format!("there is no gate {id}")),
        }
    }

    /// A buffer, which one step uses at a time.
    fn with_buffer<R>(&self, id: Id, act: impl FnOnce(&mut HostBuffer<f32>) -> Outcome<R>) -> Outcome<R> {
        match &mut *lock(&self.objects[id]) {
            Some(Object::Buffer(buffer)) => act(buffer),
            _ => Err(format!("there is no buffer {id}")),
        }
    }

    fn step(&self, id: Id, step: &Step) -> Outcome<()> {
        let stream = match (&step.action, step.stream) {
            // Its stream may have been dropped.
            (Action::Launch { graph }, _) => Some(self.graph(*graph)?.stream().clone()),
            (_, Some(stream)) => Some(self.stream(stream)?),
            (_, None) => None,
        };
        if let Some(stream) = &stream {
            for other in &step.waits {
                let event = self.events[*other].get().ok_or_else(|| format!("step {other} recorded no event"))?;
                stream.wait(event).map_err(text)?;
            }
        }
        let made = match &stream {
            Some(stream) => self.on_stream(&step.action, stream)?,
            None => self.on_none(&step.action)?,
        };
        if let Some(made) = made {
            if let Object::Gate(gate) = &made {
                lock(&self.gates).push(gate.clone());
            }
            self.put(id, made);
        }
        if let (true, Some(stream)) = (step.records, &stream) {
            let event = stream.device().event().map_err(text)?;
            stream.record(&event).map_err(text)?;
            let _ = self.events[id].set(event);
        }
        Ok(())
    }

    /// An action on a stream.
    fn on_stream(&self, action: &Action, stream: &Stream) -> Outcome<Option<Object>> {
        let tensor = |id: Id| self.tensor(id)?.on(stream).map_err(text);
        let made = match action {
            Action::Full { dtype, len, value } => Held::full(stream, *dtype, *len, *value).map_err(text)?,
            Action::Upload { dtype, values } => Held::upload(stream, *dtype, &values.0).map_err(text)?,
            Action::Affine { x, scale, shift } => {
                let x = tensor(*x)?;
                of_real!(&x, x => x.affine(*scale as f32, *shift as f32).map_err(text)?)
            }
            Action::Elementwise { kind, x, y } => {
                let (x, y) = (tensor(*x)?, tensor(*y)?);
                of_two!(&x, &y, x, y => match kind {
                    Kind::Add => x.add(y),
                    Kind::Subtract => x.subtract(y),
                    Kind::Multiply => x.multiply(y),
                }.map_err(text)?)
            }
            Action::Matmul { x, y, sizes: [m, k, n] } => {
                let (x, y) = (tensor(*x)?, tensor(*y)?);
                of_two!(&x, &y, x, y => matmul(x, y, [*m, *k, *n]).map_err(text)?)
            }
            Action::Greater { x, threshold } => {
                let x = tensor(*x)?;
                Held::U8(match &x {
                    Held::F16(x) => x.gt(*threshold as f32),
                    Held::BF16(x) => x.gt(*threshold as f32),
                    Held::F32(x) => x.gt(*threshold as f32),
                    Held::I64(_) | Held::U8(_) => return Err("a real type is needed".to_owned()),
                }
                .map_err(text)?)
            }
            Action::Sum { x } => {
                let x = tensor(*x)?;
                let sum = match &x {
                    Held::F16(x) => x.sum(),
                    Held::BF16(x) => x.sum(),
                    Held::F32(x) => x.sum(),
                    Held::I64(_) | Held::U8(_) => return Err("a real type is needed".to_owned()),
                };
                Held::F32(sum.and_then(|sum| sum.reshape([1])).map_err(text)?)
            }
            Action::Gather { x, width, rows, by_host } => {
                let x = tensor(*x)?;
                let device_rows: Vec<i64> = rows.iter().map(|&row| row as i64).collect();
                of_real!(&x, x => {
                    let matrix = x.reshape([x.len() / width, *width]).map_err(text)?;
                    let taken = if *by_host {
                        matrix.index_select(rows)
                    } else {
                        stream.tensor(&device_rows, [rows.len()]).and_then(|rows| matrix.gather(&rows))
                    };
                    taken.and_then(|taken| taken.reshape([rows.len() * width])).map_err(text)?
                })
            }
            Action::Stack { x, y } => {
                let (x, y) = (tensor(*x)?, tensor(*y)?);
                of_two!(&x, &y, x, y => {
                    let both = Tensor::stack(&[x.clone(), y.clone()]);
                    both.and_then(|both| both.reshape([2 * x.len()])).map_err(text)?
                })
            }
            Action::Nonzero { x, expected } => {
                let x = tensor(*x)?;
                let found = of_any!(&x, x => x.nonzero().map_err(text)?);
                if found.len() != expected.0.len() {
                    return Err(format!("{} positions instead of {}", found.len(), expected.0.len()));
                }
                Held::I64(found)
            }
            Action::Hold => {
                let gate = stream.device().gate().map_err(text)?;
                stream.wait_gate(&gate).map_err(text)?;
                return Ok(Some(Object::Gate(gate)));
            }
            Action::Capture { parts } => return self.capture(parts, stream).map(|graph| Some(Object::Graph(graph))),
            _ => return self.without_result(action, stream).map(|()| None),
        };
        Ok(Some(Object::Tensor(made)))
    }

    /// An action on a stream that makes nothing.
    fn without_result(&self, action: &Action, stream: &Stream) -> Outcome<()> {
        let tensor = |id: Id| self.tensor(id)?.on(stream).map_err(text);
        match action {
            Action::AffineInPlace { x, scale, shift } => {
                let x = tensor(*x)?;
                of_real!(&x, x => {
                    x.affine_in_place(*scale as f32, *shift as f32).map_err(text)?;
                    x.clone()
                });
                Ok(())
            }
            Action::Assign { target, source } => match (tensor(*target)?, tensor(*source)?) {
                (Held::F16(x), Held::F16(y)) => x.assign(&y),
                (Held::BF16(x), Held::BF16(y)) => x.assign(&y),
                (Held::F32(x), Held::F32(y)) => x.assign(&y),
                (Held::I64(x), Held::I64(y)) => x.assign(&y),
                (Held::U8(x), Held::U8(y)) => x.assign(&y),
                _ => return Err("two types were assigned".to_owned()),
            }
            .map_err(text),
            Action::Spin { microseconds } => stream.spin(Duration::from_micros(*microseconds)).map_err(text),
            Action::Read { x, expected } => compare(&tensor(*x)?.read()?, &expected.0),
            Action::Item { x, at, expected } => {
                let x = tensor(*x)?;
                let value = of_any!(&x, x => integers(&[x.get([*at]).and_then(|x| x.item()).map_err(text)?]));
                compare(&value, &[*expected])
            }
            Action::Any { x, expected } => {
                let x = tensor(*x)?;
                let any = of_any!(&x, x => x.any().map_err(text)?);
                if any == *expected { Ok(()) } else { Err(format!("any is {any}")) }
            }
            Action::CopyTo { buffer, x } => {
                let Held::F32(x) = tensor(*x)? else { return Err("buffers are of fp32".to_owned()) };
                self.with_buffer(*buffer, |buffer| x.copy_to(buffer).map_err(text))
            }
            Action::CopyFrom { buffer, x } => {
                let Held::F32(x) = tensor(*x)? else { return Err("buffers are of fp32".to_owned()) };
                self.with_buffer(*buffer, |buffer| x.copy_from(buffer).map_err(text))
            }
            Action::Synchronize => stream.synchronize().map_err(text),
            Action::Launch { graph } => self.graph(*graph)?.launch().map_err(text),
            other => Err(format!("{other:?} needs no stream")),
        }
    }

    fn capture(&self, parts: &[Part], stream: &Stream) -> Outcome<Graph> {
        let (_, graph) = stream
            .capture(|| {
                for part in parts {
                    let outcome = match part {
                        Part::InPlace { x, scale, shift } => self.tensor(*x).and_then(|x| {
                            let x = x.on(stream).map_err(text)?;
                            of_real!(&x, x => {
                                x.affine_in_place(*scale as f32, *shift as f32).map_err(text)?;
                                x.clone()
                            });
                            Ok(())
                        }),
                        Part::Through { target, source, scale, shift } => self.tensor(*target).and_then(|target| {
                            let (x, y) = (target.on(stream).map_err(text)?, self.tensor(*source)?);
                            let y = y.on(stream).map_err(text)?;
                            of_two!(&x, &y, x, y => {
                                let between = y.affine(*scale as f32, *shift as f32).map_err(text)?;
                                x.assign(&between).map_err(text)?;
                                x.clone()
                            });
                            Ok(())
                        }),
                    };
                    outcome.map_err(|reason| DeviceError::InvalidArgument { operation: "capture", reason })?;
                }
                Ok(())
            })
            .map_err(text)?;
        Ok(graph)
    }

    /// An action on no stream.
    fn on_none(&self, action: &Action) -> Outcome<Option<Object>> {
        Ok(Some(match action {
            Action::NewStream { device } => Object::Stream(self.devices[*device].stream().map_err(text)?),
            Action::View { x, width, row } => Object::Tensor(self.tensor(*x)?.row(*width, *row).map_err(text)?),
            Action::Share { x } => Object::Tensor(self.tensor(*x)?),
            Action::NewBuffer { device, len } => {
                let device = &self.devices[*device];
                Object::Buffer(device.host_buffer(kind(device), *len).map_err(text)?)
            }
            Action::Drop { of } => {
                lock(&self.gates).retain(|gate| !self.is_made(*of, gate));
                self.take(*of);
                return Ok(None);
            }
            other => return self.without_object(other).map(|()| None),
        }))
    }

    /// Whether step `id` made this gate.
    fn is_made(&self, id: Id, gate: &Gate) -> bool {
        matches!(&*lock(&self.objects[id]), Some(Object::Gate(made)) if format!("{made:?}") == format!("{gate:?}"))
    }

    fn without_object(&self, action: &Action) -> Outcome<()> {
        match action {
            Action::ReadBuffer { buffer, expected } => self.with_buffer(*buffer, |buffer| {
                compare(&integers(&buffer.read().map_err(text)?), &expected.0)
            }),
            Action::WriteBuffer { buffer, values } => self.with_buffer(*buffer, |buffer| {
                let mut content = buffer.write().map_err(text)?;
                content.iter_mut().zip(&values.0).for_each(|(x, value)| *x = *value as f32);
                Ok(())
            }),
            Action::SynchronizeDevice { device } => self.devices[*device].synchronize().map_err(text),
            Action::SynchronizeEvent { of } => {
                let event = self.events[*of].get().ok_or_else(|| format!("step {of} recorded no event"))?;
                event.synchronize().map_err(text)?;
                match event.is_complete().map_err(text)? {
                    true => Ok(()),
                    false => Err("an event is not complete that was waited for".to_owned()),
                }
            }
            Action::Open { gate } => {
                self.gate(*gate)?.open();
                Ok(())
            }
            Action::FailedStream { device } => failed_stream(&self.devices[*device]),
            Action::Leave { device, how } => leave(&self.devices[*device], *how),
            other => Err(format!("{other:?} needs a stream")),
        }
    }
}

fn matmul<T: syncscope::device::Float>(
    x: &Tensor<T>,
    y: &Tensor<T>,
    [m, k, n]: [usize; 3],
) -> Result<Tensor<T>, DeviceError> {
    x.reshape([m, k])?.matmul(&y.reshape([k, n])?)?.reshape([m * n])
}

/// The memory that a device copies from and to without a wait.
fn kind(device: &Device) -> HostKind {
    if device.properties().engine == "cpu" { HostKind::Pageable } else { HostKind::Pinned }
}

/// A row that is not there fails the stream, which says so. On an opening of its own, whose `synchronize` nobody else calls.
fn failed_stream(device: &Device) -> Outcome<()> {
    let device = Device::open(device.name()).map_err(text)?;
    let stream = device.stream().map_err(text)?;
    let rows = stream.tensor(&[0i64, 99], [2]).map_err(text)?;
    let x = stream.ones::<f32>([3, 2]).map_err(text)?;
    let _ = x.gather(&rows);
    match stream.synchronize() {
        Err(error) if error.to_string().contains("99") => Ok(()),
        other => Err(format!("a row that is not there gave {other:?}")),
    }
}

/// Leaves a function while its stream waits for a gate that was declared before what waits: nothing that is dropped on the
/// way out may wait for the gate.
fn leave(device: &Device, how: usize) -> Outcome<()> {
    let refused = match how % 4 {
        0 => leave_with_copy(device),
        1 => catch_unwind(AssertUnwindSafe(|| leave_with_panic(device))).unwrap_or_else(|panic| {
            drop(panic);
            Err(DeviceError::EventNotReady { reason: "left by a panic" })
        }),
        2 => leave_capture(device),
        _ => leave_with_second_device(device),
    };
    match refused {
        Err(DeviceError::InvalidArgument { .. } | DeviceError::EventNotReady { .. }) => Ok(()),
        other => Err(format!("left with {other:?}")),
    }
}

fn leave_with_copy(device: &Device) -> Result<(), DeviceError> {
    let (stream, gate) = (device.stream()?, device.gate()?);
    let mut buffer = device.host_buffer::<f32>(kind(device), 64)?;
    let x = stream.full::<f32>([64], 2.0)?;
    stream.wait_gate(&gate)?;
    x.copy_to(&mut buffer)?;
    let source = device.host_buffer::<f32>(kind(device), 64)?;
    x.copy_from(&source)?;
    x.add(&stream.full::<f32>([65], 1.0)?)?;
    Ok(())
}

fn leave_with_panic(device: &Device) -> Result<(), DeviceError> {
    let (stream, gate) = (device.stream()?, device.gate()?);
    let (_, graph) = stream.capture(|| stream.full::<f32>([500], 1.0)?.add_scalar(1.0))?;
    let event = device.event()?;
    stream.wait_gate(&gate)?;
    graph.launch()?;
    stream.record(&event)?;
    let other = device.stream()?;
    other.wait(&event)?;
    let _pending = other.full::<f32>([500], 1.0)?.sum()?;
    std::panic::resume_unwind(Box::new(()))
}

fn leave_capture(device: &Device) -> Result<(), DeviceError> {
    let (stream, gate) = (device.stream()?, device.gate()?);
    let x = stream.full::<f32>([500], 1.0)?;
    stream.wait_gate(&gate)?;
    stream.capture(|| {
        x.affine_in_place(2.0, 1.0)?;
        x.add(&stream.full::<f32>([501], 1.0)?)
    })?;
    Ok(())
}

fn leave_with_second_device(device: &Device) -> Result<(), DeviceError> {
    let (stream, gate) = (device.stream()?, device.gate()?);
    stream.wait_gate(&gate)?;
    let x = stream.full::<f32>([500], 1.0)?;
    let second = Device::open(device.name())?;
    let sum = second.stream()?.full::<f32>([500], 2.0)?.sum()?.item()?;
    assert!(sum == 1000.0, "a second device gave a sum of {sum}");
    drop(second);
    x.add(&stream.full::<f32>([501], 1.0)?)?;
    Ok(())
}
