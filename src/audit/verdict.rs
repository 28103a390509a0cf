//! What a budget and a baseline say of a recording: which places are over them, and of what it is not known.
//!
//! What may miss waits, or was held to nothing, is no pass. A baseline is an earlier audit, of which only new places fail.

use super::places::WaitPlace;
use super::recording::ProgramRecording;
use super::report::{AuditReport, JudgedCalls};
use super::steps::{self, Budget};
use crate::units::counted;

/// A place that is over the budget, or that the baseline does not have.
#[derive(Clone, Debug)]
pub(crate) struct Breach {
    pub(crate) place: WaitPlace,
    pub(crate) why: String,
}

/// What came of the comparison.
#[derive(Clone, Debug, Default)]
pub(crate) struct Verdict {
    /// What the recording was held to, in words; empty where that is nothing.
    pub(crate) held_to: &'static str,
    /// The places that are over it, each once.
    pub(crate) breaches: Vec<Breach>,
    /// Why it is not known whether there are more.
    pub(crate) unheld: Vec<String>,
}

impl Verdict {
    /// Whether all that was asked for holds.
    pub(crate) fn is_held(&self) -> bool {
        self.held_to.is_empty() || self.breaches.is_empty() && self.unheld.is_empty()
    }

    /// Why it is not known, in sentences.
    pub(crate) fn unheld_words(&self) -> impl Iterator<Item = String> + '_ {
        let begin = match self.held_to {
            "" => "waits may be missing".to_owned(),
            held_to => format!("{held_to} {} not held", if held_to.contains(" and ") { "are" } else { "is" }),
        };
        self.unheld.iter().map(move |reason| format!("{begin}: {reason}"))
    }

    fn add(&mut self, breaches: Vec<Breach>) {
        for breach in breaches {
            match self.breaches.iter_mut().find(|known| known.place.key() == breach.place.key()) {
                Some(known) => known.why.push_str(&format!("; {}", breach.why)),
                None => self.breaches.push(breach),
            }
        }
    }
}

/// Holds a recording to a budget, to a baseline, to both or to nothing.
pub(crate) fn verdict(
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
        verdict.unheld.push("no process used CUDA".to_owned());
        return verdict;
    }
    if let Some(budget) = budget {
        let (breaches, unheld) = steps::over(budget, recording, judged, report);
        verdict.add(breaches);
        verdict.unheld.extend(unheld);
    }
    if let Some(baseline) = baseline {
        let (breaches, unheld) = beyond(baseline, report);
        verdict.add(breaches);
        verdict.unheld.extend(unheld);
    }
    verdict
}

/// The waits whose place a baseline does not have, and those of which it is not known.
fn beyond(baseline: &AuditReport, report: &AuditReport) -> (Vec<Breach>, Option<String>) {
    let is_known = |place: &WaitPlace| baseline.places.iter().any(|known| known.key() == place.key());
    let (placed, lost): (Vec<_>, Vec<_>) =
        report.places.iter().filter(|place| place.is_wait()).partition(|place| !place.place.is_empty());
    let new = placed.into_iter().filter(|place| !is_known(place));
    let breaches = new.map(|place| Breach { place: place.clone(), why: "the baseline does not have it".to_owned() });
    let count: u64 = lost.iter().map(|place| place.count).sum();
    let unheld = format!("{} without a stack: it is not known if the baseline has the place", counted(count, "wait"));
    (breaches.collect(), (count > 0).then_some(unheld))
}
