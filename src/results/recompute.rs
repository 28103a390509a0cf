//! Whether the derived rows of a file are what their formulas give of the rows that they name.
//!
//! A results file may come from anywhere: what was computed when it was made is computed again from the samples that stand
//! beside it, round by round.

use std::borrow::Cow;
use std::fmt;

use super::expression::Expression;
use super::lookup::Lookup;
use super::row::{Outcome, Provenance, Row};
use super::run::Results;
use crate::units::Unit;

/// By how much of itself, or of the greatest operand of its unit, a value may miss what its formula gives.
const ROUNDING: f64 = 1e-9;

/// What came of computing the derived rows of a file again.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recomputation {
    /// The rows that do not follow from those that they name.
    pub contradictions: Vec<Contradiction>,
    /// The rows, with their parameters, that have a value in a run and cannot be computed again: the formula is prose, or names
    /// rows that the file does not have.
    pub unchecked: Vec<String>,
}

/// A derived row that does not follow from the rows that its formula names.
#[derive(Clone, Debug, PartialEq)]
pub struct Contradiction {
    /// The row, with its parameters.
    pub row: String,
    /// The run.
    pub run: String,
    /// The formula.
    pub formula: String,
    /// The first round that differs, from 0.
    pub round: usize,
    /// What the formula gives there, in the row's unit; none where its rows have no such round.
    pub computed: Option<f64>,
    /// What the file holds there.
    pub stored: f64,
    unit: Unit,
}

impl fmt::Display for Contradiction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { row, run, formula, round, computed, stored, unit } = self;
        let written = |value: f64| unit.format(value, 4);
        let gives = computed.map_or("nothing".to_owned(), written);
        let (round, stored) = (round + 1, written(*stored));
        write!(f, "{row} holds {stored} in round {round} of the run {run}, where its formula `{formula}` gives {gives}")
    }
}

impl Results {
    /// Computes the derived rows again, from the rows of their run.
    pub fn recompute(&self) -> Recomputation {
        let mut found = Recomputation::default();
        for system in self.systems() {
            let lookup = self.lookup_of(system);
            for row in lookup.rows() {
                let of_runs = lookup.outcomes(row).enumerate().filter_map(|(place, (run, outcome))| match outcome? {
                    Outcome::Derived { samples } => Some(contradiction(&lookup, row, samples, (place, run))),
                    _ => None,
                });
                let of_runs: Vec<_> = of_runs.collect();
                found.unchecked.extend(of_runs.contains(&None).then(|| row.spec.title()));
                found.contradictions.extend(of_runs.into_iter().flatten().flatten());
            }
        }
        found
    }
}

