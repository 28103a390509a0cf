//! Whether the derived rows of a file are what their formulas give of its measured rows.
//!
//! A results file may come from anywhere: what was computed when it was made is computed again from the samples that stand
//! beside it, round by round.
//!
//! # Method
//! A formula is written for a reader: numbers, `+ − · × / =`, brackets, `²` and `³`, `max(a, b)`. A word in it is a row, by the
//! last parts of its identifier, as in `steady`; or a parameter of the row; or `n`, one of its numeric parameters; or
//! `first` and `second`, the two rows beside it. An extrapolation is the row above it times the factor behind `×`. Where
//! a word fits several rows, a value that follows from any of them is right.
//!
//! # What it does not cover
//! A formula with other words is prose, as an experiment of another crate may have it. Such a row is not computed again.

use std::collections::BTreeMap;
use std::fmt;
use std::iter::Peekable;
use std::str::Chars;

use super::lookup::Lookup;
use super::row::{Derivation, Outcome, Provenance, Row};
use super::run::Results;
use crate::units::Unit;

/// By how much of itself, or of the greatest operand of its unit, a value may miss what its formula gives.
const ROUNDING: f64 = 1e-9;

/// The most bytes of a formula: a file may come from anybody, and brackets are read by recursion.
const MOST_BYTES: usize = 200;

/// The most ways to read a formula that are tried.
const MOST_READINGS: usize = 64;

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
    /// The derived rows that do not follow from the rows of their run.
    pub fn contradictions(&self) -> Vec<Contradiction> {
        let mut found = Vec::new();
        for system in self.systems() {
            let lookup = self.lookup_of(system);
            let runs: Vec<&str> = self.runs_of(system).map(|run| run.id.as_str()).collect();
            for row in lookup.rows() {
                let Provenance::Derived { derivation, formula } = &row.spec.provenance else { continue };
                let readings = readings(&lookup, row, formula, *derivation);
                found.extend(runs.iter().filter_map(|run| contradiction(row, formula, &readings, run)));
            }
        }
        found
    }
}

/// What a word of a formula stands for.
#[derive(Clone, Copy)]
enum Operand<'a> {
    Row(&'a Row),
    Number(f64),
}

/// One way to read a formula: what to compute, and what its words stand for.
struct Reading<'a> {
    formula: String,
    words: BTreeMap<String, Operand<'a>>,
}

/// The ways to read a formula; none where it is prose.
fn readings<'a>(lookup: &Lookup<'a>, row: &'a Row, formula: &str, derivation: Derivation) -> Vec<Reading<'a>> {
    if formula.len() > MOST_BYTES {
        return Vec::new();
    }
    let parent = row.spec.id.rsplit_once('.').map_or("", |(parent, _)| parent);
    if derivation == Derivation::Extrapolation {
        let factor = formula.rsplit_once('×').map(|(_, factor)| format!("row · {factor}"));
        let reading = |above: &'a Row| {
            let words = BTreeMap::from([("row".to_owned(), Operand::Row(above))]);
            Some(Reading { formula: factor.clone()?, words })
        };
        return lookup.beside_of(row, parent).into_iter().filter_map(reading).collect();
    }
    let mut readings = vec![BTreeMap::new()];
    for word in words(formula) {
        let meant = meant(lookup, row, parent, &word);
        let with = |known: &BTreeMap<String, Operand<'a>>| {
            let with = |operand: &Operand<'a>| {
                let mut known = known.clone();
                known.insert(word.clone(), *operand);
                known
            };
            meant.iter().map(with).collect::<Vec<_>>()
        };
        readings = readings.iter().flat_map(with).take(MOST_READINGS + 1).collect();
    }
    if readings.len() > MOST_READINGS {
        return Vec::new();
    }
    readings.into_iter().map(|words| Reading { formula: formula.to_owned(), words }).collect()
}

