//! What an iteration would take without one of its places: the recorded timeline, replayed.
//!
//! # Method
//! The thread that feeds a device and the device's streams are replayed in the order of what was enqueued: the thread takes its
//! own time from one launch or blocking call to the next, work begins when it was launched and its stream is free, and a call
//! that waits returns when that work has ended. Without a place its calls do not block, or its lines take no time; all else takes as
//! long as it was recorded, and what was bound to it moves. What changes between a replay with and one without the place is what
//! the place costs. (Replays of a recorded graph of dependencies: Zhu, Phanishayee, Pekhimenko, “Daydream: Accurately Estimating
//! the Efficacy of Optimizations for DNN Training”, USENIX ATC 2020.)
//!
//! * When work was launched is known where it was recorded, or the device stood still before it, and else only that it lies between
//!   two such times. It is replayed with launches spread evenly between these, with most of them early, and with most of them late.
//! * Which work waits for that of another stream shows only where it was held up by it. It is replayed with these dependencies
//!   alone, and with all work behind what had ended on other streams when it began.
//! * How long the lines of a place take is known by samples, position by position of the iterations: as long as a share of
//!   samples, to two of its standard errors.
//! * A call that does not block may cost what such calls cost, or nothing.
//!
//! The interval holds all of these replays, widened by how far a replay with all places is from what was recorded, by two standard
//! errors of the iterations' mean, and by the part by which iterations of the same program differ from process to process.
//!
//! # Limits
//! One thread feeds the devices at a time, and one process; where several threads do, nothing is told. Copies and kernels are not faster or slower beside others, and
//! not slower without a pause: on an H200 at its power limit, large matmuls without pauses took 22 % longer. What the
//! audit itself costs is part of the host's time. Where launches take the time, it is told what would be
//! left if neither they nor short pieces of work took any.

use std::collections::HashMap;
use std::rc::Rc;

use super::class::Class;
use super::evidence::{CallJudgement, Cause};
use super::idle::{self, IdleCause, IdlePlace, Tick};
use super::iterations::SteadyState;
use super::places::{self, NOTHING};
use super::recording::{Frame, Process};

/// From a launch to the begin of its work on a device that has nothing to do, in nanoseconds.
const LATENCY: u64 = 4_000;
/// For how long, in nanoseconds, a device stands still before work that it was not ready for any earlier.
const STILL: u64 = 3_000;
/// How soon work begins behind that of another stream which it waited for, in nanoseconds.
const BEHIND: u64 = 10_000;
/// How many pieces of work fit into a queue: the launch of the next one waits.
const QUEUE: usize = 1_000;
/// The most places that are left out in turn, and how many launches and calls are replayed: the last ones.
const PLACES: usize = 20;
const MOST: usize = 100_000;
/// How many samples tell together which part of the time a place has, and how many of it are too few to tell.
const SAMPLES: usize = 12;
const FEWEST: f64 = 4.0;
/// How short, in nanoseconds, a piece of work is that takes its time for being one: within a larger one it would take none.
const SHORT: u64 = 5_000;
/// By which part iterations of the same program differ from process to process.
const PROCESSES: f64 = 0.03;
/// How many standard errors are allowed for.
const ERRORS: f64 = 2.0;

/// When launches are taken to have been made of which that is not known: by which power of their part in the sequence. Evenly, the
/// most of them early, and the most of them late.
const PACES: [f64; 3] = [1.0, 2.0, 0.5];

/// What the thread did: places in [`Process::work`] and [`Process::calls`].
#[derive(Clone, Copy)]
enum What {
    /// It launched this work.
    Launch(usize),
    /// It made this call, which blocks until that work has ended, if it has not.
    Call(usize, Option<usize>),
}

/// A launch or a call, in the order of their numbers.
#[derive(Clone, Copy)]
struct Step {
    what: What,
    correlation: u64,
    /// From when to when, where that is known.
    known: Option<(u64, u64)>,
    /// Up to when it was made at the latest.
    latest: u64,
}

