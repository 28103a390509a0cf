//! Two runs beside each other, as tables: the rows of both, the worst verdict first, and the rows that one lacks.

use super::comparison::missing;
use crate::in_order::grouped;
use crate::measure::Estimate;
use crate::present::{Cell, Column, Precision, Role, Table, TableGroup, TableRow, Value};
use crate::results::statistics::FIRST_LOOK;
use crate::results::{Agreement, Compared, HalfWidths, MissingReason, Pair, Shift, Unpaired, titled};
use crate::units::{Scale, Unit, counted};

/// What a comparison is for, which decides its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wording {
    /// Is the second run faster or slower than the first?
    Compare,
    /// What of a benchmark is faster or slower than the last time?
    Last,
}

impl Wording {
    /// What the two files are called.
    pub fn names(self) -> [&'static str; 2] {
        match self {
            Wording::Compare => ["A", "B"],
            Wording::Last => ["last", "now"],
        }
    }
}

/// The tables of a comparison, where they have rows: the rows of yes and no that say something else; the paired rows, the worst
/// verdict first; then the rows that cannot be paired.
pub fn compared(compared: &Compared, wording: Wording) -> Vec<Table> {
    let [a, b] = wording.names();
    let columns =
        || vec![Column::new(Role::Label, "row"), Column::new(Role::Measured, a), Column::new(Role::Measured, b)];
    let of_change = [Column::new(Role::Ratio, format!("{b} / {a}")), Column::new(Role::Fact, "change")];
    let all_columns = columns().into_iter().chain(of_change).collect();
    let row = |pair: &Pair, more: &[Cell]| {
        TableRow::new(titled(&pair.id, &pair.parameters), [&values(pair), more].concat()).of(&pair.id)
    };
    let behaviour = compared.changed_behaviour().map(|pair| (&pair.system, row(pair, &[]))).collect();
    let mut pairs: Vec<&Pair> = compared.pairs.iter().collect();
    pairs.sort_by_key(|pair| pair.shift);
    let pairs = pairs.into_iter().map(|pair| (&pair.system, row(pair, &change(pair)))).collect();
    let unpaired = compared.unpaired.iter().map(|row| (&row.system, unpaired(row))).collect();
    let tables = [
        ("Behaviour that changed: the share of trials that say yes".to_owned(), columns(), behaviour),
        (format!("{b} beside {a}"), all_columns, pairs),
        ("Rows not compared".to_owned(), columns(), unpaired),
    ];
    let table = |(title, columns, rows)| Table { title, columns, groups: by_system(compared, rows) };
    tables.into_iter().map(table).filter(|table| !table.groups.is_empty()).collect()
}

/// The rows of each system; its name stands over them where there are several.
fn by_system(compared: &Compared, rows: Vec<(&String, TableRow)>) -> Vec<TableGroup> {
    let label = |system: &String| Some(system.clone()).filter(|_| compared.systems.len() > 1);
    let mut groups = grouped(rows);
    groups.sort_by_key(|(system, _)| compared.systems.iter().position(|own| own == *system));
    groups.into_iter().map(|(system, rows)| TableGroup { label: label(system), rows }).collect()
}

/// The number of rows of each verdict, each row by itself, in a line.
pub fn tally(compared: &Compared) -> String {
    let counts = Shift::ALL.iter().map(|shift| (shift.name(), compared.count(*shift)));
    let all = counts.chain([("not compared", compared.unpaired.len())]);
    all.filter(|(_, count)| *count > 0).map(|(word, count)| format!("{count} {word}")).collect::<Vec<_>>().join(", ")
}

/// How many runs, and how much time, half of the uncertain rows take until they are decided; `None` without such rows.
pub fn undecided(compared: &Compared) -> Option<String> {
    let mut runs: Vec<usize> = compared.pairs.iter().filter_map(|pair| pair.runs_to_decide).collect();
    runs.sort_unstable();
    let half = *runs.get(runs.len().checked_sub(1)? / 2)?;
    let seconds = compared.run_seconds.iter().sum::<f64>() * half as f64;
    let time = if seconds > 0.0 { format!(": {} in all", Unit::Seconds.format(seconds, 2)) } else { String::new() };
    Some(format!("half of {} uncertain rows take {half} runs in each file or fewer{time}", runs.len()))
}

