//! Reading YAML that a person wrote: what is wrong comes with its place, and an unknown name with the nearest known one.

mod events;
mod keys;
mod limits;
mod way;

use std::path::Path;

use serde::de::{DeserializeOwned, DeserializeSeed};
use serde_json::Value;

pub use way::Way;

use crate::error::{FileError, in_plain_words};
use crate::files::read_text;
use crate::nearest;

/// Keys of older programs with what stands in their place, where that key may stand.
const RENAMED: [(&str, &str); 8] = [
    ("on_cpu", "engines: {cpu: …}"),
    ("turns", "iterations"),
    ("turns", "iters"),
    ("stated", "published_with"),
    ("holds", "tests: [quantity < bound]"),
    ("predicate", "tests: [quantity < bound]"),
    ("because", "rationale"),
    ("says", "caption"),
];

/// A key of older programs that nothing stands in the place of.
const UNIT: (&str, &str) = ("unit", "; it is the unit of the row, which is not stated");

/// The most bytes of a suite, a document or a description of hardware.
const MOST_BYTES: usize = 1 << 20;

/// The text of a file.
///
/// # Errors
/// It cannot be read or is longer than what a person writes.
pub fn read(path: &Path) -> Result<String, FileError> {
    read_text(path, MOST_BYTES).map_err(|cause| FileError::Io { path: path.to_owned(), cause })
}

/// Reads a text; `origin` names it in errors.
///
/// # Errors
/// [`FileError::Invalid`] says where what is wrong.
pub fn parse<T: DeserializeOwned>(text: &str, origin: &str) -> Result<T, FileError> {
    check(without_mark(text), origin)?;
    read_checked(text, origin)
}

/// The content of a text in which nothing is left blank.
///
/// # Errors
/// As [`parse`].
pub fn content(text: &str, origin: &str) -> Result<Value, FileError> {
    let content = parse(text, origin)?;
    check_filled(&content, text, origin, None).map(|()| content)
}

/// Reads a text whose [`content`] was read, by a seed.
///
/// # Errors
/// As [`parse`].
pub fn parse_seed<'de, S: DeserializeSeed<'de>>(text: &'de str, origin: &str, seed: S) -> Result<S::Value, FileError> {
    let deserializer = serde_yaml::Deserializer::from_str(without_mark(text));
    seed.deserialize(deserializer).map_err(|error| invalid(&error, origin))
}

/// Reads a text in which nothing is left blank, but for the values below a key that `may_be_blank`.
///
/// # Errors
/// As [`parse`].
pub fn parse_filled<T: DeserializeOwned>(text: &str, origin: &str, may_be_blank: Option<&str>) -> Result<T, FileError> {
    let read = parse(text, origin)?;
    check_filled(&read_checked(text, origin)?, text, origin, may_be_blank).map(|()| read)
}

fn read_checked<T: DeserializeOwned>(text: &str, origin: &str) -> Result<T, FileError> {
    serde_yaml::from_str(without_mark(text)).map_err(|error| invalid(&error, origin))
}

/// Refuses a text whose content has a blank in it.
fn check_filled(content: &Value, text: &str, origin: &str, may_be_blank: Option<&str>) -> Result<(), FileError> {
    let is_wanted = |way: &Way, value: &Value| is_blank(value) && !may_be_blank.is_some_and(|key| way.leads_by(key));
    match Way::default().first(content, &is_wanted) {
        Some(way) => Err(way.error(text, origin, BLANK.to_owned(), String::new())),
        None => Ok(()),
    }
}

/// What is wrong where nothing stands.
const BLANK: &str = "nothing stands here: say what is meant, or leave the key out";

/// Whether a value says nothing.
fn is_blank(value: &Value) -> bool {
    value.is_null() || value.as_str().is_some_and(|text| text.trim().is_empty())
}

/// The text behind the mark of its encoding, which some editors put in front.
fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

fn check(text: &str, origin: &str) -> Result<(), FileError> {
    events::check(text).map_err(|(message, line, column)| {
        let (origin, hint) = (origin.to_owned(), String::new());
        FileError::Invalid { origin, line, column, message, hint }
    })
}

/// The parser's error with its place. Where one parser stood within another, the innermost place is the one that is meant.
fn invalid(error: &serde_yaml::Error, origin: &str) -> FileError {
    let text = error.to_string();
    let (message, inner) = without_places(&text);
    let outer = error.location().map(|location| (location.line(), location.column()));
    let (line, column) = inner.or(outer).unwrap_or((0, 0));
    let hint = hint(&message);
    let message = of_entry(one_way(&message));
    FileError::Invalid { origin: origin.to_owned(), line, column, message: in_plain_words(&message), hint }
}

