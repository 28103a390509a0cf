//! The page on a lab with many students on one GPU: what several processes at once do to the values of each, from the table
//! that `book/kit/shared_gpu.py` makes, where the project has it.

use csv::{ReaderBuilder, Trim};
use minijinja::{Value, context};
use serde::Deserialize;

use super::project::BookProject;
use super::templates::Templates;
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

impl Row {
    /// By which factor so many processes change the median.
    fn ratio(&self, other: &Measured) -> f64 {
        other.median / self.alone.median
    }

    /// Whether one of so many processes measured what one alone does, or less, and one as much or more.
    fn holds_one(&self, other: &Measured) -> bool {
        (other.least..=other.greatest).contains(&self.alone.median)
    }

    /// The factor of the most processes.
    fn last(&self) -> f64 {
        self.others.last().map_or(1.0, |other| self.ratio(other))
    }
}

/// The lowest factor of all whose range holds 1, and at most 1: by so much values scatter with no effect to be seen.
fn lowest(rows: &[Row]) -> f64 {
    let all = rows.iter().flat_map(|row| row.others.iter().map(move |other| (row, other)));
    all.filter(|(row, other)| row.holds_one(other)).map(|(row, other)| row.ratio(other)).fold(1.0, f64::min)
}

/// The page as Markdown.
///
/// # Errors
/// The table is not one that the script makes.
pub(super) fn render(templates: &Templates<'_>, project: &BookProject) -> Result<String, BookError> {
    let Ok(text) = project.text(TABLE) else {
        return templates.render("classroom.md.j2", context! { measured => Value::from(()) });
    };
    let rows = parse(text).map_err(|message| FileError::whole(project.name(TABLE.as_ref()), message))?;
    let counts: Vec<u32> =
        rows.first().map(|row| row.others.iter().map(|other| other.processes).collect()).unwrap_or_default();
    let lowest = lowest(&rows);
    let named = |row: &Row| {
        let last = row.others.last().map(|other| written(row, other, lowest));
        context! { label => row.alone.label.as_str(), ratio => last }
    };
    // Half as long is as far from no change as twice as long.
    let by_change = |one: &&Row, other: &&Row| one.last().ln().abs().total_cmp(&other.last().ln().abs());
    let (most, least) = (rows.iter().max_by(by_change), rows.iter().min_by(by_change));
    let measured = context! {
        facts => facts(text),
        counts,
        rows => rows.iter().map(|row| shown(row, lowest)).collect::<Vec<Value>>(),
        lowest => (lowest < 1.0).then(|| times(lowest)),
        most => most.map(named),
        least => least.map(named),
    };
    templates.render("classroom.md.j2", context! { measured })
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

fn shown(row: &Row, lowest: f64) -> Value {
    let other = |other: &Measured| {
        let [least, greatest] =
            [other.least, other.greatest].map(|value| Unit::Ratio.format(value / row.alone.median, 3));
        context! { ratio => written(row, other, lowest), least, greatest }
    };
    context! {
        label => row.alone.label.as_str(),
        alone => row.alone.unit.format(row.alone.median, 3),
        others => row.others.iter().map(other).collect::<Vec<Value>>(),
    }
}

/// The factor, marked where it cannot be told from 1.
fn written(row: &Row, other: &Measured, lowest: f64) -> String {
    let ratio = row.ratio(other);
    let is_open = row.holds_one(other) && (lowest..=1.0 / lowest).contains(&ratio);
    format!("{}{}", if is_open { "≈ " } else { "" }, times(ratio))
}

fn times(ratio: f64) -> String {
    format!("{} ×", Unit::Ratio.format(ratio, 3))
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
        assert_eq!((rows.len(), rows[0].last()), (1, 3.0));
        let shown = shown(&rows[0], lowest(&rows));
        assert_eq!(shown.get_attr("alone").unwrap().to_string(), "2.00 µs");
        let other = shown.get_attr("others").unwrap().get_item(&Value::from(0)).unwrap();
        assert_eq!(
            ["ratio", "least", "greatest"].map(|key| other.get_attr(key).unwrap().to_string()),
            ["3.00 ×", "2.00", "4.00"]
        );
        assert_eq!(facts(&text).len(), 1);
    }

    #[test]
    fn a_factor_is_marked_where_its_range_holds_one_and_it_is_no_further_from_one_than_the_lowest_such() {
        let line = |row: &str, processes: u32, median: f64, least: f64, greatest: f64| {
            format!("{row},{row},seconds,{processes},{median},{least},{greatest},1\n")
        };
        // Of the row `b`, one process of two ended after the other and measured alone.
        let lines = [
            line("a", 1, 1.0, 0.9, 1.1),
            line("a", 2, 0.8, 0.7, 1.2),
            line("b", 1, 1.0, 1.0, 1.0),
            line("b", 2, 9.0, 1.0, 17.0),
            line("c", 1, 1.0, 1.0, 1.0),
            line("c", 2, 1.2, 0.9, 1.3),
            line("d", 1, 1.0, 1.0, 1.0),
            line("d", 2, 0.5, 0.4, 0.6),
        ];
        let rows = parse(&format!("{HEAD}{}", lines.concat())).unwrap();
        let lowest = lowest(&rows);
        assert_eq!(lowest, 0.8);
        let written: Vec<String> = rows.iter().map(|row| written(row, &row.others[0], lowest)).collect();
        assert_eq!(written, ["≈ 0.800 ×", "9.00 ×", "≈ 1.20 ×", "0.500 ×"]);
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