/// What is left out of a replay.
#[derive(Default)]
struct Removed {
    /// Calls do not block, and take so much of their own time.
    calls: HashMap<usize, f64>,
    /// Up to which position in an iteration the thread does not take which part of its own time.
    parts: Vec<(f64, f64)>,
    /// Short pieces of work take no time.
    short: bool,
}

impl Removed {
    fn part(&self, position: f64) -> f64 {
        let at = self.parts.partition_point(|(to, _)| *to < position);
        self.parts.get(at).or(self.parts.last()).map_or(0.0, |(_, part)| *part)
    }
}

/// Says of the places how long an iteration would take without each.
pub(crate) fn without(process: &Process, judgements: &[CallJudgement], steady: &SteadyState, places: &mut [IdlePlace]) {
    let (feeder, ticks) = idle::feeder(process);
    if idle::is_fed_by_several(process, feeder, steady) {
        return;
    }
    let (steps, pause) = (steps(process, judgements, feeder), pause(process));
    let paces = PACES.iter().filter_map(|pace| Replay::of(process, steady, &steps, *pace, pause));
    let mut replays: Vec<Replay<'_>> = paces.collect();
    let Some(even) = replays.first() else { return };
    let order = Rc::new(in_order(process, even.steps));
    if !order.is_empty() {
        replays.extend(replays.clone().into_iter().map(|seen| Replay { behind: Rc::clone(&order), ..seen }));
    }
    let seen = Seen::of(&replays[0], &ticks);
    // Of each replay: how long an iteration takes with all places, and how far that is from what was recorded.
    let whole: Vec<(f64, f64)> = replays
        .iter()
        .map(|replay| {
            let whole = replay.iteration(&Removed::default());
            (whole, (whole - replay.recorded()).abs())
        })
        .collect();
    let mean = (steady.window.1 - steady.window.0) as f64 / steady.iterations() as f64;
    let error = replays[0].error();
    for at in 0..places.len().min(PLACES) {
        let place = &places[at];
        // What a line that launches does beside that is not told apart.
        let launches_longer = |other: &IdlePlace| {
            other.cause == IdleCause::Launch && other.place == place.place && other.idle_ns > place.idle_ns
        };
        if place.cause == IdleCause::Own && places.iter().any(launches_longer) {
            continue;
        }
        let Some(removed) = removals(process, judgements, &steps, &seen, place) else { continue };
        let each = replays.iter().zip(&whole).flat_map(|(replay, (whole, off))| {
            let changed = removed.iter().map(move |removed| mean + replay.iteration(removed) - whole);
            changed.flat_map(move |time| [time - off, time + off])
        });
        let Some((least, most)) = ends(each) else { continue };
        // Launches can be fewer, not none.
        let most = if place.cause == IdleCause::Launch { mean } else { most };
        let ends = [(least - ERRORS * error) * (1.0 - PROCESSES), (most + ERRORS * error) * (1.0 + PROCESSES)];
        places[at].without_ns = Some(ends.map(|time| time.max(0.0) as u64));
    }
}

fn ends(times: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    times.fold(None, |ends, time| {
        Some(ends.map_or((time, time), |(least, most): (f64, f64)| (least.min(time), most.max(time))))
    })
}

