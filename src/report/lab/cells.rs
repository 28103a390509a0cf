//! A notebook's cells, and what nbgrader's metadata says of them.

use serde::Deserialize;
use serde_json::Value;

use crate::UsageError;

/// A notebook with tasks or checks, in the format 4.
pub(super) struct Lab {
    /// Its file, for messages.
    pub(super) name: String,
    pub(super) content: Value,
}

/// What nbgrader's metadata says of a cell.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Mark {
    /// Names the cell in its lab.
    pub(super) grade_id: String,
    /// Whether it gives points.
    #[serde(default)]
    pub(super) grade: bool,
    /// Whether it is to be filled.
    #[serde(default)]
    pub(super) solution: bool,
    /// Whether it is to stay as it is.
    #[serde(default)]
    pub(super) locked: bool,
    /// The most points.
    #[serde(default)]
    pub(super) points: f64,
}

impl Lab {
    pub(super) fn parse(name: &str, text: &str) -> Result<Self, UsageError> {
        let wrong = |message: String| UsageError(format!("{name}: {message}"));
        let content: Value = serde_json::from_str(text).map_err(|error| wrong(format!("no notebook: {error}")))?;
        if content["nbformat"] != 4 || !content["cells"].is_array() {
            return Err(wrong("no notebook of the format 4".to_owned()));
        }
        let lab = Self { name: name.to_owned(), content };
        for cell in lab.cells() {
            let metadata = &cell["metadata"]["nbgrader"];
            if let Err(error) = Mark::deserialize(metadata).map(drop)
                && !metadata.is_null()
            {
                return Err(wrong(format!("nbgrader's metadata of a cell cannot be read: {error}")));
            }
        }
        match lab.cells().iter().any(|cell| mark(cell).is_some_and(|mark| mark.grade)) {
            true => Ok(lab),
            false => Err(wrong("no lab: none of its cells gives points (nbgrader's metadata `grade`)".to_owned())),
        }
    }

    pub(super) fn cells(&self) -> &[Value] {
        self.content["cells"].as_array().map_or(&[], Vec::as_slice)
    }

    /// The cells that give points, in their order.
    pub(super) fn checks(&self) -> impl Iterator<Item = (Mark, &Value)> {
        self.cells().iter().filter_map(|cell| Some((mark(cell).filter(|mark| mark.grade)?, cell)))
    }

    /// The cell of a name.
    pub(super) fn cell(&self, grade_id: &str) -> Option<&Value> {
        self.cells().iter().find(|cell| mark(cell).is_some_and(|mark| mark.grade_id == grade_id))
    }

    /// The lab with the most checks of the same names; none where no check has one.
    pub(super) fn nearest<'a>(&self, known: &'a [Lab]) -> Option<&'a Lab> {
        let shared = |lab: &&Lab| lab.checks().filter(|(mark, _)| self.cell(&mark.grade_id).is_some()).count();
        known.iter().filter(|lab| shared(lab) > 0).max_by_key(shared)
    }
}

/// What nbgrader's metadata says of a cell, where it has some.
pub(super) fn mark(cell: &Value) -> Option<Mark> {
    Mark::deserialize(&cell["metadata"]["nbgrader"]).ok()
}

/// A cell's text.
pub(super) fn source(cell: &Value) -> String {
    match &cell["source"] {
        Value::Array(lines) => lines.iter().filter_map(Value::as_str).collect(),
        text => text.as_str().unwrap_or_default().to_owned(),
    }
}

/// Whether a cell has code.
pub(super) fn is_code(cell: &Value) -> bool {
    cell["cell_type"] == "code"
}
