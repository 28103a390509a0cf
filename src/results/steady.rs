//! Whether what a row came to has an interval: the one place that decides it.
//!
//! A row has none where its samples are too few, where they have two levels, of which one figure would be of neither, or
//! where they have a trend within the runs. Of a derived row its own values in each round are asked, not the rows that it was
//! computed from: what moves all of these in a round is not in their difference or quotient. A derived row with fewer values
//! than a row that it was computed from is asked of that one, too.

use super::expression::FormulaOperand;
use super::lookup::Lookup;
use super::metric::Metric;
use super::row::{Provenance, Row};
use crate::measure::{Diagnosis, Estimate, diagnose};
use crate::units::{Scale, Unit};

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

    /// Why its samples have no interval that one figure could give, where they have none: their own two levels or trend, or
    /// those of a row with more samples that it was computed from.
    pub fn unsteady(&self) -> Option<String> {
        let own = self.is_scattered().then(|| no_interval_of(&self.slices(), self.spec.unit)).flatten();
        own.or_else(|| self.of_longer.as_deref().map(str::to_owned))
    }

    /// Whether its samples scatter as times do: times, shares of them, and what was computed from such.
    fn is_scattered(&self) -> bool {
        match self.spec.provenance {
            Provenance::Measured { .. } if !self.is_observed() => self.clock().is_some(),
            _ => !self.is_counted(),
        }
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
}

/// Why the values of the rounds of several runs have no interval, where they have two levels or a trend.
pub fn no_interval_of(runs: &[&[f64]], unit: Unit) -> Option<String> {
    let written = |value: f64| unit.format(value, 3);
    diagnose(runs).into_iter().find_map(|diagnosis| match diagnosis {
        Diagnosis::TwoLevels { low, high, share } => {
            let percent = Scale::PERCENT.significant(share, 2);
            let (low, high) = (written(low), written(high));
            Some(format!("no interval: two levels, {low} and {high} ({percent} of the samples)"))
        }
        Diagnosis::Trend { change, .. } => {
            let direction = if change > 0.0 { "rise" } else { "fall" };
            let by = match change.abs() {
                // A difference may be near 0, of which a share says nothing.
                own if own > 1.0 => "more than their median".to_owned(),
                own => Scale::PERCENT.significant(own, 2),
            };
            Some(format!("no interval: the samples of a run {direction} by {by}"))
        }
        _ => None,
    })
}

impl<'a> Lookup<'a> {
    /// The row that the formula of `row` names.
    pub(super) fn operand(&self, operand: &FormulaOperand, row: &Row) -> Option<&'a Row> {
        self.at(&operand.id, operand.parameters.as_ref().unwrap_or(&row.spec.parameters))
    }
}

#[cfg(test)]
mod tests {
    use super::super::row::{Derivation, MetricSpec, Outcome, Parameters, Series};
    use super::super::rows::Rows;
    use super::*;
    use crate::measure::{Clock, StoppedBy};

    fn row(id: &str, provenance: Provenance, samples: &[f64]) -> Row {
        let (group, label) = ("G".to_owned(), "L".to_owned());
        let outcome = match provenance {
            Provenance::Derived { .. } => Outcome::Derived { samples: samples.to_vec() },
            Provenance::Measured { .. } => Outcome::of_samples(samples.to_vec(), StoppedBy::Samples),
        };
        let (parameters, work, floor) = (Parameters::new(), None, None);
        let spec =
            MetricSpec { id: id.to_owned(), group, label, unit: Unit::Seconds, parameters, provenance, work, floor };
        Row { spec, series: vec![Series { run: "1".to_owned(), outcome }] }
    }

    fn time(id: &str, samples: &[f64]) -> Row {
        row(id, Provenance::measured(Clock::Host), samples)
    }

    fn trials(id: &str, samples: &[f64]) -> Row {
        let mut row = row(id, Provenance::measured(Clock::Observed), samples);
        row.spec.unit = Unit::Ratio;
        row
    }

    fn derived_of(id: &str, operands: &[&str], samples: &[f64]) -> Row {
        let operand = |id: &&str| FormulaOperand { name: (*id).to_owned(), id: (*id).to_owned(), parameters: None };
        let operands = operands.iter().map(operand).collect();
        let (derivation, formula) = (Derivation::Computation, "F".to_owned());
        row(id, Provenance::Derived { derivation, formula, operands }, samples)
    }

    /// Why a row has no interval, where it has none.
    fn unsteady(rows: &Rows, id: &str) -> Option<String> {
        let lookup = Lookup::new(rows, vec!["1"]);
        lookup.find(id, &Parameters::new(), &Parameters::new()).unwrap().unsteady()
    }

    /// The values of 40 rounds with two levels.
    fn two_levels() -> Vec<f64> {
        (0..40).map(|round| 1.0 + f64::from(round * 11 % 40) * 1e-3 + f64::from(round % 2)).collect()
    }

    #[test]
    fn a_derived_row_is_asked_of_the_measured_rows_also_by_way_of_derived_ones() {
        let two = two_levels();
        let (sum, gain) = (
            derived_of("a.sum", &["a.copies", "a.computes"], &[1.0]),
            derived_of("a.gain", &["a.sum", "a.total"], &[1.0]),
        );
        let with = |total: &[f64]| {
            let times = [time("a.copies", &[1.0; 40]), time("a.computes", &two), time("a.total", total)];
            times.into_iter().chain([gain.clone(), sum.clone()]).collect::<Vec<Row>>().into()
        };
        let begins = |rows: Rows, with: &str| {
            let reason = unsteady(&rows, "a.gain").unwrap();
            assert!(reason.starts_with(with), "{reason}");
        };
        begins(with(&[1.0; 40]), "no interval: a.computes: two levels");
        begins(with(&two), "no interval: a.total: two levels");
    }

