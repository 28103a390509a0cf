//! What the functions take, as a table.

use crate::measure::Estimate;
use crate::present::{Cell, Column, Missing, Precision, Role, Table, TableGroup, TableRow, Value};
use crate::results::{MetricSpec, Results};
use crate::units::{Scale, Unit};

/// The parameters of a row that say what a call handles.
pub(super) const BYTES: &str = "bytes";
pub(super) const ELEMENTS: &str = "elements";

/// The time of each function, and its throughput where it is stated what a call handles.
pub(super) fn of(results: &Results) -> Table {
    let lookup = results.lookup();
    let rows: Vec<(&MetricSpec, Result<Estimate, _>)> =
        lookup.metrics().map(|(spec, metric)| (spec, metric.and_then(|metric| metric.estimate()))).collect();
    let has_throughput = rows.iter().any(|(spec, _)| handled(spec).is_some());
    let mut columns = vec![Column::new(Role::Label, "function"), Column::new(Role::Measured, "a call")];
    columns.extend(has_throughput.then(|| Column::new(Role::Fact, "throughput")));
    let mut groups: Vec<TableGroup> = Vec::new();
    for (spec, estimate) in &rows {
        let mut cells = vec![match estimate {
            Ok(estimate) => Cell::Value(Box::new(Value::estimated(estimate, spec.unit, Precision::Interval))),
            Err(reason) => Cell::Missing(Missing { state: reason.to_string(), reason: None }),
        }];
        if has_throughput {
            let rate = handled(spec).zip(estimate.as_ref().ok()).map(|(work, time)| throughput(work, time.median));
            cells.push(rate.map_or(Cell::Nothing, Cell::Text));
        }
        let row = TableRow { id: Some(spec.id.clone()), label: spec.label.clone(), cells };
        match groups.iter_mut().find(|group| group.label.as_ref() == Some(&spec.group)) {
            Some(group) => group.rows.push(row),
            None => groups.push(TableGroup { label: Some(spec.group.clone()), rows: vec![row] }),
        }
    }
    // The only heading is the title.
    if let [only] = groups.as_mut_slice() {
        only.label = None;
    }
    Table { title: results.title().to_owned(), columns, groups }
}

/// What a call of a function handles: how much, and of what.
fn handled(spec: &MetricSpec) -> Option<(f64, &'static str)> {
    let stated = |what: &'static str| Some((spec.parameters.get(what)?.number()?, what));
    stated(BYTES).or_else(|| stated(ELEMENTS))
}

/// So much work in so many seconds: `3.21 GB/s`, `402 M elements/s`.
fn throughput((amount, what): (f64, &str), seconds: f64) -> String {
    let rate = amount / seconds;
    if what == BYTES {
        return Unit::BytesPerSecond.format(rate, 3);
    }
    let steps = [(1e9, "G elements/s"), (1e6, "M elements/s"), (1e3, "k elements/s")];
    let found = steps.into_iter().find(|(factor, _)| rate >= factor * 0.9995);
    let (factor, symbol) = found.unwrap_or((1.0, "elements/s"));
    Scale { factor, symbol }.significant(rate, 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_throughput_is_the_work_of_a_call_by_its_time() {
        assert_eq!(throughput((1000.0, BYTES), 1e-6), "1.00 GB/s");
        assert_eq!(throughput((9.0, ELEMENTS), 2e-9), "4.50 G elements/s");
        assert_eq!(throughput((1.0, ELEMENTS), 0.5), "2.00 elements/s");
    }
}
