//! A table as text in aligned columns.
//!
//! A column of values has two parts: the value, aligned to the right so that magnitudes are easy to compare, and its
//! details, aligned to the left.

use unicode_width::UnicodeWidthStr;

use super::table::{Cell, Table, TableRow};
use crate::clean::{shortened, terminal_line};

/// The most characters of a text in a cell: every line is as wide as the widest.
const MOST: usize = 1_000;
/// What separates two columns.
const GAP: &str = "  ";

/// A cell as text: the part that is aligned to the right, and the details after it. Words, which have none, span both parts.
type Text = (String, Option<String>);

impl Table {
    /// The table as text in aligned columns, for a terminal.
    pub fn to_console(&self) -> String {
        // The cells of a row, or the label of a group above its rows.
        let mut lines: Vec<Result<Vec<Text>, &str>> =
            vec![Ok(self.columns.iter().map(|column| words(&column.text())).collect())];
        for group in self.groups.iter().filter(|group| !group.rows.is_empty()) {
            lines.extend(group.label.as_deref().map(Err));
            let indent = if group.label.is_some() { GAP } else { "" };
            let label = |label: &str| words(&format!("{indent}{label}"));
            let row = |row: &TableRow| std::iter::once(label(&row.label)).chain(row.cells.iter().map(cell)).collect();
            lines.extend(group.rows.iter().map(row).map(Ok));
        }

        let columns = 0..self.columns.len();
        let main = |column: usize| {
            let values = lines.iter().flatten().filter_map(|line| line.get(column));
            values.filter(|(_, detail)| detail.is_some()).map(|(main, _)| main.width()).max().unwrap_or(0)
        };
        let mains: Vec<usize> = columns.clone().map(main).collect();
        let joined = |line: Vec<Text>| line.into_iter().zip(&mains).map(|(text, main)| joined(text, *main)).collect();
        let lines: Vec<Result<Vec<String>, &str>> = lines.into_iter().map(|line| line.map(joined)).collect();
        let cells = |column: usize| lines.iter().flatten().filter_map(move |line| line.get(column));
        let widths: Vec<usize> =
            columns.map(|column| cells(column).map(|text| text.width()).max().unwrap_or(0)).collect();

        let mut out = String::new();
        // What a cell holds may be anybody's: it ends no line.
        let mut put = |line: &str| {
            out.push_str(&terminal_line(line));
            out.push('\n');
        };
        put(&shortened(&self.title, MOST));
        let padded = |(text, width): (&String, &usize)| text.clone() + &" ".repeat(width - text.width());
        for line in &lines {
            match line {
                Ok(cells) => put(cells.iter().zip(&widths).map(padded).collect::<Vec<_>>().join(GAP).trim_end()),
                Err(label) => put(&shortened(label, MOST)),
            }
        }
        out
    }
}

fn words(text: &str) -> Text {
    (shortened(text, MOST).into_owned(), None)
}

fn cell(cell: &Cell) -> Text {
    match cell {
        Cell::Text(text) => words(text),
        Cell::Nothing => ("—".to_owned(), Some(String::new())),
        Cell::Missing(missing) => match &missing.reason {
            Some(reason) => words(&format!("{}: {reason}", missing.state)),
            None => words(&missing.state),
        },
        Cell::Value(value) => {
            let formatted = value.formatted();
            let details = formatted.details();
            let detail = if details.is_empty() { String::new() } else { format!("({})", details.join(", ")) };
            (formatted.main, Some(detail))
        }
    }
}

fn joined((text, detail): Text, main: usize) -> String {
    let Some(detail) = detail else { return text };
    let indent = " ".repeat(main.saturating_sub(text.width()));
    let gap = if detail.is_empty() { "" } else { " " };
    format!("{indent}{text}{gap}{detail}")
}

#[cfg(test)]
mod tests {
    use super::super::table::{Missing, Role, TableGroup, TableRow};
    use super::super::value::{Precision, Sampled, Value};
    use super::*;
    use crate::Column;
    use crate::units::Unit;

    fn value(seconds: f64, samples: usize) -> Cell {
        let plain = Value::plain(seconds, Unit::Seconds, Precision::Digits(3));
        let samples = Some(Sampled { n: samples, runs: 1, even: true, trials: false });
        Cell::Value(Box::new(Value { samples, ..plain }))
    }

    #[test]
    fn a_text_of_any_length_is_told_by_its_begin_and_its_end() {
        let row = |label: String| TableRow { id: None, label, cells: vec![value(1.5e-6, 9)] };
        let labels = ["a".to_owned(), format!("begin{}end", "é".repeat(1_000_000))];
        let table = Table {
            title: "t".repeat(1_000_000),
            columns: vec![Column::new(Role::Label, "what"), Column::new(Role::Measured, "measured")],
            groups: vec![TableGroup { label: None, rows: labels.into_iter().map(row).collect() }],
        };
        let told = table.to_console();
        assert!(told.contains("\nbegin") && told.contains("end  1.50 µs"), "{told}");
        assert!(told.lines().all(|line| line.chars().count() < MOST + 100));
    }

    #[test]
    fn values_align_to_the_right_and_details_to_the_left() {
        let row = |label: &str, cell| TableRow { id: None, label: label.to_owned(), cells: vec![cell] };
        let table = Table {
            title: "Title".to_owned(),
            columns: vec![Column::new(Role::Label, "what"), Column::new(Role::Measured, "measured").of("器")],
            groups: vec![TableGroup {
                label: Some("fp16".to_owned()),
                rows: vec![
                    row("async", value(1.5e-6, 9)),
                    row("forced", value(120e-6, 10)),
                    row("print", Cell::Missing(Missing { state: "skipped".into(), reason: Some("no room".into()) })),
                ],
            }],
        };
        let expected = "Title\n\
                        what      measured (器)\n\
                        fp16\n  \
                          async   1.50 µs (n = 9)\n  \
                          forced   120 µs (n = 10)\n  \
                          print   skipped: no room\n";
        assert_eq!(table.to_console(), expected);
    }
}
