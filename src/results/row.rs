//! What a row of a results file is, and what each run left of it.
//!
//! A row explains itself: its specification says what was measured, in which unit, by which clock, and how much work lies
//! in it, so that a file renders whole on any machine, also for an experiment that the reading program does not know.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::time::Instant;

use serde::de::{Deserializer, Error, MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Serialize};

use super::formula::FormulaOperand;
use super::work::Work;
use crate::measure::{Clock, Protocol, Rounds, StoppedBy};
use crate::units::{Unit, counted};

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
        #[serde(default = "one", skip_serializing_if = "is_one")]
        iterations: u64,
    },
    /// They are computed from measured rows, round by round.
    Derived {
        /// What kind of computation it is.
        derivation: Derivation,
        /// How: the names of the rows and what is done to them. See [`evaluate`](super::evaluate).
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

/// What came of a row in one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Outcome {
    /// It was measured.
    Measured {
        /// The samples in the order of the rounds, in the row's unit.
        samples: Vec<f64>,
        /// The place of each sample within its round, from 0; empty where it was not recorded.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        order: Vec<u32>,
        /// When each sample began, in seconds since the run did; empty where it was not recorded.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        started: Vec<f64>,
        /// How many times its best a piece of work of the host took beside each sample, in steps of a hundredth; empty where it
        /// was not recorded.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        slowdown: Vec<f64>,
        /// The samples of the warm-ups, which no estimate takes in; empty where they were not kept.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        warmup: Vec<f64>,
        /// The passes of the run in which the samples were taken; empty where these were not recorded.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        passes: Vec<Pass>,
        /// Which rule ended the sampling.
        stopped_by: StoppedBy,
    },
    /// It was computed.
    Derived {
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

/// What one pass of a run left of a row: the next of its samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pass {
    /// How many.
    pub samples: usize,
    /// How many rows were sampled together with it, itself among them: they shared the time.
    #[serde(default = "alone")]
    pub rows: usize,
    /// When the first round began of which the samples were kept, in seconds since the run did: the same for the rows that
    /// were sampled together.
    pub began: f64,
    /// When the last round ended.
    pub ended: f64,
}

/// Of results that do not say it.
fn alone() -> usize {
    1
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

    /// Finds what cannot be of a row.
    fn check(&self) -> Result<(), String> {
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
        match amounts.into_iter().find(|amount| *amount < 0.0) {
            Some(amount) => Err(format!("holds a work of {amount} a sample")),
            None => Ok(()),
        }
    }

    /// Whether it stands for the same measurement as another: identifier and parameters.
    pub fn is(&self, id: &str, parameters: &Parameters) -> bool {
        self.id == id && self.parameters == *parameters
    }
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
                Outcome::Measured { samples, order, started, slowdown, passes, .. } => {
                    let counts = [
                        ("the places of its samples", order.len()),
                        ("the times at which its samples began", started.len()),
                        ("those that say how slow the host was", slowdown.len()),
                        (
                            "the samples of its passes",
                            passes.iter().fold(0, |sum: usize, pass| sum.saturating_add(pass.samples)),
                        ),
                    ];
                    let wrong = counts.into_iter().find(|(_, count)| *count != 0 && *count != samples.len());
                    if let Some((what, count)) = wrong {
                        let of = counted(samples.len(), "sample");
                        return Err(format!("has {of} of the run `{run}`, and {what} are {count}"));
                    }
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

    /// Whether it was sampled in turn with another row in a run: rows of one group are sampled round by round. `None` where the
    /// run does not say when. A run that does not say how it was divided into passes had one: there the times in which such
    /// rows were sampled overlap.
    pub fn in_turn(&self, other: &Self, run: &str) -> Option<bool> {
        let (own, other) = (self.outcome(run)?, other.outcome(run)?);
        let began = |outcome| passes(outcome).iter().map(|pass| pass.began).collect::<Vec<_>>();
        let (passes, others) = (began(own), began(other));
        if !(passes.is_empty() && others.is_empty()) {
            return Some(passes == others);
        }
        let (own, [start, end]) = (window(own)?, window(other)?);
        Some(own[0] <= end && start <= own[1])
    }
}

fn passes(outcome: &Outcome) -> &[Pass] {
    match outcome {
        Outcome::Measured { passes, .. } => passes,
        _ => &[],
    }
}

/// When the first and when the last sample began; a single sample is no stretch of time.
fn window(outcome: &Outcome) -> Option<[f64; 2]> {
    match outcome {
        Outcome::Measured { started, .. } if started.len() > 1 => Some([*started.first()?, *started.last()?]),
        _ => None,
    }
}

impl Outcome {
    /// Measured samples of which nothing else was recorded.
    pub fn of_samples(samples: Vec<f64>, stopped_by: StoppedBy) -> Self {
        Self::Measured {
            samples,
            order: Vec::new(),
            started: Vec::new(),
            slowdown: Vec::new(),
            warmup: Vec::new(),
            passes: Vec::new(),
            stopped_by,
        }
    }

    /// What came of the cases that were sampled together, in one pass of a run that began at `begun`. The last of the rounds has
    /// just ended.
    pub fn of_rounds(rounds: Rounds, begun: Instant) -> impl Iterator<Item = Self> {
        let Rounds { sets, order, started, slowdown, warmup, stopped_by, .. } = rounds;
        let ended = begun.elapsed().as_secs_f64();
        let since = move |start: &Instant| start.saturating_duration_since(begun).as_secs_f64();
        let began = started.iter().filter_map(|started| started.first()).min().map_or(0.0, since);
        let rows = sets.len();
        let kept = sets.into_iter().zip(order).zip(started).zip(slowdown).zip(warmup);
        kept.map(move |((((set, order), started), slowdown), warmup)| Outcome::Measured {
            passes: vec![Pass { samples: set.len(), rows, began, ended }],
            samples: set.into_values(),
            order,
            started: started.iter().map(since).collect(),
            slowdown: slowdown.iter().map(|times| (times * 100.0).round() / 100.0).collect(),
            warmup,
            stopped_by,
        })
    }

    /// Its samples, where it has some.
    pub fn samples(&self) -> Option<&[f64]> {
        match self {
            Outcome::Measured { samples, .. } | Outcome::Derived { samples } => Some(samples),
            _ => None,
        }
    }

    /// How many times its best a piece of work of the host took beside each sample, where that is known.
    pub fn slowdown(&self) -> &[f64] {
        match self {
            Outcome::Measured { slowdown, .. } => slowdown,
            _ => &[],
        }
    }

    /// Whether there is nothing left to do for it: an interrupt neither came before it nor cut its sampling short.
    pub fn is_finished(&self) -> bool {
        !matches!(self, Outcome::Interrupted | Outcome::Measured { stopped_by: StoppedBy::Interrupt, .. })
    }

    /// How many passes of a run that samples like this have left something of it: all of them where no further one is to add to
    /// it, as where it was sampled for as long as the time limit says and has the fewest samples that this leaves.
    pub fn passes_done(&self, sampling: &Protocol) -> usize {
        let (all, stride) = (sampling.all_passes(), self.stride(sampling));
        match self {
            Outcome::Interrupted => 0,
            Outcome::Measured { stopped_by: StoppedBy::Failure, .. } => all,
            Outcome::Measured { passes, stopped_by: StoppedBy::Interrupt, .. } => {
                passes.len().saturating_sub(1) * stride
            }
            Outcome::Measured { samples, passes, .. } if !passes.is_empty() => {
                let spent: f64 = passes.iter().map(|pass| (pass.ended - pass.began) / pass.rows as f64).sum();
                let is_late = sampling.time_limit.is_some_and(|limit| spent >= limit);
                if is_late && samples.len() >= sampling.least_rounds() { all } else { passes.len() * stride }
            }
            _ => all,
        }
    }

    /// Of how many passes it takes part in one, as its first shows.
    pub fn stride(&self, sampling: &Protocol) -> usize {
        passes(self)
            .first()
            .map_or(1, |first| sampling.stride((first.ended - first.began) / first.samples.max(1) as f64))
    }

    /// Without what a pass left that was cut short; nothing where nothing is left.
    #[must_use]
    pub fn whole_passes(mut self) -> Option<Self> {
        if self.is_finished() {
            return Some(self);
        }
        let Outcome::Measured { samples, order, started, slowdown, passes, stopped_by, .. } = &mut self else {
            return None;
        };
        let cut = passes.pop()?;
        let left = samples.len().saturating_sub(cut.samples);
        samples.truncate(left);
        order.truncate(left);
        started.truncate(left);
        slowdown.truncate(left);
        *stopped_by = StoppedBy::Samples;
        (left > 0).then_some(self)
    }

    /// What is left of a row after a further pass, which left `later`. What was measured stays where the pass failed or was
    /// interrupted.
    #[must_use]
    pub fn followed_by(mut self, later: Self) -> Self {
        let Outcome::Measured { samples, order, started, slowdown, warmup, passes, stopped_by } = &mut self else {
            return later;
        };
        match later {
            Outcome::Measured {
                samples: s,
                order: o,
                started: t,
                slowdown: l,
                warmup: w,
                passes: p,
                stopped_by: by,
            } => {
                slowdown.extend(l);
                samples.extend(s);
                order.extend(o);
                started.extend(t);
                warmup.extend(w);
                passes.extend(p);
                // Where one pass had no more time, the row has fewer samples than were asked for.
                *stopped_by = match (*stopped_by, by) {
                    (StoppedBy::TimeLimit, StoppedBy::Samples | StoppedBy::RelativeError) => StoppedBy::TimeLimit,
                    (_, by) => by,
                };
            }
            Outcome::Interrupted => {
                let (rows, now) = passes.last().map_or((1, 0.0), |pass| (pass.rows, pass.ended));
                passes.push(Pass { samples: 0, rows, began: now, ended: now });
                *stopped_by = StoppedBy::Interrupt;
            }
            _ => *stopped_by = StoppedBy::Failure,
        }
        self
    }
}

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

/// The values that each parameter of some rows has, as they come.
pub(super) fn values<'a>(specs: impl Iterator<Item = &'a MetricSpec>) -> BTreeMap<&'a str, Vec<&'a Parameter>> {
    let mut seen = HashSet::new();
    let mut found: BTreeMap<&str, Vec<&Parameter>> = BTreeMap::new();
    for (name, value) in specs.flat_map(|spec| &spec.parameters) {
        if seen.insert((name, value)) {
            found.entry(name).or_default().push(value);
        }
    }
    found
}

/// Reads parameters of which each stands there once: a map would keep the last of several and say nothing.
pub(super) fn each_once<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Parameters, D::Error> {
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

impl<'de> Deserialize<'de> for Parameter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberOrName)
    }
}

