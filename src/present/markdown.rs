//! A table as Markdown (the pipe tables of GitHub Flavored Markdown).

use super::escape::escape;
use super::table::{Cell, Column, Table};

impl Table {
    /// The table as Markdown.
    pub fn to_markdown(&self) -> String {
        let mut out = format!("**{}**\n\n", escape(&self.title));
        push_line(&mut out, self.columns.iter().map(heading));
        push_line(&mut out, self.columns.iter().map(|_| "---".to_owned()));
        for group in &self.groups {
            for row in &group.rows {
                let label = match &group.label {
                    Some(group) => format!("{}, {}", escape(group), escape(&row.label)),
                    None => escape(&row.label),
                };
                push_line(&mut out, std::iter::once(label).chain(row.cells.iter().map(cell)));
            }
        }
        out
    }
}

fn push_line(out: &mut String, cells: impl Iterator<Item = String>) {
    out.push('|');
    for cell in cells {
        out.push(' ');
        out.push_str(&cell);
        out.push_str(" |");
    }
    out.push('\n');
}

fn heading(column: &Column) -> String {
    match &column.detail {
        Some(detail) => format!("{} ({})", escape(&column.heading), escape(detail)),
        None => escape(&column.heading),
    }
}

fn cell(cell: &Cell) -> String {
    match cell {
        Cell::Text(text) => escape(text),
        Cell::Nothing => "—".to_owned(),
        Cell::Missing(missing) => match &missing.reason {
            Some(reason) => format!("*{}*: {}", escape(&missing.state), escape(reason)),
            None => format!("*{}*", escape(&missing.state)),
        },
        Cell::Value(value) => {
            let formatted = value.formatted();
            let details = formatted.details();
            if details.is_empty() {
                escape(&formatted.main)
            } else {
                format!("{} ({})", escape(&formatted.main), escape(&details.join(", ")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::Table;
    use super::*;

    #[test]
    fn a_pipe_in_a_cell_does_not_end_it() {
        let table = Table::facts("T", ["what", "is"], [("a|b".to_owned(), Cell::Text("c|d".to_owned()))]);
        let last = table.to_markdown().lines().last().map(str::to_owned);
        assert_eq!(last.as_deref(), Some("| a&#124;b | c&#124;d |"));
    }
}
