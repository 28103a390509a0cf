//! The plots of a document's chapter: which rows are drawn, as bars or as lines over a parameter.

use serde::Deserialize;

use crate::results::Parameters;

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

/// A panel of a plot: bars or lines.
#[derive(Clone, Debug, PartialEq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Panel {
    /// The table whose rows are drawn; empty for a timeline.
    #[serde(default)]
    pub table: String,
    /// The panel's title; left out, the table's.
    pub title: Option<String>,
    /// The measurements, one bar each for every case of the table.
    #[serde(default)]
    pub bars: Vec<String>,
    /// The measurements as lines over a parameter.
    pub lines: Option<Lines>,
    /// In place of a table's rows, a recorded timeline by the name of its scenario: `overlap.finish.complete`.
    pub timeline: Option<String>,
}

/// Lines over a parameter.
#[derive(Clone, Debug, PartialEq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Lines {
    /// The parameter.
    pub x: String,
    /// What stands at its axis; left out, its name.
    pub name: Option<String>,
    /// How its axis is divided.
    #[serde(default)]
    pub scale: Scale,
    /// How the axis of the values is divided.
    #[serde(default)]
    pub values: Scale,
    /// The lines.
    pub series: Vec<Series>,
}

/// How an axis is divided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// Equal steps are equally far apart.
    #[default]
    Linear,
    /// Equal factors are equally far apart.
    Log,
}

/// A line: every row of a measurement that has the parameter.
#[derive(Clone, Debug, PartialEq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Series {
    /// The measurement.
    pub id: String,
    /// Its name; left out, the label of its row.
    pub label: Option<String>,
    /// The parameters that select its rows.
    #[serde(default)]
    pub select: Parameters,
    /// The measurement that this one is a prediction of: it is drawn like that one, and dashed.
    pub predicts: Option<String>,
}
