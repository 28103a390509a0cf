//! The places of a program that lose time: calls of one line, one function and one reason together.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::class::{Activity, Class};
use super::evidence::{CallJudgement, Cause};
use super::recording::{Frame, Process, ProgramRecording, Range, RecordedCall, WorkKind};
use super::report::JudgedCalls;

/// The most frames of a stack that are kept with a place, that of the place among them.
pub(crate) const DEPTH: usize = 12;

/// Why a place loses time.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Reason {
    /// The host waited for pending work.
    Wait,
    /// The host was blocked by its own copy, with nothing pending before.
    Copy,
    /// The driver loaded code.
    Load,
    /// Device memory was allocated or freed.
    Allocate,
    /// Host memory was page-locked.
    PageLock,
    /// It may have waited; the records leave it open.
    Uncertain,
    /// It took long, and the records do not say why.
    Unknown,
}

/// A place that loses time. Times are nanoseconds.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WaitPlace {
    /// Where the innermost frame of the user's own code is: `file:line`, or `function, file, from line N` of a source that tells
    /// functions alone; empty where no stack was taken.
    pub place: String,
    /// The function of that frame.
    pub function: String,
    /// The call.
    pub call: String,
    /// The innermost operator of a library that made it, where the source tells operators.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub operator: String,
    /// Why it loses time.
    pub reason: Reason,
    /// How many calls.
    pub count: u64,
    /// The time lost in them.
    pub total_ns: u64,
    /// Those of the steady state, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steady: Option<SteadyCalls>,
    /// Its median.
    pub median_ns: u64,
    /// The longest.
    pub longest_ns: u64,
    /// How many bytes the calls copied.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub bytes: u64,
    /// How long a device had nothing to do right after these calls.
    pub idle_after_ns: u64,
    /// The thread that made the longest, where the process has several that call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<u32>,
    /// The innermost range of NVTX, or annotation, in which the longest was made.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub range: String,
    /// What the longest waited for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub waited_for: String,
    /// What can be done.
    pub advice: String,
    /// The chapter of the book that explains it.
    pub chapter: String,
    /// The stack of the longest, the innermost frame first: its first frames, and that of `place` last where it lies behind
    /// them. Frames of the driver and of tools are left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stack: Vec<Frame>,
}

/// The calls of a place in the steady state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SteadyCalls {
    /// How many.
    pub count: u64,
    /// The time lost in them.
    pub total_ns: u64,
}

impl WaitPlace {
    /// The time lost in the steady state; in the whole, where there is none.
    pub(crate) fn lost_ns(&self) -> u64 {
        self.steady.map_or(self.total_ns, |steady| steady.total_ns)
    }

    /// What it is known by within an audit.
    pub(crate) fn key(&self) -> PlaceKey<'_> {
        (&self.place, &self.call, &self.operator, self.reason)
    }

    /// The place in words, also where it has none.
    pub fn name(&self) -> &str {
        match &*self.place {
            "" if self.reason == Reason::Load => "(wherever code is loaded)",
            "" => "(no stack taken)",
            place => place,
        }
    }

    /// The frame of the place, where its stack is kept.
    pub(crate) fn frame(&self) -> Option<&Frame> {
        self.stack.iter().find(|frame| frame.place() == self.place)
    }

    /// Whether the host was blocked, or may have been, by work that was pending or by its own copy.
    pub(crate) fn may_block(&self) -> bool {
        self.is_wait() || matches!(self.reason, Reason::Copy | Reason::Uncertain)
    }

    /// Whether the time was lost by waiting, and not by what the call itself did.
    pub(crate) fn is_wait(&self) -> bool {
        matches!(self.reason, Reason::Wait | Reason::Unknown)
    }
}

/// What a place is known by within an audit: where it is, the call, the operator, and why it loses time.
pub(crate) type PlaceKey<'a> = (&'a str, &'a str, &'a str, Reason);

pub(crate) fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// What a call costs at most that has nothing to wait for and nothing to do, in nanoseconds: less is nothing that is lost.
pub(crate) const NOTHING: u64 = 5_000;

/// Why a call is listed, and how much time it lost for that.
pub(crate) fn losses(call: &RecordedCall, judgement: &CallJudgement) -> impl Iterator<Item = (Reason, u64)> {
    let cause = match judgement.cause {
        Cause::Wait => Some((Reason::Wait, judgement.wait)),
        Cause::Uncertain => Some((Reason::Uncertain, judgement.own + judgement.unknown)),
        Cause::Unknown => Some((Reason::Unknown, judgement.unknown)),
        Cause::None => None,
    };
    let reason = match call.class.cost() {
        _ if judgement.copy > 0 => Some(Reason::Copy),
        _ if cause.is_some() => None,
        Activity::Loading => Some(Reason::Load),
        Activity::PageLocking => Some(Reason::PageLock),
        Activity::Allocating => Some(Reason::Allocate),
        _ => None,
    };
    let lost = if judgement.copy > 0 { judgement.copy } else { judgement.own };
    let own = reason.map(|reason| (reason, lost));
    cause.into_iter().chain(own).filter(|(_, lost)| *lost > NOTHING)
}

