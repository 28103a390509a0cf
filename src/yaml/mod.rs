//! Reading YAML that a person wrote: what is wrong comes with its place, and an unknown name with the nearest known one.

mod limits;

use std::path::Path;

use serde::de::{DeserializeOwned, DeserializeSeed};

use crate::error::FileError;
use crate::files::read_text;
use crate::results::nearest;

/// Keys of older programs with what stands in their place.
const RENAMED: [(&str, &str); 9] = [
    ("on_cpu", "engines: {cpu: …}"),
    ("turns", "iterations"),
    ("stated", "published_with"),
    ("holds", "predicate"),
    ("because", "rationale"),
    ("says", "caption"),
    ("needs", "engine"),
    ("then", "if_true"),
    ("unit", "the unit of the row, which is not stated"),
];

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
    check(text, origin)?;
    seed.deserialize(serde_yaml::Deserializer::from_str(text)).map_err(|error| invalid(&error, origin))
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
    FileError::Invalid { origin: origin.to_owned(), line, column, message, hint }
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
    match RENAMED.iter().find(|(old, _)| *old == unknown) {
        Some((_, new)) => format!("; it is called `{new}` now"),
        None => nearest(unknown, names),
    }
}
