//! A budget for waits: how many, and how long, a step of a program may wait.
//!
//! # Method
//! A step that begins at a line is told from the next by a call elsewhere in between. Stacks do not tell how often a line ran:
//! where one call comes twice under the line with nothing else between, that may be two steps or a loop within one, and no
//! such step is held to anything.

use std::collections::{HashMap, HashSet};

use super::class::Class;
use super::evidence::Cause;
use super::places::{self, Reason};
use super::recording::{Frame, Process, ProgramRecording, RecordedCall};
use super::report::{AuditReport, JudgedCalls};
use super::verdict::Breach;

/// How much a program may wait.
///
/// ```
/// use syncscope_audit::{Allowed, Budget};
///
/// // As in a file of `report audit --budget`: at most one wait, but for those of a line that may.
/// let logged = Allowed { place: "train.rs:40".to_owned(), reason: "the loss is printed".to_owned() };
/// let budget = Budget { waits: Some(1), allow: vec![logged], ..Budget::default() };
/// assert!(budget.step.is_none(), "without a step, the whole run is one");
/// ```
#[derive(Clone, Debug, Default, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// What a step is; without it, the whole run is one.
    #[serde(default)]
    pub step: Option<Step>,
    /// How many steps at the beginning do not count.
    #[serde(default)]
    pub skip_first: usize,
    /// The most waits of a step.
    #[serde(default)]
    pub waits: Option<u64>,
    /// The most milliseconds that a step waits.
    #[serde(default)]
    pub milliseconds: Option<f64>,
    /// Places whose waits do not count.
    #[serde(default)]
    pub allow: Vec<Allowed>,
}

/// What a step of a program is: one of the two.
#[derive(Clone, Debug, Default, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// A range of NVTX, or of `torch.profiler.record_function`, of this name.
    #[serde(default)]
    pub range: Option<String>,
    /// From one time that a watched call was made under this line, `train.py:31`, to the next. The line itself makes a call of
    /// CUDA, once an iteration, and other lines make some, too: else iterations cannot be told apart.
    #[serde(default)]
    pub line: Option<String>,
}

/// A place that may wait.
#[derive(Clone, Debug, Default, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Allowed {
    /// `file:line`, or the end of it; a file without a line allows all of its lines.
    pub place: String,
    /// Why it may.
    pub reason: String,
}

impl Budget {
    /// What is wrong with it, beside its form.
    ///
    /// # Errors
    /// It limits nothing, or contradicts itself.
    pub fn checked(self) -> Result<Self, String> {
        if self.waits.is_none() && self.milliseconds.is_none() {
            return Err("it limits nothing: state `waits` or `milliseconds`".to_owned());
        }
        if self.step.as_ref().is_some_and(|step| step.range.is_some() == step.line.is_some()) {
            return Err("`step` states either `range` or `line`".to_owned());
        }
        if self.milliseconds.is_some_and(|most| most < 0.0) {
            return Err("`milliseconds` is a number from 0 on".to_owned());
        }
        for (number, Allowed { place, reason }) in self.allow.iter().enumerate() {
            let lacking = [("place", place), ("reason", reason)].into_iter().find(|(_, text)| text.trim().is_empty());
            if let Some((what, _)) = lacking {
                return Err(format!("`allow[{number}]` states no `{what}`"));
            }
        }
        Ok(self)
    }

    /// What of it asks for the stack of each call.
    pub fn asks_for_stacks(&self) -> Option<&'static str> {
        let of_line = self.step.as_ref().is_some_and(|step| step.line.is_some());
        of_line.then_some("step.line").or((!self.allow.is_empty()).then_some("allow"))
    }
}

/// Whether a stated place is that of a frame: its end, from a whole part of the path on.
fn is_at(stated: &str, frame: &Frame) -> bool {
    let ends = |full: &str| full == stated || full.strip_suffix(stated).is_some_and(|rest| rest.ends_with('/'));
    ends(&frame.place()) || ends(&frame.file)
}

