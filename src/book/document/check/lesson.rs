//! What a lesson names: values, one right answer to each question, and chapters that there are.

use super::super::{Document, Text};
use super::sentence::of_sentence;
use super::{Source, twice};
use crate::error::FileError;
use crate::results::nearest;
use crate::yaml::Way;

/// The fewest answers that leave something to choose.
const CHOICES: usize = 2;

/// Finds the first thing that is wrong with the lesson of a document, where it has one.
pub(super) fn check(document: &Document, source: &Source<'_>) -> Result<(), FileError> {
    let Some(lesson) = &document.lesson else { return Ok(()) };
    let top = Way::default().key("lesson");
    for (keys, text) in lesson.texts() {
        check_text(document, &way_of(&top, keys), text, source)?;
    }
    if let Some((keys, _)) = lesson.labels().find(|(_, text)| text.is_measured()) {
        let message = "a choice holds no values: it stands before they are shown".to_owned();
        return Err(source.error(&way_of(&top, keys), message, String::new()));
    }
    of_sentence(document, &top.key("predict").key("answer"), &lesson.predict.answer, source)?;
    for (place, measured) in lesson.measured.iter().enumerate() {
        of_sentence(document, &top.key("measured").item(place), measured, source)?;
    }
    for (place, question) in lesson.quiz.iter().enumerate() {
        let way = top.key("quiz").item(place);
        let right = question.choices.iter().filter(|choice| choice.right).count();
        if question.choices.len() < CHOICES || right != 1 {
            let message = format!("a question has {CHOICES} answers or more, of which one is `right`");
            return Err(source.error(&way.key("choices"), message, String::new()));
        }
    }
    if lesson.predict.choices.len() < CHOICES {
        let message = format!("a prediction has {CHOICES} choices or more");
        return Err(source.error(&top.key("predict").key("choices"), message, String::new()));
    }
    if let Some(place) = twice(lesson.next.iter()) {
        let message = format!("the chapter `{}` stands there twice", lesson.next[place]);
        return Err(source.error(&top.key("next").item(place), message, String::new()));
    }
    let known = &document.names.chapters;
    for (place, next) in lesson.next.iter().enumerate() {
        if !known.contains(next) && *next != document.id {
            let message = format!("there is no chapter `{next}`");
            let hint = nearest(next, known.iter().map(String::as_str));
            return Err(source.error(&top.key("next").item(place), message, hint));
        }
    }
    Ok(())
}

fn way_of(top: &Way, keys: Vec<(&str, Option<usize>)>) -> Way {
    keys.into_iter().fold(top.clone(), |way, (key, place)| {
        let way = way.key(key);
        place.map_or(way.clone(), |place| way.item(place))
    })
}

fn check_text(document: &Document, way: &Way, text: &Text, source: &Source<'_>) -> Result<(), FileError> {
    text.check(document).map_err(|unknown| source.unknown(way, "", unknown))
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
