//! Why a device had nothing to do, and at which line of the program.
//!
//! # Method
//! A gap is the time from one piece of a device's work to the next, with none of any stream in it. What the thread did meanwhile that launched the next
//! piece tells its cause:
//!
//! * In a watched call, the call does, at its place.
//! * A gap of at most [`PAUSE`] is the device's own. One of at most [`LAUNCHING`] is the time that the host takes for launches, or, behind a wait that the device ended, for the first one.
//! * The rest is told by samples: what threads did at random times. Gaps between the same two pieces of work are alike: the
//!   samples that fell into them share their time evenly. Where none fell into any of these, those before the same next
//!   piece tell, then the stack of the next call or launch, which stands at or behind the line; and else nothing does.
//!   What no sample fell into, though it is so long that evenly spread ones would have, has no cause that is known.
//! * Between two samples, a thread that could have been on a processor and was not, or whose group was not let on one,
//!   stood still. That much of the idle time between these samples has that cause.
//! * A line where samples found a thread on a processor touches new pages, if first touches take most of its time: as long as
//!   so many take here. Several threads that touch pages at once hinder each other: it is up to ten times as much, as long as the
//!   thread was in the kernel for that.
//!
//! Behind a call the audit may hold the thread up, to look where it is: that time is the audit's own.
//!
//! A thread without Python works for a line of another: of it and of the main thread, the one that runs tells, else the
//! main thread.
//!
//! # Limits
//! A cause that took less than the distance of two samples in the whole recording may be missed.

mod cause;
mod ticks;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

pub use cause::IdleCause;
pub(crate) use ticks::Tick;
use ticks::{Key, ticks};

use super::class::Class;
use super::evidence::{CallJudgement, Cause};
use super::format::OTHER_THREAD;
use super::iterations::SteadyState;
use super::places;
use super::recording::{Frame, Process, RecordedCall, RecordedWork};
use super::shares::{self, ShareSegment};
use crate::units::counted;

/// In nanoseconds: a launch takes 3 to 10 µs, and with what PyTorch does around it 5 to 30.
const LAUNCHING: u64 = 50_000;
/// In nanoseconds: behind a gate, an H200 pauses for 1.0 µs between two kernels.
pub(crate) const PAUSE: u64 = 2_000;
/// For how long, in nanoseconds, a state that the system tells may be that of a call which has ended since.
const STALE: u64 = 100_000;
/// By how much the clocks of host and device may differ.
const SLACK: u64 = 5_000;
/// How late a sample may be, and for what part of its time a thread may stand, before that is a cause.
const STOOD: u64 = 200_000;
const STOOD_SHARE: f64 = 0.2;
/// In one of how many iterations another thread may copy or wait, and at one of how many launches the thread may change.
const SELDOM: usize = 10;
/// How likely it has to be that no sample fell into a time, or something kept them out of it.
const BY_CHANCE: f64 = 0.05;

/// A line of a program that leaves a device idle, and why.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IdlePlace {
    /// Where the innermost frame of the user's own code is: `file:line`; empty where it is not known. The name of a rank where
    /// that is the cause; empty where no rank is late more than the others.
    pub place: String,
    /// The function of that frame.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub function: String,
    /// Why.
    pub cause: IdleCause,
    /// The call of the driver, or the function of a library, in which the thread was; of launches, how many and how long.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub within: String,
    /// The wait behind which most of it lies: without it, launches could have gone ahead.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub behind: String,
    /// How long the devices were idle for it, in nanoseconds.
    pub idle_ns: u64,
    /// How long an iteration would take without it, in nanoseconds: at least, at most. None where that cannot be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without_ns: Option<[u64; 2]>,
    /// The stack, the innermost frame first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stack: Vec<Frame>,
}

impl IdlePlace {
    /// The place in words, also where it has none.
    pub fn name(&self) -> &str {
        match (&*self.place, self.cause) {
            ("", IdleCause::Descheduled | IdleCause::Throttled) => "(the whole process)",
            ("", IdleCause::Pause) => "(the GPU)",
            ("", IdleCause::Audit) => "(the audit)",
            ("", IdleCause::Rank) => "(another rank)",
            ("", _) => "(no line known)",
            (place, _) => place,
        }
    }
}

/// What was found of a key.
#[derive(Default)]
struct Found {
    ns: f64,
    stack: Option<u32>,
    behind: BTreeMap<String, f64>,
}