/// The steps of a process, from, to; or why they cannot be told.
fn steps(process: &Process, step: Option<&Step>) -> Result<Vec<(u64, u64)>, String> {
    let stated = step.map(|step| (step.range.as_deref(), step.line.as_deref()));
    match stated {
        None | Some((None, None)) => Ok(vec![(process.start, process.end)]),
        Some((Some(name), _)) => {
            let mut found: Vec<_> = process.ranges.iter().filter(|range| range.name == name).collect();
            found.sort_by_key(|range| range.start);
            Ok(found.iter().map(|range| (range.start, range.end)).collect())
        }
        Some((None, Some(line))) => of_line(process, line),
    }
}

/// What the calls of one thread say of a line.
#[derive(Default)]
struct LineRun<'a> {
    /// The calls under the line since the last elsewhere: their names and stacks.
    seen: HashSet<(&'a str, &'a [u32])>,
    was_ever_in: bool,
    lacks_stacks: bool,
}

/// The steps that begin at a line.
fn of_line(process: &Process, line: &str) -> Result<Vec<(u64, u64)>, String> {
    let mut starts = Vec::new();
    // Another thread's calls lie between those of the loop, and say nothing of it.
    let mut threads: HashMap<u32, LineRun<'_>> = HashMap::new();
    let mut recurs = None;
    for call in &process.calls {
        let thread = threads.entry(call.thread).or_default();
        let stack = call.stack.and_then(|stack| process.stacks.get(stack as usize)).filter(|stack| !stack.is_empty());
        let Some(frames) = stack else {
            // Of a call that records an event no stack is taken.
            thread.lacks_stacks |= call.class != Class::Record;
            continue;
        };
        if !process.stack(call).iter().any(|frame| is_at(line, frame)) {
            thread.seen.clear();
            continue;
        }
        if thread.seen.is_empty() {
            starts.push(call.enter);
        }
        thread.was_ever_in = true;
        // A line may enqueue the same work many times in one iteration.
        if !thread.seen.insert((&call.name, frames)) && call.class != Class::Record {
            recurs = Some(&call.name);
        }
    }
    let way_out = "name a line that itself makes one call of CUDA in each iteration, such as one that reads a result, or mark \
                   the steps by a range";
    if let Some(call) = recurs {
        return Err(format!(
            "{call} is called twice under {line} with no call elsewhere in between, so iterations cannot be told apart: {way_out}"
        ));
    }
    if threads.values().any(|thread| thread.was_ever_in && thread.lacks_stacks) {
        return Err(format!(
            "calls without a stack lie among those under {line}, so its steps may not be all: {way_out}"
        ));
    }
    let ends = starts.iter().skip(1).copied().chain([process.end]);
    Ok(starts.iter().copied().zip(ends).collect())
}

/// A wait of a step.
struct StepWait {
    enter: u64,
    /// Where its place is in the report.
    place: usize,
    lost: u64,
    /// It has no stack, so that its place may be an allowed one.
    may_be_allowed: bool,
}

/// Where each place of a report is in it.
type Known<'a> = HashMap<(&'a str, &'a str, Reason), usize>;

/// How many waits, and for how long together.
struct Waited {
    count: u64,
    ns: u128,
}

impl Waited {
    fn milliseconds(&self) -> f64 {
        self.ns as f64 / 1e6
    }

    fn words(&self) -> String {
        match self.count {
            1 => format!("waits once, for {:.3} ms", self.milliseconds()),
            count => format!("waits {count} times, for {:.3} ms together", self.milliseconds()),
        }
    }
}

/// Sums over the first of some waits, from which those of any that follow each other are taken: steps may overlap.
struct Sums(Vec<(u64, u128)>);

impl Sums {
    /// Of the waits that count.
    fn of(waits: &[StepWait], counts: impl Fn(&StepWait) -> bool) -> Self {
        let mut sums = vec![(0, 0)];
        let (mut count, mut ns) = (0, 0);
        for wait in waits {
            if counts(wait) {
                (count, ns) = (count + 1, ns + u128::from(wait.lost));
            }
            sums.push((count, ns));
        }
        Self(sums)
    }

    fn within(&self, from: usize, to: usize) -> Waited {
        let at = |place: usize| self.0.get(place).copied().unwrap_or_default();
        let ((before, ns_before), (count, ns)) = (at(from), at(to));
        Waited { count: count - before, ns: ns - ns_before }
    }
}

/// The waits that are still to be told, each of which is found once.
struct Untold(Vec<usize>);

