//! What the threads that feed a device did at some times, by samples.

use std::collections::HashMap;

use super::super::places;
use super::super::recording::{Doing, Frame, Process, Sample};
use super::{IdleCause, held_up, works_for_another};

/// The function of PyTorch in which a thread waits for those that run its backward pass.
const BACKWARD: &str = "_engine_run_backward";
/// How much longer first touches of pages take that other threads make, too.
const CONTENDED: f64 = 10.0;

/// What a place is known by while it is gathered.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) place: String,
    pub(crate) cause: IdleCause,
    pub(crate) within: String,
}

impl Key {
    /// That the audit held a thread up.
    pub(super) fn of_audit() -> Self {
        Self { place: String::new(), cause: IdleCause::Audit, within: String::new() }
    }
}

/// What threads did at one time, for one that launches.
pub(crate) struct Tick {
    pub(crate) at: u64,
    pub(crate) key: Key,
    pub(crate) stack: Option<u32>,
    /// How long ago the tick before was; since then, for how long it stood still for each of the two causes.
    pub(crate) since: u64,
    pub(crate) throttled: u64,
    pub(crate) delayed: u64,
    /// How long it ran since then, how long of that in the kernel, and what its first touches of pages take.
    pub(crate) ran: f64,
    system: f64,
    touches: f64,
    /// Which part of what ran at its line is first touches of pages.
    pub(crate) touching: f64,
}

impl Tick {
    /// For which parts of the time since the tick before it was throttled, and was without a processor for another reason.
    pub(crate) fn stood(&self) -> (f64, f64) {
        let part = |of: u64| (of as f64 / self.since.max(1) as f64).min(1.0);
        let throttled = part(self.throttled);
        (throttled, (part(self.delayed) - throttled).max(0.0))
    }
}

/// What was seen of a thread and of the main one, time by time.
pub(crate) fn ticks(process: &Process, thread: Option<u32>) -> Vec<Tick> {
    let mut ticks: Vec<Tick> = Vec::new();
    let mut before: HashMap<u32, &Sample> = HashMap::new();
    let mut holder = process.samples.iter().find_map(|sample| sample.holder);
    let [own_held, main_held] = [thread, Some(process.number)].map(|thread| held_up(process, thread));
    for samples in process.samples.chunk_by(|one, next| one.asked == next.asked) {
        let of = |thread: Option<u32>| samples.iter().find(|sample| Some(sample.thread) == thread);
        let (own, main) = (of(thread), of(Some(process.number)));
        let works_for_another = own.is_some_and(|own| works_for_another(process, own.stack));
        let is_running = |sample: &&Sample| sample.doing == Doing::Running;
        let chosen = match own {
            Some(own) if !works_for_another || is_running(&own) => Some(own),
            own => main.or(own),
        };
        // Where the lock was handed over at once, whoever held it last holds it again and again.
        holder = samples.iter().find_map(|sample| sample.holder).or(holder);
        if let Some(sample) = chosen {
            let mut tick = tick(process, sample, holder, before.get(&sample.thread).copied());
            let held = if Some(sample.thread) == thread { &own_held } else { &main_held };
            let next = held.get(held.partition_point(|(_, until)| *until <= tick.at));
            if next.is_some_and(|(from, _)| *from <= tick.at) {
                (tick.key, tick.stack) = (Key::of_audit(), None);
            }
            ticks.push(tick);
        }
        samples.iter().for_each(|sample| _ = before.insert(sample.thread, sample));
    }
    touching(&mut ticks);
    ticks
}

/// Says which part of what ran at each line was first touches of pages.
fn touching(ticks: &mut [Tick]) {
    let mut sums: HashMap<Key, [f64; 3]> = HashMap::new();
    for tick in ticks.iter().filter(|tick| tick.key.cause == IdleCause::Own) {
        let [ran, system, touches] = sums.entry(tick.key.clone()).or_default();
        (*ran, *system, *touches) = (*ran + tick.ran, *system + tick.system, *touches + tick.touches);
    }
    for tick in ticks {
        if let Some([ran, system, touches]) = sums.get(&tick.key) {
            let took = touches.max(system.min(touches * CONTENDED));
            tick.touching = (took / ran.max(1.0)).min(1.0);
        }
    }
}

fn tick(process: &Process, sample: &Sample, holder: Option<u32>, before: Option<&Sample>) -> Tick {
    let since = |of: fn(&Sample) -> u64| before.map_or(0, |before| of(sample).saturating_sub(of(before)));
    let (ran, throttled) = (since(|sample| sample.ran), since(|sample| sample.throttled));
    let (key, stack) = seen(process, sample, holder);
    let delayed = since(|sample| sample.delayed);
    let touches = since(|sample| sample.faults) as f64 * process.page_ns;
    let (ran, system) = (ran as f64, since(|sample| sample.system) as f64);
    let since = before.map_or(0, |before| sample.asked.saturating_sub(before.asked));
    Tick { at: sample.asked, key, stack, since, throttled, delayed, ran, system, touches, touching: 0.0 }
}

/// What a sample says.
fn seen(process: &Process, sample: &Sample, holder: Option<u32>) -> (Key, Option<u32>) {
    let frames = process.frames_of(sample.stack);
    let own = places::frame(&frames);
    let place = own.map(Frame::place).unwrap_or_default();
    let library: Vec<&&Frame> = frames.iter().take_while(|frame| Some(**frame) != own).collect();
    let is_loader = library.iter().any(|frame| frame.file.contains("torch/utils/data/"));
    let within = match (library.first(), own) {
        (Some(innermost), Some(_)) => {
            let file = innermost.file.rsplit('/').next().unwrap_or_default();
            if innermost.function.is_empty() { file.to_owned() } else { format!("{} ({file})", innermost.function) }
        }
        _ => String::new(),
    };
    let cause = match sample.doing {
        Doing::Sleeping | Doing::InputOutput | Doing::Locked | Doing::OtherCall if is_loader => IdleCause::Loader,
        // The main thread waits for its own backward pass, which another thread runs.
        Doing::Locked if library.first().is_some_and(|frame| frame.function == BACKWARD) => IdleCause::Own,
        Doing::Sleeping => IdleCause::Sleep,
        Doing::InputOutput | Doing::OtherCall => IdleCause::InputOutput,
        Doing::Locked => IdleCause::Lock,
        Doing::InterpreterLocked => IdleCause::InterpreterLock,
        Doing::Running | Doing::Unknown => IdleCause::Own,
    };
    if cause == IdleCause::InterpreterLock && holder.is_some() {
        let at = places::frame(&process.frames_of(holder)).map(Frame::place).unwrap_or_default();
        let within = if place.is_empty() { String::new() } else { format!("while {place} is to run") };
        return (Key { place: at, cause, within }, holder);
    }
    // What a thread of its own runs has many innermost functions.
    let within = if cause == IdleCause::Own { String::new() } else { within };
    (Key { place, cause, within }, sample.stack)
}
