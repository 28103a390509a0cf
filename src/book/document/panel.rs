//! The plots of a document's chapter: which rows are drawn, as bars or as lines over a parameter.

use serde::Deserialize;

use crate::results::Parameters;
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

/// A panel of a plot: bars, lines, a timeline or a roofline.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Panel {
    /// The table whose rows are drawn; empty for a timeline and a roofline.
    #[serde(default)]
    pub table: String,
    /// The panel's title; left out, the table's.
    pub title: Option<String>,
    /// The measurements, one bar each for every case of the table.
    #[serde(default)]
    pub bars: Vec<String>,
    /// The measurements as lines over a parameter.
    pub lines: Option<Lines>,
    /// Whose measurements are drawn where several systems have some.
    #[serde(default)]
    pub systems: Systems,
    /// In place of a table's rows, the rates of all matmuls of the run below the peak rates measured.
    #[serde(default)]
    pub roofline: bool,
    /// In place of a table's rows, a recorded timeline by the name of its scenario: `overlap.finish.complete`.
    pub timeline: Option<String>,
}

/// Whose measurements a panel draws.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Systems {
    /// Those of the system that the results are about.
    #[default]
    Own,
    /// Those of all systems, in one picture.
    Together,
    /// Those of all systems, in a picture each.
    Apart,
}

/// Lines over a parameter.
#[derive(Clone, Debug, PartialEq, Deserialize, schemars::JsonSchema)]
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
    pub scale: Scale,
    /// How the axis of the values is divided.
    #[serde(default)]
    pub values: Scale,
    /// The lines.
    pub series: Vec<Series>,
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
}

impl Lines {
    /// The unit of what is drawn of values in `unit`.
    pub fn shown_unit(&self, unit: Unit) -> Unit {
        if self.shows == Shows::Rate { Unit::Number } else { unit }
    }
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
    /// Whether it is a bound of the other lines: it is dashed, without marks.
    #[serde(default)]
    pub bound: bool,
}
