//! A test of a claim, made for one case: what its quantity came to, and how that is written. And how a claim came out by its cases,
//! in the words of its kind, and why.

use std::fmt;

use super::test::Test;
use crate::document::{ClaimKind, Compare};
use crate::measure::{AcceptedRegion, Decision, Evidence, Observations};
use crate::results::{Parameter, Parameters};
use crate::units::{Scale, Unit};

/// A test, made for one case.
#[derive(Clone, Debug, PartialEq)]
pub struct CaseResult {
    /// The quantity, as the document writes it.
    pub quantity: String,
    /// What the case is, by its parameters.
    pub case: String,
    /// The parameters of the case.
    pub select: Parameters,
    /// What it came to, or why there is nothing.
    pub found: Result<Found, String>,
    /// Where it has to lie; nothing of a quantity that is only shown.
    region: Option<AcceptedRegion>,
    /// Where it lies.
    pub(super) finding: Option<Decision>,
}

impl CaseResult {
    pub(super) fn of(test: &Test, case: String, select: &Parameters, found: Result<Found, String>) -> Self {
        let (quantity, select) = (test.quantity.text().to_owned(), select.clone());
        Self { quantity, case, select, found, region: test.region, finding: None }
    }

    /// How strongly it speaks for either side of its bounds.
    pub(super) fn evidence(&self) -> Evidence {
        match (&self.found, &self.region) {
            (Ok(found), Some(region)) => Evidence::of(&found.known, region),
            _ => Evidence::NONE,
        }
    }

    /// Where it has to lie, in words; nothing of a quantity that was not measured or is only shown.
    pub fn bounds(&self) -> Option<String> {
        Some(bounds(self.region.as_ref()?, self.found.as_ref().ok()?.unit))
    }

    /// What is known of it, where it was measured.
    pub(super) fn known(&self) -> Option<&Observations> {
        self.found.as_ref().ok().map(|found| &found.known)
    }

    /// Whether it is undecided although its own interval lies on one side of the bounds.
    pub(crate) fn is_open_together(&self) -> bool {
        let interval = self.found.as_ref().ok().and_then(|found| found.numbers().1);
        let Some(((least, largest), AcceptedRegion { low, high })) = interval.zip(self.region) else { return false };
        let inside = low.is_none_or(|low| least > low.value) && high.is_none_or(|high| largest < high.value);
        let beyond = low.is_some_and(|low| largest < low.value) || high.is_some_and(|high| least > high.value);
        self.lies() == Some("undecided") && (inside || beyond)
    }

    /// Why there is nothing, behind the quantity: a reason that begins with its name begins behind it.
    pub fn missing(&self) -> Option<&str> {
        let reason = self.found.as_ref().err()?;
        let behind = reason.strip_prefix(&self.quantity).filter(|rest| rest.starts_with(' '));
        Some(behind.map_or(reason.as_str(), str::trim_start))
    }

    /// Where it lies, in a word.
    pub fn lies(&self) -> Option<&'static str> {
        self.finding.filter(|_| self.found.is_ok()).map(|finding| match finding {
            Decision::Inside => "inside",
            Decision::Outside => "outside",
            Decision::Undecided => "undecided",
        })
    }
}

/// What a quantity came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// What is known of it.
    pub known: Observations,
    /// Its unit.
    pub unit: Unit,
    /// The expression with values in the place of names, where it is more than one name.
    pub filled: Option<String>,
    /// Its operands with their values.
    pub operands: Vec<(String, String)>,
    /// Why it has no interval although its runs differ, beginning with `no interval`: two levels, or a trend.
    pub unsteady: Option<String>,
    /// How many runs it was computed in; 0 where nothing was measured.
    pub runs: usize,
    /// How many the system made: those that lack a part of it are left out.
    pub of_runs: usize,
    /// Whether it was computed round by round.
    pub by_rounds: bool,
}

impl Found {
    /// The value with its interval, where one interval describes it.
    pub fn numbers(&self) -> (f64, Option<(f64, f64)>) {
        let (value, interval) = self.known.value();
        (value, interval.filter(|_| self.unsteady.is_none()))
    }

    /// The value with its interval, or what the trials came to.
    pub fn written(&self) -> String {
        let runs = self.counted();
        match (&self.known, self.numbers()) {
            (Observations::Trials(values) | Observations::Faults(values), _) => {
                let (count, zeros) = (values.len(), values.iter().filter(|value| **value == 0.0).count());
                let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                match values.iter().all(|value| *value == most) {
                    true => format!("{most} in all {count} trials of {runs}"),
                    false => format!("0 in {zeros} of {count} trials of {runs}, at most {most}"),
                }
            }
            (_, (value, Some((low, high)))) => {
                let (scale, decimals) = self.unit.scale_of(value, (low, high));
                let [low, high] = [low, high].map(|end| scale.number(end, decimals));
                format!("{} ({low} … {high}, {runs})", scale.fixed(value, decimals))
            }
            (Observations::Runs(_), (value, None)) => {
                let reason = self.unsteady.as_deref().unwrap_or("no interval");
                format!("{} ({runs}, {reason})", self.unit.format(value, 4))
            }
            (_, (value, None)) => self.unit.format(value, 4),
        }
    }