/// A place left out as far as can be, and no further than it has to be.
fn removals(
    process: &Process,
    judgements: &[CallJudgement],
    steps: &[Step],
    seen: &Seen<'_>,
    place: &IdlePlace,
) -> Option<[Removed; 2]> {
    let of_calls = || {
        let is_wait = place.cause == IdleCause::Wait;
        let is_there = |call: &usize| {
            let (recorded, own) = (&process.calls[*call], &judgements[*call]);
            // Of a line that waits, also those times when what it waits for had ended: without them all, nothing there waits.
            (IdleCause::of_call(recorded, own) == place.cause || is_wait && own.bound.is_some())
                && places::frame(&process.stack(recorded)).map(Frame::place).unwrap_or_default() == place.place
        };
        let calls = steps.iter().filter_map(|step| if let What::Call(call, _) = step.what { Some(call) } else { None });
        let calls: Vec<usize> = calls.filter(is_there).collect();
        let own = |call: usize| if is_wait { judgements[call].own as f64 } else { 0.0 };
        let removed = |cost: &dyn Fn(usize) -> f64| Removed {
            calls: calls.iter().map(|call| (*call, cost(*call))).collect(),
            ..Removed::default()
        };
        (!calls.is_empty()).then(|| [removed(&|_| 0.0), removed(&own)])
    };
    let own = |tick: &Tick| if tick.key.place == place.place && tick.key.cause == IdleCause::Own { 1.0 } else { 0.0 };
    let same = |tick: &Tick| if tick.key.place == place.place && tick.key.cause == place.cause { 1.0 } else { 0.0 };
    match place.cause {
        IdleCause::Wait | IdleCause::Copy | IdleCause::Load | IdleCause::Allocate | IdleCause::Call => of_calls(),
        IdleCause::Descheduled => seen.parts(|tick| tick.stood().1),
        IdleCause::Throttled => seen.parts(|tick| tick.stood().0),
        _ if place.place.is_empty() => None,
        IdleCause::Own => seen.parts(own),
        IdleCause::Launch => seen.parts(own).map(|removed| removed.map(|own| Removed { short: true, ..own })),
        IdleCause::PageFault => seen.parts(|tick| own(tick) * tick.touching),
        IdleCause::Pause | IdleCause::Rank | IdleCause::Unknown => None,
        _ => seen.parts(same),
    }
}

/// What samples saw of the thread while it was in no call that blocks, by the position in an iteration.
struct Seen<'a>(Vec<(f64, &'a Tick)>);

impl<'a> Seen<'a> {
    fn of(replay: &Replay<'_>, ticks: &'a [Tick]) -> Self {
        let position = |tick: &'a Tick| {
            let next = replay.times.partition_point(|(begin, _)| *begin <= tick.at);
            let is_own = next > 0 && replay.times[next - 1].1 <= tick.at;
            let position = replay.positions.get(next).filter(|_| is_own)?;
            Some((*position, tick))
        };
        let mut seen: Vec<(f64, &Tick)> = ticks.iter().filter_map(position).collect();
        seen.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        Self(seen)
    }

    /// The parts of the thread's own time that go by `share` of each sample, at most and at least.
    fn parts(&self, share: impl Fn(&Tick) -> f64) -> Option<[Removed; 2]> {
        let shares: Vec<(f64, f64)> = self.0.iter().map(|(position, tick)| (*position, share(tick))).collect();
        let count: f64 = shares.iter().map(|(_, share)| share).sum();
        if count < FEWEST {
            return None;
        }
        // Up to which position, how many samples, and how many of them the place has.
        let mut bins: Vec<(f64, usize, f64)> = Vec::new();
        for same in shares.chunk_by(|(one, _), (next, _)| one == next) {
            let own: f64 = same.iter().map(|(_, share)| share).sum();
            match bins.last_mut().filter(|(_, count, _)| count.max(&same.len()) < &SAMPLES) {
                Some((to, count, sum)) => (*to, *count, *sum) = (same[0].0, *count + same.len(), *sum + own),
                None => bins.push((same[0].0, same.len(), own)),
            }
        }
        // The samples of each part of an iteration fall on the place, or they do not; and one more may have fallen elsewhere.
        let variance: f64 = bins.iter().map(|(_, count, own)| own * (1.0 - own / *count as f64)).sum();
        let error = ERRORS * (variance + 1.0).sqrt() / count;
        let scaled = |factor: f64| {
            let part = |(to, count, sum): &(f64, usize, f64)| (*to, (sum / *count as f64 * factor).clamp(0.0, 1.0));
            Removed { parts: bins.iter().map(part).collect(), ..Removed::default() }
        };
        Some([1.0 + error, (1.0 - error).max(0.0)].map(scaled))
    }
}

