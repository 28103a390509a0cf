//! Peak rates of hardware that documents speak of, from `book/hardware.yaml`.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::error::DocumentError;

const FILE: (&str, &str) = ("book/hardware.yaml", include_str!("../../book/hardware.yaml"));

/// Hardware by a short name.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(transparent)]
pub struct Hardware(BTreeMap<String, Chip>);

/// A chip's peak rates.
#[derive(Clone, Debug, PartialEq, Deserialize)]
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
    /// The hardware that comes with the program.
    ///
    /// # Errors
    /// The file does not describe hardware.
    pub fn embedded() -> Result<Self, DocumentError> {
        let (origin, text) = FILE;
        serde_yaml::from_str(text).map_err(|error| {
            let (line, column) = error.location().map_or((0, 0), |at| (at.line(), at.column()));
            DocumentError::Invalid { origin: origin.to_owned(), line, column, message: error.to_string() }
        })
    }

    /// All chips, by the order of their short names.
    pub fn chips(&self) -> impl Iterator<Item = &Chip> {
        self.0.values()
    }

    /// The peak rate `rate` of the hardware `name`, in operations per second.
    pub fn peak(&self, name: &str, rate: &str) -> Option<f64> {
        self.0.get(name)?.rates.get(rate).copied()
    }
}
