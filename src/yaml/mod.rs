//! Reading YAML that a person wrote: what is wrong comes with its place, and an unknown name with the nearest known one.

mod limits;

use std::fmt;
use std::path::Path;

use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::error::{FileError, in_plain_words};
use crate::files::read_text;
use crate::results::nearest;

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
pub(crate) fn read(path: &Path) -> Result<String, FileError> {
    read_text(path, MOST_BYTES).map_err(|source| FileError::Io { path: path.to_owned(), source })
}

/// Reads a text; `origin` names it in errors.
///
/// # Errors
/// [`FileError::Invalid`] says where what is wrong.
pub(crate) fn parse<T: DeserializeOwned>(text: &str, origin: &str) -> Result<T, FileError> {
    let text = without_mark(text);
    check(text, origin)?;
    serde_yaml::from_str(text).map_err(|error| invalid(&error, origin))
}

/// Reads a text by a seed.
///
/// # Errors
/// As [`parse`].
pub(crate) fn parse_seed<'de, S: DeserializeSeed<'de>>(
    text: &'de str,
    origin: &str,
    seed: S,
) -> Result<S::Value, FileError> {
    let text = without_mark(text);
    check(text, origin)?;
    seed.deserialize(serde_yaml::Deserializer::from_str(text)).map_err(|error| invalid(&error, origin))
}

/// The text behind the mark of its encoding, which some editors put in front.
fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

fn check(text: &str, origin: &str) -> Result<(), FileError> {
    limits::check(text).map_err(|(message, line, column)| {
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
    let message = one_way(&message);
    FileError::Invalid { origin: origin.to_owned(), line, column, message: in_plain_words(message), hint }
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

/// The way from the whole of a text to one of its parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Way(Vec<Step>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    /// The value of a key.
    Key(String),
    /// An item of a list, from 0.
    Item(usize),
    /// A key itself.
    Name(String),
}

impl Way {
    /// On to the value of a key.
    pub(crate) fn key(&self, key: &str) -> Self {
        self.on(Step::Key(key.to_owned()))
    }

    /// On to an item of a list, from 0.
    pub(crate) fn item(&self, item: usize) -> Self {
        self.on(Step::Item(item))
    }

    /// On to a key itself.
    pub(crate) fn name(&self, key: &str) -> Self {
        self.on(Step::Name(key.to_owned()))
    }

    fn on(&self, step: Step) -> Self {
        Self(self.0.iter().cloned().chain([step]).collect())
    }

    /// Where it leads to in a text, as line and column from 1.
    pub(crate) fn place(&self, text: &str) -> Option<(usize, usize)> {
        // The parser says a place with every error: at the end of the way there is one.
        let error = Walk(&self.0).deserialize(serde_yaml::Deserializer::from_str(without_mark(text))).err()?;
        error.location().map(|location| (location.line(), location.column()))
    }
}

/// Walks the rest of a way, and fails at its end.
struct Walk<'a>(&'a [Step]);

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the way to go on")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        match self.0.split_first() {
            Some((Step::Key(wanted), rest)) => {
                while let Some(key) = map.next_key::<String>()? {
                    if key == *wanted {
                        return map.next_value_seed(Walk(rest));
                    }
                    map.next_value::<IgnoredAny>()?;
                }
            }
            Some((Step::Name(wanted), _)) => {
                while map.next_key_seed(Unless(wanted))?.is_some() {
                    map.next_value::<IgnoredAny>()?;
                }
            }
            Some((Step::Item(_), _)) | None => {}
        }
        Err(A::Error::custom("here"))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        if let Some((Step::Item(wanted), rest)) = self.0.split_first() {
            for _ in 0..*wanted {
                seq.next_element::<IgnoredAny>()?;
            }
            seq.next_element_seed(Walk(rest))?;
        }
        Err(A::Error::custom("here"))
    }
}

/// Reads a key, and fails at the one that is wanted.
struct Unless<'a>(&'a str);

impl<'de> DeserializeSeed<'de> for Unless<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Unless<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<(), E> {
        if key == self.0 { Err(E::custom("here")) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "a: &x\n  - {b: 1, c: [2, 3]}\nd:\n  - *x\n  - e: >\n      folded\n";

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
    fn a_way_leads_to_the_line_and_column_of_a_value_or_a_key() {
        let item = Way::default().key("a").item(0);
        assert_eq!(item.key("c").item(1).place(TEXT), Some((2, 19)));
        assert_eq!(item.key("b").place(TEXT), Some((2, 9)));
        assert_eq!(item.name("c").place(TEXT), Some((2, 12)));
        assert_eq!(Way::default().key("d").item(1).key("e").place(TEXT), Some((5, 8)));
    }

    #[test]
    fn a_mark_of_the_encoding_changes_nothing() {
        let marked = format!("\u{feff}{TEXT}");
        let [plain, other] = [TEXT, &marked].map(|text| parse::<serde_json::Value>(text, "t.yaml").unwrap());
        assert_eq!(plain, other);
        assert_eq!(Way::default().key("a").place(&marked), Way::default().key("a").place(TEXT));
    }

    #[test]
    fn an_alias_leads_to_what_it_stands_for() {
        assert_eq!(Way::default().key("d").item(0).item(0).key("b").place(TEXT), Some((2, 9)));
    }
}
