//! What an experiment leaves behind: rows, each with an identifier, its parameters and its outcome.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::measure::{Clock, StoppedBy};
use crate::units::Unit;

/// One row of an experiment: a thing that was to be measured, and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "report", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// The identifier: `sync-points.big.async`. Rows that differ only in parameters share it.
    pub id: String,
    /// What the row was measured with: `dtype`, `size`, `iters`, …
    #[serde(default)]
    pub parameters: Parameters,
    /// The unit of the samples.
    pub unit: Unit,
    /// What came of it.
    pub outcome: Outcome,
}

impl Row {
    /// Whether there is nothing left to do for it: an interrupt neither came before it nor cut its sampling short.
    pub fn is_finished(&self) -> bool {
        !matches!(&self.outcome, Outcome::Interrupted | Outcome::Measured { stopped_by: StoppedBy::Interrupt, .. })
    }
}

/// The parameters of a row, by name.
pub type Parameters = BTreeMap<String, Parameter>;

/// Parameters in words: `dtype fp16, size 512`; empty for none.
pub fn in_words(parameters: &Parameters) -> String {
    parameters.iter().map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>().join(", ")
}

/// A row by its identifier and, in brackets, its parameters: `sync-points.big.async (dtype fp16, size 512)`.
pub fn titled(id: &str, parameters: &Parameters) -> String {
    if parameters.is_empty() { id.to_owned() } else { format!("{id} ({})", in_words(parameters)) }
}

/// The value of a parameter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "report", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Parameter {
    /// A size, count or step.
    Integer(u64),
    /// A factor or duration.
    Float(f64),
    /// A name: a dtype, a kind of memory.
    Text(String),
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Parameter::Integer(value) => write!(f, "{value}"),
            Parameter::Float(value) => write!(f, "{value}"),
            Parameter::Text(value) => f.write_str(value),
        }
    }
}

/// What came of a row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "report", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Outcome {
    /// It was measured.
    Measured {
        /// What took the samples.
        instrument: Clock,
        /// The samples in the order in which they were taken, in the row's unit.
        samples: Vec<f64>,
        /// Which rule ended the sampling.
        stopped_by: StoppedBy,
    },
    /// It was computed from measured rows, round by round.
    Derived {
        /// What kind of computation it was.
        derivation: Derivation,
        /// How, for a reader: the names of the rows and what was done to them.
        formula: String,
        /// The results in the order of the rounds, in the row's unit.
        samples: Vec<f64>,
    },
    /// It has no meaning on this engine.
    NotApplicable {
        /// Why.
        reason: String,
    },
    /// The run was interrupted before it was reached.
    Interrupted,
    /// It could have been measured and was not.
    Skipped {
        /// Why.
        reason: String,
    },
    /// It was tried and failed.
    Failed {
        /// Why.
        reason: String,
    },
}

/// How a derived row came from measured ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "report", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Derivation {
    /// The difference of two rows whose samples were taken interleaved: it may be indistinguishable from 0.
    Difference,
    /// A row multiplied: what it would be for more of the same.
    Extrapolation,
    /// Anything else that the formula says.
    Computation,
}
