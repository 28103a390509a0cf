//! What a budget and a baseline say of a recording: which places are over them, and of what it is not known.
//!
//! What may miss waits, or was held to nothing, is no pass. A baseline is an earlier audit, of which only new places fail.

use std::collections::{HashMap, HashSet};

use super::class::Class;
use super::places::WaitPlace;
use super::recording::ProgramRecording;
use super::report::{AuditReport, JudgedCalls};
use super::steps::{self, Budget, is_end};
use crate::units::counted;

/// A place that is over the budget, or that the baseline does not have.
#[derive(Clone, Debug)]
pub struct Breach {
    /// The place.
    pub place: WaitPlace,
    /// What it is over.
    pub why: String,
}

/// What came of the comparison.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// What the recording was held to, in words; empty where that is nothing.
    pub held_to: &'static str,
    /// The places that are over it, each once.
    pub breaches: Vec<Breach>,
    /// Why it is not known whether there are more.
    pub(crate) unheld: Vec<String>,
}

impl Verdict {
    /// Whether all that was asked for holds.
    pub fn is_held(&self) -> bool {
        self.held_to.is_empty() || self.breaches.is_empty() && self.unheld.is_empty()
    }

    /// Why it is not known, in sentences.
    pub fn unheld_words(&self) -> impl Iterator<Item = String> + '_ {
        let is = if self.held_to.contains(" and ") { "are" } else { "is" };
        self.unheld.iter().map(move |reason| format!("{} {is} not held: {reason}", self.held_to))
    }

    /// Adds breaches, each of another place than the others. A place that was over something already is over both.
    fn add(&mut self, breaches: Vec<Breach>) {
        let (both, new): (Vec<Breach>, Vec<Breach>) = {
            let known: HashSet<_> = self.breaches.iter().map(|breach| breach.place.key()).collect();
            breaches.into_iter().partition(|breach| known.contains(&breach.place.key()))
        };
        let both: HashMap<_, &str> = both.iter().map(|breach| (breach.place.key(), breach.why.as_str())).collect();
        for Breach { place, why } in &mut self.breaches {
            why.extend(both.get(&place.key()).into_iter().flat_map(|more| ["; ", more]));
        }
        self.breaches.extend(new);
    }
}

/// Holds a recording to a budget, to a baseline, to both or to nothing.
pub fn verdict(
    (budget, baseline): (Option<&Budget>, Option<&AuditReport>),
    recording: &ProgramRecording,
    judged: &[JudgedCalls],
    report: &AuditReport,
) -> Verdict {
    let held_to = match (budget, baseline) {
        (Some(_), Some(_)) => "the budget and the baseline",
        (Some(_), None) => "the budget",
        (None, Some(_)) => "the baseline",
        (None, None) => "",
    };
    let mut verdict = Verdict { held_to, unheld: recording.missing.clone(), ..Verdict::default() };
    if recording.processes.is_empty() && !held_to.is_empty() {
        verdict.unheld.push("no use of CUDA was recorded".to_owned());
        return verdict;
    }
    let over = budget.map(|budget| steps::over(budget, recording, judged, report));
    for (breaches, unheld) in over.into_iter().chain(baseline.map(|baseline| beyond(baseline, report))) {
        verdict.add(breaches);
        verdict.unheld.extend(unheld);
    }
    verdict
}

/// What a place is known by from one audit to the next. Which of the reasons a call has to block depends on what was pending.
fn known(place: &WaitPlace) -> (&str, &str) {
    (&place.place, &place.call)
}

/// Whether two places are of the same function and call, where one of them has no line.
fn is_same_function(one: &WaitPlace, other: &WaitPlace) -> bool {
    let (Some(own), Some(others)) = (one.frame(), other.frame()) else { return false };
    (own.is_function != others.is_function || own.line == 0 || others.line == 0)
        && (is_end(&own.file, &others.file) || is_end(&others.file, &own.file))
        && Class::of(&one.call) == Class::of(&other.call)
}

/// What a place is known by when its line has moved: its file, its function, its call.
fn without_line(place: &WaitPlace) -> (&str, &str, &str) {
    let is_line = |line: &str| line.bytes().all(|digit| digit.is_ascii_digit());
    let file = place.place.rsplit_once(':').filter(|(_, line)| is_line(line)).map_or(&*place.place, |(file, _)| file);
    (file, &place.function, &place.call)
}

/// The places at which an audit says that the host was blocked, or may have been.
fn blocked(audit: &AuditReport) -> HashMap<(&str, &str), &WaitPlace> {
    let placed = audit.places.iter().filter(|place| place.may_block() && !place.place.is_empty());
    placed.map(|place| (known(place), place)).collect()
}

/// The waits whose place a baseline does not have, and those of which it is not known. For each place of the baseline that is
/// gone, one of the same function has moved.
fn beyond(baseline: &AuditReport, report: &AuditReport) -> (Vec<Breach>, Vec<String>) {
    let (before, now) = (blocked(baseline), blocked(report));
    let mut gone: HashMap<_, u64> = HashMap::new();
    for (_, place) in before.iter().filter(|(known, _)| !now.contains_key(*known)) {
        *gone.entry(without_line(place)).or_default() += 1;
    }
    let (placed, lost): (Vec<_>, Vec<_>) =
        report.places.iter().filter(|place| place.is_wait()).partition(|place| !place.place.is_empty());
    let mut moved: HashMap<_, bool> = HashMap::new();
    let mut by_function: HashMap<&str, Vec<&WaitPlace>> = HashMap::new();
    before.values().for_each(|place| by_function.entry(&place.function).or_default().push(place));
    let is_known = |place: &WaitPlace| {
        let of_function = by_function.get(&*place.function).into_iter().flatten();
        before.contains_key(&known(place)) || of_function.copied().any(|known| is_same_function(known, place))
    };
    let new = placed.into_iter().filter(|place| !is_known(place)).filter(|place| {
        let of_gone = gone.get_mut(&without_line(place)).filter(|left| **left > 0);
        !*moved.entry(known(place)).or_insert_with(|| of_gone.map(|left| *left -= 1).is_some())
    });
    let breaches = new.map(|place| Breach { place: place.clone(), why: "the baseline does not have it".to_owned() });
    let breaches = breaches.collect();
    let count: u64 = lost.iter().map(|place| place.count).sum();
    let unheld = format!("{} without a stack: it is not known if the baseline has the place", counted(count, "wait"));
    (breaches, (count > 0).then_some(unheld).into_iter().collect())
}
