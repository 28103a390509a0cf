//! A test of a claim, made for one case.

use super::found::{Found, bounds};
use super::test::Test;
use crate::measure::{AcceptedRegion, Decision, Evidence, Observations};
use crate::results::{Parameter, Parameters};
use crate::units::Unit;

/// A test, made for one case.
#[derive(Clone, Debug, PartialEq)]
pub struct CaseResult {
    /// The quantity, as the document writes it.
    pub quantity: String,
    /// The quantity with values in the place of names, where it is more than one name.
    pub filled: Option<String>,
    /// Where it has to lie, in words; nothing of a quantity that is only shown.
    pub bounds: Option<String>,
    /// What the case is, by its parameters.
    pub case: String,
    /// What it came to, or why there is nothing.
    pub value: Result<String, String>,
    /// The value and its interval as numbers.
    pub numbers: Option<(f64, Option<(f64, f64)>)>,
    /// Whether it has two regimes or a trend, so that no interval describes it.
    pub unsteady: bool,
    /// The parameters of the case.
    pub select: Parameters,
    /// The names in it with their values.
    pub operands: Vec<(String, String)>,
    /// How many runs it was measured in; 0 where nothing measured is in it.
    pub runs: usize,
    /// Where it lies.
    pub(super) finding: Option<Decision>,
    /// Whether it was computed in each round, and not from the values of its names.
    pub by_rounds: bool,
    /// Whether it was computed from figures alone.
    pub(super) exact: bool,
    /// Whether its own interval lies inside or outside the bounds, whatever the other cases need.
    is_clear_alone: bool,
    /// Whether it is what each trial came to.
    pub(super) trials: bool,
}

impl CaseResult {
    /// Whether it is undecided although its own interval lies on one side of the bounds.
    pub(crate) fn is_open_together(&self) -> bool {
        self.lies() == Some("undecided") && self.is_clear_alone
    }

    /// Why there is nothing, behind the quantity: a reason that begins with its name begins behind it.
    pub fn missing(&self) -> Option<&str> {
        let reason = self.value.as_ref().err()?;
        let behind = reason.strip_prefix(&self.quantity).filter(|rest| rest.starts_with(' '));
        Some(behind.map_or(reason.as_str(), str::trim_start))
    }

    /// Where it lies, in a word.
    pub fn lies(&self) -> Option<&'static str> {
        self.finding.filter(|_| self.value.is_ok()).map(|finding| match finding {
            Decision::Inside => "inside",
            Decision::Outside => "outside",
            Decision::Undecided => "undecided",
        })
    }
}

/// A case with what is known of it.
pub(super) struct ComparedCase {
    /// The case.
    pub case: CaseResult,
    /// What is known of its quantity, where that was measured.
    pub known: Option<Observations>,
    region: Option<AcceptedRegion>,
}

impl ComparedCase {
    pub(super) fn of(test: &Test, case: String, select: &Parameters, found: Result<Found, String>) -> Self {
        let mut case = CaseResult {
            quantity: test.quantity.text().to_owned(),
            filled: None,
            bounds: None,
            case,
            value: Err(String::new()),
            numbers: None,
            unsteady: false,
            select: select.clone(),
            operands: Vec::new(),
            runs: 0,
            finding: None,
            by_rounds: false,
            exact: false,
            is_clear_alone: false,
            trials: false,
        };
        let known = match found {
            Ok(found) => {
                case.bounds = test.region.as_ref().map(|region| bounds(region, found.unit));
                case.value = Ok(found.written());
                case.numbers = Some(found.numbers());
                case.unsteady = found.unsteady.is_some();
                case.is_clear_alone = test.region.is_some_and(|region| is_clear(case.numbers, &region));
                case.runs = found.runs;
                case.by_rounds = found.by_rounds;
                case.exact = matches!(found.known, Observations::Exact(_));
                case.trials = matches!(found.known, Observations::Trials(_) | Observations::Faults(_));
                case.filled = found.filled;
                case.operands = found.operands;
                Some(found.known)
            }
            Err(reason) => {
                case.value = Err(reason);
                None
            }
        };
        Self { case, known, region: test.region }
    }

    /// How strongly it speaks for either side of its bounds.
    pub(super) fn evidence(&self) -> Evidence {
        match (&self.known, &self.region) {
            (Some(known), Some(region)) => Evidence::of(known, region),
            _ => Evidence::NONE,
        }
    }
}

/// Whether an interval lies wholly inside or outside a region.
fn is_clear(numbers: Option<(f64, Option<(f64, f64)>)>, region: &AcceptedRegion) -> bool {
    let Some((_, Some((least, largest)))) = numbers else { return false };
    let inside = region.low.is_none_or(|low| least > low.value) && region.high.is_none_or(|high| largest < high.value);
    let beyond =
        region.low.is_some_and(|low| largest < low.value) || region.high.is_some_and(|high| least > high.value);
    inside || beyond
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
