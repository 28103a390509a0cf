//! A table: its columns, rows and cells, without a form.

use super::value::Value;

/// A table of results.
///
/// ```
/// use syncscope::present::{Cell, Table};
///
/// let table = Table::facts("Sizes", ["what", "bytes"], [("a float".to_owned(), Cell::Text("4".to_owned()))]);
/// assert!(table.to_markdown().contains("| a float |"));
/// assert!(table.to_console().starts_with("Sizes\n"));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// What the table is about.
    pub title: String,
    /// Its columns; the first labels the rows.
    pub columns: Vec<Column>,
    /// Its rows, in groups.
    pub groups: Vec<TableGroup>,
}

/// A column.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// What stands in it.
    pub role: Role,
    /// Its heading.
    pub heading: String,
    /// The device whose values it has.
    pub detail: Option<String>,
}

/// What stands in a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Role {
    /// The label of the row.
    Label,
    /// What a document printed.
    Published,
    /// What a run measured.
    Measured,
    /// What another system measured.
    Peer,
    /// A measured value over another.
    Ratio,
    /// A fact in words.
    Fact,
}

/// Rows that belong together.
#[derive(Clone, Debug, PartialEq)]
pub struct TableGroup {
    /// What they have in common, where the table has several groups.
    pub label: Option<String>,
    /// The rows.
    pub rows: Vec<TableRow>,
}

/// A row.
#[derive(Clone, Debug, PartialEq)]
pub struct TableRow {
    /// The identifier of what was measured, where the row stands for one.
    pub id: Option<String>,
    /// What the row is about.
    pub label: String,
    /// A cell for every column but the first.
    pub cells: Vec<Cell>,
}

/// A cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Words.
    Text(String),
    /// A value.
    Value(Box<Value>),
    /// There is no value, for this reason.
    Missing(Missing),
    /// An empty cell: the document prints no figure.
    Nothing,
}

/// Why there is no value.
#[derive(Clone, Debug, PartialEq)]
pub struct Missing {
    /// In a word or two: `skipped`.
    pub state: String,
    /// The reason, where one is known.
    pub reason: Option<String>,
}

impl Table {
    /// A table of names and facts.
    pub fn facts(title: &str, headings: [&str; 2], facts: impl IntoIterator<Item = (String, Cell)>) -> Self {
        let [label, fact] = headings;
        let rows = facts.into_iter().map(|(label, cell)| TableRow { id: None, label, cells: vec![cell] }).collect();
        Self {
            title: title.to_owned(),
            columns: vec![Column::new(Role::Label, label), Column::new(Role::Fact, fact)],
            groups: vec![TableGroup { label: None, rows }],
        }
    }
}

impl Column {
    /// A column with a heading.
    pub fn new(role: Role, heading: impl Into<String>) -> Self {
        Self { role, heading: heading.into(), detail: None }
    }

    /// The column with the name of the device whose values it has.
    pub fn of(self, device: impl Into<String>) -> Self {
        Self { detail: Some(device.into()), ..self }
    }
}

impl Role {
    /// The role's name, as a class of HTML.
    pub fn name(self) -> &'static str {
        match self {
            Role::Label => "label",
            Role::Published => "published",
            Role::Measured => "measured",
            Role::Peer => "peer",
            Role::Ratio => "ratio",
            Role::Fact => "fact",
        }
    }
}