/// All of one process.
#[derive(Default)]
struct Told {
    all: HashMap<Key, Found>,
    iterations: u64,
}

impl Told {
    fn add(&mut self, key: &Key, stack: Option<u32>, ns: f64, behind: Option<&str>) {
        if ns <= 0.0 {
            return;
        }
        let found = self.all.entry(key.clone()).or_default();
        found.ns += ns;
        found.stack = found.stack.or(stack);
        if let Some(behind) = behind {
            *found.behind.entry(behind.to_owned()).or_default() += ns;
        }
    }
}

/// A part of a gap that no call tells.
struct Piece {
    from: u64,
    to: u64,
    gap: usize,
    /// How much of it is still to be told.
    left: f64,
}

/// A gap that is no longer than launches take, how long it is without the audit, and how much of that no call tells.
struct ShortGap {
    from: u64,
    to: u64,
    length: u64,
    between_calls: u64,
}

/// A gap of a device.
struct Gap<'a> {
    from: u64,
    to: u64,
    before: Option<&'a Arc<str>>,
    next: Option<&'a Arc<str>>,
    correlation: u64,
    /// The call that waited for what ended at its begin.
    waited: Option<usize>,
    /// For which rank, and for how long at its end, the next work waited.
    rank: Option<(&'a Arc<str>, u64)>,
}

/// The places of a process at which its devices were idle, the longest first.
pub(crate) fn of(
    process: &Process,
    judgements: &[CallJudgement],
    gaps: &[(u32, Vec<(u64, u64)>)],
    iterations: u64,
) -> Vec<IdlePlace> {
    let mut told = Told { iterations, ..Told::default() };
    let feeders = Feeders::of(process);
    for (device, gaps) in gaps {
        let gaps = described(process, judgements, *device, gaps);
        let mut by_thread: HashMap<Option<u32>, Vec<Gap<'_>>> = HashMap::new();
        for gap in gaps {
            by_thread.entry(feeders.of_work(gap.next)).or_default().push(gap);
        }
        for (thread, gaps) in by_thread {
            one_thread(process, judgements, thread, &gaps, &mut told);
        }
    }
    let mut places: Vec<IdlePlace> = told.all.into_iter().map(|(key, found)| place(process, key, found)).collect();
    places.retain(|place| place.idle_ns > 0);
    places.sort_by(|a, b| b.idle_ns.cmp(&a.idle_ns).then_with(|| (&a.place, a.cause).cmp(&(&b.place, b.cause))));
    // A line that waits in two calls is mended as one.
    merged([places])
}

/// The thread that launches most, and what was seen of it.
pub(crate) fn feeder(process: &Process) -> (Option<u32>, Vec<Tick>) {
    let most = Feeders::of(process).most;
    (most, ticks(process, most))
}

/// Whether a stack is of a thread that works for a line of another: one without Python, as those of PyTorch's backward pass.
pub(crate) fn works_for_another(process: &Process, stack: Option<u32>) -> bool {
    process.frames_of(stack).first().is_some_and(|frame| frame.file == OTHER_THREAD)
}

/// Whether several threads feed the devices in the iterations, each for itself: another one copies or waits there at a line of its
/// own, or launches come from them by turns.
pub(crate) fn is_fed_by_several(process: &Process, feeder: Option<u32>, steady: &SteadyState) -> bool {
    let is_other = |call: &&RecordedCall| {
        let is_feeding = call.class.is_explicit() || matches!(call.class, Class::Copy { .. });
        let is_own = Some(call.thread) == feeder || works_for_another(process, call.stack);
        is_feeding && !is_own && call.stack.is_some() && steady.holds(call.enter)
    };
    let launches: Vec<u32> =
        process.launches.iter().filter(|launch| steady.holds(launch.enter)).map(|launch| launch.thread).collect();
    let turns = launches.windows(2).filter(|pair| pair[0] != pair[1]).count();
    process.calls.iter().filter(is_other).count() * SELDOM > steady.begins.len() || turns * SELDOM > launches.len()
}

fn place(process: &Process, key: Key, found: Found) -> IdlePlace {
    let stack = process.frames_of(found.stack);
    let most = found.behind.into_iter().max_by(|(_, a), (_, b)| a.total_cmp(b));
    IdlePlace {
        function: places::frame(&stack).map(|frame| frame.function.clone()).unwrap_or_default(),
        behind: most
            .filter(|(place, ns)| *ns > found.ns / 2.0 && *place != key.place)
            .map(|(place, _)| place)
            .unwrap_or_default(),
        idle_ns: found.ns.round() as u64,
        without_ns: None,
        stack: stack.into_iter().take(places::DEPTH).cloned().collect(),
        place: key.place,
        cause: key.cause,
        within: key.within,
    }
}

