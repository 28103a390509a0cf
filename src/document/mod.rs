//! The documents whose figures are mirrored: what each of them asks and prints (YAML, one file a document).
//!
//! A document file names, for every table, the rows that stand in it, the measurement that each row is set against,
//! and the figures that the document prints for it, in the base unit. It holds no measured value and no layout; every
//! figure of a document that a chapter shows comes from here.

mod case;
mod check;
mod claim;
mod figure;
mod hardware;
mod panel;
mod reading;
mod verdict;

use std::collections::BTreeMap;

use include_dir::{Dir, include_dir};
use serde::Deserialize;

pub use case::Case;
pub(crate) use case::number;
pub use claim::{Claim, Needs, Quantity};
pub use figure::Figure;
pub use hardware::{Chip, Hardware};
pub use panel::{DocumentFigure, Lines, Panel, Scale, Series};
pub use reading::{Comparison, Deviation, Reading, Relative};
pub use verdict::Judgement;

use crate::error::DocumentError;
use crate::experiment::Parameters;
use crate::units::Unit;

static DOCUMENTS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/book/documents");

/// A document: what it asks, and the figures that it prints.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// The identifier; its chapter's file and its measurements begin with it.
    pub id: String,
    /// Its place among the documents, from the first.
    pub order: u32,
    /// The chapter's title.
    pub title: String,
    /// The file that is mirrored.
    pub source: String,
    /// The GPU that its figures come from, where it names one.
    pub gpu: Option<String>,
    /// What it asks, in our words (Markdown).
    pub question: String,
    /// What runs, in a few words (Markdown).
    pub method: String,
    /// The listing that shows how it reads in code: a file under `book/src/`.
    pub listing: Option<String>,
    /// Its tables, in its order.
    pub tables: Vec<DocumentTable>,
    /// The plots of its chapter.
    #[serde(default)]
    pub figures: Vec<DocumentFigure>,
    /// What it claims.
    #[serde(default)]
    pub claims: Vec<Claim>,
}

/// A table of a document.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DocumentTable {
    /// The identifier within the document.
    pub id: String,
    /// The heading.
    pub title: String,
    /// What to see in it, in our words (Markdown).
    pub caption: String,
    /// The parameters with which the document measured: a measured value taken with others says so.
    #[serde(default)]
    pub stated: Parameters,
    /// What each row is shown for. Left out, there is one case, `all`, which selects nothing and has no heading.
    #[serde(default)]
    pub cases: Vec<Case>,
    /// In place of cases, a parameter: each row is shown for every value of it that the runs hold.
    pub each: Option<String>,
    /// The rows.
    pub rows: Vec<DocumentRow>,
}

/// A row of a document's table.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DocumentRow {
    /// What the row is about.
    pub label: String,
    /// The measurement that it is set against: `sync-points.big.async`.
    pub id: String,
    /// The unit of the published figures.
    #[serde(default = "seconds")]
    pub unit: Unit,
    /// The published figure of each case, by the case's label; `null` or no entry where the document prints none.
    #[serde(default)]
    pub published: BTreeMap<String, Option<Figure>>,
    /// The figure relative to another row, where the document gives one.
    pub relative: Option<RelativeFigures>,
    /// Parameters of the document for this row alone, over those of the table.
    #[serde(default)]
    pub stated: Parameters,
    /// What must stand beside the row (plain text).
    pub note: Option<String>,
}

/// Figures relative to another row.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RelativeFigures {
    /// The measurement that is the whole.
    pub to: String,
    /// The published share of each case; 1 is the whole.
    #[serde(default)]
    pub published: BTreeMap<String, Option<Figure>>,
}

impl Document {
    /// Reads a document from YAML. `origin` is the file's name in messages.
    ///
    /// # Errors
    /// [`DocumentError::Invalid`] says what is wrong and where: an unknown field, a figure that is no number, a row
    /// that is named twice, a reference to nothing.
    pub fn parse(origin: &str, text: &str) -> Result<Self, DocumentError> {
        let document: Self = serde_yaml::from_str(text).map_err(|error| {
            let (line, column) = error.location().map_or((0, 0), |at| (at.line(), at.column()));
            DocumentError::Invalid { origin: origin.to_owned(), line, column, message: error.to_string() }
        })?;
        check::check(&document, origin, text)?;
        Ok(document)
    }

    /// The documents that come with the program, in their [`order`](Self::order).
    ///
    /// # Errors
    /// As [`Document::parse`].
    pub fn embedded() -> Result<Vec<Self>, DocumentError> {
        let mut files: Vec<_> =
            DOCUMENTS.files().filter(|f| f.path().extension().is_some_and(|e| e == "yaml")).collect();
        files.sort_by_key(|file| file.path());
        let parse = |file: &include_dir::File<'_>| {
            let origin = format!("book/documents/{}", file.path().display());
            let text = file.contents_utf8().ok_or_else(|| DocumentError::Invalid {
                origin: origin.clone(),
                line: 0,
                column: 0,
                message: "not UTF-8".to_owned(),
            })?;
            Self::parse(&origin, text)
        };
        let mut documents: Vec<Self> = files.into_iter().map(parse).collect::<Result<_, _>>()?;
        documents.sort_by_key(|document| document.order);
        Ok(documents)
    }

    /// The table with this identifier.
    pub fn table(&self, id: &str) -> Option<&DocumentTable> {
        self.tables.iter().find(|table| table.id == id)
    }
}

impl DocumentTable {
    /// Whether the document prints a figure anywhere in this table.
    pub fn has_published(&self) -> bool {
        self.rows.iter().any(|row| row.published.values().any(Option::is_some))
    }

    /// The row of the measurement `id`.
    pub fn row(&self, id: &str) -> Option<&DocumentRow> {
        self.rows.iter().find(|row| row.id == id)
    }
}

impl DocumentRow {
    /// The published figure of a case.
    pub fn published_for(&self, case: &Case) -> Option<&Figure> {
        self.published.get(&case.label).and_then(Option::as_ref)
    }
}

fn seconds() -> Unit {
    Unit::Seconds
}
