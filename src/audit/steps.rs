//! A budget for waits: how many, and how long, a step of a program may wait; and a baseline, of which only new places fail.

use super::evidence::Cause;
use super::places::{self, WaitPlace};
use super::recording::{Frame, Process, ProgramRecording};
use super::report::{AuditReport, JudgedCalls};
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
    /// From one time that a watched call was made under this line, `train.py:31`, to the next.
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

/// A place that is over the budget, or that the baseline does not have.
#[derive(Clone, Debug)]
pub(crate) struct Breach {
    pub(crate) place: WaitPlace,
    pub(crate) why: String,
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
        Ok(budget)
    }
}

/// Whether a stated place is that of a frame: its end, from a whole part of the path on.
fn is_at(stated: &str, frame: &Frame) -> bool {
    let ends = |full: &str| full == stated || full.strip_suffix(stated).is_some_and(|rest| rest.ends_with('/'));
    ends(&frame.place()) || ends(&frame.file)
}

/// The steps of a process, from, to.
fn steps(process: &Process, step: Option<&Step>) -> Vec<(u64, u64)> {
    let stated = step.map(|step| (step.range.as_deref(), step.line.as_deref()));
    match stated {
        None | Some((None, None)) => vec![(process.start, process.end)],
        Some((Some(name), _)) => {
            let mut found: Vec<_> = process.ranges.iter().filter(|range| range.name == name).collect();
            found.sort_by_key(|range| range.start);
            found.iter().map(|range| (range.start, range.end)).collect()
        }
        Some((None, Some(line))) => {
            let is_in = |call| process.stack(call).iter().any(|frame| is_at(line, frame));
            let mut starts = Vec::new();
            let mut was_in = false;
            for call in &process.calls {
                // A call without a stack says nothing.
                if call.stack.is_some() {
                    let is_in = is_in(call);
                    if is_in && !was_in {
                        starts.push(call.enter);
                    }
                    was_in = is_in;
                }
            }
            let ends = starts.iter().skip(1).copied().chain([process.end]);
            starts.iter().copied().zip(ends).collect()
        }
    }
}

/// What is over the budget: for each step that is, the places that waited in it, each place once.
pub(crate) fn over(
    budget: &Budget,
    recording: &ProgramRecording,
    judged: &[JudgedCalls],
    report: &AuditReport,
) -> (Vec<Breach>, Vec<String>) {
    let (mut breaches, mut warnings): (Vec<Breach>, Vec<String>) = (Vec::new(), Vec::new());
    let mut counted = 0;
    for (process, judged) in recording.processes.iter().zip(judged) {
        let steps = steps(process, budget.step.as_ref());
        for (number, &(from, to)) in steps.iter().enumerate().skip(budget.skip_first) {
            counted += 1;
            let mut waits = Vec::new();
            for (call, judgement) in process.calls.iter().zip(&judged.judgements) {
                let is_wait = matches!(judgement.cause, Cause::Wait | Cause::Unknown);
                let stack = process.stack(call);
                let allowed =
                    || stack.iter().any(|frame| budget.allow.iter().any(|allowed| is_at(&allowed.place, frame)));
                if call.enter < from || call.enter >= to || !is_wait || allowed() {
                    continue;
                }
                if let Some((reason, lost)) = places::loss(call, judgement) {
                    let place = places::frame(&stack).map(Frame::place).unwrap_or_default();
                    waits.push(((place, call.name.clone(), reason), lost));
                }
            }
            let (count, time) = (waits.len() as u64, waits.iter().map(|(_, lost)| *lost as f64 / 1e6).sum::<f64>());
            let is_over =
                budget.waits.is_some_and(|most| count > most) || budget.milliseconds.is_some_and(|most| time > most);
            for ((place, call, reason), _) in waits.iter().filter(|_| is_over) {
                let known = |found: &&WaitPlace| found.key() == (place.as_str(), call.as_str(), *reason);
                let is_new = !breaches.iter().any(|breach| known(&&breach.place));
                if let Some(place) = report.places.iter().find(known).filter(|_| is_new) {
                    let why = format!("step {} waits {count} times for {time:.3} ms together", number + 1);
                    breaches.push(Breach { place: place.clone(), why });
                }
            }
        }
    }
    if counted == 0 {
        warnings.push("the budget found no step: nothing was held to it".to_owned());
    }
    (breaches, warnings)
}

/// The waits whose place a baseline does not have.
pub(crate) fn beyond(baseline: &AuditReport, report: &AuditReport) -> Vec<Breach> {
    let is_known = |place: &WaitPlace| baseline.places.iter().any(|known| known.key() == place.key());
    let new = report.places.iter().filter(|place| place.is_wait() && !is_known(place));
    new.map(|place| Breach { place: place.clone(), why: "the baseline does not have it".to_owned() }).collect()
}
