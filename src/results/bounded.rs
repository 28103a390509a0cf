//! A value of any shape of a bounded size: in memory it takes many times the bytes of its text.

use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// The most values of a suite, its keys among them.
pub const MOST_VALUES: usize = 200_000;
/// The most bytes of its texts.
pub const MOST_BYTES: usize = 4 << 20;

/// Reads a value, which is refused as soon as it is too large.
///
/// # Errors
/// As of the deserializer; and what it has more of than it may.
pub(super) fn value<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
    Part(&mut Left { values: MOST_VALUES, bytes: MOST_BYTES }).deserialize(deserializer)
}

/// What may still come.
struct Left {
    values: usize,
    bytes: usize,
}

impl Left {
    fn take<E: Error>(&mut self, bytes: usize) -> Result<(), E> {
        let left = (self.values.checked_sub(1), self.bytes.checked_sub(bytes));
        let (Some(values), Some(bytes)) = left else {
            let (values, bytes) = (MOST_VALUES, MOST_BYTES >> 20);
            return Err(E::custom(format!(
                "a suite has {values} values and {bytes} MB of text at most, and this one has more"
            )));
        };
        *self = Self { values, bytes };
        Ok(())
    }
}

struct Part<'a>(&'a mut Left);

impl<'de> DeserializeSeed<'de> for Part<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Part<'_> {
    type Value = Value;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("a value")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        self.0.take(0).map(|()| value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        self.0.take(0).map(|()| value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        self.0.take(0).map(|()| value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        self.0.take(0).map(|()| Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        self.0.take(text.len()).map(|()| text.into())
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        self.0.take(0).map(|()| Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        self.0.take(0)?;
        let mut all = Vec::new();
        while let Some(item) = items.next_element_seed(Part(self.0))? {
            all.push(item);
        }
        Ok(Value::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        self.0.take(0)?;
        let mut all = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            self.0.take(key.len())?;
            all.insert(key, entries.next_value_seed(Part(self.0))?);
        }
        Ok(Value::Object(all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Value, String> {
        value(&mut serde_json::Deserializer::from_str(text)).map_err(|error| error.to_string())
    }

    #[test]
    fn a_value_is_what_it_is_and_one_without_end_is_refused_where_it_is_too_much() {
        let text = r#"{"a":[1,-2,0.5,null,true,"x",{"b":[]}],"c":18446744073709551615}"#;
        assert_eq!(read(text).unwrap(), serde_json::from_str::<Value>(text).unwrap());
        for text in [
            format!("[{}", "0,".repeat(MOST_VALUES + 1)),
            format!("[{}", r#"{"":[]},"#.repeat(MOST_VALUES / 3 + 1)),
            format!("[\"{}\"]", "x".repeat(MOST_BYTES + 1)),
            format!("{{\"{}\":0}}", "x".repeat(MOST_BYTES + 1)),
        ] {
            let refused = read(&text).unwrap_err();
            assert!(refused.contains("at most") && refused.contains("line 1 column"), "{refused}");
        }
    }
}
