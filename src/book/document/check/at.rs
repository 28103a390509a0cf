//! Where in the text of a document something is wrong.

use super::super::super::predicate::{Checked, UnknownName};
use super::super::{Document, Text};
use super::Check;
use crate::error::FileError;
use crate::results::{Dimension, Expression, Parameters, UnknownParameter, nearest};
use crate::yaml::{Fault, Way};

/// A place in the text that a document was read from, where something may be wrong.
#[derive(Clone)]
pub(super) struct At<'a> {
    pub(super) document: &'a Document,
    origin: &'a str,
    text: &'a str,
    way: Way,
    /// What stands before each message: which claim or figure it is about.
    about: String,
}

impl<'a> At<'a> {
    /// The whole text of a document, whose file messages call `origin`.
    pub(super) fn of(document: &'a Document, origin: &'a str, text: &'a str) -> Self {
        Self { document, origin, text, way: Way::default(), about: String::new() }
    }

    /// The value of a key.
    pub(super) fn key(&self, key: &str) -> Self {
        Self { way: self.way.key(key), ..self.clone() }
    }

    /// An item of a list.
    pub(super) fn item(&self, item: usize) -> Self {
        Self { way: self.way.item(item), ..self.clone() }
    }

    /// A key itself.
    pub(super) fn name(&self, key: &str) -> Self {
        Self { way: self.way.name(key), ..self.clone() }
    }

    /// The items of a list that stands under a key.
    pub(super) fn each<'b, T>(&self, key: &str, all: &'b [T]) -> impl Iterator<Item = (Self, &'b T)> + use<'a, 'b, T> {
        let list = self.key(key);
        all.iter().enumerate().map(move |(place, item)| (list.item(place), item))
    }

    /// The same place, with words before each message.
    pub(super) fn about(self, about: String) -> Self {
        Self { about, ..self }
    }

    /// Says what is wrong here.
    pub(super) fn refuse<T>(&self, what: impl AsRef<str>) -> Result<T, FileError> {
        self.refuse_for(what, String::new())
    }

    /// Says what is wrong here, and what may have been meant.
    pub(super) fn refuse_for<T>(&self, what: impl AsRef<str>, hint: String) -> Result<T, FileError> {
        let (way, message) = (self.way.clone(), format!("{}{}", self.about, what.as_ref()));
        Err(Fault { way, message, hint }.error(self.text, self.origin))
    }

    /// Refuses a name that stands here and is none of those that are known.
    pub(super) fn known<'n>(&self, name: &str, known: impl IntoIterator<Item = &'n str>, what: String) -> Check {
        let known: Vec<&str> = known.into_iter().collect();
        if known.contains(&name) { Ok(()) } else { self.refuse_for(what, nearest(name, known.into_iter())) }
    }

    /// Refuses the first item of the list here that is like one before it.
    pub(super) fn once<T: PartialEq>(&self, items: &[T], key: Option<&str>, what: impl Fn(usize) -> String) -> Check {
        let Some(place) = (1..items.len()).find(|place| items[..*place].contains(&items[*place])) else {
            return Ok(());
        };
        let item = self.item(place);
        key.map_or(item.clone(), |key| item.key(key)).refuse(what(place))
    }

    /// Refuses a parameter, of those here, that none of some rows has.
    pub(super) fn parameters(&self, ids: &[&str], select: &Parameters, whose: &str) -> Check {
        let Some(UnknownParameter { name, value, hint }) = self.document.names.rows.unknown_parameter(ids, select)
        else {
            return Ok(());
        };
        match value {
            Some(value) => self.key(&name).refuse_for(format!("{whose} a `{name}` that is `{value}`"), hint),
            None => self.name(&name).refuse_for(format!("{whose} a parameter `{name}`"), hint),
        }
    }

    /// Refuses a parameter that stands here by its name and that none of some rows has.
    pub(super) fn parameter(&self, ids: &[&str], name: &str, what: String) -> Check {
        self.known(name, self.document.names.rows.parameters(ids).keys().copied(), what)
    }

    /// Refuses cases that are both named, as `cases` says of what, and taken from the results by the values of a parameter `each`;
    /// and such a parameter that none of some rows has.
    pub(super) fn each_value(&self, ids: &[&str], each: Option<&str>, cases: Option<&str>, whose: &str) -> Check {
        match (each, cases) {
            (None, _) => Ok(()),
            (Some(each), None) => self.key("each").parameter(ids, each, format!("{whose} a parameter `{each}`")),
            (Some(_), Some(what)) => {
                let what = format!("{what} has `cases` and `each`: the cases are named, or taken from the results");
                self.name("each").refuse(what)
            }
        }
    }

    /// Refuses the text here where an expression in it is none, or names what there is not.
    pub(super) fn text(&self, text: &Text) -> Check {
        text.check(self.document).map_err(|unknown| self.unknown(unknown))
    }

    /// The unit of the expression here: each of its names is one that there is, and stands for one row.
    pub(super) fn expression(&self, expression: &Expression) -> Result<Dimension, FileError> {
        let checked = Checked::of(expression, self.document, &[Parameters::new()], None);
        Ok(checked.map_err(|unknown| self.unknown(unknown))?.dimension)
    }

    /// An error for a name in the text here that stands for nothing.
    pub(super) fn unknown(&self, unknown: UnknownName) -> FileError {
        let UnknownName { name, message, hint } = unknown;
        let place = self.way.place(self.text).unwrap_or_default();
        let (line, column) = name.and_then(|name| self.word(&name, place)).unwrap_or(place);
        let (origin, message) = (self.origin.to_owned(), format!("{}{message}", self.about));
        FileError::Invalid { origin, line, column, message, hint }
    }

    /// Where `name` stands as a whole word, from a place on.
    fn word(&self, name: &str, (line, column): (usize, usize)) -> Option<(usize, usize)> {
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_');
        let lines = self.text.lines().enumerate().skip(line.checked_sub(1)?);
        for (place, text) in lines {
            let from = if place + 1 == line { text.char_indices().nth(column - 1).map_or(0, |(at, _)| at) } else { 0 };
            let whole = |at: &usize| {
                let (before, after) = (&text[..*at], &text[at + name.len()..]);
                !before.ends_with(is_part) && !after.starts_with(is_part)
            };
            if let Some(at) = text[from..].match_indices(name).map(|(at, _)| at + from).find(whole) {
                return Some((place + 1, text[..at].chars().count() + 1));
            }
        }
        None
    }
}
