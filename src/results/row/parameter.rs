//! The parameters of a row: what it was measured with.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::hash::{Hash, Hasher};

use serde::de::{Deserializer, Error, MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The parameters of a row, by name.
pub type Parameters = BTreeMap<String, Parameter>;

/// Parameters in words: `dtype fp16, size 512`; empty for none.
pub fn in_words(parameters: &Parameters) -> String {
    parameters.iter().map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>().join(", ")
}

/// An identifier and, in brackets, parameters.
///
/// ```
/// use syncscope_results::{Parameters, titled};
///
/// let parameters = Parameters::from([("size".to_owned(), 512_usize.into())]);
/// assert_eq!(titled("matmul.time", &parameters), "matmul.time (size 512)");
/// ```
pub fn titled(id: &str, parameters: &Parameters) -> String {
    if parameters.is_empty() { id.to_owned() } else { format!("{id} ({})", in_words(parameters)) }
}

/// Whether `id` is `name` or begins with it and a dot.
///
/// ```
/// use syncscope_results::begins;
///
/// assert!(begins("overlap.finish", "overlap") && !begins("overlapping.finish", "overlap"));
/// ```
pub fn begins(id: &str, name: &str) -> bool {
    id.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// The value of a parameter.
///
/// ```
/// use syncscope_results::Parameter;
///
/// assert_eq!(Parameter::from(512_usize).number(), Some(512.0));
/// assert_eq!(Parameter::from("fp16").to_string(), "fp16");
/// ```
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum Parameter {
    /// A size or count.
    Integer(u64),
    /// A factor or duration.
    Number(f64),
    /// A name: a dtype, a kind of memory.
    Text(String),
}

impl Parameter {
    /// The value as a number, where it is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Parameter::Integer(value) => Some(*value as f64),
            Parameter::Number(value) => Some(*value),
            Parameter::Text(_) => None,
        }
    }

    /// What numbers share that are as large: 0 has two signs.
    fn size(&self) -> Option<u64> {
        self.number().map(|number| (number + 0.0).to_bits())
    }
}

/// The values that each parameter has among these, each once, as they come.
pub(in super::super) fn values<'a>(
    all: impl Iterator<Item = (&'a String, &'a Parameter)>,
) -> BTreeMap<&'a str, Vec<&'a Parameter>> {
    let mut seen = HashSet::new();
    let mut found: BTreeMap<&str, Vec<&Parameter>> = BTreeMap::new();
    for (name, value) in all {
        if seen.insert((name, value)) {
            found.entry(name).or_default().push(value);
        }
    }
    found
}

/// Reads parameters of which each stands there once: a map would keep the last of several and say nothing.
pub(in super::super) fn each_once<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Parameters, D::Error> {
    deserializer.deserialize_map(EachOnce)
}

struct EachOnce;

impl<'de> Visitor<'de> for EachOnce {
    type Value = Parameters;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("parameters by their names")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Parameters, A::Error> {
        let mut parameters = Parameters::new();
        while let Some(name) = map.next_key::<String>()? {
            if parameters.contains_key(&name) {
                return Err(A::Error::custom(format!("the parameter `{name}` stands twice")));
            }
            parameters.insert(name, map.next_value()?);
        }
        Ok(parameters)
    }
}

/// Numbers are equal that are as large, however they are written.
impl PartialEq for Parameter {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Parameter::Text(one), Parameter::Text(other)) => one == other,
            (Parameter::Integer(one), Parameter::Integer(other)) => one == other,
            _ => self.size().is_some() && self.size() == other.size(),
        }
    }
}

impl Eq for Parameter {}

impl Hash for Parameter {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Parameter::Text(text) => text.hash(state),
            number => number.size().hash(state),
        }
    }
}

/// Says of anything else what was expected where it stands.
impl<'de> Deserialize<'de> for Parameter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        const EXPECTED: &str = "a number or a name, in quotation marks where it would be read as something else";
        let found = match Value::deserialize(deserializer)? {
            Value::String(text) => return Ok(Parameter::Text(text)),
            Value::Number(number) => match (number.as_u64(), number.as_f64()) {
                (Some(integer), _) => return Ok(Parameter::Integer(integer)),
                (_, number) => return Ok(Parameter::Number(number.unwrap_or(f64::NAN))),
            },
            Value::Bool(value) => Unexpected::Bool(value),
            Value::Null => Unexpected::Unit,
            Value::Array(_) => Unexpected::Seq,
            Value::Object(_) => Unexpected::Map,
        };
        Err(D::Error::invalid_type(found, &EXPECTED))
    }
}

/// Numbers by size and before words, words as they come.
pub fn by_size(a: &Parameter, b: &Parameter) -> Ordering {
    match (a.number(), b.number()) {
        (Some(a), Some(b)) => a.total_cmp(&b),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => Ordering::Equal,
    }
}

impl From<usize> for Parameter {
    fn from(value: usize) -> Self {
        Parameter::Integer(value as u64)
    }
}

impl From<f64> for Parameter {
    fn from(value: f64) -> Self {
        Parameter::Number(value)
    }
}

impl From<&str> for Parameter {
    fn from(value: &str) -> Self {
        Parameter::Text(value.to_owned())
    }
}

impl From<String> for Parameter {
    fn from(value: String) -> Self {
        Parameter::Text(value)
    }
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Parameter::Integer(value) => write!(f, "{value}"),
            Parameter::Number(value) => write!(f, "{value}"),
            Parameter::Text(value) => f.write_str(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_that_are_equal_are_one_in_a_set() {
        let equal = [
            [Parameter::Integer(5), Parameter::Number(5.0)],
            [Parameter::Number(0.0), Parameter::Number(-0.0)],
            [Parameter::Integer(0), Parameter::Number(-0.0)],
            [Parameter::from("5"), Parameter::from("5")],
        ];
        for [one, other] in equal {
            assert_eq!(one, other);
            assert_eq!(HashSet::from([one, other]).len(), 1);
        }
        let all = [Parameter::Integer(5), Parameter::Number(5.5), Parameter::from("5"), Parameter::Integer(1 << 53)];
        assert_eq!(HashSet::from(all).len(), 4);
        assert_ne!(Parameter::Integer(1 << 53), Parameter::Integer((1 << 53) + 1));
    }
}
