//! Tables of an SQLite file that may be anybody's.
//!
//! # Method
//! The file is held in memory, read only: SQLite touches no other file, such as a journal that lies beside it. The columns of
//! plain tables are read as they stand there, without an index. What a schema can make a reader run is refused: views,
//! virtual tables, computed columns, functions. Source: *Defense Against The Dark Arts*, the advice of SQLite for files of
//! others.
//!
//! # Limits
//! Pages of a malformed file can stand at many places at once. So no more rows and no more text are read than the file has
//! room for.

use std::cell::Cell;
use std::collections::HashMap;

use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, MAIN_DB, Row};

/// What each SQLite file begins with.
const HEADER: usize = 100;
/// Where the header says how the file is written and read: 1, or 2 with a write-ahead log.
const VERSIONS: std::ops::Range<usize> = 18..20;
/// The longest text, in bytes.
const MAX_TEXT: i32 = 1 << 24;
/// After so many steps of SQLite's machine it is asked whether to go on, and so often it may.
const STEPS: i32 = 1_000_000;
const MAX_TIMES: u32 = 2_000;
/// The fewest bytes of a row of three columns: two for its place, two for its length and number, four for what it holds.
const FEWEST_BYTES: usize = 8;

/// A table, and of its columns those that have to be there and those that may be.
pub(super) struct Table {
    pub(crate) name: &'static str,
    pub(super) required: &'static [&'static str],
    pub(super) optional: &'static [&'static str],
}

pub(super) struct Database {
    connection: Connection,
    /// Of each name whether it is a plain table.
    names: HashMap<String, bool>,
    rows_left: Cell<usize>,
    text_left: Cell<usize>,
}

/// A row: the required columns of its table, then the optional ones. A value that is missing or of another type is none.
pub(super) struct Fields<'a>(&'a Row<'a>);

impl Fields<'_> {
    pub(super) fn number<T: TryFrom<i64>>(&self, place: usize) -> Option<T> {
        if let Ok(ValueRef::Integer(number)) = self.0.get_ref(place) { T::try_from(number).ok() } else { None }
    }

    pub(super) fn text(&self, place: usize) -> Option<String> {
        let Ok(ValueRef::Text(text)) = self.0.get_ref(place) else { return None };
        Some(String::from_utf8_lossy(text).into_owned())
    }
}

impl Database {
    /// Opens what a file holds. No more than `most_rows` are read of all tables.
    ///
    /// # Errors
    /// It is no database, is being written, or has tables that run code; the message says which.
    pub(super) fn open(bytes: &[u8], most_rows: usize) -> Result<Self, String> {
        if bytes.len() < HEADER {
            return Err("it is cut off".to_owned());
        }
        if bytes[VERSIONS] == [2, 2] {
            return Err("it has a write-ahead log, so what was written last may not be in it; \
                        `sqlite3 FILE 'PRAGMA journal_mode=delete'` puts it in"
                .to_owned());
        }
        let connection = guarded(bytes).map_err(|error| said(&error))?;
        let mut names = HashMap::new();
        let mut foreign = None;
        let query = "SELECT type, name, sql FROM main.sqlite_schema";
        each(&connection, query, |row| {
            let text = |place| Fields(row).text(place).unwrap_or_default();
            let (kind, name, sql) = (text(0), text(1), text(2).to_ascii_uppercase());
            // The text alone decides what an entry is.
            let is = |what: &[&str]| what.iter().any(|what| sql.starts_with(what));
            if !sql.is_empty()
                && !is(&["CREATE TABLE", "CREATE INDEX", "CREATE UNIQUE INDEX", "CREATE VIEW", "CREATE TRIGGER"])
            {
                foreign = Some(name.clone());
            }
            if kind != "index" && kind != "trigger" {
                names.insert(name, kind == "table" && is(&["CREATE TABLE"]));
            }
            Ok(())
        })?;
        match foreign {
            Some(name) => Err(format!("`{name}` is a virtual table, and an export of nsys has none")),
            None => Ok(Self {
                connection,
                names,
                rows_left: Cell::new(most_rows.min(bytes.len() / FEWEST_BYTES)),
                // Text of two bytes a letter becomes up to half as long again.
                text_left: Cell::new(bytes.len() + bytes.len() / 2),
            }),
        }
    }

