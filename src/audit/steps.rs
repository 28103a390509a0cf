//! A budget for waits: how many, and how long, a step of a program may wait.

use std::collections::HashMap;

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

/// What a step of a program is.
#[derive(Clone, Debug, Default, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// A range of NVTX, or of `torch.profiler.record_function`, of this name.
    pub range: String,
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
        (!self.allow.is_empty()).then_some("allow")
    }
}

/// Whether a stated place is that of a frame: its end, from a whole part of the path on.
fn is_at(stated: &str, frame: &Frame) -> bool {
    let ends = |full: &str| full == stated || full.strip_suffix(stated).is_some_and(|rest| rest.ends_with('/'));
    ends(&frame.place()) || ends(&frame.file)
}

/// The steps of a process, from, to.
fn steps(process: &Process, step: Option<&Step>) -> Vec<(u64, u64)> {
    let Some(Step { range: name }) = step else { return vec![(process.start, process.end)] };
    let named = process.ranges.iter().filter(|range| range.name == *name);
    let mut found: Vec<_> = named.map(|range| (range.start, range.end)).collect();
    found.sort_by_key(|(start, _)| *start);
    found
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
    fn is_over(&self, waited: Waited) -> bool {
        self.waits.is_some_and(|most| waited.0 > most)
            || self.milliseconds.is_some_and(|most| milliseconds(waited) > most)
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
        let steps = steps(process, budget.step.as_ref());
        found += steps.len();
        let waits = waits(budget, (process, judged), &known);
        let (all, certain) = (Sums::of(&waits, |_| true), Sums::of(&waits, |wait| !wait.may_be_allowed));
        let mut untold = Untold((0..=waits.len()).collect());
        for (number, &(from, to)) in steps.iter().enumerate().skip(budget.skip_first) {
            counted += 1;
            let place_of = |time: u64| waits.partition_point(|wait| wait.enter < time);
            let (first, end) = (place_of(from), place_of(to));
            let waited = certain.within(first, end);
            if !budget.is_over(waited) {
                undecided += u64::from(budget.is_over(all.within(first, end)));
                continue;
            }
            let mut next = untold.first(first);
            while next < end {
                let StepWait { place, may_be_allowed, .. } = waits[next];
                if !may_be_allowed && !std::mem::replace(&mut told[place], true) {
                    let (step, ms) = (number + 1, milliseconds(waited));
                    let why = match waited.0 {
                        1 => format!("step {step} waits once, for {ms:.3} ms"),
                        count => format!("step {step} waits {count} times, for {ms:.3} ms together"),
                    };
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
