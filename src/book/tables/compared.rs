//! Two runs beside each other, as tables: the rows of both, the worst verdict first, and the rows that one lacks.

use super::cell::missing;
use crate::measure::Estimate;
use crate::present::{Cell, Column, Group, Precision, Role, Table, TableRow, Value};
use crate::results::{Compared, MissingReason, Pair, Shift, Unpaired, titled};
use crate::units::Unit;

/// What a comparison is for, which decides its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wording {
    /// Is the second run faster or slower than the first?
    Compare,
    /// Does the second run agree with the first?
    Reproduce,
    /// What of a benchmark is faster or slower than the last time?
    Last,
}

impl Wording {
    fn word(self, shift: Shift) -> String {
        match (self, shift) {
            (Wording::Compare | Wording::Last, shift) => shift.name().to_owned(),
            (Wording::Reproduce, Shift::Same) => "agrees".to_owned(),
            (Wording::Reproduce, Shift::Uncertain) => "uncertain".to_owned(),
            (Wording::Reproduce, Shift::Different) => "differs".to_owned(),
            (Wording::Reproduce, shift) => format!("differs ({})", shift.name()),
        }
    }

    fn unpaired(self) -> &'static str {
        match self {
            Wording::Compare | Wording::Last => "not compared",
            Wording::Reproduce => "not measured",
        }
    }

    /// What the two files are called.
    pub fn names(self) -> [&'static str; 2] {
        match self {
            Wording::Compare => ["A", "B"],
            Wording::Reproduce => ["recorded", "here"],
            Wording::Last => ["last", "now"],
        }
    }
}

/// The tables of a comparison: the paired rows, the worst verdict first; then the rows that cannot be paired, where there
/// are any.
pub fn compared(compared: &Compared, wording: Wording) -> Vec<Table> {
    let [a, b] = wording.names();
    let mut tables = Vec::new();
    let mut pairs: Vec<&Pair> = compared.pairs.iter().collect();
    pairs.sort_by_key(|pair| pair.shift);
    if !pairs.is_empty() {
        tables.push(Table {
            title: format!("{b} beside {a}"),
            columns: vec![
                Column::new(Role::Label, "row"),
                Column::new(Role::Measured, a),
                Column::new(Role::Measured, b),
                Column::new(Role::Ratio, format!("{b} / {a}")),
                Column::new(Role::Fact, "change"),
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
    let counts = Shift::ALL.iter().map(|shift| (wording.word(*shift), compared.count(*shift)));
    let all = counts.chain([(wording.unpaired().to_owned(), compared.unpaired.len())]);
    all.filter(|(_, count)| *count > 0).map(|(word, count)| format!("{count} {word}")).collect::<Vec<_>>().join(", ")
}

fn row(pair: &Pair, wording: Wording) -> TableRow {
    let ratio = pair.ratio.map_or(Cell::Nothing, |ratio| {
        let plain = Value::plain(ratio.value, Unit::Ratio, Precision::Interval);
        Cell::Value(Box::new(Value { interval: Some((ratio.low, ratio.high)), ..plain }))
    });
    let shift = Cell::Text(wording.word(pair.shift));
    TableRow {
        id: Some(pair.id.clone()),
        label: titled(&pair.id, &pair.parameters),
        cells: vec![value(&pair.a, pair.unit), value(&pair.b, pair.unit), ratio, shift],
    }
}

fn value(estimate: &Estimate, unit: Unit) -> Cell {
    Cell::Value(Box::new(Value::estimated(estimate, unit, Precision::Interval)))
}

fn unpaired(row: &Unpaired) -> TableRow {
    let there = || Cell::Text("measured".to_owned());
    let cell = |absence: &Option<MissingReason>| absence.as_ref().map_or_else(there, missing);
    TableRow {
        id: Some(row.id.clone()),
        label: titled(&row.id, &row.parameters),
        cells: vec![cell(&row.a), cell(&row.b)],
    }
}