    /// Why runs of it have no interval, in a few words; nothing of trials and figures.
    pub(crate) fn why_no_interval(&self) -> Option<String> {
        let none = || format!("{}, no interval", self.counted());
        self.unsteady.clone().or_else(|| self.known.without_scatter().map(|_| none()))
    }

    /// Of how many runs it is: `one run`, `3 runs`, `3 of 5 runs`.
    pub(crate) fn counted(&self) -> String {
        match (self.runs, self.of_runs) {
            (1, 1) => "one run".to_owned(),
            (runs, all) if runs < all => format!("{runs} of {all} runs"),
            (runs, _) => format!("{runs} runs"),
        }
    }
}

/// Operands with their values, in words.
pub(crate) fn operands_in_words(operands: &[(String, String)]) -> String {
    operands.iter().map(|(name, value)| format!("{name} = {value}")).collect::<Vec<_>>().join("; ")
}

/// Whether a value is a small whole number without a unit, which is written as it is.
pub(super) fn whole(value: f64, unit: Unit) -> bool {
    matches!(unit, Unit::Number | Unit::Ratio) && value.fract() == 0.0 && value.abs() < 1e6
}

/// A region in words: `above 0 s`, `between 0.9 and 1.1`.
fn bounds(region: &AcceptedRegion, unit: Unit) -> String {
    let written = |value: f64| if whole(value, unit) { value.to_string() } else { unit.format(value, 3) };
    match (region.low, region.high) {
        (Some(low), Some(high)) if low.value == high.value => written(low.value),
        (Some(low), Some(high)) => format!("between {} and {}", written(low.value), written(high.value)),
        (Some(low), None) if low.included => format!("at least {}", written(low.value)),
        (Some(low), None) => format!("above {}", written(low.value)),
        (None, Some(high)) if high.included => format!("at most {}", written(high.value)),
        (None, Some(high)) => format!("below {}", written(high.value)),
        (None, None) => "anything".to_owned(),
    }
}

/// The parameters of a case in words.
pub(super) fn named(select: &Parameters) -> String {
    let value = |(name, value): (&String, &Parameter)| match (value.number(), name.as_str()) {
        (Some(seconds), name) if name.ends_with("_seconds") => {
            format!("{} {}", name.trim_end_matches("_seconds").replace('_', " "), Unit::Seconds.format(seconds, 1))
        }
        (_, name) => format!("{} {value}", name.replace('_', " ")),
    };
    select.iter().map(value).collect::<Vec<String>>().join(", ")
}

