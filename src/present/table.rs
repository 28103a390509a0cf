//! A table: its columns, rows and cells, without a form.

use super::value::Value;

/// A table of results.
///
/// ```
/// use syncscope_present::{Cell, Table};
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
///
/// ```
/// use syncscope_present::{Column, Role};
///
/// let column = Column::new(Role::Measured, "time").of("cuda:0");
/// assert_eq!((&*column.heading, column.detail.as_deref()), ("time", Some("cuda:0")));
/// ```
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
///
/// ```
/// use syncscope_present::Role;
///
/// // A style sheet tells what a text printed from what a run measured.
/// assert_eq!((Role::Published.name(), Role::Measured.name()), ("published", "measured"));
/// ```
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
///
/// ```
/// use syncscope_present::{Cell, Column, Role, Table, TableGroup, TableRow};
///
/// let row = |label: &str, what: &str| TableRow {
///     id: None,
///     label: label.to_owned(),
///     cells: vec![Cell::Text(what.to_owned())],
/// };
/// let group = |label: &str, rows| TableGroup { label: Some(label.to_owned()), rows };
/// let table = Table {
///     title: "What blocks".to_owned(),
///     columns: vec![Column::new(Role::Label, "call"), Column::new(Role::Fact, "blocks")],
///     groups: vec![group("Reads", vec![row("item", "yes")]), group("Launches", vec![row("add", "no")])],
/// };
/// assert!(table.to_console().contains("Launches"));
/// ```
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
///
/// ```
/// use syncscope_present::{Cell, Missing, Table};
///
/// let missing = Missing { state: "skipped".to_owned(), reason: Some("there is one GPU".to_owned()) };
/// let table = Table::facts("Copies", ["what", "time"], [("between GPUs".to_owned(), Cell::Missing(missing))]);
/// assert!(table.to_markdown().contains("*skipped*: there is one GPU"));
/// ```
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

impl TableRow {
    /// A row that stands for no measurement.
    pub fn new(label: impl Into<String>, cells: Vec<Cell>) -> Self {
        Self { id: None, label: label.into(), cells }
    }

    /// The row as that of a measurement.
    pub fn of(self, id: &str) -> Self {
        Self { id: Some(id.to_owned()), ..self }
    }
}

impl Table {
    /// A table whose rows are one group.
    pub fn new(title: impl Into<String>, columns: Vec<Column>, rows: Vec<TableRow>) -> Self {
        Self { title: title.into(), columns, groups: vec![TableGroup { label: None, rows }] }
    }

    /// A table of names and facts.
    pub fn facts(title: &str, headings: [&str; 2], facts: impl IntoIterator<Item = (String, Cell)>) -> Self {
        let [label, fact] = headings;
        let rows = facts.into_iter().map(|(label, cell)| TableRow::new(label, vec![cell])).collect();
        Self::new(title, vec![Column::new(Role::Label, label), Column::new(Role::Fact, fact)], rows)
    }
}

impl Missing {
    /// A state, and the reason of it.
    pub fn new(state: &str, reason: Option<&str>) -> Self {
        Self { state: state.to_owned(), reason: reason.map(str::to_owned) }
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

    /// The heading, with the device in brackets.
    pub(crate) fn text(&self) -> String {
        let device = self.detail.as_ref().map(|device| format!(" ({device})"));
        self.heading.clone() + &device.unwrap_or_default()
    }
}

impl Role {
    /// The role's name, as a class of HTML.
    pub fn name(self) -> &'static str {
        // In the order of the roles.
        ["label", "published", "measured", "peer", "ratio", "fact"][self as usize]
    }
}
