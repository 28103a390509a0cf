//! What a row came to, as a cell.

use super::table::{Cell, Missing};
use super::value::{Precision, Value};
use crate::experiment::{Derivation, Metric, MissingReason, Provenance, Row};
use crate::measure::{Clock, Estimate};
use crate::units::Unit;

/// What a row's samples come to, with how they were taken.
pub(super) fn found_value(metric: &Metric<'_>, estimate: &Estimate) -> Value {
    let (source, notes) = match metric.origin {
        Provenance::Measured(instrument) => (instrument_name(instrument).to_owned(), vec![]),
        Provenance::Derived(Derivation::Extrapolation, formula) => {
            (formula.to_owned(), vec![format!("extrapolated: {formula}")])
        }
        Provenance::Derived(_, formula) => (formula.to_owned(), vec![]),
    };
    let counts = metric.row.unit == Unit::Number && metric.samples.iter().all(|sample| sample.fract() == 0.0);
    let precision = if counts { Precision::Whole } else { Precision::Interval };
    Value {
        // One sample has no interval.
        interval: (estimate.n > 1).then_some((estimate.low, estimate.high)),
        samples: Some(estimate.n),
        difference: metric.is_difference(),
        source: Some(source),
        notes,
        ..Value::plain(estimate.median, metric.row.unit, precision)
    }
}

/// A cell that says why there is no value.
pub(crate) fn missing(absence: &MissingReason) -> Cell {
    Cell::Missing(Missing { state: absence.state().to_owned(), reason: absence.reason().map(str::to_owned) })
}

/// The cell of a row, whatever came of it.
pub(crate) fn row_cell(row: &Row) -> Cell {
    let value = row.metric().and_then(|metric| Ok(found_value(&metric, &metric.estimate()?)));
    match value {
        Ok(value) => Cell::Value(Box::new(value)),
        Err(absence) => missing(&absence),
    }
}

fn instrument_name(instrument: Clock) -> &'static str {
    match instrument {
        Clock::Host => "host clock",
        Clock::DeviceEvents => "device events",
        Clock::Observed => "observed",
    }
}
