//! Whether a call waited, for what, and how long: from what was pending when it was entered.
//!
//! # Method
//! Work with a smaller correlation than a call was enqueued before it. What of it had not ended when the call was entered
//! was pending. A call waited for pending work that it depends on when it returned after that work's end. The time up to
//! that end is the wait; what is left is the call's own cost.
//!
//! * A synchronization depends on its stream, on all streams, or on what was enqueued before its event.
//! * A copy depends on its stream. A copy from or to page-locked memory that takes a stream does not wait; one that
//!   involves pageable memory waited when it returned after the copy itself had begun. A copy from pageable memory returns
//!   when the driver has read that memory, which is before the device has all of it: where the device's part had begun by
//!   then, the host was reading from the beginning of the call (“API synchronization behavior” in the reference of the CUDA
//!   driver).
//! * A call that frees memory, or undoes a page-lock, depends on all streams.
//! * A call that can wait for all streams without being asked to (a fill, the end of a context) did so only if it took longer
//!   than calls of its name take with nothing pending, by about the time that the work had left.
//! * Any other call has no reason to wait: one that allocates or page-locks does not, as the book's table of the driver's
//!   calls measures it, and what it takes to load code, which a launch does, too, depends on the code. A launch can also stand
//!   in a full queue. Where such a call took so much longer, it is `uncertain`.
//! * The time of a call within another is that call's own: the outer one has what is left (`nesting`).
//!
//! That some work ended during a call is no cause: where a call may have returned by itself at the same time, the time is
//! not counted as a wait, and the call is `uncertain`.
//!
//! # Limits
//! Which event of which process a stream waits for is not known, so a wait can be for work of another stream than the one
//! that is named.

use std::collections::HashMap;

use super::class::{Activity, Class};
use super::nesting;
use super::recording::{HostMemoryKind, Process, RecordedCall, RecordedDirection, RecordedWork, WorkKind};

/// By how much a call may seem to return before the end of what it waited for: the clocks of host and device are two.
const SLACK: u64 = 5_000;
/// How soon a synchronization returns after what it waited for, in nanoseconds: 8 to 17 µs with PyTorch 2.11 on an H200.
const RETURN: u64 = 20_000;
/// A call that takes so much longer than its like, in nanoseconds, did something that has to be explained.
const STRANGE: u64 = 50_000;

/// So long, in nanoseconds, no call takes that only enqueues.
const LONG: u64 = 1_000_000;

/// What is known of a call.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct CallJudgement {
    pub(crate) cause: Cause,
    /// How long it waited for work that was pending.
    pub(crate) wait: u64,
    /// How long it was blocked by its own copy after that.
    pub(crate) copy: u64,
    /// The rest.
    pub(crate) own: u64,
    /// Of the time that is left, how much nothing explains.
    pub(crate) unknown: u64,
    /// The work that it waited for last, as a place in [`Process::work`].
    pub(crate) awaited: Option<usize>,
    /// The work before whose end it does not return, whether it had to wait for that or found it ended.
    pub(crate) bound: Option<usize>,
    /// How many bytes it copied.
    pub(crate) bytes: u64,
}

/// Why a call took its time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Cause {
    /// It had nothing to wait for, or did not wait.
    #[default]
    None,
    /// It waited for pending work.
    Wait,
    /// It may have waited: work ended meanwhile, and the call may have taken as long by itself.
    Uncertain,
    /// It took much longer than its like, and no work explains it.
    Unknown,
}

/// For what a copy blocks the host.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Blocking {
    /// Until the host has what it asked for.
    ToHost,
    /// Until the driver has read pageable memory.
    WhileRead,
    /// Until the device has it.
    ToDevice,
}

impl Blocking {
    /// `None` of a copy that returns before it is done.
    fn of(copy: &RecordedWork, asynchronous: bool) -> Option<Self> {
        let WorkKind::Copy { direction, host } = copy.kind else { return None };
        match (direction, host) {
            // Within the device, also without a stream.
            (RecordedDirection::Other, _) => None,
            (_, HostMemoryKind::Pinned) if asynchronous => None,
            (RecordedDirection::ToHost, _) => Some(Self::ToHost),
            (RecordedDirection::ToDevice, HostMemoryKind::Pageable) => Some(Self::WhileRead),
            (RecordedDirection::ToDevice, _) => Some(Self::ToDevice),
        }
    }
}

