//! What sentences name: the answer of a chapter, its number on the first page, its exercises, and its lesson, whose questions have
//! one right answer each.

use super::super::{Sentence, Text};
use super::Check;
use super::at::At;
use crate::predicate::{Test, UnknownName, parsed};
use crate::results::Dimension;

/// Every value in a sentence is one that there is.
pub(super) fn check(top: &At<'_>) -> Check {
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
            let what = format!("no figure of the document draws the timeline `{scenario}`");
            let drawn = document.panels().filter_map(|panel| panel.timeline.as_deref());
            top.key("timeline").known(scenario, drawn, what)?;
        }
    }
    for (at, exercise) in top.each("exercises", &document.exercises) {
        at.key("task").text(&exercise.task)?;
        at.key("answer").text(&exercise.answer)?;
    }
    Ok(())
}

/// Every value in the tests and the texts of a sentence is one that there is.
pub(super) fn of_sentence(at: &At<'_>, sentence: &Sentence) -> Check {
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

/// The fewest answers that leave something to choose.
const CHOICES: usize = 2;

/// Finds the first thing that is wrong with the lesson of a document, where it has one.
pub(super) fn check_lesson(top: &At<'_>) -> Check {
    let Some(lesson) = &top.document.lesson else { return Ok(()) };
    let top = top.key("lesson");
    for (key, texts) in [("learn", &lesson.learn), ("know", &lesson.know), ("takeaways", &lesson.takeaways)] {
        top.each(key, texts).try_for_each(|(at, text)| at.text(text))?;
    }
    let predict = top.key("predict");
    predict.key("ask").text(&lesson.predict.ask)?;
    predict.each("choices", &lesson.predict.choices).try_for_each(|(at, text)| label(&at, text))?;
    if lesson.predict.choices.len() < CHOICES {
        return predict.key("choices").refuse(format!("a prediction has {CHOICES} choices or more"));
    }
    of_sentence(&predict.key("answer"), &lesson.predict.answer)?;
    for (at, question) in top.each("quiz", &lesson.quiz) {
        at.key("ask").text(&question.ask)?;
        for (at, choice) in at.each("choices", &question.choices) {
            label(&at.key("say"), &choice.say)?;
            at.key("rationale").text(&choice.rationale)?;
        }
        let right = question.choices.iter().filter(|choice| choice.right).count();
        if question.choices.len() < CHOICES || right != 1 {
            let what = format!("a question has {CHOICES} answers or more, of which one is `right`");
            return at.key("choices").refuse(what);
        }
    }
    top.each("measured", &lesson.measured).try_for_each(|(at, measured)| of_sentence(&at, measured))?;
    let next = &lesson.next;
    top.key("next").once(next, None, |place| format!("the chapter `{}` stands there twice", next[place]))?;
    for (at, next) in top.each("next", next) {
        let known = top.document.names.chapters.iter().chain([&top.document.id]).map(String::as_str);
        at.known(next, known, format!("there is no chapter `{next}`"))?;
    }
    Ok(())
}

/// The text of a choice.
fn label(at: &At<'_>, text: &Text) -> Check {
    match text.is_measured() {
        true => at.refuse("a choice holds no values: it stands before they are shown"),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{HEAD, error, parse};

    const LESSON: &str = "\
lesson:
  learn: [What a costs.]
  know: [Nothing.]
  minutes: 5
  predict:
    ask: Which is more?
    choices: [This., That.]
    answer: {if: a > b, then: This., else: That., unclear: Open.}
  quiz:
    - ask: Which is right?
      choices:
        - {say: This., right: true, rationale: It is a.}
        - {say: That., rationale: It is not.}
  takeaways: [a is a.]
  measured: [{if: a > b, then: More., else: Less., unclear: Open.}]
  next: [overlap]
";

    #[test]
    fn a_lesson_is_read() {
        let lesson = parse(&format!("{HEAD}{LESSON}")).unwrap().lesson.unwrap();
        assert_eq!((lesson.quiz.len(), lesson.next.as_slice()), (1, &["overlap".to_owned()][..]));
    }

    #[test]
    fn what_is_wrong_with_a_lesson_is_said_with_its_place() {
        for (from, to, at, says) in [
            ("[overlap]", "[ovrelap]", "[ovrelap]", "there is no chapter `ovrelap`; did you mean `overlap`?"),
            ("right: true, ", "", "- {say: This.", "of which one is `right`"),
            ("{say: That., ", "{say: That., right: true, ", "- {say: This.", "of which one is `right`"),
            ("[overlap]", "[overlap, overlap]", "next:", "the chapter `overlap` stands there twice"),
            ("minutes: 5", "minutes: 0", "minutes", "found the number 0, expected a whole number from 1 to 255"),
            ("[a is a.]", "['It takes {{ 1 s }}.']", "takeaways", "an operator is missing before `s`"),
            ("[a is a.]", "['{{ (share * 2)|time }}']", "takeaways", "and `time` writes a time"),
            ("[This., That.]", "[This.]", "[This.]", "2 choices or more"),
            ("[This., That.]", "[This., '{{ a }}']", "[This., ", "a choice holds no values"),
            ("[a is a.]", "['{{ c }}']", "takeaways", "`c`"),
            ("measured: [{if: a", "measured: [{if: c", "measured", "`c`"),
            ("learn:", "laern:", "laern:", "`laern`"),
        ] {
            assert_eq!(LESSON.matches(from).count(), 1, "{from}");
            let changed = LESSON.replace(from, to);
            let line = 1 + format!("{HEAD}{changed}").lines().position(|line| line.contains(at)).unwrap();
            let message = error(&changed);
            assert!(message.starts_with(&format!("d.yaml:{line}:")) && message.contains(says), "{to}: {message}");
        }
    }
}
