//! What a lesson names: values, one right answer to each question, and chapters that there are.

use super::super::Text;
use super::at::At;
use super::sentence::of_sentence;
use crate::error::FileError;

/// The fewest answers that leave something to choose.
const CHOICES: usize = 2;

/// Finds the first thing that is wrong with the lesson of a document, where it has one.
pub(super) fn check(top: &At<'_>) -> Result<(), FileError> {
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
    top.key("next")
        .once(lesson.next.iter(), None, |place| format!("the chapter `{}` stands there twice", lesson.next[place]))?;
    let own = std::iter::once(top.document.id.as_str());
    for (at, next) in top.each("next", &lesson.next) {
        let known = top.document.names.chapters.iter().map(String::as_str).chain(own.clone());
        at.known(next, known, || format!("there is no chapter `{next}`"))?;
    }
    Ok(())
}

/// The text of a choice.
fn label(at: &At<'_>, text: &Text) -> Result<(), FileError> {
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