/// The work of one stream, or of all, in the order in which it was enqueued.
#[derive(Default)]
struct Line {
    correlations: Vec<u64>,
    /// Of the work up to each place: when it has all ended, and which ends last.
    ends: Vec<(u64, usize)>,
}

impl Line {
    fn add(&mut self, work: &RecordedWork, place: usize) {
        let last = self.ends.last().copied().filter(|(end, _)| *end > work.end);
        self.correlations.push(work.correlation);
        self.ends.push(last.unwrap_or((work.end, place)));
    }

    /// When all that was enqueued before has ended.
    fn end_before(&self, correlation: u64) -> Option<(u64, usize)> {
        let count = self.correlations.partition_point(|known| *known < correlation);
        self.ends.get(count.checked_sub(1)?).copied()
    }
}

/// The copy that a call made: its place among the work, and the work.
type OwnCopy<'a> = (usize, &'a RecordedWork);

/// What is looked up for each call.
struct Evidence<'a> {
    process: &'a Process,
    /// By context and stream: of a context that a call does not name, all; and all streams together.
    lines: HashMap<(Option<u32>, Option<u32>), Line>,
    /// The copies, by their correlations.
    copies: Vec<(u64, usize)>,
    /// Of each event, where it was recorded: when that call returned, its correlation, its stream.
    records: HashMap<u64, Vec<(u64, u64, Option<u32>)>>,
    /// How long calls of a name take with nothing pending: the median, and the longest.
    usual: HashMap<&'a str, (u64, u64)>,
    /// Whether streams wait for events.
    has_stream_waits: bool,
}

/// Judges all calls of a process, in their order.
pub(crate) fn judge(process: &Process) -> Vec<CallJudgement> {
    let mut evidence = Evidence {
        process,
        lines: HashMap::new(),
        copies: Vec::new(),
        records: HashMap::new(),
        usual: HashMap::new(),
        has_stream_waits: process.calls.iter().any(|call| call.name.contains("StreamWaitEvent")),
    };
    let is_named = |known: bool| process.calls.iter().any(|call| call.context.is_some() == known);
    let (some_name_it, some_do_not) = (is_named(true), is_named(false));
    for (place, work) in process.work.iter().enumerate() {
        let contexts = some_name_it.then_some(Some(work.context)).into_iter().chain(some_do_not.then_some(None));
        for key in contexts.flat_map(|context| [(context, Some(work.stream)), (context, None)]) {
            evidence.lines.entry(key).or_default().add(work, place);
        }
        if matches!(work.kind, WorkKind::Copy { .. }) {
            evidence.copies.push((work.correlation, place));
        }
    }
    for call in process.calls.iter().filter(|call| call.class == Class::Record) {
        // What that call itself enqueued is before the event, too.
        let recorded = (call.exit, call.correlation.saturating_add(1), call.stream);
        evidence.records.entry(call.event).or_default().push(recorded);
    }
    let copies: Vec<_> = process.calls.iter().map(|call| evidence.own_copy(call)).collect();
    evidence.usual = evidence.usual_times(&copies);
    let within = nesting::times_within(&process.calls);
    let judged = process.calls.iter().zip(copies).zip(within);
    let judged = judged.map(|((call, copy), within)| {
        let judgement = evidence.judge(call, copy);
        let bound = judgement.awaited.or_else(|| evidence.bound(call, copy));
        CallJudgement { bound, ..judgement }.without(within, call.exit - call.enter)
    });
    judged.collect()
}

