//! Rows and their parameters as expressions in texts write them: with `_` for `-`, for a space and for a decimal point.

use super::row::{MetricSpec, Parameter, values};

/// A row's identifier, in parts, with what tells its rows apart.
#[derive(Clone, Debug)]
pub struct Spelled {
    /// The identifier as it is.
    pub id: String,
    /// Its parts, which dots separate, as expressions write them.
    pub parts: Vec<String>,
    /// How its parameters may be given.
    pub selectors: Vec<Selector>,
}

/// A way to give a parameter: a value that is a name by itself, another one as `name_value`, and `no_name` for a row
/// without it.
#[derive(Clone, Debug)]
pub struct Selector {
    /// How it is written.
    pub text: String,
    /// The parameter and the number that it gives to it, where it is one.
    pub number: Option<(String, f64)>,
}

impl Spelled {
    /// Of the rows with one identifier.
    pub fn of<'a>(id: &str, rows: impl Iterator<Item = &'a MetricSpec>) -> Self {
        let mut selectors = Vec::new();
        for (name, values) in values(rows) {
            let name = name_of(name);
            selectors.push(Selector { text: format!("no_{name}"), number: None });
            for value in values {
                let named = format!("{name}_{}", name_of(&value.to_string()));
                if let Parameter::Text(text) = value {
                    selectors.push(Selector { text: name_of(text), number: None });
                }
                // A word may be the value of several parameters.
                selectors.push(Selector { text: named, number: value.number().map(|number| (name.clone(), number)) });
            }
        }
        Self { id: id.to_owned(), parts: id.split('.').map(name_of).collect(), selectors }
    }
}

/// A part of an identifier, or a parameter's name or value, as an expression writes it.
pub fn name_of(part: &str) -> String {
    part.chars().map(written).collect()
}

/// What an expression's `text` has behind a part, where it begins with it.
pub fn behind<'a>(text: &'a str, part: &str) -> Option<&'a str> {
    // Each byte that is written in another way is a letter of its own, so the rest begins with a letter.
    let same = text.len() >= part.len() && part.bytes().map(byte).eq(text.bytes().take(part.len()));
    same.then(|| &text[part.len()..])
}

fn written(letter: char) -> char {
    if matches!(letter, '-' | ' ' | '.') { '_' } else { letter }
}

fn byte(letter: u8) -> u8 {
    if matches!(letter, b'-' | b' ' | b'.') { b'_' } else { letter }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_told_from_what_stands_behind_it() {
        assert_eq!(behind("spin_seconds_0_5", "spin-seconds"), Some("_0_5"));
        assert_eq!(behind("spin_seconds", name_of("spin seconds").as_str()), Some(""));
        assert_eq!(behind("spin", "spin-seconds"), None);
        assert_eq!(behind("größe_8", "größe"), Some("_8"));
    }
}