/// What a change means, or that so few runs can name none, in a line.
pub fn over_the_file(compared: &Compared) -> String {
    let Compared { runs: [a, b], tolerance, .. } = compared;
    if compared.shared_runs > 0 {
        let shared = counted(compared.shared_runs, "run");
        return format!("the files share {shared}, so no row is judged; compare files that have runs of their own");
    }
    let (error, least) = (tolerance.error * 100.0, compared.least_chance());
    if compared.pairs.is_empty() {
        return "the files have no row in common".to_owned();
    }
    if least > tolerance.error && compared.looks > 0 {
        return format!("{a} and {b} alternating runs can name no change: the first look takes {FIRST_LOOK}");
    }
    if least > tolerance.error {
        let chance = Scale::PERCENT.significant(least, 2);
        let more = smallest(ENOUGH, compared.smallest_change(ENOUGH));
        return format!(
            "{a} and {b} runs can name no change: chance alone does as much in {chance} of comparisons. {}",
            more.unwrap_or_else(|| format!("Take {ENOUGH} runs in each file"))
        );
    }
    let rows = compared.pairs.len();
    match compared.looks {
        0 => {
            let runs = *a.min(b);
            let smallest = smallest(runs, compared.smallest_change(runs));
            let smallest = smallest.map(|smallest| format!("; {smallest}")).unwrap_or_default();
            format!("of equal files, at most {error} % name any change, over all {rows} rows together{smallest}")
        }
        _ => format!(
            "of equal programs, at most {error} % name any change, over all {rows} rows together and whenever the runs end"
        ),
    }
}

/// How many runs in each file a comparison takes.
pub const ENOUGH: usize = 5;

/// Which change so many runs find, in words.
pub fn smallest(runs: usize, change: Option<f64>) -> Option<String> {
    let change = Scale::PERCENT.significant(change?, 2);
    Some(format!("{} in each file find a change of {change} or more in half of the rows", counted(runs, "run")))
}

/// How well the runs of a system agree, line by line.
pub fn agreement(found: &Agreement, wording: Wording) -> Vec<String> {
    let ([a, b], system) = (wording.names(), &found.system);
    let percent = |share: f64| Scale::PERCENT.significant(share, 3);
    let mut lines = Vec::new();
    if let Some(factor) = &found.factor {
        let [middle, low, high] = [factor.median, factor.low, factor.high].map(percent);
        lines.push(format!(
            "{system} moved as a whole: in the middle a row of {b} takes {middle} ({low} … {high}) of its time in {a}"
        ));
    }
    if found.rows > 0 {
        let share = |count: usize| format!("{count} of {} ({})", found.rows, percent(count as f64 / found.rows as f64));
        let without = match &found.factor {
            Some(_) => format!("; with that factor taken out, of {}", share(found.apart_without_factor)),
            None => String::new(),
        };
        lines.push(format!(
            "{system}: the 95 % intervals of {} rows do not meet{without}. Of equal rows, 0.5 % would not",
            share(found.apart)
        ));
    }
    let wide = |(file, widths): (&str, &Option<HalfWidths>)| {
        let HalfWidths { middle, nine_in_ten, .. } = widths.as_ref()?;
        Some(format!("{file} ± {} in the middle, within ± {} for nine in ten", percent(*middle), percent(*nine_in_ten)))
    };
    let widths: Vec<String> = [a, b].into_iter().zip(&found.half_widths).filter_map(wide).collect();
    if !widths.is_empty() {
        lines.push(format!("{system}: intervals of times and rates: {}", widths.join("; ")));
    }
    lines
}

/// The cells behind those of the two values.
fn change(pair: &Pair) -> [Cell; 2] {
    let ratio = pair.ratio.map_or(Cell::Nothing, |ratio| {
        let plain = Value::plain(ratio.value, Unit::Ratio, Precision::Interval);
        let is_withheld = pair.no_interval.iter().any(Option::is_some);
        let interval = Some((ratio.low, ratio.high)).filter(|_| !is_withheld);
        Cell::Value(Box::new(Value { interval, ..plain }))
    });
    let word = pair.shift.name();
    let shift = pair.runs_to_decide.map_or_else(|| word.to_owned(), |runs| format!("{word}: take {runs} runs"));
    [ratio, Cell::Text(shift)]
}

fn values(pair: &Pair) -> [Cell; 2] {
    let value = |(estimate, reason): (&Estimate, &Option<String>)| {
        let mut value = Value::estimated(estimate, pair.unit, Precision::Interval);
        value.interval = value.interval.filter(|_| reason.is_none());
        value.notes.extend(reason.clone());
        Cell::Value(Box::new(value))
    };
    [(&pair.a, &pair.no_interval[0]), (&pair.b, &pair.no_interval[1])].map(value)
}

fn unpaired(row: &Unpaired) -> TableRow {
    let there = || Cell::Text("measured".to_owned());
    let cell = |absence: &Option<MissingReason>| absence.as_ref().map_or_else(there, missing);
    TableRow::new(titled(&row.id, &row.parameters), vec![cell(&row.a), cell(&row.b)]).of(&row.id)
}
