//! Two runs beside each other, as tables: the rows of both, the worst verdict first, and the rows that one lacks.

use super::found::missing;
use super::table::{Cell, Column, Group, Role, Row, Table};
use super::value::{Precision, Value};
use crate::experiment::{MissingReason, titled};
use crate::measure::Estimate;
use crate::run::{Compared, Pair, Unpaired, Verdict};
use crate::units::Unit;

/// What a comparison is for, which decides its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wording {
    /// Is the second run faster or slower than the first?
    Compare,
    /// Does the second run agree with the first?
    Verify,
}

impl Wording {
    fn verdict(self, verdict: Verdict) -> String {
        match (self, verdict) {
            (Wording::Compare, verdict) => verdict.name().to_owned(),
            (Wording::Verify, Verdict::Same) => "agrees".to_owned(),
            (Wording::Verify, Verdict::Uncertain) => "uncertain".to_owned(),
            (Wording::Verify, Verdict::Different) => "differs".to_owned(),
            (Wording::Verify, verdict) => format!("differs ({})", verdict.name()),
        }
    }

    fn unpaired(self) -> &'static str {
        match self {
            Wording::Compare => "not compared",
            Wording::Verify => "not measured",
        }
    }

    fn names(self) -> [&'static str; 2] {
        match self {
            Wording::Compare => ["A", "B"],
            Wording::Verify => ["recorded", "here"],
        }
    }
}

/// The tables of a comparison: the paired rows, the worst verdict first; then the rows that cannot be paired, where there
/// are any.
pub fn compared(compared: &Compared, wording: Wording) -> Vec<Table> {
    let [a, b] = wording.names();
    let mut tables = Vec::new();
    let mut pairs: Vec<&Pair> = compared.pairs.iter().collect();
    pairs.sort_by_key(|pair| pair.verdict);
    if !pairs.is_empty() {
        tables.push(Table {
            title: format!("{b} beside {a}"),
            columns: vec![
                Column::new(Role::Label, "row"),
                Column::new(Role::Measured, a),
                Column::new(Role::Measured, b),
                Column::new(Role::Ratio, format!("{b} / {a}")),
                Column::new(Role::Fact, "verdict"),
            ],
            groups: vec![Group { label: None, rows: pairs.into_iter().map(|pair| row(pair, wording)).collect() }],
        });
    }
    if !compared.unpaired.is_empty() {
        tables.push(Table {
            title: format!("Rows {}", wording.unpaired()),
            columns: vec![
                Column::new(Role::Label, "row"),
                Column::new(Role::Measured, a),
                Column::new(Role::Measured, b),
            ],
            groups: vec![Group { label: None, rows: compared.unpaired.iter().map(unpaired).collect() }],
        });
    }
    tables
}

/// The number of rows of each verdict, in a line.
pub fn tally(compared: &Compared, wording: Wording) -> String {
    let counts = Verdict::ALL.iter().map(|verdict| (wording.verdict(*verdict), compared.count(*verdict)));
    let all = counts.chain([(wording.unpaired().to_owned(), compared.unpaired.len())]);
    all.filter(|(_, count)| *count > 0).map(|(word, count)| format!("{count} {word}")).collect::<Vec<_>>().join(", ")
}

fn row(pair: &Pair, wording: Wording) -> Row {
    let ratio = pair.ratio.map_or(Cell::Nothing, |ratio| {
        let plain = Value::plain(ratio.value, Unit::Ratio, Precision::Interval);
        Cell::Value(Box::new(Value { interval: Some((ratio.low, ratio.high)), ..plain }))
    });
    let verdict = Cell::Text(wording.verdict(pair.verdict));
    Row {
        id: Some(pair.id.clone()),
        label: titled(&pair.id, &pair.parameters),
        cells: vec![value(&pair.a, pair.unit), value(&pair.b, pair.unit), ratio, verdict],
    }
}

fn value(estimate: &Estimate, unit: Unit) -> Cell {
    Cell::Value(Box::new(Value {
        interval: (estimate.n > 1).then_some((estimate.low, estimate.high)),
        samples: Some(estimate.n),
        ..Value::plain(estimate.median, unit, Precision::Interval)
    }))
}

fn unpaired(row: &Unpaired) -> Row {
    let there = || Cell::Text("measured".to_owned());
    let cell = |absence: &Option<MissingReason>| absence.as_ref().map_or_else(there, missing);
    Row { id: Some(row.id.clone()), label: titled(&row.id, &row.parameters), cells: vec![cell(&row.a), cell(&row.b)] }
}
