//! Whether what a row came to has an interval: the one place that decides it.
//!
//! A row has none where its samples are too few, where they have two regimes, of which one figure would be of neither, or
//! where they have a trend within the runs. A derived row has none where one of the rows that it was computed from has no
//! steady samples: what moves an operand moves the result.

use super::formula::FormulaOperand;
use super::lookup::{Lookup, Metric};
use super::row::{Provenance, Row};
use crate::measure::{Diagnosis, Estimate};
use crate::units::Scale;

impl<'a> Metric<'a> {
    /// The ends of the interval of its estimate.
    ///
    /// # Errors
    /// Says why it has none, beginning with `no interval`.
    pub fn interval(&self, estimate: &Estimate) -> Result<(f64, f64), String> {
        if let Some(reason) = self.unsteady() {
            return Err(reason);
        }
        match estimate.is_interval() {
            true => Ok((estimate.low, estimate.high)),
            false if estimate.runs > 1 => {
                Err(format!("no interval: all {} runs came to the same value", estimate.runs))
            }
            false => Err(format!("no interval: {} are too few samples", estimate.n)),
        }
    }

    /// Why its samples have no interval that one figure could give, where they have none: their own two regimes or trend, or
    /// those of a row that it was computed from.
    pub fn unsteady(&self) -> Option<String> {
        let own = self.irregular().map(|what| format!("no interval: {what}"));
        own.or_else(|| {
            self.operands().iter().find_map(|operand| {
                let what = operand.irregular()?;
                Some(format!("no interval: {}: {what}", operand.spec.id))
            })
        })
    }

    /// The value with its interval, or with the reason why it has none.
    ///
    /// # Errors
    /// As [`estimate`](Self::estimate).
    pub fn written(&self) -> Result<String, super::MissingReason> {
        let (estimate, unit) = (self.estimate()?, self.spec.unit);
        Ok(match self.unsteady() {
            Some(reason) => format!("{} (n = {}, {reason})", unit.format(estimate.median, 3), estimate.n),
            None => estimate.format(unit),
        })
    }

    /// What keeps its own samples from having one figure.
    fn irregular(&self) -> Option<String> {
        let time = |seconds: f64| self.spec.unit.format(seconds, 3);
        self.diagnose().into_iter().find_map(|diagnosis| match diagnosis {
            Diagnosis::TwoModes { low, high, share } => {
                let percent = Scale::PERCENT.significant(share, 2);
                Some(format!("two regimes, {} and {} ({percent} of the samples)", time(low), time(high)))
            }
            Diagnosis::Trend { change, .. } => {
                let direction = if change > 0.0 { "rise" } else { "fall" };
                let percent = Scale::PERCENT.significant(change.abs(), 2);
                Some(format!("the samples of a run {direction} by {percent}"))
            }
            _ => None,
        })
    }
}

impl<'a> Lookup<'a> {
    /// The measured rows that a derived row was computed from, also by way of other derived ones.
    pub(super) fn operands(&self, row: &'a Row) -> Vec<&'a Row> {
        let (mut seen, mut measured) = (vec![row], Vec::new());
        let mut place = 0;
        while let Some(row) = seen.get(place).copied() {
            match &row.spec.provenance {
                Provenance::Derived { operands, .. } => {
                    for operand in operands.iter().filter_map(|operand| self.operand(operand, row)) {
                        if !seen.iter().any(|known| std::ptr::eq(*known, operand)) {
                            seen.push(operand);
                        }
                    }
                }
                Provenance::Measured { .. } => measured.push(row),
            }
            place += 1;
        }
        measured
    }

    /// The row that the formula of `row` names.
    pub(super) fn operand(&self, operand: &FormulaOperand, row: &Row) -> Option<&'a Row> {
        self.all_of(&operand.id).find(|other| operand.is(other, &row.spec.parameters))
    }
}

