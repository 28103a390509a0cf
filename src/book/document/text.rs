//! The texts that documents mirror, from the project's `texts.yaml`, and places in them.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;

use crate::error::FileError;
use crate::results::nearest;
use crate::units::counted;
use crate::yaml;

/// Texts by a short name.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct Texts(BTreeMap<String, PrintedText>);

/// A text.
#[derive(Clone, Debug, PartialEq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PrintedText {
    /// The file that it was read from.
    pub file: String,
    /// Its title.
    pub title: String,
    /// Its date, where it has one.
    pub date: Option<String>,
    /// How many lines the file has.
    pub lines: u32,
}

/// A place in a text, by its short name and lines: `003:92-94`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(try_from = "String")]
pub struct TextPlace {
    /// The short name of the text.
    pub text: String,
    /// The first line.
    pub first: u32,
    /// The last line.
    pub last: u32,
}

impl Texts {
    /// Reads texts from YAML. `origin` is the file's name in messages.
    ///
    /// # Errors
    /// The file does not describe texts; the message says where.
    pub fn parse(origin: &str, text: &str) -> Result<Self, FileError> {
        yaml::parse_filled(text, origin, None)
    }

    /// The text with this short name.
    pub fn get(&self, name: &str) -> Option<&PrintedText> {
        self.0.get(name)
    }

    /// The files of all texts.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.0.values().map(|text| text.file.as_str())
    }

    /// The text in this file.
    pub fn of_file(&self, file: &str) -> Option<&PrintedText> {
        self.0.values().find(|text| text.file == file)
    }

    /// What is wrong with a place, and what may have been meant.
    pub(super) fn unknown(&self, place: &TextPlace) -> Option<(String, String)> {
        let Some(text) = self.get(&place.text) else {
            return Some((format!("there is no text `{}`", place.text), nearest(&place.text, self.names())));
        };
        let outside = place.last > text.lines;
        outside.then(|| (format!("`{place}`: `{}` has {}", text.file, counted(text.lines, "line")), String::new()))
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

impl PrintedText {
    /// The title in quotation marks with the date, or that it has none.
    pub fn dated(&self) -> String {
        format!("“{}” ({})", self.title, self.date.as_deref().unwrap_or("undated"))
    }
}

impl TextPlace {
    /// The lines of places in one text, in words: `line 46`, `lines 92–94`, `lines 220, 235 and 464`.
    pub fn lines(places: &[&Self]) -> String {
        let range = |place: &&Self| match place.first == place.last {
            true => place.first.to_string(),
            false => format!("{}–{}", place.first, place.last),
        };
        let word = if matches!(places, [one] if one.first == one.last) { "line" } else { "lines" };
        let ranges: Vec<String> = places.iter().map(range).collect();
        match ranges.split_last() {
            Some((last, rest)) if !rest.is_empty() => format!("{word} {} and {last}", rest.join(", ")),
            _ => format!("{word} {}", ranges.concat()),
        }
    }

    fn of(written: &str) -> Option<Self> {
        let (text, lines) = written.split_once(':')?;
        let (first, last) = lines.split_once('-').unwrap_or((lines, lines));
        let (first, last) = (first.parse().ok()?, last.parse().ok()?);
        (!text.is_empty() && 0 < first && first <= last).then(|| Self { text: text.to_owned(), first, last })
    }
}

impl fmt::Display for TextPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { text, first, last } = self;
        if first == last { write!(f, "{text}:{first}") } else { write!(f, "{text}:{first}-{last}") }
    }
}

impl TryFrom<String> for TextPlace {
    type Error = String;

    fn try_from(written: String) -> Result<Self, String> {
        let wrong = || format!("`{written}` is no place: a text and its lines, as `003:92` or `003:92-94`");
        Self::of(&written).ok_or_else(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_text_and_a_range_of_lines() {
        let place = TextPlace::of("003:92-94").unwrap();
        assert_eq!(place.to_string(), "003:92-94");
        for wrong in ["003", "003:", ":4", "003:0", "003:9-4", "003:a", "003:1-2-3"] {
            assert_eq!(TextPlace::of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn places_in_one_text_are_said_as_its_lines() {
        let lines = |written: &[&str]| {
            let places: Vec<TextPlace> = written.iter().map(|place| TextPlace::of(place).unwrap()).collect();
            TextPlace::lines(&places.iter().collect::<Vec<&TextPlace>>())
        };
        assert_eq!(lines(&["000:46"]), "line 46");
        assert_eq!(lines(&["003:92-94"]), "lines 92–94");
        assert_eq!(lines(&["004:235", "004:464"]), "lines 235 and 464");
        assert_eq!(lines(&["004:220", "004:235-240", "004:464"]), "lines 220, 235–240 and 464");
    }

    #[test]
    fn a_place_behind_the_end_of_its_text_or_in_none_is_unknown() {
        let texts = Texts::parse("texts.yaml", "'003': {file: f.txt, title: T, lines: 9}\n").unwrap();
        let unknown = |written: &str| texts.unknown(&TextPlace::of(written).unwrap());
        assert_eq!(unknown("003:9"), None);
        assert_eq!(unknown("003:8-10").unwrap().0, "`003:8-10`: `f.txt` has 9 lines");
        assert_eq!(
            unknown("004:1").unwrap(),
            ("there is no text `004`".to_owned(), "; did you mean `003`?".to_owned())
        );
    }
}