/// Which thread launches what.
struct Feeders {
    by_name: HashMap<Arc<str>, u32>,
    most: Option<u32>,
}

impl Feeders {
    fn of(process: &Process) -> Self {
        let mut counts: HashMap<&Arc<str>, HashMap<u32, usize>> = HashMap::new();
        let mut all: HashMap<u32, usize> = HashMap::new();
        for launch in &process.launches {
            let at = process.work.partition_point(|work| work.correlation < launch.correlation);
            let work = process.work.get(at).filter(|work| work.correlation == launch.correlation);
            if let Some(work) = work {
                *counts.entry(&work.name).or_default().entry(launch.thread).or_default() += 1;
                *all.entry(launch.thread).or_default() += 1;
            }
        }
        let most = |counts: HashMap<u32, usize>| counts.into_iter().max_by_key(|(thread, count)| (*count, *thread));
        let by_name = counts.into_iter().filter_map(|(name, counts)| Some((Arc::clone(name), most(counts)?.0)));
        let by_name = by_name.collect();
        let most = most(all).map(|(thread, _)| thread).or_else(|| shares::main_thread(process));
        Self { by_name, most }
    }

    fn of_work(&self, name: Option<&Arc<str>>) -> Option<u32> {
        name.and_then(|name| self.by_name.get(name).copied()).or(self.most)
    }
}

/// For which rank, and for how long, a device was idle at the end of the gap before a collective: from when on that waited.
pub(crate) fn for_another(next: &RecordedWork, (from, to): (u64, u64)) -> Option<(&Arc<str>, u64)> {
    next.awaited.as_ref().map(|(since, rank)| (rank, to - (*since).clamp(from, to)))
}

/// The gaps of a device, with what stands at their ends.
fn described<'a>(process: &'a Process, judgements: &[CallJudgement], device: u32, gaps: &[(u64, u64)]) -> Vec<Gap<'a>> {
    let own = || process.work.iter().filter(|work| work.device == device);
    let mut ends: Vec<_> = own().map(|work| (work.end, &work.name)).collect();
    ends.sort_by_key(|(end, _)| *end);
    let mut starts: Vec<&RecordedWork> = own().collect();
    starts.sort_by_key(|work| (work.start, work.correlation));
    let waits = process.calls.iter().zip(judgements).enumerate();
    let waits = waits.filter(|(_, (_, judgement))| judgement.cause == Cause::Wait);
    let mut waits: Vec<(u64, u64, usize)> = waits.map(|(at, (call, _))| (call.exit, call.enter, at)).collect();
    waits.sort_unstable();
    let gap = |&(from, to): &(u64, u64)| {
        let before = ends[..ends.partition_point(|(end, _)| *end <= from)].last();
        let next = starts.get(starts.partition_point(|work| work.start < to)).copied();
        let first = waits.partition_point(|(exit, ..)| exit.saturating_add(SLACK) < from);
        let waited = waits[first..].iter().take_while(|(exit, ..)| *exit <= to).find(|(_, enter, _)| *enter < from);
        Gap {
            from,
            to,
            before: before.map(|(_, name)| *name),
            next: next.map(|work| &work.name),
            correlation: next.map_or(u64::MAX, |work| work.correlation),
            waited: waited.map(|(.., at)| *at),
            rank: next.and_then(|work| for_another(work, (from, to))),
        }
    };
    gaps.iter().map(gap).collect()
}

