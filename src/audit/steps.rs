//! A budget for waits: how many, and how long, a step of a program may wait.
//!
//! # Method
//! A step that begins at a line is told from the next by a call elsewhere in between. Stacks do not tell how often a line ran:
//! where one call comes twice under the line with nothing else between, that may be two steps or a loop within one, and no
//! such step is held to anything.

use std::collections::{HashMap, HashSet};

use super::class::Class;
use super::evidence::Cause;
use super::places::{self, Reason, WaitPlace};
use super::recording::{Frame, Process, ProgramRecording, RecordedCall};
use super::report::{AuditReport, JudgedCalls};
use super::verdict::Breach;
#[cfg(feature = "report")]
use crate::{error::FileError, yaml};

/// How much a program may wait.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "report", derive(serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "report", serde(deny_unknown_fields))]
pub struct Budget {
    /// What a step is; without it, the whole run is one.
    #[cfg_attr(feature = "report", serde(default))]
    pub step: Option<Step>,
    /// How many steps at the beginning do not count.
    #[cfg_attr(feature = "report", serde(default))]
    pub skip_first: usize,
    /// The most waits of a step.
    #[cfg_attr(feature = "report", serde(default))]
    pub waits: Option<u64>,
    /// The most milliseconds that a step waits.
    #[cfg_attr(feature = "report", serde(default))]
    pub milliseconds: Option<f64>,
    /// Places whose waits do not count.
    #[cfg_attr(feature = "report", serde(default))]
    pub allow: Vec<Allowed>,
}

/// What a step of a program is: one of the two.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "report", derive(serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "report", serde(deny_unknown_fields))]
pub struct Step {
    /// A range of NVTX, or of `torch.profiler.record_function`, of this name.
    #[cfg_attr(feature = "report", serde(default))]
    pub range: Option<String>,
    /// From one time that a watched call was made under this line, `train.py:31`, to the next. The line itself makes a call of
    /// CUDA, once an iteration, and other lines make some, too: else iterations cannot be told apart.
    #[cfg_attr(feature = "report", serde(default))]
    pub line: Option<String>,
}

/// A place that may wait.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "report", derive(serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "report", serde(deny_unknown_fields))]
pub struct Allowed {
    /// `file:line`, or the end of it; a file without a line allows all of its lines.
    pub place: String,
    /// Why it may.
    pub reason: String,
}

#[cfg(feature = "report")]
impl Budget {
    /// Reads a budget.
    ///
    /// # Errors
    /// The file cannot be read or is none of these; the message says where.
    pub fn read(path: &std::path::Path) -> Result<Self, FileError> {
        let budget: Self = yaml::parse(&yaml::read(path)?, &path.display().to_string())?;
        if budget.waits.is_none() && budget.milliseconds.is_none() {
            let message = "it limits nothing: state `waits` or `milliseconds`";
            return Err(FileError::whole(path.display().to_string(), message));
        }
        if budget.step.as_ref().is_some_and(|step| step.range.is_some() == step.line.is_some()) {
            return Err(FileError::whole(path.display().to_string(), "`step` states either `range` or `line`"));
        }
        if budget.milliseconds.is_some_and(|most| most < 0.0) {
            return Err(FileError::whole(path.display().to_string(), "`milliseconds` is a number from 0 on"));
        }
        Ok(budget)
    }

    /// What of it asks for the stack of each call.
    pub(crate) fn asks_for_stacks(&self) -> Option<&'static str> {
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
    key: (String, String, Reason),
    lost: u64,
    /// It has no stack, so that its place may be an allowed one.
    may_be_allowed: bool,
}

impl Budget {
    /// Whether so many waits, for so many nanoseconds each, are more than a step may have.
    fn is_over(&self, waits: &[&StepWait]) -> bool {
        self.waits.is_some_and(|most| waits.len() as u64 > most)
            || self.milliseconds.is_some_and(|most| milliseconds(waits) > most)
    }

    fn allows(&self, stack: &[&Frame]) -> bool {
        stack.iter().any(|frame| self.allow.iter().any(|allowed| is_at(&allowed.place, frame)))
    }
}

fn milliseconds(waits: &[&StepWait]) -> f64 {
    waits.iter().map(|wait| wait.lost as f64 / 1e6).sum()
}

/// The waits of a process that no budget's list allows, with the times of their calls.
fn waits(budget: &Budget, process: &Process, judged: &JudgedCalls) -> Vec<(u64, StepWait)> {
    let all = process.calls.iter().zip(&judged.judgements);
    let is_wait = |cause: Cause| matches!(cause, Cause::Wait | Cause::Unknown);
    let wait = |call: &RecordedCall, judgement| {
        let stack = process.stack(call);
        let (reason, lost) = places::loss(call, judgement).filter(|_| !budget.allows(&stack))?;
        let place = places::frame(&stack).map(Frame::place).unwrap_or_default();
        let may_be_allowed = place.is_empty() && !budget.allow.is_empty();
        Some((call.enter, StepWait { key: (place, call.name.clone(), reason), lost, may_be_allowed }))
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
    for (process, judged) in recording.processes.iter().zip(judged) {
        let steps = match steps(process, budget.step.as_ref()) {
            Ok(steps) => steps,
            Err(reason) => {
                unheld.push(reason);
                continue;
            }
        };
        found += steps.len();
        let waits = waits(budget, process, judged);
        for (number, &(from, to)) in steps.iter().enumerate().skip(budget.skip_first) {
            counted += 1;
            let within = waits.iter().filter(|(enter, _)| (from..to).contains(enter));
            let all: Vec<&StepWait> = within.map(|(_, wait)| wait).collect();
            let certain: Vec<&StepWait> = all.iter().copied().filter(|wait| !wait.may_be_allowed).collect();
            if budget.is_over(&certain) {
                let why = format!("step {} {}", number + 1, how_much(&certain));
                for StepWait { key: (place, call, reason), .. } in certain {
                    let key = (place.as_str(), call.as_str(), *reason);
                    let place = report.places.iter().find(|found: &&WaitPlace| found.key() == key);
                    let is_new = !breaches.iter().any(|breach| breach.place.key() == key);
                    let breach =
                        place.filter(|_| is_new).map(|place| Breach { place: place.clone(), why: why.clone() });
                    breaches.extend(breach);
                }
            } else {
                undecided += u64::from(budget.is_over(&all));
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

fn how_much(waits: &[&StepWait]) -> String {
    let time = milliseconds(waits);
    match waits.len() {
        1 => format!("waits once, for {time:.3} ms"),
        count => format!("waits {count} times, for {time:.3} ms together"),
    }
}