impl Untold {
    /// The first from a place on.
    fn first(&mut self, mut place: usize) -> usize {
        while self.0[place] != place {
            self.0[place] = self.0[self.0[place]];
            place = self.0[place];
        }
        place
    }
}

impl Budget {
    /// Whether a step may not wait so often or so long.
    fn is_over(&self, waited: &Waited) -> bool {
        self.waits.is_some_and(|most| waited.count > most)
            || self.milliseconds.is_some_and(|most| waited.milliseconds() > most)
    }

    fn allows(&self, stack: &[&Frame]) -> bool {
        stack.iter().any(|frame| self.allow.iter().any(|allowed| is_at(&allowed.place, frame)))
    }
}

/// The waits of a process that no budget's list allows, in the order of their calls.
fn waits(budget: &Budget, (process, judged): (&Process, &JudgedCalls), known: &Known<'_>) -> Vec<StepWait> {
    let all = process.calls.iter().zip(&judged.judgements);
    let is_wait = |cause: Cause| matches!(cause, Cause::Wait | Cause::Unknown);
    let wait = |call: &RecordedCall, judgement| {
        let stack = process.stack(call);
        let (reason, lost) = places::loss(call, judgement).filter(|_| !budget.allows(&stack))?;
        let at = places::frame(&stack).map(Frame::place).unwrap_or_default();
        let may_be_allowed = at.is_empty() && !budget.allow.is_empty();
        let place = *known.get(&(at.as_str(), call.name.as_str(), reason))?;
        Some(StepWait { enter: call.enter, place, lost, may_be_allowed })
    };
    all.filter(|(_, judgement)| is_wait(judgement.cause))
        .filter_map(|(call, judgement)| wait(call, judgement))
        .collect()
}

/// What is over the budget: the places that waited in a step that is, each with the first such step; and why it is not known
/// of the rest.
pub(crate) fn over(
    budget: &Budget,
    recording: &ProgramRecording,
    judged: &[JudgedCalls],
    report: &AuditReport,
) -> (Vec<Breach>, Vec<String>) {
    let (mut breaches, mut unheld): (Vec<Breach>, Vec<String>) = (Vec::new(), Vec::new());
    let (mut found, mut counted, mut undecided) = (0, 0, 0_u64);
    let known: Known<'_> = report.places.iter().enumerate().map(|(at, place)| (place.key(), at)).collect();
    let mut told = vec![false; report.places.len()];
    for (process, judged) in recording.processes.iter().zip(judged) {
        let steps = match steps(process, budget.step.as_ref()) {
            Ok(steps) => steps,
            Err(reason) => {
                unheld.push(reason);
                continue;
            }
        };
        found += steps.len();
        let waits = waits(budget, (process, judged), &known);
        let (all, certain) = (Sums::of(&waits, |_| true), Sums::of(&waits, |wait| !wait.may_be_allowed));
        let mut untold = Untold((0..=waits.len()).collect());
        for (number, &(from, to)) in steps.iter().enumerate().skip(budget.skip_first) {
            counted += 1;
            let place_of = |time: u64| waits.partition_point(|wait| wait.enter < time);
            let (first, end) = (place_of(from), place_of(to));
            let waited = certain.within(first, end);
            if !budget.is_over(&waited) {
                undecided += u64::from(budget.is_over(&all.within(first, end)));
                continue;
            }
            let mut next = untold.first(first);
            while next < end {
                let StepWait { place, may_be_allowed, .. } = waits[next];
                if !may_be_allowed && !std::mem::replace(&mut told[place], true) {
                    let why = format!("step {} {}", number + 1, waited.words());
                    breaches.push(Breach { place: report.places[place].clone(), why });
                }
                untold.0[next] = next + 1;
                next = untold.first(next);
            }
        }
    }
    if undecided > 0 {
        let steps = if undecided == 1 { "a step".to_owned() } else { format!("{undecided} steps") };
        unheld.push(format!("waits of {steps} have no stack, so it is not known if their places are allowed"));
    }
    if counted == 0 && unheld.is_empty() {
        unheld.push(match found {
            0 => "no step was found".to_owned(),
            found => format!("`skip_first` leaves none of {}", crate::units::counted(found as u64, "step")),
        });
    }
    (breaches, unheld)
}
