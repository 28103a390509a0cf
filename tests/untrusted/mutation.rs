//! Mutations: of the bytes of a text, and of the structure of the value that it holds.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Map, Value, json};

/// A text to mutate, and the value that it holds. A value is written as JSON, which is YAML, too.
pub(crate) struct Seed {
    text: String,
    value: Value,
}

impl Seed {
    pub(crate) fn of(value: &Value) -> Self {
        Self { value: value.clone(), text: value.to_string() }
    }

    pub(crate) fn of_json(text: &str) -> Self {
        Self { value: serde_json::from_str(text).unwrap(), text: text.to_owned() }
    }

    pub(crate) fn of_yaml(text: &str) -> Self {
        Self { value: serde_saphyr::from_str(text).unwrap(), text: text.to_owned() }
    }

    /// A text of another form, of which the bytes are changed, or all of it is something else.
    pub(crate) fn of_text(text: &str) -> Self {
        Self { value: Value::Null, text: text.to_owned() }
    }

    pub(crate) fn mutated(&self, change: &Change) -> String {
        match change {
            Change::Bytes(mutations) => mutated(&self.text, mutations),
            Change::Structure(edits) => {
                let mut value = self.value.clone();
                edits.iter().for_each(|edit| edit.apply(&mut value));
                value.to_string()
            }
        }
    }
}

/// Leaves `most` items of each list: the time of reading grows with the text, and a change of one of many like items tries
/// nothing that one of a few does not.
pub(crate) fn shorten(value: &mut Value, most: usize) {
    match value {
        Value::Array(items) => {
            items.truncate(most);
            items.iter_mut().for_each(|item| shorten(item, most));
        }
        Value::Object(map) => map.values_mut().for_each(|item| shorten(item, most)),
        _ => {}
    }
}

/// Which of `all` seeds, of which the first `small` are read sooner than the others: these are one in 64.
pub(crate) fn one_of(small: usize, all: usize) -> impl Strategy<Value = usize> {
    prop_oneof![63 => 0..small, 1 => small..all]
}

/// For each part of a whole its smallest whole: what `is_read` does without is left out, the longest first.
pub(crate) fn smallest(whole: &Value, is_read: impl Fn(&Value) -> bool) -> Vec<Value> {
    let parts = whole.as_object().unwrap();
    let mut wholes: Vec<Value> = Vec::new();
    for part in parts.keys() {
        let mut others: Vec<&String> = parts.keys().filter(|other| *other != part).collect();
        others.sort_by_key(|other| std::cmp::Reverse(parts[*other].to_string().len()));
        let mut small = whole.clone();
        for other in others {
            let mut without = small.clone();
            without.as_object_mut().unwrap().remove(other);
            if is_read(&without) {
                small = without;
            }
        }
        if !wholes.contains(&small) {
            wholes.push(small);
        }
    }
    wholes
}

/// What happens to a seed.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    Bytes(Vec<Mutation>),
    Structure(Vec<Edit>),
}

pub(crate) fn change() -> impl Strategy<Value = Change> {
    let edit = (0..6_u8, any::<Index>(), any::<Index>()).prop_map(|(what, at, other)| Edit { what, at, other });
    prop_oneof![vec(mutation(), 1..4).prop_map(Change::Bytes), vec(edit, 1..4).prop_map(Change::Structure)]
}

/// A change of one part of a value.
#[derive(Clone, Debug)]
pub(crate) struct Edit {
    what: u8,
    at: Index,
    other: Index,
}

impl Edit {
    fn apply(&self, value: &mut Value) {
        let parts = count(value);
        let other = part(value, &mut self.other.index(parts)).cloned().unwrap_or_default();
        let Some(at) = part(value, &mut self.at.index(parts)) else { return };
        let pick = |length: usize| if length == 0 { 0 } else { self.other.index(length) };
        match (self.what, at) {
            (0, at) => *at = strange(&self.other),
            (1, at) => *at = other,
            (2, Value::Array(items)) if !items.is_empty() => drop(items.remove(pick(items.len()))),
            (2, Value::Object(map)) => drop(key(map, &self.other).and_then(|key| map.remove(&key))),
            (3, Value::Array(items)) => items.extend(vec![other; pick(40)]),
            (3, Value::Object(map)) => drop(map.insert("unknown".to_owned(), other)),
            (4, Value::Array(items)) => items.clear(),
            (4, Value::Object(map)) => map.clear(),
            (4, Value::String(text)) => *text = text.repeat(pick(300)),
            (5, Value::Array(items)) => items.reverse(),
            (5, Value::Object(map)) => {
                if let Some(key) = key(map, &self.other) {
                    let value = map.remove(&key).unwrap_or_default();
                    map.insert(key + "x", value);
                }
            }
            (_, at) => *at = strange(&self.other),
        }
    }
}

fn key(map: &Map<String, Value>, index: &Index) -> Option<String> {
    if map.is_empty() { None } else { map.keys().nth(index.index(map.len())).cloned() }
}