/// The first of the values of a run, which has this place and name, that does not follow. Outer `None` where it cannot be
/// computed: the formula is prose, or names a row that is not there.
#[allow(clippy::option_option, reason = "whether it can be computed, and whether it differs")]
fn contradiction(
    lookup: &Lookup<'_>,
    row: &Row,
    stored: &[f64],
    (place, run): (usize, &str),
) -> Option<Option<Contradiction>> {
    let Provenance::Derived { formula, operands, .. } = &row.spec.provenance else { return None };
    let sets = operands.iter().map(|operand| {
        let found = lookup.operand(operand, row)?;
        let (_, outcome) = lookup.outcomes(found).nth(place)?;
        Some(((operand.name.as_str(), outcome?.values()?), found.spec.unit))
    });
    let (sets, units) = sets.collect::<Option<(Vec<(&str, Cow<'_, [f64]>)>, Vec<Unit>)>>()?;
    let expression = Expression::formula(formula);
    let differs = |round: usize, stored: f64, computed: Option<f64>| {
        let (row, unit) = (row.spec.title(), row.spec.unit);
        Contradiction { row, run: run.to_owned(), formula: formula.clone(), round, computed, stored, unit }
    };
    for (round, &stored) in stored.iter().enumerate() {
        if sets.iter().any(|(_, samples)| samples.len() <= round) {
            return Some(Some(differs(round, stored, None)));
        }
        let computed = expression.as_ref()?.evaluate_round(&sets, &row.spec.parameters, round)?;
        // A small difference of two large values has lost digits.
        let of_unit =
            sets.iter().zip(&units).filter(|(_, unit)| **unit == row.spec.unit).map(|((_, samples), _)| samples[round]);
        let scale = of_unit.fold(computed.abs().max(stored.abs()), |scale, value| scale.max(value.abs()));
        if !computed.is_finite() || (computed - stored).abs() > ROUNDING * scale {
            return Some(Some(differs(round, stored, Some(computed))));
        }
    }
    Some(None)
}

#[cfg(test)]
mod tests {
    use super::super::expression::FormulaOperand;
    use super::super::row::{Derivation, MetricSpec, Parameter, Parameters, Series};
    use super::super::rows::Rows;
    use super::*;
    use crate::measure::{Clock, StoppedBy};

    fn row(id: &str, provenance: Provenance, samples: [f64; 2]) -> Row {
        let samples = samples.to_vec();
        let outcome = match provenance {
            Provenance::Derived { .. } => Outcome::Derived { samples },
            Provenance::Measured { .. } => Outcome::of_samples(samples, StoppedBy::Samples),
        };
        let parameters = Parameters::from([("bytes".to_owned(), Parameter::Integer(8))]);
        let (id, group, label, unit) = (id.to_owned(), "G".to_owned(), "L".to_owned(), Unit::Seconds);
        let spec = MetricSpec { id, group, label, unit, parameters, provenance, work: None, floor: None };
        Row { spec, series: vec![Series { run: "1".to_owned(), outcome }] }
    }

    /// What becomes of a derived row of these values beside rows of known times. `None` where it cannot be computed.
    fn differs(formula: &str, samples: [f64; 2]) -> Option<bool> {
        let times = [("a.forced", [5.0, 6.0]), ("a.async", [2.0, 4.0])];
        let measured = |(id, samples)| row(id, Provenance::measured(Clock::Host), samples);
        let mut rows: Rows = times.map(measured).to_vec().into();
        let names = ["forced", "async"].map(|name| (name, format!("a.{name}")));
        let operands = names.into_iter().filter(|(name, _)| formula.contains(name));
        let operand = |(name, id): (&str, String)| FormulaOperand { name: name.to_owned(), id, parameters: None };
        let operands: Vec<FormulaOperand> = operands.map(operand).collect();
        let derivation = Derivation::Computation;
        let provenance = Provenance::Derived { derivation, formula: formula.to_owned(), operands };
        rows.push(row("a.derived", provenance, samples));
        let lookup = Lookup::new(&rows, vec!["1"]);
        contradiction(&lookup, rows.last().unwrap(), &samples, (0, "1")).map(|found| found.is_some())
    }

    #[test]
    fn a_derived_row_that_does_not_follow_from_its_operands_is_found() {
        for (formula, right) in [
            ("forced − async", [3.0, 2.0]),
            ("2 · bytes / async", [8.0, 4.0]),
            ("max(forced, 5.5)", [5.5, 6.0]),
            ("forced = async", [0.0, 0.0]),
        ] {
            assert_eq!(differs(formula, right), Some(false), "{formula}");
            assert_eq!(differs(formula, [right[0], right[1] + 1e-6]), Some(true), "{formula}");
        }
    }

    #[test]
    fn a_formula_that_gives_no_number_contradicts_every_value() {
        for formula in ["forced / (async − async)", "(forced − forced) / (async − async)"] {
            assert_eq!(differs(formula, [1.0, 1.0]), Some(true), "{formula}");
        }
    }

    #[test]
    fn a_row_whose_words_are_not_known_cannot_be_computed_again() {
        assert_eq!(differs("forced − unknown", [9.0, 9.0]), None);
    }
}