    #[test]
    fn rows_that_name_each_other_come_to_an_end() {
        let rows = Rows::from(vec![derived_of("a.x", &["a.y"], &[1.0]), derived_of("a.y", &["a.x"], &[1.0])]);
        assert_eq!((unsteady(&rows, "a.x"), unsteady(&rows, "a.y")), (None, None));
    }

    #[test]
    fn a_long_chain_of_computed_rows_is_followed_to_its_end() {
        let computed = |place: u32| derived_of(&format!("a.{place}"), &[&format!("a.{}", place + 1)], &[1.0]);
        let all = (0..20_000).map(computed).chain([time("a.20000", &two_levels())]);
        let rows = Rows::from(all.collect::<Vec<Row>>());
        let lookup = Lookup::new(&rows, vec!["1"]);
        let reasons: Vec<_> = lookup.metrics().map(|(_, metric)| metric.unwrap().unsteady().unwrap()).collect();
        assert!(reasons[..20_000].iter().all(|reason| reason.starts_with("no interval: a.20000: two levels")));
    }

    #[test]
    fn a_derived_row_of_two_levels_has_an_interval_only_if_they_cancel() {
        let one: Vec<f64> = (0..40).map(|round| 1.0 + f64::from(round * 11 % 40) * 1e-3).collect();
        let two: Vec<f64> = (0..40).map(|round| one[round] + if round % 2 == 0 { 0.0 } else { 1.0 }).collect();
        let steady: Vec<f64> = (0..40).map(|round| 1.0 + f64::from(round * 7 % 40) * 1e-3).collect();
        let rows = Rows::from(vec![
            time("a.forced", &two),
            time("a.async", &one),
            derived_of("a.delta", &["a.forced", "a.async"], &two),
            derived_of("a.cancelled", &["a.forced", "a.async"], &steady),
            derived_of("a.total", &["a.forced"], &two[..1]),
        ]);
        let lookup = Lookup::new(&rows, vec!["1"]);
        let interval = |id: &str| {
            let metric = lookup.find(id, &Parameters::new(), &Parameters::new()).unwrap();
            metric.interval(&metric.estimate().unwrap())
        };
        assert!(interval("a.async").is_ok() && interval("a.cancelled").is_ok());
        assert!(interval("a.forced").unwrap_err().starts_with("no interval: two levels"));
        assert!(interval("a.delta").unwrap_err().starts_with("no interval: two levels"));
        assert!(interval("a.total").unwrap_err().starts_with("no interval: a.forced: two levels"));
    }

    #[test]
    fn a_share_has_an_interval_also_where_all_trials_agree() {
        let (all, none) = (trials("a.waits", &[1.0; 3]), trials("a.returns", &[0.0; 3]));
        let rows = Rows::from(vec![all, none]);
        let lookup = Lookup::new(&rows, vec!["1"]);
        let interval = |id: &str| {
            let metric = lookup.find(id, &Parameters::new(), &Parameters::new()).unwrap();
            metric.interval(&metric.estimate().unwrap()).unwrap()
        };
        // Wilson's interval of 3 of 3: n / (n + z²).
        let bound = 3.0 / (3.0 + 1.959_964_f64.powi(2));
        let (low, high) = interval("a.waits");
        assert!((low - bound).abs() < 1e-9 && high == 1.0, "{low} {high}");
        let (low, high) = interval("a.returns");
        assert!(low == 0.0 && (high - (1.0 - bound)).abs() < 1e-9, "{low} {high}");
    }

    #[test]
    fn what_was_observed_of_times_scatters_as_times_do_and_a_count_is_certain() {
        let two: Vec<f64> =
            (0..40).map(|round| 1.0 + f64::from(round * 11 % 40) * 1e-3 + f64::from(round % 2)).collect();
        let observed = |id: &str, unit: Unit, runs: [&[f64]; 2]| {
            let mut row = row(id, Provenance::measured(Clock::Observed), runs[0]);
            row.spec.unit = unit;
            let outcome = Outcome::of_samples(runs[1].to_vec(), StoppedBy::Samples);
            row.series.push(Series { run: "2".to_owned(), outcome });
            row
        };
        let rows = Rows::from(vec![
            observed("a.span", Unit::Seconds, [&[5e-6; 8]; 2]),
            observed("a.count", Unit::Number, [&[5.0; 8]; 2]),
            observed("a.used", Unit::Ratio, [&two, &two.iter().map(|x| x + 1e-6).collect::<Vec<f64>>()]),
        ]);
        let lookup = Lookup::new(&rows, vec!["1", "2"]);
        let interval = |id: &str| {
            let metric = lookup.find(id, &Parameters::new(), &Parameters::new()).unwrap();
            metric.interval(&metric.estimate().unwrap())
        };
        assert_eq!(interval("a.span").unwrap_err(), "no interval: all 2 runs came to the same value");
        assert_eq!(interval("a.count"), Ok((5.0, 5.0)));
        assert!(interval("a.used").unwrap_err().starts_with("no interval: two levels"));
    }

    #[test]
    fn a_trend_about_0_is_no_share_of_the_median() {
        let rising: Vec<f64> = (0..40).map(|round| f64::from(round) - 19.5).collect();
        let reason = no_interval_of(&[&rising], Unit::Seconds).unwrap();
        assert_eq!(reason, "no interval: the samples of a run rise by more than their median");
    }
}
