//! The texts that documents mirror, from the project's `texts.yaml`, and places in them; and peak rates of hardware that
//! documents speak of, from `hardware.yaml`.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;

use crate::error::FileError;
use crate::in_order::listed;
use crate::results::nearest;
use crate::units::counted;
use crate::yaml::{self, Fault, Way};

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
            let hint = nearest(&place.text, self.0.keys().map(String::as_str));
            return Some((format!("there is no text `{}`", place.text), hint));
        };
        let outside = place.last > text.lines;
        outside.then(|| (format!("`{place}`: `{}` has {}", text.file, counted(text.lines, "line")), String::new()))
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
        format!("{word} {}", listed(&ranges))
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
        let place = || {
            let (text, lines) = written.split_once(':')?;
            let (first, last) = lines.split_once('-').unwrap_or((lines, lines));
            let (first, last) = (first.parse().ok()?, last.parse().ok()?);
            (!text.is_empty() && 0 < first && first <= last).then(|| Self { text: text.to_owned(), first, last })
        };
        place().ok_or_else(|| format!("`{written}` is no place: a text and its lines, as `003:92` or `003:92-94`"))
    }
}

/// Hardware by a short name.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct Hardware(BTreeMap<String, Chip>);

/// A chip's peak rates.
#[derive(Clone, Debug, PartialEq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Chip {
    /// Its full name.
    pub model: String,
    /// Where the rates come from.
    pub source: String,
    /// Operations per second, dense, by the type of the operands.
    pub rates: BTreeMap<String, f64>,
}

impl Hardware {
    /// Reads hardware from YAML. `origin` is the file's name in messages.
    ///
    /// # Errors
    /// The file does not describe hardware; the message says where.
    pub fn parse(origin: &str, text: &str) -> Result<Self, FileError> {
        let hardware: Self = yaml::parse_filled(text, origin, None)?;
        let mut rates = hardware.0.iter().flat_map(|(name, chip)| chip.rates.iter().map(move |rate| (name, rate)));
        match rates.find(|(_, (_, rate))| !(**rate > 0.0 && rate.is_finite())) {
            Some((name, (of, rate))) => {
                let way = Way::default().key(name).key("rates").key(of);
                let message = format!("a peak rate is more than 0 operations per second, and this is {rate}");
                Err(Fault::at(way, message).error(text, origin))
            }
            None => Ok(hardware),
        }
    }

    /// All chips, by the order of their short names.
    pub fn chips(&self) -> impl Iterator<Item = &Chip> {
        self.0.values()
    }

    /// The names of its rates: `h100.fp16`.
    pub fn names(&self) -> impl Iterator<Item = String> {
        self.0.iter().flat_map(|(name, chip)| chip.rates.keys().map(move |rate| format!("{name}.{rate}")))
    }

    /// The peak rate `rate` of the hardware `name`, in operations per second.
    pub fn peak(&self, name: &str, rate: &str) -> Option<f64> {
        self.0.get(name)?.rates.get(rate).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_text_and_a_range_of_lines() {
        let of = |written: &str| TextPlace::try_from(written.to_owned());
        let place = of("003:92-94").unwrap();
        assert_eq!(place.to_string(), "003:92-94");
        for wrong in ["003", "003:", ":4", "003:0", "003:9-4", "003:a", "003:1-2-3"] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn places_in_one_text_are_said_as_its_lines() {
        let lines = |written: &[&str]| {
            let places: Vec<TextPlace> =
                written.iter().map(|place| TextPlace::try_from((*place).to_owned()).unwrap()).collect();
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
        let unknown = |written: &str| texts.unknown(&TextPlace::try_from(written.to_owned()).unwrap());
        assert_eq!(unknown("003:9"), None);
        assert_eq!(unknown("003:8-10").unwrap().0, "`003:8-10`: `f.txt` has 9 lines");
        assert_eq!(
            unknown("004:1").unwrap(),
            ("there is no text `004`".to_owned(), "; did you mean `003`?".to_owned())
        );
    }

    #[test]
    fn a_rate_that_none_can_be_and_a_blank_are_refused_where_they_stand() {
        let error = |rate: &str| {
            let text = format!("chip: {{model: M, source: S, rates: {{fp16: {rate}}}}}\n");
            Hardware::parse("h.yaml", &text).unwrap_err().to_string()
        };
        for rate in ["0", "-1"] {
            assert!(error(rate).starts_with("h.yaml:1:43: a peak rate is more than 0"), "{}", error(rate));
        }
        assert!(error("fast").starts_with("h.yaml:1:43: "), "{}", error("fast"));
        let blank = Hardware::parse("h.yaml", "chip: {model: '', source: S, rates: {}}").unwrap_err().to_string();
        assert!(blank.starts_with("h.yaml:1:15: nothing stands here"), "{blank}");
    }
}
