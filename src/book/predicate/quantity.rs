//! A quantity of a test, with the rows of one system in it, and what it comes to in their runs.
//!
//! It is of the runs that have samples of all its rows: what one of them lacks is left out of all. In each run it is computed
//! from the medians of its rows. Where these were sampled in turn, it is computed in each round,
//! and its median is taken: what moves a round moves all its samples. Samples and rounds of a slowed host are left out of
//! both, as they are of the rows. A quantity that is one observation (a call that
//! blocked or did not, a count of faults) is what each trial came to.

use std::borrow::Cow;

use super::case::Found;
use super::operand::{Operand, operands_of};
use super::source::{OperandSource, Resolved, source};
use crate::document::{Compare, Document};
use crate::measure::{Observations, median};
use crate::results::{Expression, Lookup, Metric, Outcome, Parameters, Row, no_interval_of};
use crate::units::Unit;

/// A quantity with what its names stand for.
pub(crate) struct ResolvedExpression<'a> {
    expression: Expression,
    /// How it is compared with the same expression of other rows, whose operands come behind its own.
    compared: Option<Compare>,
    operands: Vec<Resolved<'a>>,
    lookup: Lookup<'a>,
    /// The places, among the runs of the system, of those that measured all of it.
    runs: Vec<usize>,
}

/// The label that the document's tables give a name's row, else the name.
fn labelled(name: &str, operand: &Operand, document: &Document) -> String {
    let row = operand.measured().and_then(|id| document.tables.iter().find_map(|table| table.row(id)));
    row.map_or_else(|| name.to_owned(), |row| format!("“{}”", row.label))
}

impl<'a> ResolvedExpression<'a> {
    /// The quantity of `expression` by the rows of a system.
    pub(crate) fn of(expression: &Expression, document: &Document, lookup: &Lookup<'a>) -> Result<Self, String> {
        let operands = operands_of(expression, document).map_err(|unknown| unknown.message)?;
        Self::of_operands((expression, &operands), document, (lookup, &Parameters::new()))
    }

