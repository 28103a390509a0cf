//! What makes a chapter a lesson: what it teaches and asks for, a prediction before the data, a quiz, what to keep in mind.

use std::num::NonZeroU8;

use serde::Deserialize;

use super::sentence::{Sentence, Text};

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
