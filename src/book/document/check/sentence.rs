//! What sentences name: the answer of a chapter, its number on the first page, its exercises.

use super::super::Sentence;
use super::at::At;
use crate::error::FileError;
use crate::predicate::{Test, UnknownName, parsed};
use crate::results::Dimension;

/// Every value in a sentence is one that there is.
pub(super) fn check(top: &At<'_>) -> Result<(), FileError> {
    let document = top.document;
    top.each("answer", &document.answer).try_for_each(|(at, answer)| of_sentence(&at, answer))?;
    if let Some(advice) = &document.advice {
        for (at, row) in top.key("advice").each("rows", &advice.rows) {
            if 2 + row.values.len() != advice.columns.len() {
                let (values, heads) = (row.values.len(), advice.columns.len());
                let what = format!("a case, its advice and {values} values stand below {heads} heads");
                return at.key("values").refuse(what);
            }
            of_sentence(&at.key("choose"), &row.choose)?;
            at.each("values", &row.values).try_for_each(|(at, value)| at.text(value))?;
        }
    }
    if let Some(headline) = &document.headline {
        let (top, at) = (top.key("headline"), top.key("headline").key("value"));
        let value = parsed(&headline.value, &[]).map_err(|unknown| at.unknown(unknown))?;
        let dimension = at.expression(&value)?;
        if dimension.is_other_than(Dimension::NONE) {
            return at.refuse(format!("a headline is a ratio, and `{}` is {}", headline.value, dimension.words()));
        }
        for (key, words) in [("above", &headline.above), ("below", &headline.below)] {
            words.iter().try_for_each(|words| top.key(key).text(words))?;
        }
        if let Some(scenario) = &headline.timeline {
            let panels = document.figures.iter().flat_map(|figure| &figure.panels);
            let what = || format!("no figure of the document draws the timeline `{scenario}`");
            top.key("timeline").known(scenario, panels.filter_map(|panel| panel.timeline.as_deref()), what)?;
        }
    }
    for (at, exercise) in top.each("exercises", &document.exercises) {
        at.key("task").text(&exercise.task)?;
        at.key("answer").text(&exercise.answer)?;
    }
    Ok(())
}

/// Every value in the tests and the texts of a sentence is one that there is.
pub(super) fn of_sentence(at: &At<'_>, sentence: &Sentence) -> Result<(), FileError> {
    let condition = at.key("if");
    for test in Test::all(&sentence.condition).map_err(|unknown| condition.unknown(unknown))? {
        bounded(&test).map_err(|unknown| condition.unknown(unknown))?;
        condition.expression(&test.quantity)?;
    }
    let texts = [("then", &sentence.then), ("else", &sentence.otherwise), ("unclear", &sentence.unclear)];
    texts.into_iter().try_for_each(|(key, text)| at.key(key).text(text))
}

/// A condition has a bound: a quantity alone is neither true nor false.
pub(super) fn bounded(test: &Test) -> Result<(), UnknownName> {
    let message = || format!("`{}` has no bound: a condition compares, as `a / b > 1` does", test.quantity.text());
    test.region.map(drop).ok_or_else(|| message().into())
}
