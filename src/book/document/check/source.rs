//! Where in the text of a document something is wrong.

use super::super::super::predicate::UnknownName;
use crate::error::FileError;
use crate::results::UnknownParameter;
use crate::yaml::Way;

/// The text that a document was read from, to say where in it something is wrong.
pub(super) struct Source<'a> {
    pub(super) origin: &'a str,
    pub(crate) text: &'a str,
}

impl Source<'_> {
    /// What is wrong at the end of a way.
    pub(super) fn error(&self, way: &Way, message: String, hint: String) -> FileError {
        way.error(self.text, self.origin, message, hint)
    }

    pub(super) fn no_name(&self, way: &Way, id: &str) -> FileError {
        let message = format!("`{id}` is no identifier: lower-case letters, digits and hyphens");
        self.error(way, message, String::new())
    }

    /// A parameter, of those at the end of a way, that is unknown.
    pub(super) fn parameter(&self, way: &Way, whose: &str, unknown: UnknownParameter) -> FileError {
        let UnknownParameter { name, value, hint } = unknown;
        match value {
            Some(value) => self.error(&way.key(&name), format!("{whose} a `{name}` that is `{value}`"), hint),
            None => self.error(&way.name(&name), format!("{whose} a parameter `{name}`"), hint),
        }
    }

    /// A name that stands for nothing, in the text at the end of a way.
    pub(super) fn unknown(&self, way: &Way, before: &str, unknown: UnknownName) -> FileError {
        if unknown.is_of_id {
            return self.error(&Way::default().key("id"), unknown.message, unknown.hint);
        }
        let error = self.error(way, format!("{before}{}", unknown.message), unknown.hint);
        match (error, unknown.name) {
            (FileError::Invalid { origin, line, column, message, hint }, Some(name)) => {
                let (line, column) = self.word(&name, (line, column)).unwrap_or((line, column));
                FileError::Invalid { origin, line, column, message, hint }
            }
            (error, _) => error,
        }
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
