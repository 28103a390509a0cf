//! What a name of a quantity is in the results of a run: a row, or a number.

use super::case::whole;
use super::operand::{Operand, Several, is_selected};
use crate::measure::{mean, median};
use crate::results::{Extreme, Lookup, Metric, MissingReason, Outcome, Parameters, Row, in_another_unit};
use crate::units::Unit;

/// What a name stands for, as it was found.
pub(super) enum OperandSource<'a> {
    /// What was measured, and what each run of the system left of it.
    Row { row: &'a Row, metric: Metric<'a>, outcomes: Vec<Option<&'a Outcome>> },
    /// A number, with its unit and how it is written; a count also in a sentence.
    Fixed { value: f64, unit: Unit, written: String, is_count: bool },
}

impl OperandSource<'_> {
    pub(super) fn fixed(value: f64, unit: Unit, written: String) -> Self {
        Self::Fixed { value, unit, written, is_count: false }
    }
}

/// A name of a quantity with what it stands for.
pub(super) struct Resolved<'a> {
    pub(super) name: String,
    pub(super) source: OperandSource<'a>,
}

/// What an operand is in the results; nothing for a parameter, which is that of another operand's row.
pub(super) fn source<'a>(
    operand: &Operand,
    lookup: &Lookup<'a>,
    select: &Parameters,
) -> Result<Option<OperandSource<'a>>, MissingReason> {
    Ok(Some(match operand {
        Operand::Measured { id, unit, selectors, of_several } => {
            let fits = lookup.agreeing(id, select).filter(|row| is_selected(&row.spec, selectors));
            let mut found = fits.map(|row| lookup.of(&row.spec));
            let metric = match of_several {
                Some(Several::Count) => return counted(found.collect()).map(Some),
                Some(Several::One(extreme)) => extreme_of(found, *extreme)?,
                None => found.next().ok_or(MissingReason::NotInRun)??,
            };
            if let Some(reason) = in_another_unit(metric.spec, *unit) {
                return Err(MissingReason::Inconsistent(reason));
            }
            let row = lookup.at(id, &metric.spec.parameters).ok_or(MissingReason::NotInRun)?;
            let outcomes = lookup.outcomes(row).map(|(_, outcome)| outcome).collect();
            OperandSource::Row { row, metric, outcomes }
        }
        Operand::Published(figure, unit) => {
            let written = format!("{} (published)", unit.format(figure.value, figure.digits));
            OperandSource::fixed(figure.value, *unit, written)
        }
        Operand::Peak(rate) => {
            let written = format!("{} (peak rate)", Unit::FlopsPerSecond.format(*rate, 4));
            OperandSource::fixed(*rate, Unit::FlopsPerSecond, written)
        }
        Operand::Parameter(_) => return Ok(None),
    }))
}

/// The row with the least or the greatest value; where none has one, why the first has none.
fn extreme_of<'a>(
    found: impl Iterator<Item = Result<Metric<'a>, MissingReason>>,
    extreme: Extreme,
) -> Result<Metric<'a>, MissingReason> {
    let valued = found.map(|metric| metric.and_then(|metric| Ok((metric.estimate()?.median, metric))));
    let (valued, missing): (Vec<_>, Vec<_>) = valued.partition(Result::is_ok);
    let is_better = |value: f64, known: f64| if extreme == Extreme::Least { value < known } else { value > known };
    let best = valued.into_iter().flatten().reduce(|best, one| if is_better(one.0, best.0) { one } else { best });
    match (best, missing.into_iter().find_map(Result::err)) {
        (Some((_, metric)), _) => Ok(metric),
        (None, reason) => Err(reason.unwrap_or(MissingReason::NotInRun)),
    }
}

/// How many of the rows say yes in every trial, of those that have trials; where none has, why the first has none.
fn counted<'a>(found: Vec<Result<Metric<'a>, MissingReason>>) -> Result<OperandSource<'a>, MissingReason> {
    let missing = found.iter().find_map(|metric| metric.as_ref().err().cloned());
    let tried: Vec<Metric<'a>> = found.into_iter().flatten().filter(Metric::is_share).collect();
    let says_yes = |metric: &&Metric<'_>| metric.runs.iter().flat_map(|run| run.iter()).all(|sample| *sample == 1.0);
    let (yes, all) = (tried.iter().filter(says_yes).count(), tried.len());
    let (value, unit, written) = (yes as f64, Unit::Number, format!("{yes} of {all}"));
    match all {
        0 => Err(missing.unwrap_or(MissingReason::NotInRun)),
        _ => Ok(OperandSource::Fixed { value, unit, written, is_count: true }),
    }
}

impl<'a> Resolved<'a> {
    pub(super) fn row(&self) -> Option<(&'a Row, &Metric<'a>)> {
        if let OperandSource::Row { row, metric, .. } = &self.source { Some((*row, metric)) } else { None }
    }

    /// What the run with this place left of its row.
    pub(super) fn outcome(&self, place: usize) -> Option<&'a Outcome> {
        if let OperandSource::Row { outcomes, .. } = &self.source { outcomes[place] } else { None }
    }

    /// What it came to in one of the runs that all of the quantity has, by its place among them.
    pub(super) fn middle_in(&self, place: usize) -> f64 {
        match &self.source {
            OperandSource::Row { metric, .. } if metric.is_share() => mean(&metric.runs[place]),
            OperandSource::Row { metric, .. } => median(metric.runs[place].to_vec()),
            OperandSource::Fixed { value, .. } => *value,
        }
    }

    pub(super) fn middle(&self) -> Result<f64, String> {
        match &self.source {
            OperandSource::Row { metric, .. } => metric.estimate().map(|it| it.median).map_err(|it| it.to_string()),
            OperandSource::Fixed { value, .. } => Ok(*value),
        }
    }

    pub(super) fn unit(&self) -> Unit {
        match &self.source {
            OperandSource::Row { metric, .. } => metric.spec.unit,
            OperandSource::Fixed { unit, .. } => *unit,
        }
    }

    /// The value in its unit; a difference whose interval contains 0 is not written as a number.
    pub(super) fn in_words(&self) -> String {
        match &self.source {
            OperandSource::Row { metric, .. } if metric.may_be_zero() && metric.estimate().is_ok() => {
                if metric.spec.unit == Unit::Seconds { "no measurable time" } else { "nothing measurable" }.to_owned()
            }
            OperandSource::Fixed { written, is_count: true, .. } => written.clone(),
            _ => self.short(),
        }
    }

    /// The value alone.
    pub(super) fn short(&self) -> String {
        match self.middle() {
            Ok(value) if self.row().is_none() && whole(value, self.unit()) => value.to_string(),
            Ok(value) => self.unit().format(value, 3),
            Err(reason) => reason,
        }
    }

    /// The value with its interval.
    pub(super) fn written(&self) -> String {
        match &self.source {
            OperandSource::Row { metric, .. } => metric.written().unwrap_or_else(|reason| reason.to_string()),
            OperandSource::Fixed { written, .. } => written.clone(),
        }
    }
}
