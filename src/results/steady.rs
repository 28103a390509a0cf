//! Whether what a row came to has an interval: the one place that decides it.
//!
//! A row has none where its samples are too few, where they have two regimes, of which one figure would be of neither, or
//! where they have a trend within the runs. A derived row has none where one of the rows that it was computed from has no
//! steady samples: what moves an operand moves the result.
//!
//! A derived row names its operands in its formula, by the last parts of their identifiers. `a.big.delta` with the formula
//! `forced − async` comes from `a.big.forced` and `a.big.async`; `a.graph.gain` with `batched / graph` from the rows that
//! both `a.batched` and `a.graph` have. A formula that names none (`second / first`) is of the rows beside it.

use std::collections::BTreeSet;

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
                Provenance::Derived { formula, .. } => {
                    let known = |other: &&Row| seen.iter().any(|row| std::ptr::eq(*row, *other));
                    let named: Vec<&'a Row> =
                        self.named_in(formula, row).into_iter().filter(|row| !known(row)).collect();
                    seen.extend(named);
                }
                Provenance::Measured { .. } => measured.push(row),
            }
            place += 1;
        }
        measured
    }

    /// The rows that a word in the formula of a row may name: those that end with it, or else those of which it is a part.
    pub(super) fn named(&self, word: &str, row: &'a Row) -> Vec<&'a Row> {
        let exact = self.exactly(word, row);
        if !exact.is_empty() {
            return exact;
        }
        families(&BTreeSet::from([word]), &stems(row), &self.beside(row).collect::<Vec<_>>())
    }

    fn exactly(&self, word: &str, row: &'a Row) -> Vec<&'a Row> {
        let of = |stem: &&str| self.beside_of(row, &format!("{stem}.{word}"));
        stems(row).iter().map(of).find(|rows| !rows.is_empty()).unwrap_or_default()
    }

    fn named_in(&self, formula: &str, row: &'a Row) -> Vec<&'a Row> {
        let is_word = |word: &&str| word.starts_with(|c: char| c.is_ascii_alphabetic());
        let words = formula.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-')).filter(is_word);
        let words: BTreeSet<&str> = words.collect();
        let stems = stems(row);
        let mut found: Vec<&'a Row> = words.iter().flat_map(|word| self.exactly(word, row)).collect();
        if found.is_empty() {
            found = families(&words, &stems, &self.beside(row).collect::<Vec<_>>());
        }
        if found.is_empty() {
            found = stems.first().map(|stem| self.beside_of(row, stem)).unwrap_or_default();
        }
        if found.is_empty() {
            let stem = stems.first().copied().unwrap_or_default();
            let is_beside = |row: &&Row| row.spec.id.rsplit_once('.').is_some_and(|(of, _)| of == stem);
            found = self.beside(row).filter(is_beside).collect();
        }
        found
    }
}

/// What an identifier may begin with that stands beside a row: its own, less its last parts.
fn stems(row: &Row) -> Vec<&str> {
    let id = row.spec.id.as_str();
    id.rmatch_indices('.').map(|(at, _)| &id[..at]).collect()
}

/// The rows `stem.word.tail` with a tail that each word has which begins such rows.
fn families<'a>(words: &BTreeSet<&str>, stems: &[&str], rows: &[&'a Row]) -> Vec<&'a Row> {
    let family = |word: &&str| -> Option<Vec<(&'a str, &'a Row)>> {
        let of = |stem: &&str| -> Vec<(&'a str, &'a Row)> {
            let start = format!("{stem}.{word}.");
            rows.iter().filter_map(|row| Some((row.spec.id.strip_prefix(&start)?, *row))).collect()
        };
        stems.iter().map(of).find(|rows| !rows.is_empty())
    };
    let families: Vec<Vec<(&str, &'a Row)>> = words.iter().filter_map(family).collect();
    let shared = |tail: &str| families.iter().all(|family| family.iter().any(|(own, _)| *own == tail));
    families.iter().flatten().filter(|(tail, _)| shared(tail)).map(|(_, row)| *row).collect()
}

#[cfg(test)]
mod tests {
    use super::super::row::{Derivation, MetricSpec, Outcome, Parameters, Series};
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

    fn derived(id: &str, formula: &str) -> Row {
        let formula = formula.to_owned();
        let samples: Vec<f64> = (0..40).map(|round| 1.0 + f64::from(round % 7) * 1e-3).collect();
        row(id, Provenance::Derived { derivation: Derivation::Computation, formula }, &samples)
    }

    fn operands(rows: &[Row], id: &str) -> Vec<String> {
        let lookup = Lookup::new(rows, vec!["1"]);
        let row = rows.iter().find(|row| row.spec.id == id).unwrap();
        lookup.operands(row).iter().map(|row| row.spec.id.clone()).collect()
    }

    #[test]
    fn a_formula_leads_to_the_measured_rows_that_it_names() {
        let names = [
            "a.big.async",
            "a.big.forced",
            "a.t1",
            "a.t2",
            "a.batched.done",
            "a.batched.free",
            "a.graph.capture",
            "a.graph.done",
            "a.same.a",
            "a.same.b",
            "a.loop",
            "a.buffer.copies",
            "a.buffer.computes",
            "a.buffer.total",
        ];
        let formulas = [
            ("a.big.delta", "forced − async"),
            ("a.queued.predicted", "t1 + n·t2"),
            ("a.graph.gain", "batched / graph"),
            ("a.same.ratio", "second / first"),
            ("a.loop.extrapolated", "50 steps × 20"),
            ("a.buffer.sum", "copies + computes"),
            ("a.buffer.efficiency", "(sum − total) / sum"),
        ];
        let rows: Vec<Row> = names.iter().map(|id| time(id, &[1.0])).collect();
        let rows: Vec<Row> = rows.into_iter().chain(formulas.map(|(id, formula)| derived(id, formula))).collect();
        for (id, expected) in [
            ("a.big.delta", vec!["a.big.async", "a.big.forced"]),
            ("a.queued.predicted", vec!["a.t1", "a.t2"]),
            ("a.graph.gain", vec!["a.batched.done", "a.graph.done"]),
            ("a.same.ratio", vec!["a.same.a", "a.same.b"]),
            ("a.loop.extrapolated", vec!["a.loop"]),
            ("a.buffer.efficiency", vec!["a.buffer.total", "a.buffer.computes", "a.buffer.copies"]),
        ] {
            let mut found = operands(&rows, id);
            let mut expected = expected;
            found.sort();
            expected.sort_unstable();
            assert_eq!(found, expected, "{id}");
        }
    }

    #[test]
    fn formulas_that_name_each_other_come_to_an_end() {
        let rows = [derived("a.x", "y"), derived("a.y", "x")];
        assert!(operands(&rows, "a.x").is_empty());
    }

    #[test]
    fn what_comes_of_a_row_with_two_regimes_has_no_interval_and_says_of_which_row() {
        let two: Vec<f64> =
            (0..40).map(|round| if round % 2 == 0 { 1.0 } else { 2.0 } + f64::from(round) * 1e-4).collect();
        let one: Vec<f64> = (0..40).map(|round| 1.0 + f64::from(round % 7) * 1e-3).collect();
        let rows = [time("a.forced", &two), time("a.async", &one), derived("a.delta", "forced − async")];
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