/// A message of a part of a text that is a list as a whole, with the entry in words: `.[0].read: …` is `entry 1, read: …`.
fn of_entry(message: &str) -> String {
    let parts = message.strip_prefix(".[").and_then(|rest| rest.split_once(']'));
    let Some((number, (place, rest))) =
        parts.and_then(|(number, rest)| Some((number.parse::<usize>().ok()?, rest.split_once(':')?)))
    else {
        return message.to_owned();
    };
    let place = place.strip_prefix('.').map(|place| format!(", {place}")).unwrap_or_else(|| place.to_owned());
    format!("entry {}{place}:{rest}", number + 1)
}

/// A message with the longest of the ways to a value that parsers within parsers put before it: each begins with the one
/// before.
fn one_way(message: &str) -> &str {
    match message.split_once(": ") {
        Some((way, rest)) if rest.split_once(": ").is_some_and(|(inner, _)| inner.starts_with(way)) => one_way(rest),
        _ => message,
    }
}

/// A message without the places that parsers put behind it, and the first of these.
fn without_places(text: &str) -> (String, Option<(usize, usize)>) {
    const PLACE: &str = " at line ";
    let Some((message, rest)) = text.split_once(PLACE) else { return (text.to_owned(), None) };
    let mut numbers = rest.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok());
    (message.to_owned(), numbers.next().zip(numbers.next()))
}

/// What an unknown name may stand for: the name of today of one that was renamed, else the nearest of those that serde
/// lists as expected. serde puts every name in backticks, the unknown one first.
fn hint(message: &str) -> String {
    let Some(known) = message.find("unknown ").map(|start| &message[start..]) else { return String::new() };
    let mut names = known.split('`').skip(1).step_by(2);
    let Some(unknown) = names.next() else { return String::new() };
    let expected: Vec<&str> = names.collect();
    let may_stand = |new: &str| expected.iter().any(|name| new.split(':').next() == Some(name));
    match RENAMED.iter().find(|(old, new)| *old == unknown && may_stand(new)) {
        Some((_, new)) => format!("; it is called `{new}` now"),
        None if unknown == UNIT.0 => UNIT.1.to_owned(),
        None => nearest(unknown, expected.into_iter()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "a: &x\n  - {b: 1, c: [2, 3]}\nd:\n  - *x\n  - e: >\n      folded\n";

    #[test]
    fn an_error_in_a_list_says_which_entry_in_words() {
        #[derive(Debug, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        #[expect(dead_code, reason = "nothing of it is right")]
        struct Entry {
            title: String,
            #[serde(default)]
            read: Vec<u32>,
        }
        let said = |text: &str| parse::<Vec<Entry>>(text, "l.yaml").unwrap_err().to_string();
        let unknown = said("- {title: a}\n- {titel: b}\n");
        assert!(unknown.starts_with("l.yaml:2:4: entry 2: unknown field `titel`"), "{unknown}");
        let within = said("- title: a\n  read: [1, x]\n");
        assert!(within.contains(": entry 1, read[1]: "), "{within}");
    }

    #[test]
    fn an_error_names_no_type_of_the_program() {
        let said = |text: &str| parse::<std::collections::BTreeMap<String, std::num::NonZeroUsize>>(text, "a.yaml");
        let said = |text: &str| said(text).unwrap_err().to_string();
        assert!(said("a: many").ends_with("expected a whole number above 0"), "{}", said("a: many"));
        assert!(said("[]").ends_with("expected a mapping"), "{}", said("[]"));
    }

    #[test]
    fn of_ways_that_begin_with_each_other_the_longest_is_said() {
        assert_eq!(one_way("a[0]: a[0].b: a[0].b.c: invalid: 0"), "a[0].b.c: invalid: 0");
        assert_eq!(one_way("a: b: c"), "a: b: c");
        assert_eq!(one_way("a: invalid: b"), "a: invalid: b");
    }

    #[test]
    fn a_mark_of_the_encoding_changes_nothing() {
        let marked = format!("\u{feff}{TEXT}");
        let [plain, other] = [TEXT, &marked].map(|text| parse::<serde_json::Value>(text, "t.yaml").unwrap());
        assert_eq!(plain, other);
        assert_eq!(Way::default().key("a").place(&marked), Way::default().key("a").place(TEXT));
    }

    #[test]
    fn what_is_left_blank_is_refused_where_it_stands_unless_it_may_be() {
        let read = |text: &str| parse_filled::<Value>(text, "a.yaml", Some("free")).map_err(|error| error.to_string());
        assert!(read("a: b\nfree: {c: ~, d: ''}").is_ok());
        for (text, place) in
            [("a: b\nc: ''", "2:4"), ("a: [b,\n  '  ']", "2:3"), ("a:\n  b: ~", "2:6"), ("a:\nb: c", "1:3")]
        {
            let message = read(text).unwrap_err();
            assert!(message.starts_with(&format!("a.yaml:{place}: nothing stands here")), "{text:?}: {message}");
        }
    }
}