    /// Hands over each row of a table, and says which optional columns it lacks; none where there is no such table.
    ///
    /// # Errors
    /// It is no plain table, lacks a column that has to be there, or cannot be read.
    pub(super) fn read(
        &self,
        table: &Table,
        mut take: impl FnMut(&Fields<'_>),
    ) -> Result<Option<Vec<&'static str>>, String> {
        let name = table.name;
        match self.names.get(name) {
            None => return Ok(None),
            Some(false) => return Err(format!("`{name}` is a view, and no table as nsys writes it")),
            Some(true) => {}
        }
        let mut columns: Vec<String> = Vec::new();
        each(&self.connection, &format!("PRAGMA main.table_xinfo(\"{name}\")"), |row| {
            // Behind its number, name, type, whether it may be empty, default and key: whether it is hidden or computed.
            let fields = Fields(row);
            columns.extend(fields.text(1).filter(|_| fields.number(6) == Some(0)));
            Ok(())
        })?;
        let is_there = |column: &&str| columns.iter().any(|own| own == *column);
        if let Some(column) = table.required.iter().find(|column| !is_there(column)) {
            return Err(format!("its table `{name}` has no column `{column}`, which the audit needs"));
        }
        let all = || table.required.iter().chain(table.optional);
        let asked: Vec<String> =
            all().map(|column| if is_there(column) { format!("\"{column}\"") } else { "NULL".to_owned() }).collect();
        each(&self.connection, &format!("SELECT {} FROM main.\"{name}\" NOT INDEXED", asked.join(", ")), |row| {
            let length = |place| if let Ok(ValueRef::Text(text)) = row.get_ref(place) { text.len() } else { 0 };
            let text = (0..asked.len()).map(length).sum();
            let left = self.rows_left.get().checked_sub(1).zip(self.text_left.get().checked_sub(text));
            let Some((rows, text)) = left else {
                return Err("it has more rows or text than are read, or than a file of its size can have".to_owned());
            };
            self.rows_left.set(rows);
            self.text_left.set(text);
            take(&Fields(row));
            Ok(())
        })
        .map_err(|message| format!("{message} (table `{name}`)"))?;
        Ok(Some(table.optional.iter().copied().filter(|column| !is_there(column)).collect()))
    }
}

/// A connection to what a file holds, which can do nothing but read it.
fn guarded(bytes: &[u8]) -> rusqlite::Result<Connection> {
    let mut connection = Connection::open_in_memory()?;
    connection.deserialize_read_exact(MAIN_DB, bytes, bytes.len(), true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    for refused in [
        DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA,
        DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER,
        DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW,
        DbConfig::SQLITE_DBCONFIG_ENABLE_ATTACH_CREATE,
        DbConfig::SQLITE_DBCONFIG_ENABLE_ATTACH_WRITE,
        DbConfig::SQLITE_DBCONFIG_DQS_DML,
        DbConfig::SQLITE_DBCONFIG_DQS_DDL,
    ] {
        connection.set_db_config(refused, false)?;
    }
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, MAX_TEXT)?;
    connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
    let mut times = 0;
    let is_over = move || {
        times += 1;
        times > MAX_TIMES
    };
    connection.progress_handler(STEPS, Some(is_over))?;
    connection.pragma_update(None, "cell_size_check", true)?;
    connection.pragma_update(None, "query_only", true)?;
    connection.authorizer(Some(|context: AuthContext<'_>| match context.action {
        AuthAction::Select | AuthAction::Read { .. } | AuthAction::Pragma { pragma_name: "table_xinfo", .. } => {
            Authorization::Allow
        }
        _ => Authorization::Deny,
    }))?;
    Ok(connection)
}

fn each(
    connection: &Connection,
    query: &str,
    mut take: impl FnMut(&Row<'_>) -> Result<(), String>,
) -> Result<(), String> {
    let mut statement = connection.prepare(query).map_err(|error| said(&error))?;
    let mut rows = statement.query([]).map_err(|error| said(&error))?;
    while let Some(row) = rows.next().map_err(|error| said(&error))? {
        take(row)?;
    }
    Ok(())
}

fn said(error: &rusqlite::Error) -> String {
    match error.sqlite_error_code() {
        Some(ErrorCode::OperationInterrupted) => "to read it takes more steps than an export of nsys does".to_owned(),
        _ => format!("it cannot be read as an SQLite database: {error}"),
    }
}
