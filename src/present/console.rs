//! A table as text in aligned columns.
//!
//! A column of values has two parts: the value, aligned to the right so that magnitudes are easy to compare, and its
//! details, aligned to the left.

use unicode_width::UnicodeWidthStr;

use super::table::{Cell, Column, Table};
use crate::clean::{shortened, terminal_line};

/// The most characters of a text in a cell: every line is as wide as the widest.
const MOST: usize = 1_000;
/// What separates two columns.
const GAP: &str = "  ";

/// A cell as text: the part that is aligned to the right, and the details after it.
struct Text {
    main: String,
    detail: String,
    /// Words span both parts.
    words: bool,
}

impl Table {
    /// The table as text in aligned columns, for a terminal.
    pub fn to_console(&self) -> String {
        let mut lines: Vec<Vec<Text>> = vec![self.columns.iter().map(heading).collect()];
        let mut group_labels = Vec::new();
        for group in &self.groups {
            if let Some(label) = &group.label {
                group_labels.push((lines.len(), label));
            }
            for row in &group.rows {
                let indent = if group.label.is_some() { GAP } else { "" };
                let label = words(&format!("{indent}{}", row.label));
                lines.push(std::iter::once(label).chain(row.cells.iter().map(cell)).collect());
            }
        }

        let columns = 0..self.columns.len();
        let main = |column: usize| {
            let values = lines.iter().filter_map(|line| line.get(column)).filter(|text| !text.words);
            values.map(|text| text.main.width()).max().unwrap_or(0)
        };
        let mains: Vec<usize> = columns.clone().map(main).collect();
        let joined = |line: &Vec<Text>| line.iter().zip(&mains).map(|(text, main)| joined(text, *main)).collect();
        let lines: Vec<Vec<String>> = lines.iter().map(joined).collect();
        let width = |column: usize| lines.iter().filter_map(|line| line.get(column)).map(|text| text.width()).max();
        let widths: Vec<usize> = columns.map(|column| width(column).unwrap_or(0)).collect();

        let mut out = String::new();
        // What a cell holds may be anybody's: it ends no line.
        let mut put = |line: &str| {
            out.push_str(&terminal_line(line));
            out.push('\n');
        };
        put(&shortened(&self.title, MOST));
        for (index, line) in lines.iter().enumerate() {
            for (_, label) in group_labels.iter().filter(|(at, _)| *at == index) {
                put(&shortened(label, MOST));
            }
            let cells = line.iter().zip(&widths).map(|(text, width)| text.clone() + &" ".repeat(width - text.width()));
            put(cells.collect::<Vec<_>>().join(GAP).trim_end());
        }
        out
    }
}

fn heading(column: &Column) -> Text {
    match &column.detail {
        Some(detail) => words(&format!("{} ({detail})", column.heading)),
        None => words(&column.heading),
    }
}

fn words(text: &str) -> Text {
    Text { main: shortened(text, MOST).into_owned(), detail: String::new(), words: true }
}

fn cell(cell: &Cell) -> Text {
    match cell {
        Cell::Text(text) => words(text),
        Cell::Nothing => Text { main: "—".to_owned(), detail: String::new(), words: false },
        Cell::Missing(missing) => match &missing.reason {
            Some(reason) => words(&format!("{}: {reason}", missing.state)),
            None => words(&missing.state),
        },
        Cell::Value(value) => {
            let formatted = value.formatted();
            let details = formatted.details();
            let detail = if details.is_empty() { String::new() } else { format!("({})", details.join(", ")) };
            Text { main: formatted.main, detail, words: false }
        }
    }
}

fn joined(text: &Text, main: usize) -> String {
    if text.words {
        return text.main.clone();
    }
    let indent = " ".repeat(main.saturating_sub(text.main.width()));
    let gap = if text.detail.is_empty() { "" } else { " " };
    format!("{indent}{}{gap}{}", text.main, text.detail)
}

#[cfg(test)]
mod tests {
    use super::super::table::{Missing, Role, TableGroup, TableRow};
    use super::super::value::{Precision, Sampled, Value};
    use super::*;
    use crate::units::Unit;

    fn value(seconds: f64, samples: usize) -> Cell {
        let plain = Value::plain(seconds, Unit::Seconds, Precision::Digits(3));
        let samples = Some(Sampled { n: samples, runs: 1, even: true, trials: false, spread: None });
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