/// Reads a parameter, and says of anything else what was expected where it stands.
struct NumberOrName;

impl Visitor<'_> for NumberOrName {
    type Value = Parameter;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number or a name, in quotation marks where it would be read as something else")
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Parameter, E> {
        Ok(Parameter::Integer(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Parameter, E> {
        Ok(u64::try_from(value).map_or(Parameter::Number(value as f64), Parameter::Integer))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Parameter, E> {
        match value.is_finite() {
            true => Ok(Parameter::Number(value)),
            false => Err(E::invalid_value(Unexpected::Float(value), &self)),
        }
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Parameter, E> {
        Ok(Parameter::Text(value.to_owned()))
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

fn one() -> u64 {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_one(value: &u64) -> bool {
    *value == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_slow_the_host_was_stays_with_the_samples_of_a_pass() {
        let pass = |slow: &[f64], stopped_by| {
            let mut outcome = Outcome::of_samples(vec![1.0; slow.len()], stopped_by);
            if let Outcome::Measured { slowdown, passes, .. } = &mut outcome {
                slowdown.extend(slow);
                passes.push(Pass { samples: slow.len(), rows: 1, began: 0.0, ended: 1.0 });
            }
            outcome
        };
        let both = pass(&[1.0, 1.5], StoppedBy::Samples).followed_by(pass(&[2.0], StoppedBy::Interrupt));
        assert_eq!(both.slowdown(), [1.0, 1.5, 2.0]);
        assert_eq!(both.whole_passes().unwrap().slowdown(), [1.0, 1.5], "the second pass was cut short");
    }

    #[test]
    fn a_row_whose_rounds_take_long_has_done_several_passes_with_each() {
        let passes_of = |round: f64, count: usize| {
            let mut outcome = Outcome::of_samples(vec![1.0; count], StoppedBy::Samples);
            if let Outcome::Measured { passes, .. } = &mut outcome {
                passes.resize(count, Pass { samples: 1, rows: 1, began: 1.0, ended: 1.0 + round });
            }
            outcome
        };
        let sampling = Protocol::samples(9).with_passes(3).with_short_passes(9);
        let done = |round, count| passes_of(round, count).passes_done(&sampling);
        assert_eq!((done(0.001, 1), done(0.001, 9)), (1, 9));
        assert_eq!((done(0.02, 1), done(0.02, 2), done(0.02, 3)), (3, 6, 9));
        let cut = passes_of(0.02, 2).followed_by(Outcome::Interrupted);
        assert_eq!(cut.passes_done(&sampling), 6, "the third was cut short");
    }

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
