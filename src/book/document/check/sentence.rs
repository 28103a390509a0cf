//! What sentences name: the answer of a chapter, its number on the first page, its exercises.

use super::super::{Document, Sentence, Text};
use super::Source;
use crate::error::FileError;
use crate::predicate::{Checked, Test, UnknownName, parsed, singled_out};
use crate::results::{Dimension, Expression, Parameters, nearest};
use crate::yaml::Way;

/// Every value in a sentence is one that there is.
pub(super) fn check(document: &Document, source: &Source<'_>) -> Result<(), FileError> {
    let top = Way::default();
    let text = |way: Way, text: &Text| text.check(document).map_err(|unknown| source.unknown(&way, "", unknown));
    for (place, answer) in document.answer.iter().enumerate() {
        of_sentence(document, &top.key("answer").item(place), answer, source)?;
    }
    if let Some(advice) = &document.advice {
        for (place, row) in advice.rows.iter().enumerate() {
            let way = top.key("advice").key("rows").item(place);
            if 2 + row.values.len() != advice.columns.len() {
                let (values, heads) = (row.values.len(), advice.columns.len());
                let message = format!("a case, its advice and {values} values stand below {heads} heads");
                return Err(source.error(&way.key("values"), message, String::new()));
            }
            of_sentence(document, &way.key("choose"), &row.choose, source)?;
            for (place, value) in row.values.iter().enumerate() {
                text(way.key("values").item(place), value)?;
            }
        }
    }
    if let Some(headline) = &document.headline {
        let way = top.key("headline");
        let dimension = parsed(&headline.value, &[]).and_then(|value| one_row_each(&value, document));
        let dimension = dimension.map_err(|unknown| source.unknown(&way.key("value"), "", unknown))?;
        if dimension.is_other_than(Dimension::NONE) {
            let message = format!("a headline is a ratio, and `{}` is {}", headline.value, dimension.words());
            return Err(source.error(&way.key("value"), message, String::new()));
        }
        for (key, words) in [("above", &headline.above), ("below", &headline.below)] {
            words.iter().try_for_each(|words| text(way.key(key), words))?;
        }
        let mut drawn = document.figures.iter().flat_map(|figure| &figure.panels).filter_map(|p| p.timeline.as_deref());
        if let Some(scenario) = headline.timeline.as_ref().filter(|named| !drawn.clone().any(|id| id == named.as_str()))
        {
            let message = format!("no figure of the document draws the timeline `{scenario}`");
            return Err(source.error(&way.key("timeline"), message, nearest(scenario, drawn.by_ref())));
        }
    }
    for (place, exercise) in document.exercises.iter().enumerate() {
        let way = top.key("exercises").item(place);
        text(way.key("task"), &exercise.task)?;
        text(way.key("answer"), &exercise.answer)?;
    }
    Ok(())
}

/// Every value in the tests and the texts of a sentence is one that there is.
pub(super) fn of_sentence(
    document: &Document,
    way: &Way,
    sentence: &Sentence,
    source: &Source<'_>,
) -> Result<(), FileError> {
    let checked = Test::all(&sentence.condition).and_then(|tests| {
        tests.iter().try_for_each(|test| bounded(test).and_then(|()| one_row_each(&test.quantity, document).map(drop)))
    });
    checked.map_err(|unknown| source.unknown(&way.key("if"), "", unknown))?;
    for (key, text) in [("then", &sentence.then), ("else", &sentence.otherwise), ("unclear", &sentence.unclear)] {
        text.check(document).map_err(|unknown| source.unknown(&way.key(key), "", unknown))?;
    }
    Ok(())
}

/// A condition has a bound: a quantity alone is neither true nor false.
pub(super) fn bounded(test: &Test) -> Result<(), UnknownName> {
    let message = || format!("`{}` has no bound: a condition compares, as `a / b > 1` does", test.quantity.text());
    test.region.map(drop).ok_or_else(|| message().into())
}

/// Every name of an expression is one that there is, and stands for one row; the unit of the expression.
fn one_row_each(expression: &Expression, document: &Document) -> Result<Dimension, UnknownName> {
    let Checked { operands, dimension } = Checked::of(expression, document)?;
    singled_out(&operands, document, &[Parameters::new()], None)?;
    Ok(dimension)
}