    /// The same, with what the names in the expression stand for. Rows count that have the parameters `select`, as far as they have
    /// such parameters.
    pub(super) fn of_operands(
        (expression, operands): (&Expression, &[(String, Operand)]),
        document: &Document,
        (lookup, select): (&Lookup<'a>, &Parameters),
    ) -> Result<Self, String> {
        let mut resolved: Vec<Resolved<'a>> = Vec::new();
        for (name, operand) in operands {
            let missing = |reason| format!("{} was not measured ({reason})", labelled(name, operand, document));
            let source = source(operand, lookup, select).map_err(missing)?;
            resolved.extend(source.map(|source| Resolved { name: name.clone(), source }));
        }
        for (name, operand) in operands {
            let Operand::Parameter(parameter) = operand else { continue };
            let value = resolved.iter().find_map(|operand| operand.row()?.0.spec.parameters.get(parameter)?.number());
            let value = value.ok_or_else(|| format!("no row has a number as `{name}`"))?;
            let unit = if parameter.ends_with("seconds") { Unit::Seconds } else { Unit::Number };
            let source = OperandSource::fixed(value, unit, unit.format(value, 3));
            resolved.push(Resolved { name: name.clone(), source });
        }
        let (expression, lookup, runs) = (expression.clone(), lookup.clone(), (0..lookup.runs()).collect());
        Self { expression, compared: None, operands: resolved, lookup, runs }.in_common()
    }

    /// With what its rows have in the runs that measured all of them.
    fn in_common(mut self) -> Result<Self, String> {
        let rows: Vec<&Resolved<'a>> = self.operands.iter().filter(|operand| operand.row().is_some()).collect();
        let has_samples = |place, row: &&Resolved<'_>| row.outcome(place).and_then(Outcome::values).is_some();
        self.runs.retain(|place| rows.iter().all(|row| has_samples(*place, row)));
        if self.runs.is_empty() && !rows.is_empty() {
            return Err("no run measured all of it".to_owned());
        }
        let metrics: Vec<Metric<'a>> = self.metrics().cloned().collect();
        for operand in &mut self.operands {
            if let OperandSource::Row { metric, .. } = &mut operand.source {
                *metric = metrics.iter().fold(metric.clone(), |own, other| own.paired(other));
            }
        }
        Ok(self)
    }

    /// This compared with the same expression of other rows.
    ///
    /// # Errors
    /// No run measured both.
    pub(crate) fn compared(self, how: Compare, other: Self) -> Result<Self, String> {
        let operands = self.operands.into_iter().chain(other.operands).collect();
        Self { compared: Some(how), operands, ..self }.in_common()
    }

    /// Its value, where its operands have these.
    fn value(&self, values: &[f64]) -> Result<f64, String> {
        let side = |from: usize| {
            self.expression.evaluate(&|name| {
                let place = self.operands[from..].iter().position(|operand| operand.name == name)?;
                Some(values[from + place])
            })
        };
        let other = || side(values.len() / 2);
        let value = match self.compared {
            None => side(0),
            Some(Compare::Difference) => side(0).zip(other()).map(|(one, other)| one - other),
            Some(Compare::Ratio) => side(0).zip(other()).map(|(one, other)| one / other),
        };
        let finite = value.filter(|number| number.is_finite());
        finite.ok_or_else(|| "the quantity has no value: it divides by 0, or is no number".to_owned())
    }

    /// Whether it is one name alone.
    fn is_name(&self) -> bool {
        self.compared.is_none() && self.expression.is_name()
    }

    /// What it came to.
    ///
    /// # Errors
    /// It has no value, such as a division by zero.
    pub(crate) fn found(&self) -> Result<Found, String> {
        let middles: Vec<f64> = self.operands.iter().map(Resolved::middle).collect::<Result<_, _>>()?;
        let unit = self.unit(&middles)?;
        let operands = self.operands.iter().map(|operand| (operand.name.clone(), operand.written())).collect();
        let (runs, of_runs, filled, known) = (0, self.lookup.runs(), self.filled(), Observations::Exact(f64::NAN));
        let none = Found { known, unit, filled, operands, unsteady: None, runs, of_runs, by_rounds: false };
        if self.metrics().next().is_none() {
            return Ok(Found { known: Observations::Exact(self.value(&middles)?), ..none });
        }
        let none = Found { runs: self.runs.len(), ..none };
        if let [Resolved { source: OperandSource::Row { metric, .. }, .. }] = self.operands.as_slice()
            && metric.is_observed()
            && (metric.is_share() || metric.spec.unit == Unit::Number)
        {
            let trials =
                metric.samples().into_iter().map(|sample| self.value(&[sample])).collect::<Result<Vec<f64>, _>>()?;
            let is_count = metric.spec.unit == Unit::Number;
            let known = if is_count { Observations::Faults(trials) } else { Observations::Trials(trials) };
            return Ok(Found { known, ..none });
        }
        let rounds_of = |place: &usize| -> Result<Option<Vec<f64>>, String> {
            let samples = |operand: &Resolved<'a>| operand.outcome(*place)?.values();
            let sets: Vec<Option<Cow<'_, [f64]>>> = self.operands.iter().map(samples).collect();
            let in_round = |round: usize| {
                // What is no row has the same value in each round.
                let values =
                    middles.iter().zip(&sets).map(|(middle, set)| set.as_ref().map_or(*middle, |set| set[round]));
                self.value(&values.collect::<Vec<f64>>())
            };
            self.rounds(*place).map(|rounds| rounds.into_iter().map(in_round).collect()).transpose()
        };
        let rounds = self.runs.iter().map(rounds_of).collect::<Result<Vec<Option<Vec<f64>>>, _>>()?;
        let in_run = |(place, rounds): (usize, &Option<Vec<f64>>)| match rounds {
            Some(rounds) => Ok(median(rounds.clone())),
            None => self.value(&self.operands.iter().map(|operand| operand.middle_in(place)).collect::<Vec<f64>>()),
        };
        let values = rounds.iter().enumerate().map(in_run).collect::<Result<Vec<f64>, _>>()?;
        let (unsteady, by_rounds) = (self.unsteady(unit, &rounds), rounds.iter().any(Option::is_some));
        Ok(Found { known: Observations::Runs(values), unsteady, by_rounds, ..none })
    }

    /// Why one interval would describe it badly, where it would. Its own values in each round say so: what moves all names
    /// of a round is not in their difference. Where it has no such values, its names say so.
    fn unsteady(&self, unit: Unit, rounds: &[Option<Vec<f64>>]) -> Option<String> {
        if self.metrics().all(Metric::is_observed) {
            return None;
        }
        match rounds.iter().map(Option::as_deref).collect::<Option<Vec<&[f64]>>>() {
            Some(own) => no_interval_of(&own, unit),
            None => self.metrics().find_map(Metric::unsteady),
        }
    }

    /// The expression with values in the place of names, where it is more than one name.
    fn filled(&self) -> Option<String> {
        let side = |operands: &[Resolved<'_>]| {
            let short = |name: &str| operands.iter().find(|own| own.name == name).map(Resolved::short);
            self.expression.filled(&|name| short(name).unwrap_or_default())
        };
        let sign = match self.compared {
            None => return (!self.is_name()).then(|| side(&self.operands)),
            Some(Compare::Difference) => "-",
            Some(Compare::Ratio) => "/",
        };
        let (own, others) = self.operands.split_at(self.operands.len() / 2);
        Some(format!("({}) {sign} ({})", side(own), side(others)))
    }

    /// How its value stands in a sentence, where it is one name.
    pub(crate) fn in_words(&self) -> Option<String> {
        self.is_name().then(|| self.operands[0].in_words())
    }

    fn metrics(&self) -> impl Iterator<Item = &Metric<'a>> {
        self.operands.iter().filter_map(|operand| Some(operand.row()?.1))
    }

