//! How a claim came out, in the words of its kind, and why.

use std::fmt;

use super::case::CaseResult;
use crate::document::{ClaimKind, Compare};
use crate::measure::{Decision, Observations};
use crate::units::Scale;

/// How a claim came out.
#[derive(Clone, Debug, PartialEq)]
pub enum ClaimVerdict {
    /// It holds.
    Confirmed,
    /// It does not hold.
    Refuted,
    /// The samples do not decide.
    Inconclusive,
    /// The text's figure holds on this machine, too.
    CarriesOver,
    /// This machine has another figure than the text's.
    DiffersHere,
    /// A model misses by no more than this share.
    GoodToWithin(f64),
    /// It cannot be judged, and why.
    NotJudged(String),
}

impl ClaimVerdict {
    /// What a finding means for a claim of this kind.
    pub(crate) fn of(finding: Decision, kind: ClaimKind) -> Self {
        match (finding, kind) {
            (Decision::Undecided, _) => ClaimVerdict::Inconclusive,
            (Decision::Inside, ClaimKind::Value) => ClaimVerdict::CarriesOver,
            (Decision::Outside, ClaimKind::Value) => ClaimVerdict::DiffersHere,
            (Decision::Inside, _) => ClaimVerdict::Confirmed,
            (Decision::Outside, _) => ClaimVerdict::Refuted,
        }
    }

    /// The verdict in a few words.
    pub fn name(&self) -> String {
        match self {
            ClaimVerdict::Confirmed => "confirmed".to_owned(),
            ClaimVerdict::Refuted => "refuted".to_owned(),
            ClaimVerdict::Inconclusive => "inconclusive".to_owned(),
            ClaimVerdict::CarriesOver => "carries over".to_owned(),
            ClaimVerdict::DiffersHere => "differs here".to_owned(),
            ClaimVerdict::GoodToWithin(share) => format!("good to within {}", Scale::PERCENT.significant(*share, 2)),
            ClaimVerdict::NotJudged(_) => "not judged".to_owned(),
        }
    }

    /// The verdict as a class of HTML.
    pub fn class(&self) -> &'static str {
        match self {
            ClaimVerdict::Confirmed | ClaimVerdict::CarriesOver => "confirmed",
            ClaimVerdict::Refuted => "refuted",
            ClaimVerdict::DiffersHere => "differs",
            ClaimVerdict::Inconclusive => "inconclusive",
            ClaimVerdict::GoodToWithin(_) => "model",
            ClaimVerdict::NotJudged(_) => "not",
        }
    }
}

impl fmt::Display for ClaimVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClaimVerdict::NotJudged(reason) => write!(f, "not judged: {reason}"),
            verdict => f.write_str(&verdict.name()),
        }
    }
}

/// The most cases that are named.
const NAMED: usize = 3;

/// Why a claim came out as it did, in one sentence.
pub(super) fn why(verdict: &ClaimVerdict, kind: ClaimKind, compare: Option<Compare>, cases: &[CaseResult]) -> String {
    let at = |finding: Decision| -> Vec<&CaseResult> {
        cases.iter().filter(|case| case.found.is_ok() && case.finding == Some(finding)).collect()
    };
    let (inside, outside, open) = (at(Decision::Inside), at(Decision::Outside), at(Decision::Undecided));
    let missing: Vec<&CaseResult> = cases.iter().filter(|case| case.found.is_err()).collect();
    let count = cases.len();
    let what = if compare.is_some() { "pairs of cases" } else { "cases" };
    let several = |found: &[&CaseResult]| match found.len() {
        few @ 1..=NAMED => format!("{few} of {count} {what} ({})", names(found, cases)),
        many => format!("{many} of {count} {what}"),
    };
    match verdict {
        ClaimVerdict::NotJudged(reason) => format!("{reason}."),
        ClaimVerdict::GoodToWithin(_) => {
            let rest =
                if missing.is_empty() { String::new() } else { format!("; not measured: {}", names(&missing, cases)) };
            let measured = count - missing.len();
            format!(
                "The largest error of {measured} cases, with its scatter between runs, is no larger than that{rest}. The \
                 number holds for all cases together, which takes wider intervals than each case has alone."
            )
        }
        ClaimVerdict::Inconclusive if !missing.is_empty() && open.is_empty() => {
            format!(
                "The rows decide {} of {count} {what}; not measured: {}.",
                count - missing.len(),
                names(&missing, cases)
            )
        }
        ClaimVerdict::Inconclusive if count == 1 => of_one(
            &open,
            "The trials differ, or none met a fault: that decides nothing.",
            "What the runs came to leaves a bound open.",
            "The interval contains a bound.",
        ),
        ClaimVerdict::Inconclusive if !missing.is_empty() => {
            format!("Undecided: {}; not measured: {}.", several(&open), names(&missing, cases))
        }
        ClaimVerdict::Inconclusive => format!("Undecided: {}.", several(&open)),
        _ if count == 1 && cases.iter().all(|case| matches!(case.known(), Some(Observations::Exact(_)))) => {
            "It follows from the figures.".to_owned()
        }
        ClaimVerdict::Confirmed | ClaimVerdict::CarriesOver if count == 1 => of_one(
            &inside,
            "All trials agree.",
            "What the runs came to shows it lies inside the bounds.",
            "The whole interval lies inside the bounds.",
        ),
        ClaimVerdict::Refuted | ClaimVerdict::DiffersHere if count == 1 => of_one(
            &outside,
            "The trials show the opposite.",
            "What the runs came to shows it lies outside the bounds.",
            "The whole interval lies outside the bounds.",
        ),
        ClaimVerdict::Confirmed if kind == ClaimKind::Exists => format!("It is so in {}.", several(&inside)),
        ClaimVerdict::Refuted if kind == ClaimKind::Exists => format!("It is so in none of {count} {what}."),
        ClaimVerdict::Confirmed | ClaimVerdict::CarriesOver => format!("All {count} {what} lie inside the bounds."),
        ClaimVerdict::Refuted | ClaimVerdict::DiffersHere => format!("Outside the bounds: {}.", several(&outside)),
    }
}

/// What decides of a single case: its trials, its runs where no one interval describes them, or its interval.
fn of_one(case: &[&CaseResult], of_trials: &str, of_runs: &str, of_interval: &str) -> String {
    let found = case.first().and_then(|case| case.found.as_ref().ok());
    let why = match found {
        Some(found) if found.is_of_trials() => of_trials,
        Some(found) if found.unsteady.is_some() => of_runs,
        _ => of_interval,
    };
    why.to_owned()
}

/// What the cases are called: by their parameters, and where these do not tell them apart, by what is computed.
fn names(cases: &[&CaseResult], all: &[CaseResult]) -> String {
    let one_test = all.iter().all(|case| case.quantity == all[0].quantity);
    let name = |case: &&CaseResult| match (one_test, case.case.is_empty()) {
        (_, true) => case.quantity.clone(),
        (true, false) => case.case.clone(),
        (false, false) => format!("{} at {}", case.quantity, case.case),
    };
    cases.iter().map(name).collect::<Vec<String>>().join("; ")
}