/// How a claim came out.
#[derive(Clone, Debug, PartialEq)]
pub enum ClaimVerdict {
    /// It holds.
    Confirmed,
    /// It does not hold.
    Refuted,
    /// It can be so, and no case shows it: that refutes nothing.
    NotSeen,
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
            (Decision::Outside, ClaimKind::Exists) => ClaimVerdict::NotSeen,
            (Decision::Inside, _) => ClaimVerdict::Confirmed,
            (Decision::Outside, _) => ClaimVerdict::Refuted,
        }
    }

    /// The verdict in a few words.
    pub fn name(&self) -> String {
        match self {
            ClaimVerdict::Confirmed => "confirmed".to_owned(),
            ClaimVerdict::Refuted => "refuted".to_owned(),
            ClaimVerdict::NotSeen => "not seen here".to_owned(),
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
            ClaimVerdict::NotSeen => "unseen",
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
    let (count, measured, lacking) = (cases.len(), cases.len() - missing.len(), names(&missing, cases));
    let what = if compare.is_some() { "pairs of cases" } else { "cases" };
    let several = |found: &[&CaseResult]| match found.len() {
        few @ 1..=NAMED => format!("{few} of {count} {what} ({})", names(found, cases)),
        many => format!("{many} of {count} {what}"),
    };
    match verdict {
        ClaimVerdict::NotJudged(reason) => format!("{reason}."),
        ClaimVerdict::GoodToWithin(_) => {
            let rest = if missing.is_empty() { String::new() } else { format!("; not measured: {lacking}") };
            format!(
                "The largest error of {measured} cases, with its scatter between runs, is no larger than that{rest}. The \
                 number holds for all cases together, which takes wider intervals than each case has alone."
            )
        }
        ClaimVerdict::Inconclusive if !missing.is_empty() && open.is_empty() => {
            format!("The rows decide {measured} of {count} {what}; not measured: {lacking}.")
        }
        ClaimVerdict::Inconclusive if count == 1 => of_one(&open, Decision::Undecided),
        ClaimVerdict::Inconclusive if !missing.is_empty() => {
            format!("Undecided: {}; not measured: {lacking}.", several(&open))
        }
        ClaimVerdict::Inconclusive => format!("Undecided: {}.", several(&open)),
        _ if count == 1 && cases.iter().all(|case| matches!(case.known(), Some(Observations::Exact(_)))) => {
            "It follows from the figures.".to_owned()
        }
        ClaimVerdict::Confirmed | ClaimVerdict::CarriesOver if count == 1 => of_one(&inside, Decision::Inside),
        ClaimVerdict::Refuted | ClaimVerdict::DiffersHere if count == 1 => of_one(&outside, Decision::Outside),
        ClaimVerdict::Confirmed if kind == ClaimKind::Exists => format!("It is so in {}.", several(&inside)),
        ClaimVerdict::NotSeen if count == 1 => {
            format!("{} Another case may show it.", of_one(&outside, Decision::Outside))
        }
        ClaimVerdict::NotSeen => format!("It is so in none of {count} {what}. Another one may show it."),
        ClaimVerdict::Confirmed | ClaimVerdict::CarriesOver if count == 2 => {
            format!("Both {what} lie inside the bounds.")
        }
        ClaimVerdict::Confirmed | ClaimVerdict::CarriesOver => format!("All {count} {what} lie inside the bounds."),
        ClaimVerdict::Refuted | ClaimVerdict::DiffersHere => format!("Outside the bounds: {}.", several(&outside)),
    }
}

/// What decides of a single case: its trials, its runs where no one interval describes them, or its interval.
fn of_one(case: &[&CaseResult], finding: Decision) -> String {
    let found = case.first().and_then(|case| case.found.as_ref().ok());
    let (of_trials, lies) = match finding {
        Decision::Inside => ("All trials agree.", "lies inside the bounds"),
        Decision::Outside => ("The trials show the opposite.", "lies outside the bounds"),
        Decision::Undecided => ("The trials differ, or none met a fault: that decides nothing.", ""),
    };
    let is_unsteady = found.is_some_and(|found| found.unsteady.is_some());
    match found.map(|found| &found.known) {
        Some(Observations::Trials(_) | Observations::Faults(_)) => of_trials.to_owned(),
        _ if is_unsteady && lies.is_empty() => "What the runs came to leaves a bound open.".to_owned(),
        _ if is_unsteady => format!("What the runs came to shows it {lies}."),
        _ if lies.is_empty() => "The interval contains a bound.".to_owned(),
        _ => format!("The whole interval {lies}."),
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Bound;

    fn written(known: Observations, unit: Unit, runs: usize) -> String {
        let (operands, unsteady) = (Vec::new(), None);
        Found { known, unit, filled: None, operands, unsteady, runs, of_runs: runs, by_rounds: false }.written()
    }

    #[test]
    fn a_value_stands_with_its_interval_and_the_number_of_runs() {
        assert_eq!(
            written(Observations::Runs(vec![1e-3, 2e-3, 3e-3]), Unit::Seconds, 3),
            "2.00 ms (−0.48 … 4.48, 3 runs)"
        );
        assert_eq!(written(Observations::Exact(2e-3), Unit::Seconds, 0), "2.000 ms");
        assert_eq!(written(Observations::Trials(vec![1.0; 12]), Unit::Ratio, 2), "1 in all 12 trials of 2 runs");
        assert_eq!(written(Observations::Runs(vec![2e-3]), Unit::Seconds, 1), "2.000 ms (one run, no interval)");
        let faults = Observations::Faults(vec![0.0, 0.0, 64.0]);
        assert_eq!(written(faults, Unit::Number, 1), "0 in 2 of 3 trials of one run, at most 64");
    }

    #[test]
    fn a_region_is_written_in_the_unit_of_its_quantity() {
        let end = |value, included| Some(Bound { value, included });
        let of = |low, high, unit| bounds(&AcceptedRegion { low, high }, unit);
        assert_eq!(of(end(0.0, false), None, Unit::Seconds), "above 0 s");
        assert_eq!(of(end(1e-5, true), end(1.5e-5, true), Unit::Seconds), "between 10.0 µs and 15.0 µs");
        assert_eq!(of(end(1.0, true), end(1.0, true), Unit::Ratio), "1");
        assert_eq!(of(None, end(0.95, false), Unit::Ratio), "below 0.950");
        assert_eq!(of(end(0.3, true), None, Unit::Ratio), "at least 0.300");
    }
}
