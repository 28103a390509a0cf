//! The documents: what each asks and prints (YAML, one file a document).
//!
//! A document file names, for every table, the rows that stand in it, the measurement that each row is set against,
//! and the figures that the document prints for it, in the base unit. It holds no measured value and no layout; every
//! figure of a document that a chapter shows comes from here.

mod check;
mod claim;
mod experiment;
mod figure;
mod lesson;
mod measured;
mod panel;
mod sentence;
mod text;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;

pub use claim::{Claim, ClaimKind, ClaimSubject, Compare};
pub use figure::Figure;
pub use lesson::{Advice, AdviceRow, Lesson, Prediction, Question, QuizChoice};
pub(super) use measured::values_of;
pub use measured::{Measured, TableCase, TableEntry};
pub use panel::{DocumentFigure, Lines, Matrix, MatrixColumn, Panel, PanelSeries, Shows};
pub use sentence::{Effect, Exercise, Headline, Number, Piece, Said, Sentence, SentenceForm, Text};
pub use text::{Chip, Hardware};
pub use text::{PrintedText, TextPlace, Texts};

use super::predicate::Judgement;
use crate::error::FileError;
use crate::results::{Catalog, Parameters, Results};
use crate::units::Unit;
use crate::yaml;

/// A document: what it asks, and the figures that it prints.
#[derive(Clone, Debug, Default, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// The identifier; its chapter's file and its measurements begin with it.
    pub id: String,
    /// Its place among the documents, from the first.
    pub order: u32,
    /// The chapter's title.
    pub title: String,
    /// The text behind it; none where the chapter goes beyond the texts, with rows of any experiment.
    pub source: Option<String>,
    /// The GPU that its figures come from, where it names one.
    pub gpu: Option<String>,
    /// What it asks, in our words (Markdown).
    pub question: String,
    /// What the measured values answer, a sentence each.
    #[serde(default)]
    pub answer: Vec<Sentence>,
    /// What follows from them, case by case, as a table.
    pub advice: Option<Advice>,
    /// Its number on the first page.
    pub headline: Option<Headline>,
    /// What runs, in a few words (Markdown).
    pub method: String,
    /// How it reads in code, once in each language: files under `book/src/` that end with `.py`, `.cu` or `.rs`.
    #[serde(default)]
    pub listings: Vec<String>,
    /// Its tables, in its order. Rows of its experiment that none of them names stand behind them, with plots.
    #[serde(default)]
    pub tables: Vec<DocumentTable>,
    /// The plots of its chapter.
    #[serde(default)]
    pub figures: Vec<DocumentFigure>,
    /// What makes its chapter a lesson of the course; a chapter of reference has none.
    pub lesson: Option<Lesson>,
    /// What it claims.
    #[serde(default)]
    pub claims: Vec<Claim>,
    /// What a reader can find out with it.
    #[serde(default)]
    pub exercises: Vec<Exercise>,
    /// What the names in its predicates and sentences may stand for.
    #[serde(skip)]
    pub(super) names: Names,
}

/// What names in predicates and sentences may stand for besides the document's own figures.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// The rows that there could be.
    pub rows: Arc<Catalog>,
    /// Hardware with its peak rates.
    pub hardware: Arc<Hardware>,
    /// The texts that claims stand in.
    pub texts: Arc<Texts>,
    /// The chapters that there are, by their identifiers: of the project, and of the program's own.
    pub chapters: Arc<BTreeSet<String>>,
    /// The pages of the project that are no chapters, in small letters.
    pub pages: Arc<BTreeSet<String>>,
    /// The files below its folder `src`, which may be listings.
    pub files: Arc<BTreeSet<String>>,
}

/// Pages that every book has, and those that mdBook makes.
const BOOK_PAGES: [&str; 9] = ["readme", "summary", "claims", "machine", "sources", "index", "print", "toc", "404"];

/// Whether a page of the book has this name already, so that no chapter may.
pub(super) fn is_taken(id: &str, pages: &BTreeSet<String>) -> bool {
    BOOK_PAGES.contains(&id) || pages.contains(id)
}

/// A table of a document.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, schemars::JsonSchema)]
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
    pub published_with: Parameters,
    /// What each row is shown for. Left out, there is one case, `all`, which selects nothing and has no heading.
    #[serde(default)]
    pub cases: Vec<TableCase>,
    /// In place of cases, a parameter: each row is shown for every value of it that the runs hold.
    pub each: Option<String>,
    /// Whether the chapter opens with it: it is the text's own table, in its words and order.
    #[serde(default)]
    pub opens: bool,
    /// Whether the cases are also counted in which a row of yes and no is yes: in every trial, in some, or in none.
    #[serde(default)]
    pub counts: bool,
    /// The rows.
    pub rows: Vec<DocumentRow>,
}

