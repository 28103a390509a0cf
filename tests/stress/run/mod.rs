//! Runs a program on two devices with its threads, compares what it reads, and notices when it hangs.

mod actions;
mod apart;
mod behind;
mod leave;
mod shared;
mod states;
mod threads;

use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Once, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use syncscope::device::{Device, Event, Gate, Graph, HostBuffer, Stream};
use syncscope::error::DeviceError;

use crate::Outcome;
use crate::held::Held;
use crate::program::{Action, DEVICES, Id, Program, Step, THREADS};

/// How the report of a hang begins.
pub(crate) const HANGS: &str = "no step ended";

/// How much is forgotten in a run of this test.
const MAX_FORGOTTEN: usize = 20;

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
    /// With the steps that made them. Open all of them, and no stream is held.
    gates: Mutex<Vec<(Id, Gate)>>,
    /// Streams that are used by their handle alone.
    raw: Mutex<Vec<shared::Raw>>,
    progress: Mutex<Progress>,
    advanced: Condvar,
    /// Whether an event is recorded behind every step on a stream, so that the report of a hang says how far each is.
    marks_all: bool,
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
        raw: Mutex::default(),
        progress: Mutex::new(Progress { done: vec![false; steps], failed: None, since: Instant::now() }),
        advanced: Condvar::new(),
        marks_all: std::env::var_os("SYNCSCOPE_STRESS_MARKS").is_some(),
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
    fn watch(
        self: &Arc<Self>,
        ends: &mpsc::Receiver<()>,
        count: usize,
        patience: Duration,
        phase: &str,
    ) -> Outcome<()> {
        let mut ended = 0;
        while ended < count {
            match ends.recv_timeout(Duration::from_millis(200)) {
                Ok(()) => ended += 1,
                Err(RecvTimeoutError::Disconnected) => return Err("a thread was lost".to_owned()),
                Err(RecvTimeoutError::Timeout) if self.progress().since.elapsed() < patience => {}
                Err(RecvTimeoutError::Timeout) => {
                    let said = self.hang(patience, phase);
                    // Whoever waits for another step gives up at once, and the others when their gates are open.
                    let freed = self.open_in_turn(ends, count - ended, patience);
                    let after = freed
                        .map_or("it did not go on when the gates of the program were opened".to_owned(), |gate| {
                            format!("it went on when {gate} was opened")
                        });
                    return Err(format!("{said}; {after}"));
                }
            }
        }
        Ok(())
    }

    /// What hangs. Where the threads and the streams are is printed, of the first hang alone: a failure that shrinks has many.
    #[cold]
    fn hang(self: &Arc<Self>, patience: Duration, phase: &str) -> String {
        let mut said = format!("{HANGS} for {} s", patience.as_secs());
        if !phase.is_empty() {
            let _ = write!(said, " in {phase}");
        }
        let progress = self.progress();
        for (thread, at) in self.at.iter().enumerate() {
            match at.load(Ordering::Relaxed).checked_sub(1) {
                Some(id) if !progress.done[id] => {
                    let _ = write!(said, "; thread {thread} is in step {id}, {}", self.program.steps[id]);
                }
                _ => {}
            }
        }
        drop(progress);
        static FIRST: Once = Once::new();
        FIRST.call_once(|| {
            println!("{said}\n{:?}", self.program);
            println!("{}", threads::where_all_are());
            println!("{}", self.states());
        });
        self.progress().failed.get_or_insert_with(|| said.clone());
        self.advanced.notify_all();
        said
    }

    /// Opens the gates one after the other, those of held streams last; the one behind which all ended.
    fn open_in_turn(&self, ends: &mpsc::Receiver<()>, mut left: usize, patience: Duration) -> Option<String> {
        let gates = lock(&self.gates).clone();
        let nothing = ("nothing".to_owned(), None);
        let turns =
            std::iter::once(nothing).chain(gates.into_iter().map(|(id, gate)| (format!("gate {id}"), Some(gate))));
        let turns: Vec<_> = turns.collect();
        let last = turns.len() - 1;
        for (turn, (name, gate)) in turns.into_iter().enumerate() {
            gate.iter().for_each(Gate::open);
            let most = if turn == last { patience } else { patience.min(Duration::from_secs(2)) };
            while left > 0 && ends.recv_timeout(most).is_ok() {
                left -= 1;
            }
            if left == 0 {
                return Some(name);
            }
        }
        None
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
                lock(&self.gates).iter().for_each(|(_, gate)| gate.open());
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
        let raw = std::mem::take(&mut *lock(&self.raw));
        if !raw.is_empty() && self.devices.iter().all(|device| device.synchronize().is_ok()) {
            shared::give_back(raw);
        }
    }

    /// Drops what a step made.
    fn take(&self, id: Id) {
        // Not while the lock is held: a drop may take its time.
        let object = lock(&self.objects[id]).take();
        drop(object);
    }

    /// Forgets what a step made. What is left behind holds a stream with its thread, so that a long run forgets no more than
    /// some of it.
    fn forget(&self, id: Id) {
        static FORGOTTEN: AtomicUsize = AtomicUsize::new(0);
        let object = lock(&self.objects[id]).take();
        if FORGOTTEN.fetch_add(1, Ordering::Relaxed) < MAX_FORGOTTEN {
            std::mem::forget(object);
        }
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
                lock(&self.gates).push((id, gate.clone()));
            }
            self.put(id, made);
        }
        let marked = self.marks_all && !matches!(step.action, Action::Capture { .. });
        if let (true, Some(stream)) = (step.records || marked, &stream) {
            let event = stream.device().event().map_err(text)?;
            stream.record(&event).map_err(text)?;
            let _ = self.events[id].set(event);
        }
        Ok(())
    }
}
