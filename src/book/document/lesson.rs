//! What makes a chapter a lesson: what it teaches and asks for, a prediction before the data, a quiz, what to keep in mind. And
//! what the measured values advise: a table with a row for each case that a reader can be in.

use std::num::NonZeroU8;

use serde::Deserialize;

use super::{Sentence, Text};

/// The lesson of a document.
#[derive(Clone, Debug, PartialEq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Lesson {
    /// What a reader learns.
    pub learn: Vec<Text>,
    /// What a reader needs to know before.
    pub know: Vec<Text>,
    /// How long it takes.
    pub minutes: NonZeroU8,
    /// What the reader is asked before the data are shown.
    pub predict: Prediction,
    /// Questions on what was read.
    pub quiz: Vec<Question>,
    /// What to keep in mind, true on every machine.
    pub takeaways: Vec<Text>,
    /// What to keep in mind of the machine that was measured.
    #[serde(default)]
    pub measured: Vec<Sentence>,
    /// The chapters to read next, by their identifiers.
    #[serde(default)]
    pub next: Vec<String>,
}

/// A question that the measured values answer.
#[derive(Clone, Debug, PartialEq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Prediction {
    /// The question.
    pub ask: Text,
    /// What may be expected.
    pub choices: Vec<Text>,
    /// What was measured.
    pub answer: Sentence,
}

/// A question of a quiz.
#[derive(Clone, Debug, PartialEq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// The question.
    pub ask: Text,
    /// The answers to choose from, of which one is right.
    pub choices: Vec<QuizChoice>,
}

/// An answer to choose.
#[derive(Clone, Debug, PartialEq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QuizChoice {
    /// The answer.
    pub say: Text,
    /// Whether it is the right one.
    #[serde(default)]
    pub right: bool,
    /// Why it is right, or wrong.
    pub rationale: Text,
}

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