fn strange(index: &Index) -> Value {
    let all = [
        json!(null),
        json!(true),
        json!(0),
        json!(-1),
        json!(-0.0),
        json!(1e308),
        json!(-1e308),
        json!(5e-324),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(""),
        json!("a"),
        json!("1"),
        json!("NaN"),
        json!("<script>|`*\n](x) {{#include /etc/passwd}}"),
        json!("../../x"),
        json!("\u{202e}\u{1b}[2J\0"),
        json!("é".repeat(3_000)),
        json!([]),
        json!({}),
        json!([[[[[[]]]]]]),
        json!({ "a": { "a": { "a": null } } }),
    ];
    index.get(&all).clone()
}

/// How many parts a value has, itself among them.
fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(map) => map.values().map(count).sum::<usize>(),
        _ => 0,
    }
}

/// The part of this number.
fn part<'a>(value: &'a mut Value, number: &mut usize) -> Option<&'a mut Value> {
    if *number == 0 {
        return Some(value);
    }
    *number -= 1;
    match value {
        Value::Array(items) => items.iter_mut().find_map(|item| part(item, number)),
        Value::Object(map) => map.values_mut().find_map(|item| part(item, number)),
        _ => None,
    }
}

/// What stands where a number, a word or a value stood.
const STRANGE: [&str; 24] = [
    "0",
    "-1",
    "-0.0",
    "1e308",
    "-1e308",
    "1.7976931348623157e308",
    "5e-324",
    "1e400",
    "-1e400",
    "NaN",
    "Infinity",
    ".inf",
    ".nan",
    "18446744073709551616",
    "18446744073709551615",
    "99999999999999999999999999",
    "null",
    "true",
    "[]",
    "{}",
    "\"\"",
    "\"\\u0000\\ud800\"",
    "\"<script>|`*\"",
    "&a [*a]",
];

/// A change of a text.
#[derive(Clone, Debug)]
pub(crate) enum Mutation {
    /// One byte is another.
    Flip(Index, u8),
    /// It ends here.
    Truncate(Index),
    /// A part of it stands there a second time.
    Duplicate(Index, usize, Index),
    /// A part of it is gone.
    Remove(Index, usize),
    /// A run of digits is something else.
    Number(Index, &'static str),
    /// Something is put in.
    Insert(Index, &'static str),
    /// Brackets are put in, this deep.
    Nest(Index, &'static str, usize),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    prop_oneof![
        2 => (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Mutation::Flip(at, byte)),
        1 => any::<Index>().prop_map(Mutation::Truncate),
        2 => (any::<Index>(), 1..400_usize, any::<Index>()).prop_map(|(from, n, to)| Mutation::Duplicate(from, n, to)),
        1 => (any::<Index>(), 1..400_usize).prop_map(|(from, n)| Mutation::Remove(from, n)),
        8 => (any::<Index>(), select(&STRANGE[..])).prop_map(|(at, text)| Mutation::Number(at, text)),
        1 => (any::<Index>(), select(&STRANGE[..])).prop_map(|(at, text)| Mutation::Insert(at, text)),
        1 => (any::<Index>(), select(&["[", "{\"a\":", "- ", "{a: ", "(", "!!x "][..]), 1..5_000_usize)
            .prop_map(|(at, open, depth)| Mutation::Nest(at, open, depth)),
    ]
}

fn mutated(text: &str, mutations: &[Mutation]) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for mutation in mutations {
        if bytes.is_empty() {
            break;
        }
        let n = bytes.len();
        let part = |from: &Index, length: usize| from.index(n)..(from.index(n) + length).min(n);
        let put = |bytes: &mut Vec<u8>, range: std::ops::Range<usize>, text: &[u8]| {
            bytes.splice(range, text.iter().copied());
        };
        match mutation {
            Mutation::Flip(at, byte) => bytes[at.index(n)] = *byte,
            Mutation::Truncate(at) => bytes.truncate(at.index(n)),
            Mutation::Duplicate(from, length, to) => {
                let copy = bytes[part(from, *length)].to_vec();
                put(&mut bytes, to.index(n)..to.index(n), &copy);
            }
            Mutation::Remove(from, length) => put(&mut bytes, part(from, *length), b""),
            Mutation::Number(at, text) => {
                let Some(range) = number_after(&bytes, at.index(n)) else { continue };
                put(&mut bytes, range, text.as_bytes());
            }
            Mutation::Insert(at, text) => put(&mut bytes, at.index(n)..at.index(n), text.as_bytes()),
            Mutation::Nest(at, open, depth) => {
                put(&mut bytes, at.index(n)..at.index(n), open.repeat(*depth).as_bytes())
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The first number at or behind a place, or, where none follows, in the text.
fn number_after(bytes: &[u8], from: usize) -> Option<std::ops::Range<usize>> {
    let part = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'e');
    let start = (from..bytes.len()).chain(0..from).find(|&place| bytes[place].is_ascii_digit())?;
    let end = bytes[start..].iter().position(|byte| !part(byte)).map_or(bytes.len(), |length| start + length);
    Some(start..end)
}