impl<'a> Evidence<'a> {
    /// The median and the longest time of each function among the calls with nothing pending on any stream.
    fn usual_times(&self, copies: &[Option<OwnCopy<'a>>]) -> HashMap<&'a str, (u64, u64)> {
        let mut times: HashMap<&str, Vec<u64>> = HashMap::new();
        for (call, copy) in self.process.calls.iter().zip(copies) {
            if self.all_before(call).is_none_or(|(end, _)| end <= call.enter) {
                let copied = copy.map_or(0, |(_, copy)| blocked_by(copy, call.enter, call.exit));
                times.entry(&call.name).or_default().push(call.exit - call.enter - copied);
            }
        }
        let of_times = |mut times: Vec<u64>| {
            times.sort_unstable();
            (times[times.len() / 2], times[times.len() - 1])
        };
        times.into_iter().map(|(name, times)| (name, of_times(times))).collect()
    }

    /// The median time of calls of this name with nothing pending, where there are such.
    fn usual(&self, call: &RecordedCall) -> Option<u64> {
        self.usual.get(&*call.name).map(|(median, _)| *median)
    }

    fn on_stream(&self, call: &RecordedCall, stream: u32, correlation: u64) -> Option<(u64, usize)> {
        self.lines.get(&(call.context, Some(stream)))?.end_before(correlation)
    }

    /// The streams of the context of a call, or one of them.
    fn streams(&self, call: &RecordedCall, one: Option<u32>) -> impl Iterator<Item = &Line> {
        let context = call.context;
        let is_one = move |of: Option<u32>| if one.is_some() { of == one } else { of.is_some() };
        self.lines.iter().filter(move |((of, stream), _)| *of == context && is_one(*stream)).map(|(_, line)| line)
    }

    fn all_before(&self, call: &RecordedCall) -> Option<(u64, usize)> {
        self.lines.get(&(call.context, None))?.end_before(call.correlation)
    }

    /// The work that ended last while the call was in progress, and was enqueued before it.
    fn ended_within(&self, call: &RecordedCall, stream: Option<u32>, until: u64) -> Option<(u64, usize)> {
        let ends = self.streams(call, stream).filter_map(|line| {
            let count = line.correlations.partition_point(|known| *known < call.correlation);
            let ends = &line.ends[..count];
            // The ends only grow.
            ends.get(ends.partition_point(|(end, _)| *end <= until + SLACK).checked_sub(1)?).copied()
        });
        ends.filter(|(end, _)| *end > call.enter).max()
    }

    /// The copy that a call made. Through the run-time library, it has the number of that library's call around this one.
    fn own_copy(&self, call: &RecordedCall) -> Option<OwnCopy<'a>> {
        const AROUND: u64 = 8;
        if !matches!(call.class, Class::Copy { .. }) {
            return None;
        }
        let past = self.copies.partition_point(|(correlation, _)| *correlation <= call.correlation);
        let near = self.copies[..past].iter().rev().take(2 * AROUND as usize);
        let near = near.take_while(|(number, _)| number.saturating_add(AROUND) > call.correlation);
        near.filter_map(|(_, place)| Some((*place, self.process.work.get(*place)?))).find(|(_, work)| {
            let same = call.bytes == 0 || work.bytes == 0 || work.bytes == call.bytes;
            work.start >= call.enter && same && call.stream.is_none_or(|stream| stream == work.stream)
        })
    }

    fn judge(&self, call: &RecordedCall, own_copy: Option<OwnCopy<'_>>) -> CallJudgement {
        let duration = call.exit - call.enter;
        match call.class {
            Class::Record | Class::Profiler => CallJudgement { own: duration, ..CallJudgement::default() },
            Class::Copy { asynchronous } => {
                let copy = own_copy.map(|(_, copy)| copy);
                let bytes = copy.map_or(call.bytes, |copy| copy.bytes.max(call.bytes));
                CallJudgement { bytes, ..self.copy(call, copy, asynchronous) }
            }
            class if class.is_explicit() => self.synchronization(call),
            class => {
                let pending = self.all_before(call).filter(|(end, _)| *end > call.enter);
                let Some((end, awaited)) = pending.filter(|(end, _)| *end <= call.exit + SLACK) else {
                    return CallJudgement { own: duration, ..CallJudgement::default() };
                };
                let left = end.min(call.exit) - call.enter;
                let none = CallJudgement { own: duration, ..CallJudgement::default() };
                let uncertain = CallJudgement { cause: Cause::Uncertain, ..none.clone() };
                match self.usual(call) {
                    _ if matches!(class, Class::Free | Class::Unlock) => waited(call, end, awaited),
                    // Less was left than the two clocks may differ by.
                    _ if left <= SLACK => none,
                    None => uncertain,
                    // It took its own time, or most of it.
                    Some(usual) if left < usual / 2 || duration < usual + left / 2 => none,
                    Some(_) if class == Class::Implicit => waited(call, end, awaited),
                    // What is loaded or allocated differs in size, so that it tells nothing to take longer than usual.
                    Some(_) => uncertain,
                }
            }
        }
    }

    /// The last work that a synchronization names, where it names any; none where it is not known what it names.
    fn named(&self, call: &RecordedCall) -> Option<Option<(u64, usize)>> {
        match call.class {
            Class::Event if call.event == 0 && call.recorded_by.is_none() => None,
            Class::Event => match self.recorded(call) {
                Some((number, stream)) => stream.map(|stream| self.on_stream(call, stream, number)),
                None => Some(None),
            },
            Class::Stream => call.stream.map(|stream| self.on_stream(call, stream, call.correlation)),
            // Where it returned before all had ended, there is another device, which it does not name.
            _ => Some(self.all_before(call)).filter(|all| all.is_none_or(|(end, _)| end <= call.exit + SLACK)),
        }
    }

    /// What a call would have waited for, had that not ended before.
    fn bound(&self, call: &RecordedCall, own_copy: Option<OwnCopy<'_>>) -> Option<usize> {
        let before = match call.class {
            Class::Stream | Class::Context | Class::Event => self.named(call)?,
            Class::Free | Class::Unlock => self.all_before(call),
            Class::Copy { asynchronous } => {
                let (place, copy) = own_copy?;
                match Blocking::of(copy, asynchronous)? {
                    Blocking::WhileRead => {
                        self.on_stream(call, copy.stream, copy.correlation).filter(|_| copy.start < call.exit)
                    }
                    Blocking::ToHost | Blocking::ToDevice => {
                        return (copy.end <= call.exit + SLACK).then_some(place);
                    }
                }
            }
            _ => None,
        };
        before.map(|(_, place)| place)
    }

    fn synchronization(&self, call: &RecordedCall) -> CallJudgement {
        let Some(depends) = self.named(call) else { return self.of_unknown_stream(call, call.stream) };
        let least = call.enter + self.usual(call).unwrap_or(0).min(SLACK);
        match depends.filter(|(end, _)| *end > least && *end <= call.exit + SLACK) {
            Some((end, awaited)) => waited(call, end, awaited),
            None if self.has_stream_waits => self.of_unknown_stream(call, None),
            None => self.unexplained(call),
        }
    }

    /// A synchronization with a stream, or an event, that no record names; or with a stream that may itself wait for others.
    fn of_unknown_stream(&self, call: &RecordedCall, stream: Option<u32>) -> CallJudgement {
        let duration = call.exit - call.enter;
        let longest = self.usual.get(&*call.name).map_or(2 * SLACK, |(_, longest)| (*longest).min(STRANGE));
        if duration <= longest {
            return CallJudgement { own: duration, ..CallJudgement::default() };
        }
        let ends = || self.streams(call, stream).filter_map(|line| line.end_before(call.correlation));
        let pending = || ends().filter(|(end, _)| *end > call.enter);
        let Some((last, _)) = pending().max() else { return self.unexplained(call) };
        let ended = match call.class {
            // An event may have been recorded behind any work.
            Class::Event => self.ended_within(call, stream, call.exit),
            _ => pending().filter(|(end, _)| *end <= call.exit + SLACK).max(),
        };
        match ended {
            // It returned as this ended; or whatever it was has ended.
            Some((end, awaited)) if call.exit <= end + RETURN => waited(call, end, awaited),
            _ if last <= call.exit + SLACK => self.unexplained(call),
            _ => unknown_beyond(longest, duration, Cause::Uncertain),
        }
    }

    /// A call with nothing of its own to wait for: what took it so long, where it did.
    fn unexplained(&self, call: &RecordedCall) -> CallJudgement {
        let duration = call.exit - call.enter;
        // Where all calls of a name wait for what no record shows, it is not what they usually cost.
        let usual = self.usual(call).unwrap_or(0).min(STRANGE).min(duration);
        if duration - usual < STRANGE {
            return CallJudgement { own: duration, ..CallJudgement::default() };
        }
        // The legacy default stream waits for others, and a stream for events of others.
        match self.ended_within(call, None, call.exit) {
            Some((end, awaited)) if call.exit.saturating_sub(end) <= STRANGE => waited(call, end, awaited),
            _ => unknown_beyond(usual, duration, Cause::Unknown),
        }
    }

    fn recorded(&self, call: &RecordedCall) -> Option<(u64, Option<u32>)> {
        if let Some(number) = call.recorded_by {
            return Some((number.saturating_add(1), call.stream));
        }
        // Other programs' traces do not name the event.
        let records = self.records.get(&call.event).filter(|_| call.event != 0)?;
        let before = records.partition_point(|(exit, ..)| *exit <= call.enter);
        let (_, correlation, stream) = *records.get(before.checked_sub(1)?)?;
        Some((correlation, stream))
    }

    fn copy(&self, call: &RecordedCall, copy: Option<&RecordedWork>, asynchronous: bool) -> CallJudgement {
        let duration = call.exit - call.enter;
        let none = CallJudgement { own: duration, ..CallJudgement::default() };
        // A call that is to return at once says nothing by some microseconds more.
        let without_reason = || if asynchronous && duration < LONG { none.clone() } else { self.unexplained(call) };
        let Some(copy) = copy else {
            // Its record was lost, or it is part of a graph.
            return without_reason();
        };
        let Some(blocking) = Blocking::of(copy, asynchronous) else { return without_reason() };
        let pending = self.on_stream(call, copy.stream, copy.correlation).filter(|(end, _)| *end > call.enter);
        let returned_after_it = copy.end <= call.exit + SLACK;
        // How much of the call's time behind this moment is its own copy.
        let own_part = |from: u64| {
            if blocking == Blocking::WhileRead && copy.start < call.exit {
                copy.end.min(call.exit).saturating_sub(from)
            } else if returned_after_it {
                blocked_by(copy, from, call.exit)
            } else {
                0
            }
        };
        // What its stream waits for may be work of another one.
        let late = || self.ended_within(call, None, copy.start).filter(|(end, _)| copy.start <= end + RETURN);
        let begins_late = copy.start > call.enter + STRANGE && copy.start <= call.exit;
        let Some((end, awaited)) = pending.or_else(|| late().filter(|_| begins_late)) else {
            let copied = own_part(call.enter);
            return CallJudgement { copy: copied, own: duration - copied, ..CallJudgement::default() };
        };
        let left = end.min(call.exit) - call.enter;
        let is_later = self.usual(call).is_none_or(|usual| duration >= left + usual / 2);
        match copy.start <= call.exit + SLACK && end <= call.exit + SLACK {
            true if (blocking == Blocking::ToHost && returned_after_it) || (is_later && left > SLACK) => {
                let judgement = waited(call, end, awaited);
                let copied = own_part(end.min(call.exit)).min(judgement.own);
                CallJudgement { copy: copied, own: judgement.own - copied, ..judgement }
            }
            true if left > SLACK => CallJudgement { cause: Cause::Uncertain, ..none },
            _ => none,
        }
    }
}

/// A call of which nothing explains what is beyond its own time.
fn unknown_beyond(own: u64, duration: u64, cause: Cause) -> CallJudgement {
    CallJudgement { cause, own, unknown: duration - own, ..CallJudgement::default() }
}

/// A call that returned after `end`.
fn waited(call: &RecordedCall, end: u64, awaited: usize) -> CallJudgement {
    let wait = end.min(call.exit) - call.enter;
    let own = call.exit - call.enter - wait;
    CallJudgement { cause: Cause::Wait, wait, own, awaited: Some(awaited), ..CallJudgement::default() }
}

/// How much of a copy lies in a time.
fn blocked_by(copy: &RecordedWork, from: u64, to: u64) -> u64 {
    copy.end.min(to).saturating_sub(copy.start.max(from))
}

impl CallJudgement {
    /// Without so much of the call's time, which is that of calls within it. Where they took most of it, they tell why.
    fn without(self, within: u64, duration: u64) -> Self {
        let left = duration.saturating_sub(within);
        if within == 0 {
            return self;
        }
        if within >= left {
            return Self { own: left, ..Self::default() };
        }
        let wait = self.wait.min(left);
        let copy = self.copy.min(left - wait);
        let unknown = self.unknown.min(left - wait - copy);
        Self { wait, copy, unknown, own: left - wait - copy - unknown, ..self }
    }

    /// What the host did in the call, one after the other.
    pub(crate) fn parts(&self, call: &RecordedCall) -> [(Activity, u64); 4] {
        [
            (Activity::Waiting, self.wait),
            (Activity::Copying, self.copy),
            (Activity::Unknown, self.unknown),
            (call.class.cost(), self.own),
        ]
    }
}

#[cfg(test)]
mod tests;
