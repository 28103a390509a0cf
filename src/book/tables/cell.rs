//! What a row came to, as a cell.

use crate::measure::{Clock, Estimate};
use crate::present::{Cell, Missing, Precision, Sampled, Value};
use crate::results::{Derivation, Metric, MissingReason, Provenance};
use crate::units::{Unit, counted};

/// What a row's samples come to, with how they were taken.
pub(super) fn found_value(metric: &Metric<'_>, estimate: &Estimate) -> Value {
    let (source, notes) = match &metric.spec.provenance {
        Provenance::Measured { clock, .. } => (clock_name(*clock).to_owned(), vec![]),
        Provenance::Derived { derivation: Derivation::Extrapolation, formula, .. } => {
            (formula.clone(), vec![format!("extrapolated: {formula}")])
        }
        Provenance::Derived { formula, .. } => (formula.clone(), vec![]),
    };
    let left_out =
        (metric.left_out > 0).then(|| format!("; {} of a slowed host left out", counted(metric.left_out, "sample")));
    let slowed = (metric.slowed_runs > 0)
        .then(|| format!("; all samples of {} are of a slowed host", counted(metric.slowed_runs, "run")));
    let source = [Some(source), left_out, slowed].into_iter().flatten().collect();
    let counts = metric.spec.unit == Unit::Number
        && metric.runs.iter().flat_map(|run| run.iter()).all(|sample| sample.fract() == 0.0);
    let precision = if counts { Precision::Whole } else { Precision::Interval };
    let found = Value::estimated(estimate, metric.spec.unit, precision);
    let samples = found.samples.map(|samples| Sampled {
        even: metric.runs.iter().all(|run| run.len() == metric.runs[0].len()),
        trials: metric.is_share(),
        ..samples
    });
    let unsteady = metric.unsteady();
    let fewer = format!("{} of {} runs", metric.runs.len(), metric.planned());
    let fewer = Some(fewer).filter(|_| !metric.lacking.is_empty());
    Value {
        interval: metric.interval(estimate).ok(),
        difference: metric.is_difference(),
        samples,
        source: Some(source),
        notes: notes.into_iter().chain(found.notes).chain(unsteady).chain(fewer).collect(),
        ..found
    }
}

/// A cell that says why there is no value.
pub(super) fn missing(absence: &MissingReason) -> Cell {
    Cell::Missing(Missing::new(absence.state(), absence.reason()))
}

/// The cell of a row, whatever came of it.
pub(super) fn row_cell(metric: Result<Metric<'_>, MissingReason>) -> Cell {
    let value = metric.and_then(|metric| Ok(found_value(&metric, &metric.estimate()?)));
    match value {
        Ok(value) => Cell::Value(Box::new(value)),
        Err(absence) => missing(&absence),
    }
}

fn clock_name(clock: Clock) -> &'static str {
    match clock {
        Clock::Host => "host clock",
        Clock::DeviceEvents => "device events",
        Clock::Observed => "observed",
    }
}
