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

impl Lesson {
    /// The texts that stand for a choice, with their keys as [`texts`](Self::texts) has them: they hold no values.
    pub(super) fn labels(&self) -> impl Iterator<Item = (Vec<(&'static str, Option<usize>)>, &Text)> {
        let is_label = |keys: &[(&str, Option<usize>)]| {
            matches!(keys, [("predict", _), ("choices", _)] | [("quiz", _), ("choices", _), ("say", _)])
        };
        self.texts().filter(move |(keys, _)| is_label(keys))
    }

    /// Its texts that are the same on every machine but for the values in them, with their keys from the lesson on; `None`
    /// stands behind a key that is no list.
    pub(super) fn texts(&self) -> impl Iterator<Item = (Vec<(&'static str, Option<usize>)>, &Text)> {
        let lists = [("learn", &self.learn), ("know", &self.know), ("takeaways", &self.takeaways)];
        let listed = lists.into_iter().flat_map(|(key, texts)| {
            texts.iter().enumerate().map(move |(place, text)| (vec![(key, Some(place))], text))
        });
        let predict = &self.predict;
        let asked = std::iter::once((vec![("predict", None), ("ask", None)], &predict.ask));
        let expected = predict
            .choices
            .iter()
            .enumerate()
            .map(|(place, text)| (vec![("predict", None), ("choices", Some(place))], text));
        let quiz = self.quiz.iter().enumerate().flat_map(|(number, question)| {
            let asked = (vec![("quiz", Some(number)), ("ask", None)], &question.ask);
            let choices = question.choices.iter().enumerate().flat_map(move |(place, choice)| {
                let of = move |key| vec![("quiz", Some(number)), ("choices", Some(place)), (key, None)];
                [(of("say"), &choice.say), (of("rationale"), &choice.rationale)]
            });
            std::iter::once(asked).chain(choices)
        });
        listed.chain(asked).chain(expected).chain(quiz)
    }
}
