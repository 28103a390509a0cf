//! The keys of mappings: each is a word and stands once. A parser that builds values would keep the last of several and say
//! nothing.

use std::collections::HashMap;

use saphyr_parser::{Event, ScalarStyle};

/// The lists and mappings that are open.
#[derive(Default)]
pub(super) struct Keys(Vec<Open>);

enum Open {
    List,
    Mapping {
        /// The keys so far, with their lines.
        seen: HashMap<String, usize>,
        /// Whether the next value is a key.
        is_key: bool,
    },
}

impl Keys {
    /// Takes the next event, which stands in a line.
    pub(super) fn take(&mut self, event: &Event<'_>, line: usize) -> Result<(), String> {
        match event {
            Event::Scalar(..) | Event::SequenceStart(..) | Event::MappingStart(..) | Event::Alias(_) => {
                if let Some(Open::Mapping { seen, is_key }) = self.0.last_mut() {
                    if *is_key {
                        key(seen, event, line)?;
                    }
                    *is_key = !*is_key;
                }
                match event {
                    Event::SequenceStart(..) => self.0.push(Open::List),
                    Event::MappingStart(..) => self.0.push(Open::Mapping { seen: HashMap::new(), is_key: true }),
                    _ => {}
                }
            }
            Event::SequenceEnd | Event::MappingEnd => drop(self.0.pop()),
            _ => {}
        }
        Ok(())
    }
}

/// Takes a key of a mapping.
fn key(seen: &mut HashMap<String, usize>, event: &Event<'_>, line: usize) -> Result<(), String> {
    let Event::Scalar(key, style, ..) = event else {
        return Err("a key is a word, and this is none".to_owned());
    };
    if key == "<<" && *style == ScalarStyle::Plain {
        return Err("`<<` has no meaning here: write the keys out, or take an alias for a whole value".to_owned());
    }
    match seen.insert(key.clone().into_owned(), line) {
        Some(first) => Err(format!("the key `{key}` stands twice in one mapping, first in line {first}")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::events::check;

    #[test]
    fn a_key_that_stands_twice_is_refused_at_its_second_place() {
        for (text, line, column, key) in [
            ("a: 1\nb: 2\na: 3", 3, 1, "a"),
            ("a:\n  b: [{c: 1, d: [{c: 1}], c: 2}]", 2, 27, "c"),
            ("- {a: {b: 1}, 'a': 2}", 1, 15, "a"),
            ("a: &x {b: 1}\nc: *x\na: *x", 3, 1, "a"),
            ("1: x\n\"1\": y", 2, 1, "1"),
        ] {
            let (message, at, from) = check(text).unwrap_err();
            assert!(message.contains(&format!("the key `{key}` stands twice")), "{text}: {message}");
            assert_eq!((at, from), (line, column), "{text}");
        }
    }

    #[test]
    fn a_key_that_is_no_word_is_refused() {
        for text in ["? [a]\n: 1", "{{a: 1}: 2}", "a: &x b\n*x : 1", "a: &x {b: 1}\nc: {<<: *x}"] {
            assert!(check(text).is_err(), "{text}");
        }
        assert!(check("'<<': 1").is_ok());
    }
}