/// What the thread that feeds the devices did, one after the other.
fn steps(process: &Process, judgements: &[CallJudgement], feeder: Option<u32>) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    // When work was launched, where the source tells that.
    let mut launched: HashMap<u64, (u64, u64)> =
        process.launches.iter().map(|launch| (launch.correlation, (launch.enter, launch.enter))).collect();
    let mut last = 0;
    for (place, (call, judgement)) in process.calls.iter().zip(judgements).enumerate() {
        let is_feeding = Some(call.thread) == feeder || idle::works_for_another(process, call.stack);
        let takes_time =
            judgement.cause != Cause::None || judgement.bound.is_some() || judgement.own + judgement.copy > NOTHING;
        if is_feeding && takes_time && call.enter >= last && !matches!(call.class, Class::Record | Class::Profiler) {
            last = call.exit;
            let (what, known) = (What::Call(place, judgement.bound), Some((call.enter, call.exit)));
            steps.push(Step { what, correlation: call.correlation, known, latest: call.enter });
        } else {
            launched.insert(call.correlation, (call.enter, call.exit));
        }
    }
    let stood_still = stood_still(process);
    for (place, work) in process.work.iter().enumerate() {
        let at = work.start.saturating_sub(LATENCY);
        let known = launched.get(&work.correlation).copied().or_else(|| stood_still[place].then_some((at, at)));
        steps.push(Step { what: What::Launch(place), correlation: work.correlation, known, latest: work.start });
    }
    // A copy is launched by the call that then waits for it.
    steps.sort_by_key(|step| (step.correlation, matches!(step.what, What::Call(..))));
    // Whatever was made before another was made no later.
    let mut latest = u64::MAX;
    for step in steps.iter_mut().rev() {
        latest = latest.min(step.latest);
        step.latest = latest;
    }
    steps
}

/// Of each piece of work, whether its device had nothing to do before it.
fn stood_still(process: &Process) -> Vec<bool> {
    let mut order: Vec<usize> = (0..process.work.len()).collect();
    order.sort_by_key(|place| process.work[*place].start);
    let mut ends: HashMap<u32, u64> = HashMap::new();
    let mut still = vec![false; order.len()];
    for place in order {
        let work = &process.work[place];
        let end = ends.entry(work.device).or_default();
        still[place] = work.start >= end.saturating_add(STILL);
        *end = work.end.max(*end);
    }
    still
}

/// The steady state of a process, as it is replayed.
#[derive(Clone)]
struct Replay<'a> {
    process: &'a Process,
    /// What the thread did in it, from when to when, and where in its iteration.
    steps: &'a [Step],
    times: Vec<(u64, u64)>,
    positions: Vec<f64>,
    /// The first launch of each iteration but the first ones, which are bound to what is not replayed.
    begins: Vec<usize>,
    /// By which work of other streams a launch's work is held up.
    behind: Rc<HashMap<usize, Vec<usize>>>,
    /// How long a stream pauses between two pieces of work that it has.
    pause: f64,
}

impl<'a> Replay<'a> {
    /// `None` where too few iterations launch anything.
    fn of(process: &'a Process, steady: &SteadyState, steps: &'a [Step], pace: f64, pause: f64) -> Option<Self> {
        let times = times(steps, pace);
        let at = |number: &u64| steps.partition_point(|step| step.correlation < *number);
        let end = at(steady.numbers.last()?);
        let begins: Vec<usize> = steady.numbers.iter().map(at).collect();
        let begins = &begins[begins.partition_point(|begin| begin + MOST < end)..];
        let first = *begins.first()?;
        let begins: Vec<usize> = begins.iter().map(|begin| (*begin).clamp(first, end) - first).collect();
        let (steps, times) = (steps.get(first..end)?, times.get(first..end)?.to_vec());
        let mut positions = vec![0.0; steps.len()];
        for pair in begins.windows(2) {
            let count = (pair[1] - pair[0]) as f64;
            (pair[0]..pair[1]).for_each(|place| positions[place] = (place - pair[0]) as f64 / count);
        }
        let is_launch = |step: &Step| matches!(step.what, What::Launch(_));
        let launch = |pair: &[usize]| Some(pair[0] + steps.get(pair[0]..pair[1])?.iter().position(is_launch)?);
        let begins: Vec<usize> = begins.windows(2).skip(begins.len() / 4).filter_map(launch).collect();
        let behind = Rc::new(behind(process, steps, &times));
        (begins.len() > 2).then_some(Self { process, steps, times, positions, begins, behind, pause })
    }

