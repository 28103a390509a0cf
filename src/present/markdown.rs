//! A table as Markdown (the pipe tables of GitHub Flavored Markdown), for people who read it as it is, too.
//!
//! So what Markdown acts on stands behind a backslash, and all else is written as it is: names, numbers and parameters can be
//! read and searched for. What goes into a page of the book passes [`escape`](super::escape()) instead, by which no HTML can
//! begin in any reader of Markdown.

use super::table::{Cell, Table};
use crate::escape::in_one_line;

/// What Markdown acts on within a line: a cell or a title begins none.
const ACTS: [char; 11] = ['\\', '|', '*', '_', '`', '[', ']', '<', '&', '~', '$'];

/// `text` as Markdown that is read as it: one line, without what cannot be seen.
pub fn plain(text: &str) -> String {
    in_one_line(text, |plain, character| {
        if ACTS.contains(&character) {
            plain.push('\\');
        }
        plain.push(character);
    })
}

impl Table {
    /// The table as Markdown.
    pub fn to_markdown(&self) -> String {
        let mut out = format!("**{}**\n\n", plain(&self.title));
        out.push_str(&line(self.columns.iter().map(|column| plain(&column.text()))));
        out.push_str(&line(self.columns.iter().map(|_| "---".to_owned())));
        for group in &self.groups {
            for row in &group.rows {
                let label = match &group.label {
                    Some(group) => format!("{}, {}", plain(group), plain(&row.label)),
                    None => plain(&row.label),
                };
                out.push_str(&line(std::iter::once(label).chain(row.cells.iter().map(cell))));
            }
        }
        out
    }
}

fn line(cells: impl Iterator<Item = String>) -> String {
    format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
}

fn cell(cell: &Cell) -> String {
    match cell {
        Cell::Text(text) => plain(text),
        Cell::Nothing => "—".to_owned(),
        Cell::Missing(missing) => match &missing.reason {
            Some(reason) => format!("*{}*: {}", plain(&missing.state), plain(reason)),
            None => format!("*{}*", plain(&missing.state)),
        },
        Cell::Value(value) => {
            let formatted = value.formatted();
            let details = formatted.details();
            if details.is_empty() {
                plain(&formatted.main)
            } else {
                format!("{} ({})", plain(&formatted.main), plain(&details.join(", ")))
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
        assert_eq!(last.as_deref(), Some("| a\\|b | c\\|d |"));
    }

    #[test]
    fn what_markdown_does_not_act_on_is_written_as_it_is() {
        for text in ["iters 2, size 100 (idle-device.launch)", "1.80 × slower; 12 µs … 14 µs", "#1 + 2 - 3 > 1!"] {
            assert_eq!(plain(text), text);
        }
    }

    #[test]
    fn any_text_is_read_as_itself_in_a_cell_and_in_the_title() {
        use pulldown_cmark::{Event, Options, Parser};

        let signs: String = ('!'..='~').filter(|sign| sign.is_ascii_punctuation()).collect();
        let texts = [
            "a*b*c _d_ __e__ `f` ~~g~~ $h$",
            "<b>i</b> &amp; &#124; \\| [j](k) ![l](m) [n]: o",
            "1. p\n\n# q\n---\n    r",
            "| --- |",
            &signs,
        ];
        for text in texts {
            let table = Table::facts(text, ["what", "is"], [(text.to_owned(), Cell::Text(text.to_owned()))]);
            let markdown = table.to_markdown();
            let read: Vec<String> = Parser::new_ext(&markdown, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH)
                .map(|event| match event {
                    Event::Text(text) => text.into_string(),
                    Event::Start(_) | Event::End(_) => "\n".to_owned(),
                    other => panic!("{other:?} in {markdown}"),
                })
                .collect();
            let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
            let count = read.concat().lines().filter(|read| *read == line).count();
            assert_eq!(count, 3, "{line}: {markdown}");
        }
    }
}