#[cfg(test)]
mod tests {
    use super::super::row::{Derivation, MetricSpec, Outcome, Parameters, Series};
    use super::super::rows::Rows;
    use super::*;
    use crate::measure::{Clock, StoppedBy};
    use crate::units::Unit;

    fn row(id: &str, provenance: Provenance, samples: &[f64]) -> Row {
        let (group, label) = ("G".to_owned(), "L".to_owned());
        let outcome = match provenance {
            Provenance::Derived { .. } => Outcome::Derived { samples: samples.to_vec() },
            Provenance::Measured { .. } => Outcome::Measured {
                samples: samples.to_vec(),
                order: Vec::new(),
                started: Vec::new(),
                warmup: Vec::new(),
                stopped_by: StoppedBy::Samples,
            },
        };
        let (parameters, work, floor) = (Parameters::new(), None, None);
        let spec =
            MetricSpec { id: id.to_owned(), group, label, unit: Unit::Seconds, parameters, provenance, work, floor };
        Row { spec, series: vec![Series { run: "1".to_owned(), outcome }] }
    }

    fn time(id: &str, samples: &[f64]) -> Row {
        row(id, Provenance::measured(Clock::Host), samples)
    }

    fn derived(id: &str, operands: &[&str]) -> Row {
        let operand = |id: &&str| FormulaOperand { name: (*id).to_owned(), id: (*id).to_owned(), parameters: None };
        let operands = operands.iter().map(operand).collect();
        let samples: Vec<f64> = (0..40).map(|round| 1.0 + f64::from(round % 7) * 1e-3).collect();
        let (derivation, formula) = (Derivation::Computation, "F".to_owned());
        row(id, Provenance::Derived { derivation, formula, operands }, &samples)
    }

    fn operands(rows: &Rows, id: &str) -> Vec<String> {
        let lookup = Lookup::new(rows, vec!["1"]);
        let row = rows.iter().find(|row| row.spec.id == id).unwrap();
        lookup.operands(row).iter().map(|row| row.spec.id.clone()).collect()
    }

    #[test]
    fn a_derived_row_leads_to_the_measured_rows_also_by_way_of_derived_ones() {
        let mut rows = Rows::from(vec![time("a.copies", &[1.0]), time("a.computes", &[1.0]), time("a.total", &[1.0])]);
        rows.push(derived("a.sum", &["a.copies", "a.computes"]));
        rows.push(derived("a.gain", &["a.sum", "a.total", "a.copies"]));
        assert_eq!(operands(&rows, "a.gain"), ["a.total", "a.copies", "a.computes"]);
    }

    #[test]
    fn rows_that_name_each_other_come_to_an_end() {
        let rows = Rows::from(vec![derived("a.x", &["a.y"]), derived("a.y", &["a.x"])]);
        assert!(operands(&rows, "a.x").is_empty());
    }

    #[test]
    fn what_comes_of_a_row_with_two_regimes_has_no_interval_and_says_of_which_row() {
        let two: Vec<f64> =
            (0..40).map(|round| if round % 2 == 0 { 1.0 } else { 2.0 } + f64::from(round) * 1e-4).collect();
        let one: Vec<f64> = (0..40).map(|round| 1.0 + f64::from(round % 7) * 1e-3).collect();
        let rows = Rows::from(vec![
            time("a.forced", &two),
            time("a.async", &one),
            derived("a.delta", &["a.forced", "a.async"]),
        ]);
        let lookup = Lookup::new(&rows, vec!["1"]);
        let interval = |id: &str| {
            let metric = lookup.find(id, &Parameters::new(), &Parameters::new()).unwrap();
            metric.interval(&metric.estimate().unwrap())
        };
        assert!(interval("a.async").is_ok());
        assert!(interval("a.forced").unwrap_err().starts_with("no interval: two regimes"));
        assert!(interval("a.delta").unwrap_err().starts_with("no interval: a.forced: two regimes"));
    }
}
