//! The page on a lab with many students on one GPU: what several processes at once do to the values of each, from the table
//! that `book/kit/shared_gpu.py` makes, where the project has it.

use csv::{ReaderBuilder, Trim};
use minijinja::{Value, context};
use serde::Deserialize;

use super::source::Book;
use crate::error::{BookError, FileError};
use crate::units::Unit;

/// Where the table lies in a project.
const TABLE: &str = "src/kit/shared-gpu.csv";

/// A line of the table: what so many processes measured.
#[derive(Debug, Deserialize)]
struct Measured {
    row: String,
    label: String,
    unit: Unit,
    processes: u32,
    median: f64,
    least: f64,
    greatest: f64,
}

/// The lines of one row.
struct Row {
    alone: Measured,
    others: Vec<Measured>,
}

/// The page as Markdown.
///
/// # Errors
/// The table is not one that the script makes.
pub(super) fn render(book: &Book<'_>) -> Result<String, BookError> {
    let Ok(text) = book.project.text(TABLE) else {
        return book.templates.render("classroom.md.j2", context! { measured => Value::from(()) });
    };
    let rows = parse(text).map_err(|message| FileError::whole(book.project.name(TABLE.as_ref()), message))?;
    let measured = context! {
        facts => facts(text),
        counts => rows[0].others.iter().map(|other| other.processes).collect::<Vec<u32>>(),
        rows => rows.iter().map(shown).collect::<Vec<Value>>(),
    };
    book.templates.render("classroom.md.j2", context! { measured })
}

/// The rows of the table, in its order.
fn parse(text: &str) -> Result<Vec<Row>, String> {
    let mut reader = ReaderBuilder::new().comment(Some(b'#')).trim(Trim::All).from_reader(text.as_bytes());
    let mut rows: Vec<Row> = Vec::new();
    for line in reader.deserialize() {
        let line: Measured = line.map_err(|error| error.to_string())?;
        if ![line.median, line.least, line.greatest].iter().all(|value| value.is_finite() && *value > 0.0) {
            return Err(format!("`{}`: a time is more than 0", line.row));
        }
        match rows.last_mut() {
            Some(row) if row.alone.row == line.row => row.others.push(line),
            _ if line.processes == 1 => rows.push(Row { alone: line, others: Vec::new() }),
            _ => return Err(format!("`{}`: its first line is not of 1 process", line.row)),
        }
    }
    let of = |row: &Row| row.others.iter().map(|other| other.processes).collect::<Vec<u32>>();
    if rows.is_empty() || rows.iter().any(|row| of(row) != of(&rows[0])) {
        return Err("each row needs a line for each number of processes".to_owned());
    }
    Ok(rows)
}

/// What the table says of where it was made.
fn facts(text: &str) -> Vec<Value> {
    let said = text.lines().filter_map(|line| line.strip_prefix("# ")?.split_once(": "));
    said.map(|(name, value)| context! { name, value }).collect()
}

/// What one process measured, and what more of them did as a multiple of that.
fn shown(row: &Row) -> Value {
    let other = |other: &Measured| {
        let [ratio, least, greatest] =
            [other.median, other.least, other.greatest].map(|value| Unit::Ratio.format(value / row.alone.median, 3));
        context! { ratio => format!("{ratio} ×"), least, greatest }
    };
    context! {
        label => row.alone.label.as_str(),
        alone => row.alone.unit.format(row.alone.median, 3),
        others => row.others.iter().map(other).collect::<Vec<Value>>(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "# device: A GPU\nrow,label,unit,processes,median,least,greatest,ratio\n";

    #[test]
    fn a_row_is_shown_as_a_factor_of_what_one_process_measured() {
        let text =
            format!("{HEAD}a.b,\"One, two\",seconds,1,2e-6,2e-6,2e-6,1\na.b,\"One, two\",seconds,2,6e-6,4e-6,8e-6,3\n");
        let rows = parse(&text).unwrap();
        assert_eq!(rows.len(), 1);
        let shown = shown(&rows[0]);
        assert_eq!(shown.get_attr("alone").unwrap().to_string(), "2.00 µs");
        let other = shown.get_attr("others").unwrap().get_item(&Value::from(0)).unwrap();
        assert_eq!(
            ["ratio", "least", "greatest"].map(|key| other.get_attr(key).unwrap().to_string()),
            ["3.00 ×", "2.00", "4.00"]
        );
        assert_eq!(facts(&text).len(), 1);
    }

    #[test]
    fn a_table_that_lacks_a_number_of_processes_or_holds_no_time_is_refused() {
        for (lines, message) in [
            ("a,A,seconds,2,1,1,1,1\n", "first line"),
            ("a,A,seconds,1,1,1,1,1\na,A,seconds,2,1,1,1,1\nb,B,seconds,1,1,1,1,1\n", "each number"),
            ("a,A,seconds,1,nan,1,1,1\n", "more than 0"),
            ("a,A,hours,1,1,1,1,1\n", "hours"),
            ("", "each row"),
        ] {
            let error = parse(&format!("{HEAD}{lines}")).map(|rows| rows.len()).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
    }
}