    /// When the first work of each iteration began.
    fn starts(&self) -> impl Iterator<Item = f64> {
        self.begins.iter().filter_map(|place| match self.steps[*place].what {
            What::Launch(work) => Some(self.process.work[work].start as f64),
            What::Call(..) => None,
        })
    }

    /// How long an iteration took.
    fn recorded(&self) -> f64 {
        between(&self.starts().collect::<Vec<_>>())
    }

    /// The standard error of that.
    fn error(&self) -> f64 {
        let (starts, mean) = (self.starts().collect::<Vec<_>>(), self.recorded());
        let count = (starts.len() - 1) as f64;
        let squares: f64 = starts.windows(2).map(|pair| (pair[1] - pair[0] - mean).powi(2)).sum();
        (squares / (count - 1.0).max(1.0) / count).sqrt()
    }

    /// How long an iteration takes without what is removed.
    fn iteration(&self, removed: &Removed) -> f64 {
        let mut at = 0.0_f64;
        let mut before = self.times.first().map_or(0, |(begin, _)| *begin);
        let mut streams: HashMap<(u32, u32, u32), f64> = HashMap::new();
        let mut ends: Vec<Option<f64>> = vec![None; self.process.work.len()];
        let mut starts: Vec<f64> = Vec::with_capacity(self.steps.len());
        let mut begun = Vec::with_capacity(self.begins.len());
        for (place, (step, &(begin, end))) in self.steps.iter().zip(&self.times).enumerate() {
            at += begin.saturating_sub(before) as f64 * (1.0 - removed.part(self.positions[place]));
            before = end;
            match step.what {
                What::Launch(number) => {
                    let work = &self.process.work[number];
                    // A full queue holds the thread up.
                    if let Some(first) = starts.len().checked_sub(QUEUE) {
                        at = at.max(starts[first]);
                    }
                    let latency = work.start.saturating_sub(begin).min(LATENCY) as f64;
                    let stream = streams.entry((work.device, work.context, work.stream)).or_default();
                    let takes = work.end - work.start;
                    let is_free = removed.short && takes <= SHORT;
                    let mut start = (*stream + if is_free { 0.0 } else { self.pause }).max(at + latency);
                    let others = self.behind.get(&place).into_iter().flatten();
                    start = others.filter_map(|other| ends[*other]).fold(start, f64::max);
                    *stream = if is_free { start } else { start + takes as f64 };
                    ends[number] = Some(*stream);
                    starts.push(start);
                    if self.begins.get(begun.len()) == Some(&place) {
                        begun.push(start);
                    }
                }
                What::Call(call, until) => match removed.calls.get(&call) {
                    Some(cost) => at += cost.min((end - begin) as f64),
                    None => {
                        let awaited = until.and_then(|work| Some((self.process.work[work].end, ends[work]?)));
                        // What the call takes beside its wait.
                        let from = awaited.map_or(begin, |(awaited, _)| awaited.clamp(begin, end));
                        at = awaited.map_or(at, |(_, awaited)| at.max(awaited)) + (end - from) as f64;
                    }
                },
            }
        }
        between(&begun)
    }
}

/// The mean time from one start to the next.
fn between(starts: &[f64]) -> f64 {
    starts.last().zip(starts.first()).map_or(0.0, |(last, first)| (last - first) / (starts.len() - 1).max(1) as f64)
}