/// The frame that stands for a stack: the innermost of the user's own code, else the innermost with a name. In a program, what a
/// crate or a static library compiled without line tables looks like the user's: a frame with a line goes before one without.
pub(crate) fn frame<'a>(stack: &[&'a Frame]) -> Option<&'a Frame> {
    let first = |fits: &dyn Fn(&Frame) -> bool| stack.iter().find(|frame| fits(frame));
    first(&|frame| frame.is_users() && frame.has_source())
        .or_else(|| first(&Frame::is_users))
        .or_else(|| first(&|frame| !frame.function.is_empty()))
        .or(stack.first())
        .copied()
}

/// The calls of all places at which code is loaded.
const LOADING: &str = "loading code";

/// As [`PlaceKey`], of a place that is being gathered.
type GatheredKey = (String, Arc<str>, Option<Arc<str>>, Reason);

/// The calls of one place.
struct Gathered<'a> {
    times: Vec<u64>,
    steady: Option<SteadyCalls>,
    bytes: u64,
    idle: u64,
    longest: u64,
    of_longest: (usize, &'a RecordedCall, &'a CallJudgement),
}

/// What of a process is looked up for its places: whether several of its threads call, and the innermost range at the begin of
/// the longest call of each place.
type LookedUp<'a> = (&'a Process, bool, BTreeMap<u64, &'a Range>);

/// The places of all processes, the most time lost in the steady state first.
pub(crate) fn of<'r>(recording: &'r ProgramRecording, judged: &[JudgedCalls]) -> Vec<WaitPlace> {
    let mut all: HashMap<GatheredKey, Gathered<'_>> = HashMap::new();
    for (number, (process, judged)) in recording.processes.iter().zip(judged).enumerate() {
        for (call, judgement) in process.calls.iter().zip(&judged.judgements) {
            let mut losses = losses(call, judgement).peekable();
            if losses.peek().is_none() {
                continue;
            }
            let own = frame(&process.stack(call)).map(Frame::place).unwrap_or_default();
            for (reason, lost) in losses {
                let key = match reason {
                    // Where code is loaded is where it runs first, and tells nothing.
                    Reason::Load => (String::new(), LOADING.into(), None, reason),
                    _ => (own.clone(), Arc::clone(&call.name), call.operator.clone(), reason),
                };
                let of_call = (number, call, judgement);
                let new =
                    || Gathered { times: Vec::new(), steady: None, bytes: 0, idle: 0, longest: 0, of_longest: of_call };
                let gathered = all.entry(key).or_insert_with(new);
                if lost >= gathered.longest {
                    (gathered.longest, gathered.of_longest) = (lost, of_call);
                }
                gathered.times.push(lost);
                if let Some(steady) = &judged.steady {
                    let all = gathered.steady.get_or_insert_default();
                    let is_steady = steady.holds(call.enter);
                    all.count += u64::from(is_steady);
                    all.total_ns = all.total_ns.saturating_add(if is_steady { lost } else { 0 });
                }
                gathered.bytes = gathered.bytes.saturating_add(judgement.bytes);
                if reason == Reason::Wait {
                    let idle = judged.gaps.iter().map(|gaps| idle_at(gaps, call.exit)).max();
                    gathered.idle = gathered.idle.saturating_add(idle.unwrap_or(0));
                }
            }
        }
    }
    let mut times = vec![Vec::new(); recording.processes.len()];
    for Gathered { of_longest: (number, call, _), .. } in all.values() {
        times[*number].push(call.enter);
    }
    let looked_up = |(process, mut times): (&'r Process, Vec<u64>)| {
        times.sort_unstable();
        let has_threads = process.calls.windows(2).any(|calls| calls[0].thread != calls[1].thread);
        (process, has_threads, process.innermost_ranges(&times))
    };
    let known: Vec<LookedUp<'_>> = recording.processes.iter().zip(times).map(looked_up).collect();
    let mut places: Vec<WaitPlace> = all.into_iter().map(|(key, gathered)| place(key, gathered, &known)).collect();
    let most = |place: &WaitPlace| std::cmp::Reverse((place.lost_ns(), place.total_ns));
    places.sort_by(|a, b| most(a).cmp(&most(b)).then_with(|| a.key().cmp(&b.key())));
    places
}