/// Tells the gaps that end with work of one thread.
fn one_thread(process: &Process, judgements: &[CallJudgement], thread: Option<u32>, gaps: &[Gap<'_>], told: &mut Told) {
    let Some((from, to)) = gaps.first().zip(gaps.last()).map(|(first, last)| (first.from, last.to)) else { return };
    let place_of = |call: usize| {
        let call = &process.calls[call];
        places::frame(&process.stack(call)).map(Frame::place).unwrap_or_default()
    };
    let of_call = |cause, call: usize| {
        let within = process.calls[call].name.to_string();
        (Key { place: place_of(call), cause, within }, process.calls[call].stack)
    };
    let behind: Vec<Option<String>> = gaps.iter().map(|gap| gap.waited.map(place_of)).collect();
    let host = shares::host(process, judgements, thread, (from, to));
    let held = held_up(process, thread);
    let mut pieces: Vec<Piece> = Vec::new();
    let mut short: Vec<ShortGap> = Vec::new();
    for (number, gap) in gaps.iter().enumerate() {
        // In a collective it is the other rank that the device waits for, whatever the host does.
        let own_end = gap.to - gap.rank.map_or(0, |(_, ns)| ns);
        if let Some((rank, ns)) = gap.rank {
            let within = gap.next.and_then(|name| name.split(['(', '<']).next()).unwrap_or_default().to_owned();
            let key = Key { place: rank.to_string(), cause: IdleCause::Rank, within };
            told.add(&key, None, ns as f64, None);
        }
        let parts = shares::within(&[(gap.from, own_end)], from_time(&host, gap.from));
        let length = own_end - gap.from - cut((gap.from, own_end), &held).0;
        let mut between_calls = 0;
        for ShareSegment { from, to, call, .. } in parts {
            let time = (to - from) as f64;
            match call {
                Some(call) => {
                    let (key, stack) = of_call(IdleCause::of_call(&process.calls[call], &judgements[call]), call);
                    told.add(&key, stack, time, None);
                }
                None => {
                    let (own, rest) = cut((from, to), &held);
                    told.add(&Key::of_audit(), None, own as f64, None);
                    let left: u64 = rest.iter().map(|(from, to)| to - from).sum();
                    match gap.waited {
                        _ if length > LAUNCHING => {
                            let piece =
                                |(from, to): (u64, u64)| Piece { from, to, gap: number, left: (to - from) as f64 };
                            pieces.extend(rest.into_iter().map(piece));
                        }
                        Some(call) => {
                            let (key, stack) = of_call(IdleCause::Wait, call);
                            told.add(&key, stack, left as f64, None);
                        }
                        None => between_calls += left,
                    }
                }
            }
        }
        if between_calls > 0 {
            short.push(ShortGap { from: gap.from, to: own_end, length, between_calls });
        }
    }
    let ticks = ticks(process, thread);
    launching(&short, &ticks, told);
    stood(&mut pieces, &ticks, &behind, told);
    sampled(process, thread, gaps, &pieces, &ticks, &behind, told);
}

/// When the audit held a thread up.
fn held_up(process: &Process, thread: Option<u32>) -> Vec<(u64, u64)> {
    let own = process.calls.iter().filter(|call| thread.is_none_or(|thread| call.thread == thread));
    shares::union(own.filter(|call| call.held > call.exit).map(|call| (call.exit, call.held)).collect())
}

/// How much of a time lies in others, which follow each other, and what of it lies in none.
fn cut((from, to): (u64, u64), others: &[(u64, u64)]) -> (u64, Vec<(u64, u64)>) {
    let others = &others[others.partition_point(|(_, end)| *end <= from)..];
    let others = others.iter().take_while(|(begin, _)| *begin < to);
    let others: Vec<(u64, u64)> = others.map(|(begin, end)| ((*begin).max(from), (*end).min(to))).collect();
    let rest = shares::gaps(&others, from, to);
    (to - from - shares::length(&rest), rest)
}

/// The segments from the one on that reaches beyond a time.
fn from_time(host: &[ShareSegment], at: u64) -> &[ShareSegment] {
    &host[host.partition_point(|own| own.to <= at)..]
}

/// The gaps that are launches.
fn launching(gaps: &[ShortGap], ticks: &[Tick], told: &mut Told) {
    let (pauses, gaps): (Vec<&ShortGap>, Vec<&ShortGap>) = gaps.iter().partition(|gap| gap.length <= PAUSE);
    let key = Key { place: String::new(), cause: IdleCause::Pause, within: String::new() };
    told.add(&key, None, pauses.iter().map(|gap| gap.between_calls).sum::<u64>() as f64, None);
    if gaps.is_empty() {
        return;
    }
    let mut lengths: Vec<u64> = gaps.iter().map(|gap| gap.between_calls).collect();
    let total: u64 = lengths.iter().sum();
    lengths.sort_unstable();
    // The lines at which samples were in such gaps share the time.
    let mut lines: BTreeMap<&str, (f64, Option<u32>)> = BTreeMap::new();
    for tick in ticks.iter().filter(|tick| tick.key.cause != IdleCause::Audit) {
        let at = gaps.partition_point(|gap| gap.to <= tick.at);
        if gaps.get(at).is_some_and(|gap| gap.from <= tick.at) {
            lines.entry(&tick.key.place).or_insert((0.0, tick.stack)).0 += 1.0;
        }
    }
    if lines.is_empty() {
        lines.insert("", (1.0, None));
    }
    let seen: f64 = lines.values().map(|(count, _)| count).sum();
    let median = lengths[lengths.len() / 2] as f64 / 1e3;
    let each = lengths.len() as f64 / told.iterations.max(1) as f64;
    let of = if told.iterations > 0 { " an iteration" } else { "" };
    for (place, (count, stack)) in lines {
        let part = count / seen;
        let gaps = match counted(each.round() as u64, "gap") {
            all if part == 1.0 => all,
            all => format!("{:.0} % of {all}", 100.0 * part),
        };
        let within = format!("{gaps} between work{of}, half of all at most {median:.1} µs");
        let key = Key { place: place.to_owned(), cause: IdleCause::Launch, within };
        told.add(&key, stack, total as f64 * part, None);
    }
}

/// Takes out of the pieces what the thread stood still for.
fn stood(pieces: &mut [Piece], ticks: &[Tick], behind: &[Option<String>], told: &mut Told) {
    // The system counts a time without a processor when it is over, which may be long after it began.
    let (mut delayed, mut throttled) = (0, 0);
    for pair in ticks.windows(2).rev() {
        let (from, to) = (pair[0].at, pair[1].at);
        let rest = (to - from).saturating_sub(pair[1].ran as u64);
        (delayed, throttled) = (pair[1].delayed.saturating_add(delayed), pair[1].throttled.saturating_add(throttled));
        let stood = throttled.max(delayed).min(rest);
        let held = throttled.min(stood);
        // What has no room in this time was before it.
        let is_left = |sum: u64| if rest > 0 && stood == rest { sum - sum.min(stood) } else { 0 };
        (delayed, throttled) = (is_left(delayed), is_left(throttled));
        if stood < STOOD || (stood as f64) < STOOD_SHARE * (to - from) as f64 {
            continue;
        }
        let first = pieces.partition_point(|piece| piece.to <= from);
        let end = pieces.partition_point(|piece| piece.from < to);
        let Some(meet) = pieces.get_mut(first..end) else { continue };
        let overlap = |piece: &Piece| piece.to.min(to).saturating_sub(piece.from.max(from)) as f64;
        let idle: f64 = meet.iter().map(overlap).sum();
        let share = (stood as f64 / idle).min(1.0);
        let held = held as f64 / stood as f64;
        for piece in meet {
            let part = (overlap(piece) * share).min(piece.left);
            piece.left -= part;
            for (cause, of) in [(IdleCause::Throttled, held), (IdleCause::Descheduled, 1.0 - held)] {
                let key = Key { place: String::new(), cause, within: String::new() };
                told.add(&key, pair[1].stack, part * of, behind[piece.gap].as_deref());
            }
        }
    }
}

/// Gaps that are alike: by the work on both sides, or by the next one alone.
type Alike<'a> = (Option<&'a Arc<str>>, Option<&'a Arc<str>>);

/// Tells the pieces by the samples in those that are alike.
fn sampled(
    process: &Process,
    thread: Option<u32>,
    gaps: &[Gap<'_>],
    pieces: &[Piece],
    ticks: &[Tick],
    behind: &[Option<String>],
    told: &mut Told,
) {
    let mut within: HashMap<Alike<'_>, Vec<&Tick>> = HashMap::new();
    let mut fell = 0;
    for tick in ticks {
        let at = pieces.partition_point(|piece| piece.to <= tick.at);
        let is_stale = |piece: &Piece| {
            let is_blocked = matches!(tick.key.cause, IdleCause::Lock | IdleCause::InputOutput | IdleCause::Sleep);
            is_blocked && tick.at - piece.from < STALE && piece.from > gaps[piece.gap].from
        };
        let piece = pieces.get(at).filter(|piece| piece.from <= tick.at);
        if let Some(piece) = piece.filter(|piece| !is_stale(piece)) {
            let gap = &gaps[piece.gap];
            fell += 1;
            within.entry((gap.before, gap.next)).or_default().push(tick);
            within.entry((None, gap.next)).or_default().push(tick);
        }
    }
    let next = NextStack::of(process, thread);
    let told_by = |number: usize| {
        let (before, next) = (gaps[number].before, gaps[number].next);
        within.get(&(before, next)).or_else(|| within.get(&(None, next)))
    };
    let time = |pieces: &mut dyn Iterator<Item = &Piece>| pieces.map(|piece| piece.left).sum::<f64>();
    let missed = time(&mut pieces.iter().filter(|piece| told_by(piece.gap).is_none()));
    let by_chance = (1.0 - missed / time(&mut pieces.iter())).powi(fell);
    let is_known = process.samples.is_empty() || (fell > 0 && by_chance >= BY_CHANCE);
    for piece in pieces {
        let (gap, behind) = (&gaps[piece.gap], behind[piece.gap].as_deref());
        if let Some(ticks) = told_by(piece.gap) {
            for tick in ticks {
                let time = piece.left / ticks.len() as f64;
                let cause = if tick.touching > 0.5 { IdleCause::PageFault } else { tick.key.cause };
                told.add(&Key { cause, ..tick.key.clone() }, tick.stack, time, behind);
            }
            continue;
        }
        let stack = next.behind(piece.from, gap);
        let place = places::frame(&process.frames_of(stack)).map(Frame::place).unwrap_or_default();
        let cause = if place.is_empty() || !is_known { IdleCause::Unknown } else { IdleCause::Own };
        told.add(&Key { place, cause, within: String::new() }, stack, piece.left, behind);
    }
}

/// The stacks of calls and launches of a thread, by when they were made, and of launches by their work.
struct NextStack {
    by_time: Vec<(u64, u32)>,
    by_number: HashMap<u64, u32>,
}

impl NextStack {
    fn of(process: &Process, thread: Option<u32>) -> Self {
        let is_own = |of: u32| thread.is_none_or(|own| own == of);
        let calls = process.calls.iter().filter(|call| is_own(call.thread));
        let calls = calls.filter_map(|call: &RecordedCall| Some((call.enter, call.stack?)));
        let launches = process.launches.iter().filter(|launch| is_own(launch.thread));
        let of_launches = launches.clone().filter_map(|launch| Some((launch.enter, launch.stack?)));
        let mut by_time: Vec<(u64, u32)> = calls.chain(of_launches).collect();
        by_time.sort_unstable();
        let by_number = launches.filter_map(|launch| Some((launch.correlation, launch.stack?))).collect();
        Self { by_time, by_number }
    }

    /// The stack of what comes next, within the gap.
    fn behind(&self, at: u64, gap: &Gap<'_>) -> Option<u32> {
        let of_work = self.by_number.get(&gap.correlation).copied();
        let next = || self.by_time.get(self.by_time.partition_point(|(enter, _)| *enter < at));
        of_work.or_else(|| next().filter(|(enter, _)| *enter <= gap.to).map(|(_, stack)| *stack))
    }
}

/// The places of several processes together, the longest first.
pub(crate) fn merged(of_processes: impl IntoIterator<Item = Vec<IdlePlace>>) -> Vec<IdlePlace> {
    let mut all: Vec<IdlePlace> = Vec::new();
    let mut of_processes: Vec<Vec<IdlePlace>> = of_processes.into_iter().filter(|places| !places.is_empty()).collect();
    if of_processes.len() > 1 {
        // What one of several wins, it may lose again where it waits for another.
        of_processes.iter_mut().flatten().for_each(|place| place.without_ns = None);
    }
    for place in of_processes.into_iter().flatten() {
        let known = all.iter_mut().find(|known| (&known.place, known.cause) == (&place.place, place.cause));
        match known {
            Some(known) => known.idle_ns = known.idle_ns.saturating_add(place.idle_ns),
            None => all.push(place),
        }
    }
    all.sort_by_key(|place| std::cmp::Reverse(place.idle_ns));
    all
}

#[cfg(test)]
mod tests {
    use super::super::evidence::judge;
    use super::super::recording::by_hand::call;
    use super::super::recording::{Doing, RecordedLaunch, RecordedWork, Sample};
    use super::*;

    const MS: u64 = 1_000_000;

    /// 40 iterations of 10 ms, the second half of which the device is idle; samples each 1.3 ms.
    fn process(sample: impl Fn(u64) -> Sample) -> Process {
        let work = (0..40).map(|number| RecordedWork {
            name: "matmul".into(),
            start: 10 * MS * number,
            end: 10 * MS * number + 5 * MS,
            correlation: number + 1,
            ..RecordedWork::default()
        });
        let file = |file: &str, line, function: &str| Frame {
            file: file.to_owned(),
            line,
            function: function.to_owned(),
            ..Frame::default()
        };
        let samples = (0..300).map(|number| 1_300_000 * number).map(|at| Sample { asked: at, had: at, ..sample(at) });
        let mut process = Process {
            number: 7,
            work: work.collect(),
            samples: samples.collect(),
            frames: vec![
                file("train.py", 10, "step"),
                file("train.py", 20, "log"),
                file("/x/site-packages/torch/utils/data/dataloader.py", 5, "__next__"),
                file("other.py", 30, "hold"),
                file(OTHER_THREAD, 0, ""),
            ],
            stacks: vec![vec![0], vec![1], vec![2, 0], vec![3], vec![4, 0]],
            ..Process::default()
        };
        process.settle();
        process
    }

    fn of(process: &Process) -> Vec<(IdleCause, String, f64)> {
        let gaps: Vec<(u64, u64)> = (0..39).map(|number| (10 * MS * number + 5 * MS, 10 * MS * (number + 1))).collect();
        let places = of_gaps(process, gaps);
        places
            .into_iter()
            .map(|place| (place.cause, place.place, place.idle_ns as f64 / (39 * 5 * MS) as f64))
            .collect()
    }

    fn of_gaps(process: &Process, gaps: Vec<(u64, u64)>) -> Vec<IdlePlace> {
        super::of(process, &judge(process), &[(0, gaps)], 0)
    }

    fn seen(doing: Doing, stack: u32) -> Sample {
        Sample { thread: 7, doing, stack: Some(stack), ..Sample::default() }
    }

    #[test]
    fn what_samples_find_in_gaps_has_their_time_at_its_line_and_for_its_cause() {
        // The first 3 ms of each gap are slept, the rest is computed.
        let process = process(|at| match at % (10 * MS) {
            0..8_000_000 => seen(Doing::Sleeping, 0),
            _ => seen(Doing::Running, 1),
        });
        let [(first, line, share), (second, other, rest)] = &of(&process)[..] else { panic!("{:?}", of(&process)) };
        assert_eq!(
            (*first, &**line, *second, &**other),
            (IdleCause::Sleep, "train.py:10", IdleCause::Own, "train.py:20")
        );
        assert!((share - 0.6).abs() < 0.05 && (share + rest - 1.0).abs() < 1e-6, "{share} {rest}");
    }

    #[test]
    fn a_loader_and_a_lock_that_another_thread_holds_are_named() {
        let loading = process(|_| seen(Doing::Locked, 2));
        assert_eq!(of(&loading)[0].0, IdleCause::Loader);
        let locked = process(|at| Sample { holder: (at > 100 * MS).then_some(3), ..seen(Doing::InterpreterLocked, 0) });
        assert_eq!(of(&locked), [(IdleCause::InterpreterLock, "other.py:30".to_owned(), 1.0)]);
    }

    #[test]
    fn a_thread_without_python_is_told_by_the_main_thread_unless_it_runs() {
        let launch = |number| RecordedLaunch { enter: 0, correlation: number, thread: 8, stack: None };
        for (doing, cause) in [(Doing::Running, IdleCause::Own), (Doing::Locked, IdleCause::Sleep)] {
            let mut process = process(|_| seen(Doing::Sleeping, 1));
            let beside = process.samples.iter().map(|main| Sample { thread: 8, doing, stack: Some(4), ..main.clone() });
            process.samples.extend(beside.collect::<Vec<_>>());
            process.launches = (1..=40).map(launch).collect();
            process.settle();
            assert_eq!(of(&process)[0].0, cause, "{doing:?}");
        }
    }

    #[test]
    fn a_thread_that_stood_still_has_that_for_its_cause_and_new_pages_theirs() {
        // Three quarters of the time it could have run and did not.
        let delayed = process(|at| Sample { delayed: at * 3 / 4, ran: at / 4, ..seen(Doing::Running, 0) });
        let found = of(&delayed);
        assert_eq!(found[0].0, IdleCause::Descheduled);
        let share = found[0].2;
        assert!((0.7..0.9).contains(&share), "{found:?}");
        let throttled =
            process(|at| Sample { throttled: at / 2, delayed: at * 3 / 4, ran: at / 4, ..seen(Doing::Running, 0) });
        assert_eq!(of(&throttled)[0].0, IdleCause::Throttled);
        let mut touching = process(|at| Sample { ran: at, system: at, faults: at / 1_000, ..seen(Doing::Running, 0) });
        touching.page_ns = 800.0;
        let found = of(&touching);
        assert_eq!((found[0].0, &*found[0].1), (IdleCause::PageFault, "train.py:10"));
        assert!(found[0].2 > 0.95, "contended touches take as long as the kernel did: {found:?}");
    }

    #[test]
    fn a_short_gap_with_calls_in_it_is_told_once() {
        let mut process = process(|_| seen(Doing::Running, 0));
        process.samples.clear();
        let at = 5 * MS;
        let copies = [(at + 5_000, at + 8_000), (at + 15_000, at + 18_000), (at + 25_000, at + 28_000)];
        let copies = copies.iter().zip(1..).map(|(times, number)| call("cuMemcpyHtoDAsync_v2", *times, number));
        process.calls = copies.map(|call| RecordedCall { stack: Some(0), thread: 7, ..call }).collect();
        process.settle();
        let found = of_gaps(&process, vec![(at, at + 40_000)]);
        let found: Vec<(IdleCause, u64)> = found.iter().map(|place| (place.cause, place.idle_ns)).collect();
        assert_eq!(found, [(IdleCause::Launch, 31_000), (IdleCause::Call, 9_000)]);
    }

    #[test]
    fn the_time_for_which_the_audit_holds_a_thread_up_is_its_own() {
        let mut process = process(|_| seen(Doing::Locked, 0));
        let at = 5 * MS;
        let wait = call("cuStreamSynchronize", (at - MS, at), 1);
        process.calls = vec![RecordedCall { stack: Some(0), thread: 7, held: at + 3 * MS, ..wait }];
        process.settle();
        let found = of_gaps(&process, vec![(at, at + 5 * MS)]);
        let found: Vec<_> = found.iter().map(|place| (place.cause, place.name(), place.idle_ns)).collect();
        assert_eq!(found, [(IdleCause::Audit, "(the audit)", 3 * MS), (IdleCause::Lock, "train.py:10", 2 * MS)]);
        // Without the audit the gap is that of one launch.
        let found = of_gaps(&process, vec![(at, at + 3 * MS + 20_000)]);
        let found: Vec<_> = found.iter().map(|place| (place.cause, place.idle_ns)).collect();
        assert_eq!(found, [(IdleCause::Audit, 3 * MS), (IdleCause::Launch, 20_000)]);
    }

    #[test]
    fn a_time_is_cut_by_what_lies_in_it() {
        let others = [(0, 2), (3, 5), (5, 6), (8, 20)];
        assert_eq!(cut((1, 10), &others), (6, vec![(2, 3), (6, 8)]));
        assert_eq!(cut((6, 8), &others), (0, vec![(6, 8)]));
        assert_eq!(cut((9, 12), &others), (3, vec![]));
    }

    #[test]
    fn what_samples_were_kept_out_of_has_no_known_cause_and_is_the_next_calls_where_there_are_none_at_all() {
        let mut process = process(|_| seen(Doing::Running, 0));
        let launch =
            |number| RecordedLaunch { thread: 7, enter: 10 * MS * number, correlation: number + 1, stack: Some(1) };
        process.launches = (0..40).map(launch).collect();
        process.samples.retain(|sample| sample.asked % (10 * MS) < 5 * MS);
        let found = |process: &Process| of(process).into_iter().map(|(cause, place, _)| (cause, place)).next();
        assert_eq!(found(&process), Some((IdleCause::Unknown, "train.py:20".to_owned())));
        process.samples.clear();
        assert_eq!(found(&process), Some((IdleCause::Own, "train.py:20".to_owned())));
    }

    #[test]
    fn a_gap_is_told_by_the_call_in_it_by_launches_where_it_is_short_and_by_nothing_where_nothing_is_known() {
        let mut process = process(|_| seen(Doing::Running, 0));
        process.samples.clear();
        let load = RecordedCall { stack: Some(0), thread: 7, ..call("cuLibraryLoadData", (5 * MS, 9 * MS), 1) };
        process.calls = vec![load];
        process.settle();
        let found = of_gaps(&process, vec![(5 * MS, 10 * MS), (15 * MS, 20 * MS), (25 * MS, 25 * MS + 20_000)]);
        let found: Vec<(IdleCause, &str, u64)> =
            found.iter().map(|place| (place.cause, &*place.place, place.idle_ns)).collect();
        let expected = [
            (IdleCause::Unknown, "", 6 * MS),
            (IdleCause::Load, "train.py:10", 4 * MS),
            (IdleCause::Launch, "", 20_000),
        ];
        assert_eq!(found, expected);
    }
}