/// The median of the pauses between two pieces of work of a stream that are no longer than the device's own ones.
fn pause(process: &Process) -> f64 {
    let mut ends: HashMap<(u32, u32, u32), u64> = HashMap::new();
    let mut pauses: Vec<u64> = Vec::new();
    for work in &process.work {
        let last = ends.insert((work.device, work.context, work.stream), work.end);
        pauses.extend(last.map(|end| work.start.saturating_sub(end)).filter(|pause| *pause <= idle::PAUSE));
    }
    pauses.sort_unstable();
    pauses.get(pauses.len() / 2).map_or(0.0, |pause| *pause as f64)
}

/// When the thread made each step, and when that ended.
fn times(steps: &[Step], pace: f64) -> Vec<(u64, u64)> {
    let mut times: Vec<(u64, u64)> = Vec::with_capacity(steps.len());
    let mut next = 0;
    // The last step of which it is known, and when it ended.
    let mut last = (steps.first().map_or(0, |step| step.correlation), steps.first().map_or(0, |step| step.latest));
    for (place, step) in steps.iter().enumerate() {
        let at_least = times.last().map_or(0, |(_, end)| *end);
        if next <= place {
            next = (place..steps.len()).find(|place| steps[*place].known.is_some()).unwrap_or(steps.len());
        }
        let (begin, end) = match (step.known, steps.get(next)) {
            (Some(known), _) => known,
            (None, Some(Step { known: Some((begin, _)), correlation, latest, .. })) => {
                let until = begin.min(latest).max(&last.1);
                let part = (step.correlation - last.0) as f64 / (correlation - last.0).max(1) as f64;
                let at = last.1 + ((until - last.1) as f64 * part.powf(pace)) as u64;
                (at, at)
            }
            _ => (step.latest, step.latest),
        };
        let begin = begin.min(step.latest).max(at_least);
        let end = if matches!(step.what, What::Launch(_)) { begin } else { end.max(begin) };
        if step.known.is_some() {
            last = (step.correlation, end);
        }
        times.push((begin, end));
    }
    times
}

/// Launches whose work began late for neither of its launch nor its stream, but right behind the end of other work.
fn behind(process: &Process, steps: &[Step], times: &[(u64, u64)]) -> HashMap<usize, Vec<usize>> {
    let mut ends: Vec<(u64, usize)> = process.work.iter().enumerate().map(|(place, work)| (work.end, place)).collect();
    ends.sort_unstable();
    let mut streams: HashMap<(u32, u32, u32), u64> = HashMap::new();
    let mut behind = HashMap::new();
    for (place, (step, (begin, _))) in steps.iter().zip(times).enumerate() {
        let What::Launch(number) = step.what else { continue };
        let work = &process.work[number];
        let stream = streams.entry((work.device, work.context, work.stream)).or_default();
        let ready = (*stream).max(begin.saturating_add(LATENCY));
        if work.start > ready.saturating_add(STILL)
            && let Some((end, other)) = ends[..ends.partition_point(|(end, _)| *end <= work.start)].last()
            && end.saturating_add(BEHIND) >= work.start
            && process.work[*other].correlation < work.correlation
        {
            behind.insert(place, vec![*other]);
        }
        *stream = work.end;
    }
    behind
}

/// Of each launch the last work of each other stream that was enqueued before it and had ended when its own began.
fn in_order(process: &Process, steps: &[Step]) -> HashMap<usize, Vec<usize>> {
    let mut streams: HashMap<(u32, u32, u32), Vec<(u64, usize)>> = HashMap::new();
    let mut order = HashMap::new();
    for (place, step) in steps.iter().enumerate() {
        let What::Launch(number) = step.what else { continue };
        let work = &process.work[number];
        let own = (work.device, work.context, work.stream);
        let others = streams.iter().filter(|(stream, _)| **stream != own).filter_map(|(_, ends)| {
            let ended = ends.partition_point(|(end, _)| *end <= work.start);
            Some(ends.get(ended.checked_sub(1)?)?.1)
        });
        let others: Vec<usize> = others.collect();
        if !others.is_empty() {
            order.insert(place, others);
        }
        streams.entry(own).or_default().push((work.end, number));
    }
    order
}

#[cfg(test)]
mod tests;
