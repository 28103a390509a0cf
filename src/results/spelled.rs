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
#[derive(Clone, Debug, PartialEq)]
pub struct Selector {
    /// How it is written.
    pub text: String,
    /// The parameter.
    pub name: String,
    /// The value that it gives to it; none of a row without it.
    pub value: Option<Parameter>,
}

impl Spelled {
    /// Of the rows with one identifier.
    pub fn of<'a>(id: &str, rows: impl Iterator<Item = &'a MetricSpec>) -> Self {
        let mut selectors = Vec::new();
        for (name, values) in values(rows.flat_map(|spec| &spec.parameters)) {
            let written = name_of(name);
            let selector = |text, value| Selector { text, name: name.to_owned(), value };
            selectors.push(selector(format!("no_{written}"), None));
            for value in values {
                let text = name_of(&value.to_string());
                // A word may be the value of several parameters.
                selectors.push(selector(format!("{written}_{text}"), Some(value.clone())));
                if let Parameter::Text(_) = value {
                    selectors.push(selector(text, Some(value.clone())));
                }
            }
        }
        Self { id: id.to_owned(), parts: id.split('.').map(name_of).collect(), selectors }
    }

    /// The values of the rows' parameters, as they come.
    pub(super) fn values(&self) -> impl Iterator<Item = (&String, &Parameter)> {
        self.selectors.iter().filter_map(|selector| Some((&selector.name, selector.value.as_ref()?)))
    }
}

/// A part of an identifier, or a parameter's name or value, as an expression writes it.
pub fn name_of(part: &str) -> String {
    part.replace(['-', ' ', '.'], "_")
}