    /// Seconds where it doubles with all times in it, or halves with all rates; else a number.
    fn unit(&self, middles: &[f64]) -> Result<Unit, String> {
        if self.is_name() {
            return Ok(self.operands[0].unit());
        }
        let doubled = |(operand, middle): (&Resolved<'_>, &f64)| match operand.unit() {
            Unit::Seconds => 2.0 * middle,
            Unit::FlopsPerSecond => 0.5 * middle,
            _ => *middle,
        };
        let (once, twice) =
            (self.value(middles)?, self.value(&self.operands.iter().zip(middles).map(doubled).collect::<Vec<f64>>())?);
        let is_time = once != 0.0 && (twice / once - 2.0).abs() < 1e-6;
        Ok(if is_time { Unit::Seconds } else { Unit::Ratio })
    }

    /// The rounds that its rows share in the run with this place, where there are several of them, without those of a slowed host.
    fn rounds(&self, place: usize) -> Option<Vec<usize>> {
        let of_operand = |operand: &Resolved<'a>| Some((operand.row()?.0, operand.outcome(place)?));
        let mut found: Vec<(&Row, &Outcome)> = self.operands.iter().filter_map(of_operand).collect();
        found.dedup_by(|a, b| std::ptr::eq(a.0, b.0));
        let mut counts = found.iter().map(|(_, outcome)| outcome.values().map_or(0, |samples| samples.len()));
        let count = counts.next()?;
        let in_turn = |pair: &[(&Row, &Outcome)]| pair[0].1.in_turn(pair[1].1) == Some(true);
        let is_shared = found.len() > 1 && counts.all(|other| other == count) && found.windows(2).all(in_turn);
        let rows: Vec<&Row> = found.iter().map(|(row, _)| *row).collect();
        is_shared.then(|| self.lookup.shared_at_full_speed(&rows, place, count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compared_quantities_keep_their_operands_apart() {
        let rows = Vec::new().into();
        let fixed = |values: [f64; 2]| {
            let operand = |(name, value): (&str, f64)| Resolved {
                name: name.to_owned(),
                source: OperandSource::Fixed { value, unit: Unit::Number, written: String::new(), is_count: false },
            };
            let operands = ["n1", "n10"].into_iter().zip(values).map(operand).collect();
            let (expression, lookup) = (Expression::parse("n10 - n1").unwrap(), Lookup::new(&rows, Vec::new()));
            ResolvedExpression { expression, compared: None, operands, lookup, runs: Vec::new() }
        };
        let both = fixed([1.0, 3.0]).compared(Compare::Ratio, fixed([2.0, 10.0])).unwrap();
        assert_eq!(both.filled().as_deref(), Some("(3 - 1) / (10 - 2)"));
        assert_eq!(both.found().unwrap().known, Observations::Exact(0.25));
    }
}
