//! A budget for waits: how many, and how long, a step of a program may wait.

use std::collections::{BTreeSet, HashMap};

use super::evidence::CallJudgement;
use super::places::{self, PlaceKey, Reason};
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
    /// What a step is; without it, the steps of PyTorch's profiler are, else the iterations of the steady state, or else the whole
    /// run is one.
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

/// What a step of a program is: an iteration of its loop.
#[derive(Clone, Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Step {
    /// A range of NVTX, or of `torch.profiler.record_function`, of this name; `*` stands for any letters.
    Range(String),
    /// `file:line`, or the end of one: a step begins with the first call there that is watched behind calls of other lines.
    Line(String),
}

impl Step {
    /// The steps of PyTorch's profiler.
    pub(crate) fn of_profiler() -> Self {
        Self::Range(PROFILER_STEPS.to_owned())
    }

    /// What it is, in words.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Range(name) => format!("the range {name}"),
            Self::Line(place) => format!("the line {place}"),
        }
    }

    /// When each step of a process begins, and when the last one ends.
    pub(crate) fn begins(&self, process: &Process) -> Vec<u64> {
        let steps = self.of(process);
        steps.iter().map(|(start, _)| *start).chain(steps.last().map(|(_, end)| *end)).collect()
    }

    /// The steps of a process, from, to.
    fn of(&self, process: &Process) -> Vec<(u64, u64)> {
        let mut found: Vec<(u64, u64)> = match self {
            Self::Range(pattern) => {
                let named = process.ranges.iter().filter(|range| fits(&range.name, pattern));
                named.map(|range| (range.start, range.end)).collect()
            }
            Self::Line(place) => {
                let mut begins = Vec::new();
                let mut was_there = false;
                for call in process.calls.iter().filter(|call| call.stack.is_some()) {
                    let is_there = process.stack(call).iter().any(|frame| is_at(place, frame) == Some(true));
                    begins.extend((is_there && !was_there).then_some(call.enter));
                    was_there = is_there;
                }
                let ends = begins.iter().skip(1).copied().chain([process.end]);
                begins.iter().copied().zip(ends).collect()
            }
        };
        found.sort_by_key(|(start, _)| *start);
        found
    }
}

/// A place that may wait.
#[derive(Clone, Debug, Default, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Allowed {
    /// `file:line`, `function, file`, or the end of one: a file without a line allows all of its lines.
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
        if self.milliseconds.is_some_and(|most| most < 0.0 || most.is_nan()) {
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
        (!self.allow.is_empty()).then_some("allow")
    }
}

/// Whether a path is the end of another one, from a whole part of it on.
pub(crate) fn is_end(of: &str, path: &str) -> bool {
    of == path || of.strip_suffix(path).is_some_and(|rest| rest.ends_with('/'))
}

/// Whether a stated place is that of a frame; none where the frame does not tell its line.
fn is_at(stated: &str, frame: &Frame) -> Option<bool> {
    if is_end(&frame.place(), stated) || is_end(&frame.file, stated) {
        return Some(true);
    }
    let is_line = |own: &Frame| own.line == 0 || !frame.is_function || own.line == frame.line;
    let of_function = |own: Frame| own.function == frame.function && is_line(&own) && is_end(&frame.file, &own.file);
    if Frame::of_function(stated).is_some_and(of_function) {
        return Some(true);
    }
    let line = stated.rsplit_once(':').and_then(|(file, line)| Some((file, line.parse::<u32>().ok()?)));
    let may_be = |(file, line): (&str, u32)| frame.is_function && line >= frame.line && is_end(&frame.file, file);
    (!line.is_some_and(may_be)).then_some(false)
}

/// Whether a name is of a pattern, in which each `*` stands for any letters.
fn fits(name: &str, pattern: &str) -> bool {
    let Some((begin, rest)) = pattern.split_once('*') else { return name == pattern };
    let Some(mut name) = name.strip_prefix(begin) else { return false };
    let (inner, end) = rest.rsplit_once('*').unwrap_or(("", rest));
    for part in inner.split('*') {
        let Some((_, behind)) = name.split_once(part) else { return false };
        name = behind;
    }
    name.ends_with(end)
}

/// How PyTorch's profiler names its steps.
const PROFILER_STEPS: &str = "ProfilerStep#*";

/// The steps of a process, from, to: those that the budget states, else those of PyTorch's profiler, else the iterations that
/// were found, else the whole.
fn steps(process: &Process, judged: &JudgedCalls, step: Option<&Step>) -> Vec<(u64, u64)> {
    if let Some(step) = step {
        return step.of(process);
    }
    let of_profiler = Step::of_profiler().of(process);
    match &judged.steady {
        _ if !of_profiler.is_empty() => of_profiler,
        Some(steady) => steady.begins.windows(2).map(|pair| (pair[0], pair[1])).collect(),
        None => vec![(process.start, process.end)],
    }
}

