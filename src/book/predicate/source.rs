//! What a name of a quantity is in the results of a run: a row, a number, or a count of rows.

use super::operand::{Operand, agrees, is_selected};
use crate::results::{Extreme, Lookup, Metric, MetricSpec, MissingReason, Parameters, Results, Row, in_another_unit};
use crate::units::Unit;

/// What a name stands for, as it was found.
pub(super) enum OperandSource<'a> {
    /// What was measured.
    Row(&'a Row, Metric<'a>),
    /// A number, with its unit and how it is written.
    Fixed(f64, Unit, String),
    /// How many rows of yes and no say yes in every trial, and of how many that have trials.
    Counted(usize, usize),
}

/// What an operand is in the results; nothing for a parameter, which is that of another operand's row.
pub(super) fn source<'a>(
    operand: &Operand,
    results: &'a Results,
    lookup: &Lookup<'a>,
    select: &Parameters,
) -> Result<Option<OperandSource<'a>>, MissingReason> {
    Ok(Some(match operand {
        Operand::Measured { id, unit, selectors, of_several } => {
            let fits = |spec: &&MetricSpec| is_selected(spec, selectors) && agrees(spec, select);
            let specs: Vec<&MetricSpec> = lookup.specs_of(id, &Parameters::new()).filter(fits).collect();
            let found = |spec: &&MetricSpec| lookup.of(spec);
            let metric = match (specs.as_slice(), of_several) {
                ([], _) => return Err(MissingReason::NotInRun),
                ([spec, ..], None) => found(spec)?,
                (specs, Some(extreme)) => extreme_of(specs.iter().map(found), *extreme)?,
            };
            if let Some(reason) = in_another_unit(metric.spec, *unit) {
                return Err(MissingReason::Inconsistent(reason));
            }
            let row = results.rows.iter().find(|row| std::ptr::eq(&row.spec, metric.spec));
            OperandSource::Row(row.ok_or(MissingReason::NotInRun)?, metric)
        }
        Operand::Counted { id, selectors } => {
            let fits = |spec: &&MetricSpec| is_selected(spec, selectors) && agrees(spec, select);
            let specs = lookup.specs_of(id, &Parameters::new()).filter(fits).map(|spec| lookup.of(spec)).collect();
            counted(specs)?
        }
        Operand::Published(figure, unit) => {
            let written = format!("{} (published)", unit.format(figure.value, figure.digits));
            OperandSource::Fixed(figure.value, *unit, written)
        }
        Operand::Peak(rate) => {
            let written = format!("{} (peak rate)", Unit::FlopsPerSecond.format(*rate, 4));
            OperandSource::Fixed(*rate, Unit::FlopsPerSecond, written)
        }
        Operand::Parameter(_) => return Ok(None),
    }))
}

/// The row with the least or the greatest value; where none has one, why the first has none.
fn extreme_of<'a>(
    found: impl Iterator<Item = Result<Metric<'a>, MissingReason>>,
    extreme: Extreme,
) -> Result<Metric<'a>, MissingReason> {
    let (mut best, mut missing): (Option<(f64, Metric<'a>)>, Option<MissingReason>) = (None, None);
    for metric in found {
        match metric.and_then(|metric| Ok((metric.estimate()?.median, metric))) {
            Ok((value, metric)) => {
                let is_better = |known: f64| match extreme {
                    Extreme::Least => value < known,
                    Extreme::Greatest => value > known,
                };
                if best.as_ref().is_none_or(|(known, _)| is_better(*known)) {
                    best = Some((value, metric));
                }
            }
            Err(reason) => missing = missing.or(Some(reason)),
        }
    }
    best.map(|(_, metric)| metric).ok_or_else(|| missing.unwrap_or(MissingReason::NotInRun))
}

/// How many of the rows say yes in every trial; where none has trials, why the first has none.
fn counted<'a>(found: Vec<Result<Metric<'a>, MissingReason>>) -> Result<OperandSource<'a>, MissingReason> {
    let missing = found.iter().find_map(|metric| metric.as_ref().err().cloned());
    let tried: Vec<Metric<'a>> = found.into_iter().flatten().filter(Metric::is_share).collect();
    let says_yes = |metric: &&Metric<'_>| metric.runs.iter().flat_map(|run| run.iter()).all(|sample| *sample == 1.0);
    match tried.is_empty() {
        true => Err(missing.unwrap_or(MissingReason::NotInRun)),
        false => Ok(OperandSource::Counted(tried.iter().filter(says_yes).count(), tried.len())),
    }
}
