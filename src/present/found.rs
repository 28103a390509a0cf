//! What a row came to, as a cell.

use super::table::{Cell, Missing};
use super::value::{Precision, Value};
use crate::experiment::{Absence, Derivation, Finding, Origin, Row};
use crate::measure::{Estimate, Instrument};
use crate::units::Unit;

/// What a row's samples come to, with how they were taken.
pub(super) fn found_value(finding: &Finding<'_>, estimate: &Estimate) -> Value {
    let (source, notes) = match finding.origin {
        Origin::Measured(instrument) => (instrument_name(instrument).to_owned(), vec![]),
        Origin::Derived(Derivation::Extrapolation, formula) => {
            (formula.to_owned(), vec![format!("extrapolated: {formula}")])
        }
        Origin::Derived(_, formula) => (formula.to_owned(), vec![]),
    };
    let counts = finding.row.unit == Unit::Number && finding.samples.iter().all(|sample| sample.fract() == 0.0);
    let precision = if counts { Precision::Whole } else { Precision::Interval };
    Value {
        // One sample has no interval.
        interval: (estimate.n > 1).then_some((estimate.low, estimate.high)),
        samples: Some(estimate.n),
        difference: finding.is_difference(),
        source: Some(source),
        notes,
        ..Value::plain(estimate.median, finding.row.unit, precision)
    }
}

/// A cell that says why there is no value.
pub(crate) fn missing(absence: &Absence) -> Cell {
    Cell::Missing(Missing { state: absence.state().to_owned(), reason: absence.reason().map(str::to_owned) })
}

/// The cell of a row, whatever came of it.
pub(crate) fn row_cell(row: &Row) -> Cell {
    let value = row.finding().and_then(|finding| Ok(found_value(&finding, &finding.estimate()?)));
    match value {
        Ok(value) => Cell::Value(Box::new(value)),
        Err(absence) => missing(&absence),
    }
}

fn instrument_name(instrument: Instrument) -> &'static str {
    match instrument {
        Instrument::HostClock => "host clock",
        Instrument::DeviceEvents => "device events",
        Instrument::Observation => "observed",
    }
}
