//! Ways to the parts of a YAML text, and where they lead.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::without_mark;
use crate::error::FileError;

/// The way from the whole of a text to one of its parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Way(Vec<Step>);

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
    pub fn key(&self, key: &str) -> Self {
        self.on(Step::Key(key.to_owned()))
    }

    /// On to an item of a list, from 0.
    pub fn item(&self, item: usize) -> Self {
        self.on(Step::Item(item))
    }

    /// On to a key itself.
    pub fn name(&self, key: &str) -> Self {
        self.on(Step::Name(key.to_owned()))
    }

    fn on(&self, step: Step) -> Self {
        Self(self.0.iter().cloned().chain([step]).collect())
    }

    /// Whether it leads by the value of this key.
    pub(crate) fn leads_by(&self, key: &str) -> bool {
        self.0.iter().any(|step| matches!(step, Step::Key(own) if own == key))
    }

    /// On to the first of the values within `value`, or to itself, that is wanted.
    pub fn first(&self, value: &Value, is_wanted: &impl Fn(&Self, &Value) -> bool) -> Option<Self> {
        let mut way = self.clone();
        way.go_to_first(value, is_wanted).then_some(way)
    }

    /// Goes on to it, or stays where none is.
    fn go_to_first(&mut self, value: &Value, is_wanted: &impl Fn(&Self, &Value) -> bool) -> bool {
        if is_wanted(self, value) {
            return true;
        }
        let mut is_within = |step: Step, value: &Value| {
            self.0.push(step);
            let is_found = self.go_to_first(value, is_wanted);
            if !is_found {
                self.0.pop();
            }
            is_found
        };
        match value {
            Value::Array(items) => items.iter().enumerate().any(|(place, item)| is_within(Step::Item(place), item)),
            Value::Object(map) => map.iter().any(|(key, value)| is_within(Step::Key(key.clone()), value)),
            _ => false,
        }
    }

    /// What is wrong where it leads to in a text, which `origin` names.
    pub fn error(&self, text: &str, origin: &str, message: String, hint: String) -> FileError {
        let (line, column) = self.place(text).unwrap_or_default();
        FileError::Invalid { origin: origin.to_owned(), line, column, message, hint }
    }

    /// Where it leads to in a text, as line and column from 1.
    pub fn place(&self, text: &str) -> Option<(usize, usize)> {
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
    fn a_way_leads_to_the_line_and_column_of_a_value_or_a_key() {
        let item = Way::default().key("a").item(0);
        assert_eq!(item.key("c").item(1).place(TEXT), Some((2, 19)));
        assert_eq!(item.key("b").place(TEXT), Some((2, 9)));
        assert_eq!(item.name("c").place(TEXT), Some((2, 12)));
        assert_eq!(Way::default().key("d").item(1).key("e").place(TEXT), Some((5, 8)));
    }

    #[test]
    fn an_alias_leads_to_what_it_stands_for() {
        assert_eq!(Way::default().key("d").item(0).item(0).key("b").place(TEXT), Some((2, 9)));
    }

    #[test]
    fn the_first_part_that_is_wanted_is_found_with_its_way() {
        let content = serde_json::json!({ "a": [1, { "b": "" }], "c": "" });
        let blank = |_: &Way, value: &Value| value == "";
        assert_eq!(Way::default().first(&content, &blank), Some(Way::default().key("a").item(1).key("b")));
        let elsewhere = |way: &Way, value: &Value| value == "" && !way.leads_by("a");
        assert_eq!(Way::default().first(&content, &elsewhere), Some(Way::default().key("c")));
    }
}
