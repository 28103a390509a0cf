//! What a row of a results file is, and what each run left of it.
//!
//! A row explains itself: its specification says what was measured, in which unit, by which clock, and how much work lies
//! in it, so that a file renders whole on any machine, also for an experiment that the reading program does not know.

mod outcome;
mod parameter;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::expression::FormulaOperand;
use super::work::Work;
use crate::measure::Clock;
use crate::units::Unit;

pub(super) use outcome::Columns;
pub use outcome::{Measured, Outcome, Pass, Sample};
pub use parameter::{Parameter, Parameters, begins, by_size, in_words, titled};
pub(super) use parameter::{each_once, values};

/// A row: what was to be measured, and what came of it in each run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// What it is.
    pub spec: MetricSpec,
    /// What came of it, one entry a run.
    pub series: Vec<Series>,
}

/// What a row is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MetricSpec {
    /// The identifier: `sync-points.big.async`. It begins with the experiment's name and a dot; rows that differ only in
    /// parameters share it.
    pub id: String,
    /// The heading that it stands under.
    pub group: String,
    /// What it is, in a few words.
    pub label: String,
    /// The unit of its samples.
    pub unit: Unit,
    /// What it was measured with: `dtype`, `size`, `iters`, …
    #[serde(default, deserialize_with = "each_once", skip_serializing_if = "Parameters::is_empty")]
    pub parameters: Parameters,
    /// How its samples are taken.
    pub provenance: Provenance,
    /// The least work that lies in a sample, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<Work>,
    /// The clock of which it is the floor: the least that this clock shows of nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub floor: Option<Clock>,
}

/// How samples are taken.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Provenance {
    /// They are measured.
    Measured {
        /// By this clock.
        clock: Clock,
        /// A sample is the time of a loop divided by this many iterations; 1 where there is no loop.
        #[serde(default = "one::<u64>", skip_serializing_if = "is_one")]
        iterations: u64,
    },
    /// They are computed from measured rows, round by round.
    Derived {
        /// What kind of computation it is.
        derivation: Derivation,
        /// How: the names of the rows and what is done to them. See [`Expression`](super::Expression).
        formula: String,
        /// The rows that the formula names.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        operands: Vec<FormulaOperand>,
    },
}

/// How a derived row comes from measured ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Derivation {
    /// The difference of two rows whose samples were taken interleaved: it may be indistinguishable from 0.
    Difference,
    /// A row multiplied: what it would be for more of the same.
    Extrapolation,
    /// The ratio of the same code measured twice: 1, but for noise.
    SameCode,
    /// Anything else that the formula says.
    Computation,
}

/// What one run left of a row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Series {
    /// The identifier of the run.
    pub run: String,
    /// What came of it.
    pub outcome: Outcome,
}

impl MetricSpec {
    /// The name of the experiment that produces it: what stands before the first dot.
    pub fn experiment(&self) -> &str {
        self.id.split('.').next().unwrap_or_default()
    }

    /// The identifier and, in brackets, the parameters: `sync-points.big.async (dtype fp16, size 512)`.
    pub fn title(&self) -> String {
        titled(&self.id, &self.parameters)
    }

    /// Whether it is the ratio of the same code measured twice.
    pub fn is_same_code(&self) -> bool {
        matches!(self.provenance, Provenance::Derived { derivation: Derivation::SameCode, .. })
    }

    /// Finds what cannot be of a row, to be read behind its name: no file of such a row is read.
    pub fn check(&self) -> Result<(), String> {
        match &self.provenance {
            Provenance::Measured { iterations: 0, .. } => return Err("has samples of 0 iterations".to_owned()),
            Provenance::Measured { .. } => {}
            Provenance::Derived { operands, .. } => {
                let mut names = BTreeSet::new();
                if let Some(twice) = operands.iter().find(|operand| !names.insert(operand.name.as_str())) {
                    return Err(format!("is computed from two rows `{}`", twice.name));
                }
            }
        }
        let amounts = self.work.iter().flat_map(|work| [Some(work.amount), work.bytes]).flatten();
        if let Some(amount) = amounts.into_iter().find(|amount| *amount < 0.0 || !amount.is_finite()) {
            return Err(format!("holds a work of {amount} a sample"));
        }
        let is_finite = |value: &Parameter| value.number().is_none_or(f64::is_finite);
        match self.parameters.iter().find(|(_, value)| !is_finite(value)) {
            Some((name, value)) => Err(format!("has {value} as its parameter `{name}`")),
            None => Ok(()),
        }
    }

    /// Whether it stands for the same measurement as another: identifier and parameters.
    pub fn is(&self, id: &str, parameters: &Parameters) -> bool {
        self.id == id && self.parameters == *parameters
    }
}

/// Things by what they have in common, in the order in which they come.
///
/// ```
/// use syncscope_results::grouped;
///
/// assert_eq!(grouped([("a", 1), ("b", 2), ("a", 3)]), [("a", vec![1, 3]), ("b", vec![2])]);
/// ```
pub fn grouped<K: PartialEq, T>(all: impl IntoIterator<Item = (K, T)>) -> Vec<(K, Vec<T>)> {
    let mut groups: Vec<(K, Vec<T>)> = Vec::new();
    for (key, one) in all {
        match groups.iter_mut().find(|(own, _)| *own == key) {
            Some((_, group)) => group.push(one),
            None => groups.push((key, vec![one])),
        }
    }
    groups
}

/// Why a row cannot be set against values in a unit, where it is in one of another kind.
pub fn in_another_unit(spec: &MetricSpec, expected: Unit) -> Option<String> {
    let (id, here, there) = (&spec.id, spec.unit.words(), expected.words());
    (!spec.unit.is_like(expected)).then(|| format!("`{id}` is in {here} in the results, and was declared in {there}"))
}

impl Provenance {
    /// Samples of `clock`, not of a loop.
    pub fn measured(clock: Clock) -> Self {
        Provenance::Measured { clock, iterations: 1 }
    }
}

impl Row {
    /// Finds what of it contradicts itself, to be read behind its name.
    pub fn check(&self) -> Result<(), String> {
        self.spec.check()?;
        let is_computed = matches!(self.spec.provenance, Provenance::Derived { .. });
        for Series { run, outcome } in &self.series {
            match outcome {
                Outcome::Measured { .. } if is_computed => {
                    return Err(format!(
                        "is computed from other rows, and its samples of the run `{run}` are measured"
                    ));
                }
                Outcome::Derived { .. } if !is_computed => {
                    return Err(format!("is measured, and its samples of the run `{run}` are computed"));
                }
                _ => {}
            }
        }
        match self.series.is_empty() {
            true => Err("is a row of which no run left anything".to_owned()),
            false => Ok(()),
        }
    }

    /// What a run left of it.
    pub fn outcome(&self, run: &str) -> Option<&Outcome> {
        self.series.iter().find(|series| series.run == run).map(|series| &series.outcome)
    }
}

/// Of results that do not say it.
fn one<T: From<u8>>() -> T {
    T::from(1)
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_one(value: &u64) -> bool {
    *value == 1
}
