//! What the measured values advise: a table with a row for each case that a reader can be in.

use serde::Deserialize;

use super::{Sentence, Text};

/// A table of advice.
#[derive(Clone, Debug, PartialEq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Advice {
    /// The heading.
    pub title: String,
    /// By which rule it is given (Markdown).
    pub caption: String,
    /// The heads of its columns: of the case, of what is advised, and of each value behind it.
    pub columns: Vec<String>,
    /// The cases.
    pub rows: Vec<AdviceRow>,
}

/// What is advised in one case.
#[derive(Clone, Debug, PartialEq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AdviceRow {
    /// The case.
    pub case: String,
    /// What is advised; also where the samples do not decide.
    pub choose: Sentence,
    /// The values behind it.
    pub values: Vec<Text>,
}