/// A row of a document's table.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DocumentRow {
    /// What the row is about: the label that the row has in the results, or the text's own word where that has to stand.
    #[serde(default)]
    pub label: String,
    /// The measurement that it is set against: `sync-points.big.async`.
    pub id: String,
    /// Which of several measurements of that name it is, by parameters beside those of the case.
    #[serde(default)]
    pub select: Parameters,
    /// The unit that the row was declared with, in which its published figures are.
    #[serde(skip)]
    pub unit: Unit,
    /// The published figure of each case, by the case's label; `null` or no entry where the document prints none.
    #[serde(default)]
    pub published: BTreeMap<String, Option<Figure>>,
    /// The figure relative to another row, where the document gives one.
    pub relative: Option<RelativeFigures>,
    /// Parameters of the document for this row alone, over those of the table.
    #[serde(default)]
    pub published_with: Parameters,
    /// What must stand beside the row (plain text).
    pub note: Option<String>,
}

/// Figures relative to another row.
#[derive(Clone, Debug, PartialEq, Deserialize, schemars::JsonSchema)]
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
    /// [`FileError::Invalid`] says what is wrong and where: an unknown field, a figure that is no number, a row that is
    /// named twice, a name that stands for nothing.
    pub fn parse(origin: &str, text: &str, names: &Names) -> Result<Self, FileError> {
        // The figure of a case may be left blank.
        let mut document: Self = yaml::parse_filled(text, origin, Some("published"))?;
        document.names = names.clone();
        for row in document.tables.iter_mut().flat_map(|table| &mut table.rows) {
            if let Some(spec) = names.rows.get(&row.id) {
                row.unit = spec.unit;
            }
            if let Some(label) = names.rows.label(&row.id).filter(|_| row.label.is_empty()) {
                label.clone_into(&mut row.label);
            }
        }
        check::check(&document, origin, text)?;
        Ok(document)
    }

    /// The documents of some files, each with its name in messages, in their [`order`](Self::order).
    ///
    /// # Errors
    /// As [`Document::parse`]; a file that is not UTF-8; two documents of one identifier or one order.
    pub fn all<'a>(files: impl Iterator<Item = (String, &'a [u8])>, names: &Names) -> Result<Vec<Self>, FileError> {
        let mut documents: Vec<Self> = Vec::new();
        for (origin, content) in files {
            let text = std::str::from_utf8(content).map_err(|_| FileError::whole(&origin, "not UTF-8"))?;
            let document = Self::parse(&origin, text, names)?;
            check::check_beside(&document, &documents, &origin, text)?;
            documents.push(document);
        }
        documents.sort_by(|a, b| (a.order, &a.id).cmp(&(b.order, &b.id)));
        Ok(documents)
    }

    /// Its claims, each judged by each machine's results.
    pub fn judged(&self, results: &[Results]) -> Vec<Vec<Judgement>> {
        self.claims.iter().map(|claim| results.iter().map(|results| claim.judge(self, results)).collect()).collect()
    }

    /// How long its chapter takes, as its lesson says.
    pub(crate) fn minutes(&self) -> u32 {
        self.lesson.as_ref().map_or(0, |lesson| lesson.minutes.get().into())
    }

    /// The rows that its lesson lets the reader predict, and those of its number on the first page.
    fn asked_rows(&self) -> Vec<&str> {
        let asked = self.lesson.iter().map(|lesson| &lesson.predict.answer);
        let asked = asked.flat_map(|answer| [answer.condition.as_str(), answer.then.source()]);
        let named: Vec<&str> = asked.chain(self.headline.iter().map(|headline| headline.value.as_str())).collect();
        let is_named = |id: &str| {
            let name = id.split_once('.').map_or(id, |(_, name)| name).replace('-', "_");
            named.iter().any(|text| [&name, id].iter().any(|name| text.contains(*name)))
        };
        let ids = self.tables.iter().flat_map(|table| &table.rows).map(|row| row.id.as_str());
        if named.is_empty() { Vec::new() } else { ids.filter(|id| is_named(id)).collect() }
    }

    /// Its figures that show what is asked for, by these rows or by the timeline of its number on the first page.
    pub(crate) fn asked_figures(&self) -> impl Fn(&DocumentFigure) -> bool + '_ {
        let rows = self.asked_rows();
        let timeline = self.headline.as_ref().and_then(|headline| headline.timeline.as_ref());
        move |figure| {
            figure.panels.iter().any(|panel| panel.timeline.is_some() && panel.timeline.as_ref() == timeline)
                || rows.iter().any(|id| figure.draws(id))
        }
    }

    /// Its figures in two parts: those of the main matter, and those of the appendix, which only a lesson has. The main matter of
    /// a lesson is what it opens with, or else one figure: the first that shows what it asks for, or the first of all.
    pub(crate) fn divided_figures(&self) -> (Vec<&DocumentFigure>, Vec<&DocumentFigure>) {
        let opens = self.tables.iter().any(|table| table.opens);
        let most = if self.lesson.is_some() { usize::from(!opens) } else { self.figures.len() };
        let is_asked = self.asked_figures();
        let (asked, others): (Vec<_>, Vec<_>) = self.figures.iter().partition(|figure| is_asked(figure));
        let main = asked.into_iter().chain(others).take(most).map(|figure| figure.id.as_str());
        let main: HashSet<&str> = main.collect();
        self.figures.iter().partition(|figure| main.contains(figure.id.as_str()))
    }

    /// The experiments that it shows rows of: its own, or those that its rows name.
    pub fn experiments(&self) -> Vec<&str> {
        let names: BTreeSet<&str> = self.shown().filter_map(|id| id.split('.').next()).collect();
        names.into_iter().collect()
    }

    /// Whether a table or a matrix of it shows the rows of this identifier.
    pub fn shows(&self, id: &str) -> bool {
        self.shown().any(|shown| shown == id)
    }

    fn shown(&self) -> impl Iterator<Item = &str> {
        let rows = self.tables.iter().flat_map(|table| &table.rows).map(|row| row.id.as_str());
        let drawn = self.matrices().flat_map(Matrix::ids).map(String::as_str);
        rows.chain(drawn)
    }

    /// The text behind it by its title and date; by its file where the project does not name it.
    pub fn cited(&self) -> Option<String> {
        let file = self.source.as_deref()?;
        Some(self.names.texts.of_file(file).map_or_else(|| file.to_owned(), PrintedText::dated))
    }

    /// The panels of all its figures.
    pub(crate) fn panels(&self) -> impl Iterator<Item = &Panel> + Clone {
        self.figures.iter().flat_map(|figure| &figure.panels)
    }

    /// The matrices among its panels.
    pub(crate) fn matrices(&self) -> impl Iterator<Item = &Matrix> {
        self.panels().filter_map(|panel| panel.matrix.as_ref())
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

    /// What is selected of a row: of a case, with what the row always selects.
    pub(super) fn selected(&self, id: &str, case: &Parameters) -> Parameters {
        let own = self.row(id).into_iter().flat_map(|row| row.select.clone());
        case.clone().into_iter().chain(own).collect()
    }

    /// What the document measured a row with: of several measurements that one is shown.
    pub(super) fn published_with(&self, id: &str) -> Parameters {
        let own = self.row(id).into_iter().flat_map(|row| row.published_with.clone());
        self.published_with.clone().into_iter().chain(own).collect()
    }

    /// The row of the measurement `id`.
    pub fn row(&self, id: &str) -> Option<&DocumentRow> {
        self.rows.iter().find(|row| row.id == id)
    }
}

/// Whether a file of a folder of documents is one.
pub(super) fn is_yaml(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "yaml")
}

/// The language of a listing.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Language {
    /// What its files end with.
    ending: &'static str,
    /// What a reader calls it.
    pub(crate) name: &'static str,
    /// What stands behind the fence of its code in Markdown.
    pub(crate) fence: &'static str,
}

const ALL: [Language; 3] = [
    Language { ending: "py", name: "PyTorch", fence: "python" },
    Language { ending: "cu", name: "CUDA C++", fence: "cpp" },
    Language { ending: "rs", name: "Rust", fence: "rust,noplayground" },
];

impl Language {
    /// The language of a file by the ending of its name.
    pub(crate) fn of(file: &str) -> Option<&'static Self> {
        let ending = Path::new(file).extension()?;
        ALL.iter().find(|language| language.ending == ending)
    }

    /// What a file may end with, in words.
    pub(super) fn endings() -> String {
        let each = ALL.each_ref().map(|Self { ending, name, .. }| format!(".{ending} ({name})"));
        format!("ending of a language: {}", each.join(", "))
    }
}
