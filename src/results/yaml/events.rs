//! What is refused of a YAML text before anything is built of it: the parser's events, one after the other.

use saphyr_parser::{Event, Parser, ScalarStyle, Tag};

use super::keys::Keys;
use super::limits::Count;

/// What is wrong, and its line and column, from 1.
pub(super) type Refusal = (String, usize, usize);

/// Refuses a text that is no YAML, that is too large, that says one thing twice, or that says it in a way that is not read.
pub(super) fn check(text: &str) -> Result<(), Refusal> {
    let (mut count, mut keys, mut documents) = (Count::default(), Keys::default(), 0);
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| {
            let place = error.marker();
            (error.info().to_owned(), place.line(), place.col() + 1)
        })?;
        let (line, column) = (span.start.line(), span.start.col() + 1);
        documents += usize::from(matches!(event, Event::DocumentStart(_)));
        count
            .take(&event)
            .and_then(|()| keys.take(&event, line))
            .and_then(|()| match (tag(&event), documents > 1) {
                _ if is_infinite(&event) => Err("a number has an end, and this one has none".to_owned()),
                (Some(tag), _) => Err(format!("the tag `!{}` has no meaning here: write the value alone", tag.suffix)),
                (None, true) => Err("a second YAML document begins: a file holds one".to_owned()),
                (None, false) => Ok(()),
            })
            .map_err(|message| (message, line, column))?;
    }
    Ok(())
}

/// Whether it is one of YAML's words for infinity and for what is no number.
fn is_infinite(event: &Event<'_>) -> bool {
    let Event::Scalar(text, ScalarStyle::Plain, ..) = event else { return false };
    let text = text.strip_prefix(['+', '-']).unwrap_or(text);
    [".inf", ".nan"].iter().any(|word| text.eq_ignore_ascii_case(word))
}

fn tag<'a>(event: &'a Event<'_>) -> Option<&'a Tag> {
    match event {
        Event::Scalar(.., tag) | Event::SequenceStart(.., tag) | Event::MappingStart(.., tag) => tag.as_deref(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_person_writes_passes() {
        for text in [
            include_str!("../../../book/suites/full.yaml"),
            include_str!("../../../book/hardware.yaml"),
            "--- # one\na: &x [1, 2]\nb: *x\nc: {d: *x, '': {a: 1}}\n",
            "[{a: 1}, {a: 1}]",
            "",
        ] {
            assert_eq!(check(text), Ok(()));
        }
    }

    #[test]
    fn a_tag_a_second_document_and_infinity_are_refused_where_they_stand() {
        for (text, line, says) in [
            ("a: !!str 5", 1, "the tag `!str`"),
            ("a:\n- !unit [5]", 2, "the tag `!unit`"),
            ("a: 1\n---\na: 2", 2, "a second YAML document"),
            ("a: [1,\n -.INF]", 2, "a number has an end"),
        ] {
            let (message, at, _) = check(text).unwrap_err();
            assert!(message.contains(says) && at == line, "{text}: {at}: {message}");
        }
    }
}
