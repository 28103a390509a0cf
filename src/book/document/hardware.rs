//! Peak rates of hardware that documents speak of, from the project's `hardware.yaml`.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::error::FileError;
use crate::yaml;

/// Hardware by a short name.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
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
    /// Reads hardware from YAML. `origin` is the file's name in messages.
    ///
    /// # Errors
    /// The file does not describe hardware; the message says where.
    pub fn parse(origin: &str, text: &str) -> Result<Self, FileError> {
        yaml::parse(text, origin)
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
