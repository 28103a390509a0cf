//! Ways to the parts of a YAML text, and where they lead.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_saphyr::{Location, Spanned, with_deserializer_from_str_with_options};

use super::options;

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
    pub(super) fn leads_by(&self, key: &str) -> bool {
        self.0.iter().any(|step| matches!(step, Step::Key(own) if own == key))
    }

    /// On to the first of the values within `value`, or to itself, that is wanted.
    pub fn first(&self, value: &Value, is_wanted: &impl Fn(&Self, &Value) -> bool) -> Option<Self> {
        match value {
            _ if is_wanted(self, value) => Some(self.clone()),
            Value::Array(items) => (0..).zip(items).find_map(|(place, item)| self.item(place).first(item, is_wanted)),
            Value::Object(map) => map.iter().find_map(|(key, value)| self.key(key).first(value, is_wanted)),
            _ => None,
        }
    }

    /// What is wrong where it leads to, behind it in words.
    pub(super) fn before(&self, message: &str) -> String {
        if self.0.is_empty() { message.to_owned() } else { format!("{}: {message}", self.in_words()) }
    }

    /// It in words: `entry 1, read[2]`, where it begins at a list, or `read[2].name`.
    pub fn in_words(&self) -> String {
        self.0.iter().enumerate().fold(String::new(), |words, (place, step)| match step {
            Step::Item(item) if place == 0 => format!("entry {}", item + 1),
            Step::Item(item) => format!("{words}[{item}]"),
            Step::Key(key) | Step::Name(key) => match self.0.first() {
                _ if place == 0 => key.clone(),
                Some(Step::Item(_)) if place == 1 => format!("{words}, {key}"),
                _ => format!("{words}.{key}"),
            },
        })
    }

    /// Where it leads to in a text, as line and column from 1.
    pub fn place(&self, text: &str) -> Option<(usize, usize)> {
        let walked = with_deserializer_from_str_with_options(text, options(), |whole| Walk(&self.0).deserialize(whole));
        walked.ok().flatten().map(|place| (place.line() as usize, place.column() as usize))
    }
}

/// Walks the rest of a way, and says where its end is.
struct Walk<'a>(&'a [Step]);

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = Option<Location>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        match self.0 {
            [] => Spanned::<IgnoredAny>::deserialize(deserializer).map(|end| Some(end.defined)),
            _ => deserializer.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = Option<Location>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the way to go on")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(key) = map.next_key::<Spanned<String>>()? {
            match self.0.split_first() {
                Some((Step::Key(wanted), rest)) if *wanted == key.value => found = map.next_value_seed(Walk(rest))?,
                Some((Step::Name(wanted), _)) if *wanted == key.value => {
                    found = Some(key.defined);
                    map.next_value::<IgnoredAny>()?;
                }
                _ => _ = map.next_value::<IgnoredAny>()?,
            }
        }
        Ok(found)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let (mut found, mut place) = (None, 0);
        loop {
            let is_there = match self.0.split_first() {
                Some((Step::Item(wanted), rest)) if *wanted == place => {
                    found = items.next_element_seed(Walk(rest))?.flatten();
                    found.is_some()
                }
                _ => items.next_element::<IgnoredAny>()?.is_some(),
            };
            if !is_there {
                return Ok(found);
            }
            place += 1;
        }
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
        assert_eq!(Way::default().key("d").item(1).key("e").place(TEXT), Some((6, 7)));
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
