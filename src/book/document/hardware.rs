//! Peak rates of hardware that documents speak of, from the project's `hardware.yaml`.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::error::FileError;
use crate::yaml::{self, Way};

/// Hardware by a short name.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct Hardware(BTreeMap<String, Chip>);

/// A chip's peak rates.
#[derive(Clone, Debug, PartialEq, Deserialize, schemars::JsonSchema)]
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
        let hardware: Self = yaml::parse_filled(text, origin, None)?;
        let mut rates = hardware.0.iter().flat_map(|(name, chip)| chip.rates.iter().map(move |rate| (name, rate)));
        match rates.find(|(_, (_, rate))| !(**rate > 0.0 && rate.is_finite())) {
            Some((name, (of, rate))) => {
                let way = Way::default().key(name).key("rates").key(of);
                let message = format!("a peak rate is more than 0 operations per second, and this is {rate}");
                Err(way.error(text, origin, message, String::new()))
            }
            None => Ok(hardware),
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_that_none_can_be_and_a_blank_are_refused_where_they_stand() {
        let error = |rate: &str| {
            let text = format!("chip: {{model: M, source: S, rates: {{fp16: {rate}}}}}\n");
            Hardware::parse("h.yaml", &text).unwrap_err().to_string()
        };
        for rate in ["0", "-1"] {
            assert!(error(rate).starts_with("h.yaml:1:43: a peak rate is more than 0"), "{}", error(rate));
        }
        assert!(error("fast").starts_with("h.yaml:1:43: "), "{}", error("fast"));
        let blank = Hardware::parse("h.yaml", "chip: {model: '', source: S, rates: {}}").unwrap_err().to_string();
        assert!(blank.starts_with("h.yaml:1:15: nothing stands here"), "{blank}");
    }
}