/// A wait of a step.
struct StepWait {
    enter: u64,
    /// Where its place is in the report.
    place: usize,
    lost: u64,
    /// Whether it is known that it waited, and that its place is not an allowed one.
    is_certain: bool,
}

/// Where each place of a report is in it.
type Known<'a> = HashMap<PlaceKey<'a>, usize>;

/// How many waits, and for how many nanoseconds together.
type Waited = (u64, u128);

fn milliseconds((_, ns): Waited) -> f64 {
    ns as f64 / 1e6
}

/// Sums over the first of some waits, from which those of any that follow each other are taken: steps may overlap.
struct Sums(Vec<Waited>);

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
        (count - before, ns - ns_before)
    }
}

impl Budget {
    /// Whether a step may not wait so often or so long.
    fn is_over(&self, waited: Waited) -> bool {
        self.waits.is_some_and(|most| waited.0 > most)
            || self.milliseconds.is_some_and(|most| milliseconds(waited) > most)
    }

    /// Whether it allows waits at a stack; none where the stack leaves that open.
    fn allows(&self, stack: &[&Frame]) -> Option<bool> {
        let pairs = || stack.iter().flat_map(|frame| self.allow.iter().map(|allowed| is_at(&allowed.place, frame)));
        let is_open = || pairs().any(|is_at| is_at.is_none()) || stack.is_empty() && !self.allow.is_empty();
        if pairs().any(|is_at| is_at == Some(true)) { Some(true) } else { (!is_open()).then_some(false) }
    }
}

/// The waits of a process that no budget's list allows, in the order of their calls.
fn waits(budget: &Budget, (process, judged): (&Process, &JudgedCalls), known: &Known<'_>) -> Vec<StepWait> {
    let all = process.calls.iter().zip(&judged.judgements);
    let wait = |(call, judgement): (&RecordedCall, &CallJudgement)| {
        let is_wait = |reason| matches!(reason, Reason::Wait | Reason::Unknown | Reason::Uncertain);
        let (reason, lost) = places::losses(call, judgement).find(|(reason, _)| is_wait(*reason))?;
        let stack = process.stack(call);
        let allowed = budget.allows(&stack);
        if allowed == Some(true) {
            return None;
        }
        let is_certain = allowed.is_some() && reason != Reason::Uncertain;
        let at = places::frame(&stack).map(Frame::place).unwrap_or_default();
        let operator = call.operator.as_deref().unwrap_or_default();
        let place = *known.get(&(&*at, &*call.name, operator, reason))?;
        Some(StepWait { enter: call.enter, place, lost, is_certain })
    };
    all.filter_map(wait).collect()
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
    let (mut found, mut counted, mut undecided, mut stepless) = (0, 0, 0_u64, Vec::new());
    let known: Known<'_> = report.places.iter().enumerate().map(|(at, place)| (place.key(), at)).collect();
    let mut told = vec![false; report.places.len()];
    for (process, judged) in recording.processes.iter().zip(judged) {
        let steps = steps(process, judged, budget.step.as_ref());
        found += steps.len();
        let waits = waits(budget, (process, judged), &known);
        if steps.len() <= budget.skip_first && !waits.is_empty() {
            stepless.push(process.number.to_string());
        }
        let (all, certain) = (Sums::of(&waits, |_| true), Sums::of(&waits, |wait| wait.is_certain));
        // Steps may overlap, and each wait is told once.
        let mut untold: BTreeSet<usize> = (0..waits.len()).collect();
        for (number, &(from, to)) in steps.iter().enumerate().skip(budget.skip_first) {
            counted += 1;
            let place_of = |time: u64| waits.partition_point(|wait| wait.enter < time);
            let (first, end) = (place_of(from), place_of(to));
            let waited = certain.within(first, end);
            if !budget.is_over(waited) {
                undecided += u64::from(budget.is_over(all.within(first, end)));
                continue;
            }
            let (step, ms) = (number + 1, milliseconds(waited));
            let why = match waited.0 {
                1 => format!("step {step} waits once, for {ms:.3} ms"),
                count => format!("step {step} waits {count} times, for {ms:.3} ms together"),
            };
            while let Some(next) = untold.range(first..end.max(first)).next().copied() {
                untold.remove(&next);
                let StepWait { place, is_certain, .. } = waits[next];
                if is_certain && !std::mem::replace(&mut told[place], true) {
                    breaches.push(Breach { place: report.places[place].clone(), why: why.clone() });
                }
            }
        }
    }
    if undecided > 0 {
        let steps = if undecided == 1 { "a step".to_owned() } else { format!("{undecided} steps") };
        unheld.push(format!("of calls in {steps} it is not known if they waited, or if their places are allowed"));
    }
    if counted > 0 && !stepless.is_empty() {
        unheld.push(format!("there are waits and no step in process {}", stepless.join(", ")));
    }
    if counted == 0 && unheld.is_empty() {
        unheld.push(match found {
            0 => "no step was found".to_owned(),
            found => format!("`skip_first` leaves none of {}", crate::units::counted(found as u64, "step")),
        });
    }
    (breaches, unheld)
}
