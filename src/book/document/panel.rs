//! The plots of a document's chapter: which rows are drawn, as bars, as lines over a
//! parameter, or as a matrix.

use serde::Deserialize;

use super::{DocumentTable, TableCase};
use crate::present::Spacing;
use crate::results::{Parameter, Parameters, Results};
use crate::units::Unit;

/// A plot: panels beside each other, since their scales differ.
#[derive(Clone, Debug, PartialEq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DocumentFigure {
    /// The identifier within the document.
    pub id: String,
    /// The heading.
    pub title: String,
    /// What to see in it, in our words (Markdown).
    pub caption: String,
    /// The panels.
    pub panels: Vec<Panel>,
}

impl DocumentFigure {
    /// Whether it draws rows of this identifier.
    pub(crate) fn draws(&self, id: &str) -> bool {
        self.panels.iter().any(|panel| {
            let series = panel.lines.iter().flat_map(|lines| &lines.series).map(|series| &series.id);
            panel.bars.iter().chain(series).any(|drawn| drawn == id)
        })
    }
}

/// A panel of a plot: bars, lines, a matrix, a timeline or a roofline.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Panel {
    /// The table whose rows are drawn; empty for a timeline and a roofline.
    pub table: String,
    /// The panel's title; left out, the table's.
    pub title: Option<String>,
    /// The measurements, one bar each for every case of the table.
    pub bars: Vec<String>,
    /// The one case whose bars are drawn, by its label: beside those of another they would be too short to be seen.
    pub case: Option<String>,
    /// How the axis of the bars is divided.
    pub values: Spacing,
    /// The measurements as lines over a parameter.
    pub lines: Option<Lines>,
    /// In place of a table's rows, the rates of all matmuls of the run below the peak rates measured.
    pub roofline: bool,
    /// In place of a table's rows, all rows of a kind as a matrix of yes and no.
    pub matrix: Option<Matrix>,
    /// In place of a table's rows, a recorded timeline by the name of its scenario: `overlap.finish.complete`.
    pub timeline: Option<String>,
}

impl Panel {
    /// The cases of its table whose bars it draws.
    pub(crate) fn cases_in(&self, table: &DocumentTable, results: &[Results]) -> Vec<TableCase> {
        let is_drawn = |case: &TableCase| self.case.as_ref().is_none_or(|drawn| *drawn == case.label);
        table.cases_in(results).into_iter().filter(is_drawn).collect()
    }

    /// Whether it draws rows of a table: it names it, or it is a matrix of the same measurements.
    pub fn draws(&self, table: &DocumentTable) -> bool {
        self.table == table.id || self.matrix.iter().flat_map(Matrix::ids).any(|id| table.row(id).is_some())
    }
}

/// A matrix of yes and no: all rows of one identifier, by the values of their parameters; further columns can be of other
/// identifiers. It is of the first system that has such rows.
#[derive(Clone, Debug, PartialEq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Matrix {
    /// The measurement: observations of yes and no.
    pub id: String,
    /// The rows that are drawn, by their parameters.
    #[serde(default)]
    pub select: Parameters,
    /// The parameters that name a row of the matrix, in the order of its label. Measurements that share a row and a column
    /// are one cell.
    pub rows: Vec<String>,
    /// The parameter that tells the columns apart; left out where they are of measurements of their own.
    pub across: Option<String>,
    /// The columns, with the words at their heads.
    pub columns: Vec<MatrixColumn>,
    /// Times of the same calls, which stand in the data of the plot alone.
    #[serde(default)]
    pub data: Vec<String>,
}

/// A column of a matrix.
#[derive(Clone, Debug, PartialEq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MatrixColumn {
    /// Its measurement, which has the parameters of the rows; left out, that of the matrix.
    pub id: Option<String>,
    /// The value of the parameter that tells the columns apart, where there is one.
    pub value: Option<Parameter>,
    /// The word at its head.
    pub name: String,
}

impl Matrix {
    /// All measurements that it draws, and those of its data.
    pub fn ids(&self) -> impl Iterator<Item = &String> {
        let others = self.columns.iter().filter_map(|column| column.id.as_ref());
        std::iter::once(&self.id).chain(others).chain(&self.data)
    }
}

/// Lines over a parameter.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Lines {
    /// The parameter.
    pub x: String,
    /// What stands at its axis; left out, its name.
    pub name: Option<String>,
    /// Its unit, where it has one.
    pub unit: Option<Unit>,
    /// What is drawn of each value.
    #[serde(default)]
    pub shows: Shows,
    /// How its axis is divided.
    #[serde(default)]
    pub scale: Spacing,
    /// How the axis of the values is divided.
    #[serde(default)]
    pub values: Spacing,
    /// The lines.
    pub series: Vec<PanelSeries>,
}

/// What is drawn of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Shows {
    /// The value.
    #[default]
    Value,
    /// How far it lies above the parameter: what a stopwatch shows beyond the length that it timed.
    Excess,
    /// How many of them there are in a second, of a time.
    Rate,
    /// How many of the parameter there are in a second, of the time that they take: bytes per second.
    Throughput,
}

impl Lines {
    /// The unit of what is drawn of values in `unit`.
    pub fn shown_unit(&self, unit: Unit) -> Unit {
        match self.shows {
            Shows::Value | Shows::Excess => unit,
            Shows::Rate => Unit::Number,
            Shows::Throughput => Unit::BytesPerSecond,
        }
    }
}

/// A line: every row of a measurement that has the parameter.
#[derive(Clone, Debug, PartialEq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PanelSeries {
    /// The measurement.
    pub id: String,
    /// Its name; left out, the label of its row.
    pub label: Option<String>,
    /// The parameters that select its rows.
    #[serde(default)]
    pub select: Parameters,
    /// The measurement that this one is a prediction of: it is drawn like that one, and dashed.
    pub predicts: Option<String>,
    /// Whether it is a bound of the other lines: it is dashed, without marks.
    #[serde(default)]
    pub bound: bool,
}