/// What a word may stand for.
fn meant<'a>(lookup: &Lookup<'a>, row: &'a Row, parent: &str, word: &str) -> Vec<Operand<'a>> {
    let rows = lookup.named(word, row);
    if !rows.is_empty() {
        return rows.into_iter().map(Operand::Row).collect();
    }
    let numbers = |name: Option<&str>| -> Vec<Operand<'a>> {
        let parameters = row.spec.parameters.iter().filter(|(own, _)| name.is_none_or(|name| *own == name));
        parameters.filter_map(|(_, value)| value.number()).map(Operand::Number).collect()
    };
    let beside = || -> Vec<&'a Row> {
        let is_measured = |row: &&Row| matches!(row.spec.provenance, Provenance::Measured { .. });
        let of_parent = |row: &&Row| row.spec.id.rsplit_once('.').is_some_and(|(above, _)| above == parent);
        lookup.beside(row).filter(is_measured).filter(of_parent).collect()
    };
    match (numbers(Some(word)), word) {
        (known, _) if !known.is_empty() => known,
        (_, "n") => numbers(None),
        (_, "first") => beside().into_iter().take(1).map(Operand::Row).collect(),
        (_, "second") => beside().into_iter().skip(1).take(1).map(Operand::Row).collect(),
        _ => Vec::new(),
    }
}

/// The first value of a run that follows from no reading.
fn contradiction(row: &Row, formula: &str, readings: &[Reading<'_>], run: &str) -> Option<Contradiction> {
    let Outcome::Derived { samples } = row.outcome(run)? else { return None };
    let mut first = None;
    for reading in readings {
        match reading.missed(row, samples, run)? {
            None => return None,
            Some(missed) => first = first.or(Some(missed)),
        }
    }
    let (round, computed) = first?;
    let (row, stored, unit) = (row.spec.title(), samples[round], row.spec.unit);
    Some(Contradiction { row, run: run.to_owned(), formula: formula.to_owned(), round, computed, stored, unit })
}

impl Reading<'_> {
    /// The first round whose value it does not give, with what it gives there. Outer `None` where it is prose, or a row that
    /// it names has no samples in the run.
    #[allow(clippy::option_option, reason = "whether it can be computed, and whether it differs")]
    fn missed(&self, row: &Row, stored: &[f64], run: &str) -> Option<Option<(usize, Option<f64>)>> {
        let mut sets: Vec<(&str, &[f64], Unit)> = Vec::new();
        for (word, operand) in &self.words {
            if let Operand::Row(row) = operand {
                sets.push((word, row.outcome(run)?.samples()?, row.spec.unit));
            }
        }
        for (round, stored) in stored.iter().enumerate() {
            let value = |word: &str| match self.words.get(word)? {
                Operand::Number(value) => Some(*value),
                Operand::Row(_) => sets.iter().find(|(own, ..)| *own == word)?.1.get(round).copied(),
            };
            if sets.iter().any(|(_, samples, _)| samples.len() <= round) {
                return Some(Some((round, None)));
            }
            let mut reader = Reader { text: self.formula.chars().peekable(), value: &value };
            let computed = reader.whole()?;
            // A small difference of two large values has lost digits.
            let of_unit =
                sets.iter().filter(|(_, _, unit)| *unit == row.spec.unit).map(|(_, samples, _)| samples[round]);
            let scale = of_unit.fold(computed.abs().max(stored.abs()), |scale, value| scale.max(value.abs()));
            if computed.is_finite() && (computed - stored).abs() > ROUNDING * scale {
                return Some(Some((round, Some(computed))));
            }
        }
        Some(None)
    }
}

/// The words of a formula, each once.
fn words(formula: &str) -> Vec<String> {
    let parts = formula.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
    let mut words: Vec<String> =
        parts.filter(|word| word.starts_with(|c: char| c.is_ascii_alphabetic())).map(str::to_owned).collect();
    // A function is no row, unless a row has its name.
    words.retain(|word| word != MAX || !formula.contains("max("));
    words.sort();
    words.dedup();
    words
}

const MAX: &str = "max";

/// Computes a formula while it reads it; `None` where it is none.
struct Reader<'a> {
    text: Peekable<Chars<'a>>,
    value: &'a dyn Fn(&str) -> Option<f64>,
}