fn place(
    (place, name, operator, reason): GatheredKey,
    mut gathered: Gathered<'_>,
    known: &[LookedUp<'_>],
) -> WaitPlace {
    gathered.times.sort_unstable();
    let (number, call, judgement) = gathered.of_longest;
    let (process, has_threads, ranges) = &known[number];
    let (advice, chapter) = advice(call.class, reason);
    let stack = process.stack(call);
    let own = frame(&stack);
    let mut kept: Vec<Frame> = stack.iter().take(DEPTH).map(|frame| (*frame).clone()).collect();
    if let Some(own) = own.filter(|own| !kept.contains(own)) {
        kept.truncate(DEPTH - 1);
        kept.push(own.clone());
    }
    WaitPlace {
        place,
        function: own.filter(|_| reason != Reason::Load).map(|frame| frame.function.clone()).unwrap_or_default(),
        call: name.to_string(),
        operator: operator.as_deref().unwrap_or_default().to_owned(),
        reason,
        count: gathered.times.len() as u64,
        total_ns: gathered.times.iter().fold(0, |sum: u64, time| sum.saturating_add(*time)),
        steady: gathered.steady,
        median_ns: gathered.times[gathered.times.len() / 2],
        longest_ns: gathered.longest,
        bytes: gathered.bytes,
        idle_after_ns: gathered.idle,
        thread: has_threads.then_some(call.thread),
        range: ranges.get(&call.enter).map(|range| range.name.to_string()).unwrap_or_default(),
        waited_for: waited_for(process, judgement),
        advice: advice.to_owned(),
        chapter: chapter.to_owned(),
        stack: kept,
    }
}

fn waited_for(process: &Process, judgement: &CallJudgement) -> String {
    let Some(work) = judgement.awaited.and_then(|place| process.work.get(place)) else { return String::new() };
    let kernel = if work.kind == WorkKind::Kernel { "kernel " } else { "" };
    format!("{kernel}{} on stream {}", work.name, work.stream)
}

/// How long a device stays idle from the time at which a call returned.
fn idle_at(gaps: &[(u64, u64)], exit: u64) -> u64 {
    let place = gaps.partition_point(|(_, end)| *end <= exit);
    gaps.get(place).filter(|(start, _)| *start <= exit).map_or(0, |(_, end)| end - exit)
}

/// What can be done, and the chapter that explains it.
fn advice(class: Class, reason: Reason) -> (&'static str, &'static str) {
    match (reason, class) {
        (Reason::Wait, Class::Stream | Class::Context | Class::Event) => (
            "read results later or less often, keep decisions on the device, or wait for an event instead of everything",
            "sync-points",
        ),
        (Reason::Wait | Reason::Copy, Class::Copy { .. }) => (
            "copy from and to page-locked memory without blocking, and make tensors on the device instead of copying them",
            "overlap",
        ),
        (Reason::Wait, Class::Free | Class::Unlock) | (Reason::Allocate, _) => (
            "reuse memory: allocating and freeing between iterations costs time, and a free waits for the device",
            "driver-calls",
        ),
        (Reason::Load, _) => (
            "load code before the first iteration: run each shape once, or set CUDA_MODULE_LOADING=EAGER",
            "driver-calls",
        ),
        (Reason::Wait, _) => ("make this call before the first iteration, or where nothing is pending", "driver-calls"),
        (Reason::PageLock, _) => ("page-lock host memory once and reuse it", "driver-calls"),
        (Reason::Uncertain, _) => {
            ("run again with more work pending before this call, which decides it", "driver-calls")
        }
        _ => ("look at the timeline around this call", "driver-calls"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_program_goes_before_what_was_compiled_into_it_without_lines() {
        let of = |file: &str, line, function: &str| Frame {
            file: file.to_owned(),
            line,
            function: function.to_owned(),
            ..Frame::default()
        };
        let (nameless, crates) = (of("./program", 0, ""), of("/root/.cargo/registry/src/a/driver.rs", 9, "wait"));
        let (own, named) = (of("src/main.rs", 24, "main"), of("./program", 0, "step"));
        let chosen = |stack: &[&Frame]| frame(stack).map(Frame::place);
        assert_eq!(chosen(&[&nameless, &crates, &own]).unwrap(), "src/main.rs:24");
        assert_eq!(chosen(&[&named, &own]).unwrap(), "src/main.rs:24");
        assert_eq!(chosen(&[&crates, &named]).unwrap(), "step (program)");
        assert_eq!(chosen(&[]), None);
    }
}