impl Reader<'_> {
    fn whole(&mut self) -> Option<f64> {
        let left = self.sum()?;
        let value = if self.take('=') { f64::from(u8::from(left == self.sum()?)) } else { left };
        self.next().is_none().then_some(value)
    }

    fn next(&mut self) -> Option<char> {
        while self.text.next_if_eq(&' ').is_some() {}
        self.text.peek().copied()
    }

    fn take(&mut self, sign: char) -> bool {
        self.next() == Some(sign) && self.text.next().is_some()
    }

    fn sum(&mut self) -> Option<f64> {
        let mut sum = self.product()?;
        loop {
            if self.take('+') {
                sum += self.product()?;
            } else if self.take('−') {
                sum -= self.product()?;
            } else {
                return Some(sum);
            }
        }
    }

    fn product(&mut self) -> Option<f64> {
        let mut product = self.power()?;
        loop {
            if self.take('·') || self.take('×') {
                product *= self.power()?;
            } else if self.take('/') {
                product /= self.power()?;
            } else {
                return Some(product);
            }
        }
    }

    fn power(&mut self) -> Option<f64> {
        let base = if self.take('(') { self.bracket()? } else { self.word()? };
        Some(match (self.take('²'), self.take('³')) {
            (true, _) => base.powi(2),
            (_, true) => base.powi(3),
            _ => base,
        })
    }

    /// A sum, up to the end of its bracket.
    fn bracket(&mut self) -> Option<f64> {
        let sum = self.sum()?;
        self.take(')').then_some(sum)
    }

    fn word(&mut self) -> Option<f64> {
        self.next();
        let mut word = String::new();
        while let Some(letter) = self.text.next_if(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.')) {
            word.push(letter);
        }
        if word == MAX && self.take('(') {
            let first = self.sum()?;
            return if self.take(',') { Some(first.max(self.bracket()?)) } else { None };
        }
        word.parse().ok().or_else(|| (self.value)(&word))
    }
}

#[cfg(test)]
mod tests {
    use super::super::row::{MetricSpec, Parameter, Parameters, Series};
    use super::*;
    use crate::measure::{Clock, StoppedBy};

    fn row(id: &str, provenance: Provenance, samples: [f64; 2]) -> Row {
        let samples = samples.to_vec();
        let (order, started, warmup, stopped_by) = (Vec::new(), Vec::new(), Vec::new(), StoppedBy::Samples);
        let outcome = match provenance {
            Provenance::Derived { .. } => Outcome::Derived { samples },
            Provenance::Measured { .. } => Outcome::Measured { samples, order, started, warmup, stopped_by },
        };
        let parameters = Parameters::from([("bytes".to_owned(), Parameter::Integer(8))]);
        let (id, group, label, unit) = (id.to_owned(), "G".to_owned(), "L".to_owned(), Unit::Seconds);
        let spec = MetricSpec { id, group, label, unit, parameters, provenance, work: None, floor: None };
        Row { spec, series: vec![Series { run: "1".to_owned(), outcome }] }
    }

    /// Whether a derived row of these values contradicts its formula, beside rows of known times.
    fn differs(id: &str, formula: &str, samples: [f64; 2]) -> bool {
        let times =
            [("a.forced", [5.0, 6.0]), ("a.async", [2.0, 4.0]), ("a.same.a", [2.0, 4.0]), ("a.same.b", [4.0, 2.0])];
        let mut rows: Vec<Row> =
            times.iter().map(|(id, samples)| row(id, Provenance::measured(Clock::Host), *samples)).collect();
        let derivation = if formula.contains('×') { Derivation::Extrapolation } else { Derivation::Computation };
        rows.push(row(id, Provenance::Derived { derivation, formula: formula.to_owned() }, samples));
        let lookup = Lookup::new(&rows, vec!["1"]);
        let derived = &rows[times.len()];
        contradiction(derived, formula, &readings(&lookup, derived, formula, derivation), "1").is_some()
    }

    #[test]
    fn a_derived_row_that_does_not_follow_from_its_operands_is_found() {
        for (id, formula, right) in [
            ("a.delta", "forced − async", [3.0, 2.0]),
            ("a.rate", "2 · bytes / async", [8.0, 4.0]),
            ("a.cube", "bytes³ + async²", [516.0, 528.0]),
            ("a.max", "max(forced, 5.5)", [5.5, 6.0]),
            ("a.total", "async + n·(forced − 1)", [34.0, 44.0]),
            ("a.same.ratio", "second / first", [2.0, 0.5]),
            ("a.async.extrapolated", "50 steps × 20", [40.0, 80.0]),
            ("a.agrees", "forced = async", [0.0, 0.0]),
        ] {
            assert!(!differs(id, formula, right), "{formula}");
            assert!(differs(id, formula, [right[0], right[1] + 1e-6]), "{formula}");
        }
    }

    #[test]
    fn a_formula_in_prose_is_not_computed_again() {
        let deep = format!("{}async{}", "(".repeat(100_000), ")".repeat(100_000));
        assert!(!differs("a.delta", &deep, [9.0, 9.0]));
        for formula in ["launch of 8 − launch of 1", "forced, less what else is known", "forced − unknown", "(forced"]
        {
            assert!(!differs("a.delta", formula, [9.0, 9.0]), "{formula}");
        }
    }
}
