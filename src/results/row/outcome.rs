//! What came of a row in one run, and its samples.

use std::borrow::Cow;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::Parameters;
use crate::expression::Expression;
use crate::measure::{Protocol, Rounds, StoppedBy};
use crate::units::counted;

/// What came of a row in one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Outcome {
    /// It was measured.
    Measured(Measured),
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

/// What was measured of a row in one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(try_from = "Columns", into = "Columns")]
pub struct Measured {
    /// The samples in the order of the rounds.
    pub samples: Vec<Sample>,
    /// The values of the warm-ups, which no estimate takes in; empty where they were not kept.
    pub warmup: Vec<f64>,
    /// The passes of the run in which the samples were taken; empty where these were not recorded.
    pub passes: Vec<Pass>,
    /// Which rule ended the sampling.
    pub stopped_by: StoppedBy,
}

/// One sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// In the row's unit.
    pub value: f64,
    /// Its place within its round, from 0; none where it was not recorded.
    pub order: Option<u32>,
    /// When it began, in seconds since the run did; none where it was not recorded.
    pub started: Option<f64>,
    /// How many times its best a piece of work of the host took beside it, in steps of a hundredth; none where it was not
    /// recorded.
    pub slowdown: Option<f64>,
}

/// Samples as they stand in a file: a list of each part of them.
#[derive(Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Measured")]
pub(in super::super) struct Columns {
    /// The samples in the order of the rounds, in the row's unit.
    pub(in super::super) samples: Vec<f64>,
    /// The place of each sample within its round, from 0; empty where it was not recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(in super::super) order: Vec<u32>,
    /// When each sample began, in seconds since the run did; empty where it was not recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(in super::super) started: Vec<f64>,
    /// How many times its best a piece of work of the host took beside each sample, in steps of a hundredth; empty where it
    /// was not recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(in super::super) slowdown: Vec<f64>,
    /// The samples of the warm-ups, which no estimate takes in; empty where they were not kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(in super::super) warmup: Vec<f64>,
    /// The passes of the run in which the samples were taken; empty where these were not recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(in super::super) passes: Vec<Pass>,
    /// Which rule ended the sampling.
    stopped_by: StoppedBy,
}

impl From<Measured> for Columns {
    fn from(Measured { samples, warmup, passes, stopped_by }: Measured) -> Self {
        Self {
            samples: samples.iter().map(|sample| sample.value).collect(),
            order: column(&samples, |sample| sample.order),
            started: column(&samples, |sample| sample.started),
            slowdown: column(&samples, |sample| sample.slowdown),
            warmup,
            passes,
            stopped_by,
        }
    }
}

/// A part of samples that was recorded of all of them; of some alone, as where a run was resumed on a host that tells less, it
/// is of none.
fn column<T>(samples: &[Sample], part: impl Fn(&Sample) -> Option<T>) -> Vec<T> {
    samples.iter().map(part).collect::<Option<_>>().unwrap_or_default()
}

impl TryFrom<Columns> for Measured {
    type Error = String;

    fn try_from(columns: Columns) -> Result<Self, String> {
        let Columns { samples, order, started, slowdown, warmup, passes, stopped_by } = columns;
        let of_passes = passes.iter().fold(0, |sum: usize, pass| sum.saturating_add(pass.samples));
        let counts = [
            ("the places of its samples", order.len()),
            ("the times at which its samples began", started.len()),
            ("those that say how slow the host was", slowdown.len()),
            ("the samples of its passes", of_passes),
        ];
        if let Some((what, count)) = counts.into_iter().find(|(_, count)| *count != 0 && *count != samples.len()) {
            return Err(format!("a row has {}, and {what} are {count}", counted(samples.len(), "sample")));
        }
        let sample = |(round, value): (usize, f64)| Sample {
            value,
            order: order.get(round).copied(),
            started: started.get(round).copied(),
            slowdown: slowdown.get(round).copied(),
        };
        Ok(Self { samples: samples.into_iter().enumerate().map(sample).collect(), warmup, passes, stopped_by })
    }
}

/// What one pass of a run left of a row: the next of its samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pass {
    /// How many.
    pub samples: usize,
    /// How many of its warm-up; 0 where that was not kept or not counted.
    #[serde(default, skip_serializing_if = "is_none")]
    pub warmup: usize,
    /// How many rows were sampled together with it, itself among them: they shared the time.
    #[serde(default = "super::one::<usize>")]
    pub rows: usize,
    /// When the first round began of which the samples were kept, in seconds since the run did: the same for the rows that
    /// were sampled together.
    pub began: f64,
    /// When the last round ended.
    pub ended: f64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_none(count: &usize) -> bool {
    *count == 0
}

impl Outcome {
    /// Measured samples of which nothing else was recorded.
    pub fn of_samples(values: Vec<f64>, stopped_by: StoppedBy) -> Self {
        let samples = values.into_iter().map(|value| Sample { value, order: None, started: None, slowdown: None });
        let (warmup, passes) = (Vec::new(), Vec::new());
        Self::Measured(Measured { samples: samples.collect(), warmup, passes, stopped_by })
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
        kept.map(move |((((set, order), started), slowdown), warmup)| {
            let sample = |(round, value)| Sample {
                value,
                order: order.get(round).copied(),
                started: started.get(round).map(since),
                slowdown: slowdown
                    .get(round)
                    .map(|times: &f64| (times * 100.0).round() / 100.0)
                    .filter(|times| times.is_finite()),
            };
            let samples: Vec<Sample> = set.into_values().into_iter().enumerate().map(sample).collect();
            let passes = vec![Pass { samples: samples.len(), warmup: warmup.len(), rows, began, ended }];
            Self::Measured(Measured { samples, warmup, passes, stopped_by })
        })
    }

    /// What a row's formula comes to in each round that all of its operands have. Where that is no finite number in one of them,
    /// the row has no value: without that round, its value alone would decide which rounds count.
    pub fn computed(formula: &str, operands: &[(&str, impl AsRef<[f64]>)], parameters: &Parameters) -> Self {
        let rounds = operands.iter().map(|(_, samples)| samples.as_ref().len()).min().unwrap_or(0);
        let unknown = || format!("the formula `{formula}` has a word that stands for nothing");
        let of_round = |expression: &Expression, round| match expression.evaluate_round(operands, parameters, round) {
            Some(value) if value.is_finite() => Ok(value),
            Some(_) => Err(format!("the formula `{formula}` gives no finite number in round {}", round + 1)),
            None => Err(unknown()),
        };
        let of_rounds = |expression: Expression| (0..rounds).map(|round| of_round(&expression, round)).collect();
        match Expression::formula(formula).ok_or_else(unknown).and_then(of_rounds) {
            Ok(samples) => Self::Derived { samples },
            Err(reason) => Self::Failed { reason },
        }
    }

    /// The values of its samples, where it has some.
    pub fn values(&self) -> Option<Cow<'_, [f64]>> {
        match self {
            Outcome::Measured(measured) => Some(measured.samples.iter().map(|sample| sample.value).collect()),
            Outcome::Derived { samples } => Some(Cow::Borrowed(samples)),
            _ => None,
        }
    }

    /// The same, to be changed; none where it has none.
    pub fn values_mut(&mut self) -> Vec<&mut f64> {
        match self {
            Outcome::Measured(measured) => measured.samples.iter_mut().map(|sample| &mut sample.value).collect(),
            Outcome::Derived { samples } => samples.iter_mut().collect(),
            _ => Vec::new(),
        }
    }

    /// What was measured, where it was.
    pub fn measured(&self) -> Option<&Measured> {
        if let Outcome::Measured(measured) = self { Some(measured) } else { None }
    }

    /// The same, to be changed.
    pub fn measured_mut(&mut self) -> Option<&mut Measured> {
        if let Outcome::Measured(measured) = self { Some(measured) } else { None }
    }

    /// The passes in which it was measured.
    pub fn passes(&self) -> &[Pass] {
        self.measured().map_or(&[], |measured| &measured.passes)
    }

    /// When its passes began; empty where that was not recorded.
    pub fn began(&self) -> Vec<f64> {
        self.passes().iter().map(|pass| pass.began).collect()
    }

    /// When the first and when the last sample began; a single sample is no stretch of time.
    pub fn window(&self) -> Option<[f64; 2]> {
        let [first, .., last] = self.measured()?.samples.as_slice() else { return None };
        Some([first.started?, last.started?])
    }

    /// Whether it was sampled in turn with another row in the same run: rows of one group are sampled round by round. `None`
    /// where the run does not say when. A run that does not say how it was divided into passes had one: there the times in
    /// which such rows were sampled overlap.
    pub fn in_turn(&self, other: &Self) -> Option<bool> {
        let (passes, others) = (self.began(), other.began());
        if !(passes.is_empty() && others.is_empty()) {
            return Some(passes == others);
        }
        let (own, [start, end]) = (self.window()?, other.window()?);
        Some(own[0] <= end && start <= own[1])
    }

    /// Whether there is nothing left to do for it: an interrupt neither came before it nor cut its sampling short.
    pub fn is_finished(&self) -> bool {
        !matches!(self, Outcome::Interrupted | Outcome::Measured(Measured { stopped_by: StoppedBy::Interrupt, .. }))
    }

    /// How many passes of a run that samples like this have left something of it: all of them where no further one is to add to
    /// it, as where it was sampled for as long as the time limit says and has the fewest samples that this leaves.
    pub fn passes_done(&self, sampling: &Protocol) -> usize {
        let (all, stride) = (sampling.all_passes(), self.stride(sampling));
        match self {
            Outcome::Interrupted => 0,
            Outcome::Measured(Measured { stopped_by: StoppedBy::Failure, .. }) => all,
            Outcome::Measured(Measured { passes, stopped_by: StoppedBy::Interrupt, .. }) => {
                passes.len().saturating_sub(1) * stride
            }
            Outcome::Measured(Measured { samples, passes, .. }) if !passes.is_empty() => {
                let spent: f64 = passes.iter().map(|pass| (pass.ended - pass.began) / pass.rows as f64).sum();
                let is_late = sampling.time_limit.is_some_and(|limit| spent >= limit);
                if is_late && samples.len() >= sampling.least_rounds() { all } else { passes.len() * stride }
            }
            _ => all,
        }
    }

    /// Of how many passes it takes part in one, as its first shows.
    pub fn stride(&self, sampling: &Protocol) -> usize {
        self.passes()
            .first()
            .map_or(1, |first| sampling.stride((first.ended - first.began) / first.samples.max(1) as f64))
    }

    /// Without what a pass left that was cut short; nothing where nothing is left.
    #[must_use]
    pub fn whole_passes(mut self) -> Option<Self> {
        if self.is_finished() {
            return Some(self);
        }
        let measured = self.measured_mut()?;
        let cut = measured.passes.pop()?;
        measured.samples.truncate(measured.samples.len().saturating_sub(cut.samples));
        measured.warmup.truncate(measured.warmup.len().saturating_sub(cut.warmup));
        measured.stopped_by = StoppedBy::Samples;
        (!measured.samples.is_empty()).then_some(self)
    }

    /// What is left of a row after a further pass, which left `later`. What was measured stays where the pass failed or was
    /// interrupted.
    #[must_use]
    pub fn followed_by(mut self, later: Self) -> Self {
        let Outcome::Measured(Measured { samples, warmup, passes, stopped_by }) = &mut self else { return later };
        match later {
            Outcome::Measured(later) => {
                samples.extend(later.samples);
                warmup.extend(later.warmup);
                passes.extend(later.passes);
                // Where one pass had no more time, the row has fewer samples than were asked for.
                *stopped_by = match (*stopped_by, later.stopped_by) {
                    (StoppedBy::TimeLimit, StoppedBy::Samples | StoppedBy::RelativeError) => StoppedBy::TimeLimit,
                    (_, by) => by,
                };
            }
            Outcome::Interrupted => {
                let (rows, now) = passes.last().map_or((1, 0.0), |pass| (pass.rows, pass.ended));
                passes.push(Pass { samples: 0, warmup: 0, rows, began: now, ended: now });
                *stopped_by = StoppedBy::Interrupt;
            }
            _ => *stopped_by = StoppedBy::Failure,
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_off_with_a_pass_is_all_of_its_samples_and_of_its_warmup() {
        let pass = |slow: &[f64], warmup: &[f64], stopped_by| {
            let sample = |slowdown: &f64| Sample { value: 1.0, order: None, started: None, slowdown: Some(*slowdown) };
            let passes = vec![Pass { samples: slow.len(), warmup: warmup.len(), rows: 1, began: 0.0, ended: 1.0 }];
            let samples = slow.iter().map(sample).collect();
            Outcome::Measured(Measured { samples, warmup: warmup.to_vec(), passes, stopped_by })
        };
        let whole = pass(&[1.0, 1.5], &[7.0, 8.0], StoppedBy::Samples);
        let both = whole.clone().followed_by(pass(&[2.0], &[9.0], StoppedBy::Interrupt));
        let slowdown = both.measured().unwrap().samples.iter().filter_map(|own| own.slowdown);
        assert_eq!(slowdown.collect::<Vec<f64>>(), [1.0, 1.5, 2.0]);
        assert_eq!(both.whole_passes(), Some(whole), "the second pass was cut short");
    }

    #[test]
    fn samples_are_columns_in_a_file_of_which_each_has_all_of_them_or_none() {
        let text = r#"{"measured":{"samples":[1.5,2.5],"order":[1,0],"started":[0.0,3.0],"stopped_by":"samples"}}"#;
        let outcome: Outcome = serde_json::from_str(text).unwrap();
        let second = Sample { value: 2.5, order: Some(0), started: Some(3.0), slowdown: None };
        assert_eq!(outcome.measured().unwrap().samples[1], second);
        assert_eq!(serde_json::to_string(&outcome).unwrap(), text);
        let cut = text.replace("[1,0]", "[1]");
        let refusal = serde_json::from_str::<Outcome>(&cut).unwrap_err().to_string();
        assert!(refusal.contains("2 samples, and the places of its samples are 1"), "{refusal}");
    }

    #[test]
    fn a_computed_value_that_is_no_finite_number_is_none_and_its_round_is_named() {
        let of =
            |formula: &str| Outcome::computed(formula, &[("hits", &[3.0, 0.0]), ("misses", &[1.0, 0.0])], &[].into());
        for formula in ["hits / misses", "1 / misses", "hits × 1e308"] {
            let Outcome::Failed { reason } = of(formula) else { panic!("{formula}: {:?}", of(formula)) };
            let round = if formula.starts_with("hits ×") { 1 } else { 2 };
            assert_eq!(reason, format!("the formula `{formula}` gives no finite number in round {round}"));
        }
        assert_eq!(of("hits − misses"), Outcome::Derived { samples: vec![2.0, 0.0] });
    }

    #[test]
    fn what_was_recorded_of_some_samples_alone_leaves_a_row_that_can_be_read() {
        let sample = |part: Option<f64>| Sample { value: 1.0, order: None, started: part, slowdown: part };
        let samples = vec![sample(Some(1.0)), sample(None)];
        let (warmup, passes, stopped_by) = (Vec::new(), Vec::new(), StoppedBy::Samples);
        let text = serde_json::to_string(&Outcome::Measured(Measured { samples, warmup, passes, stopped_by })).unwrap();
        assert_eq!(serde_json::from_str::<Outcome>(&text).unwrap(), Outcome::of_samples(vec![1.0; 2], stopped_by));
    }

    #[test]
    fn a_row_whose_rounds_take_long_has_done_several_passes_with_each() {
        let passes_of = |round: f64, count: usize| {
            let mut outcome = Outcome::of_samples(vec![1.0; count], StoppedBy::Samples);
            if let Outcome::Measured(measured) = &mut outcome {
                measured.passes.resize(count, Pass { samples: 1, warmup: 0, rows: 1, began: 1.0, ended: 1.0 + round });
            }
            outcome
        };
        let [passes, short] = [3, 9].map(|count| std::num::NonZeroUsize::new(count).unwrap());
        let sampling = Protocol { passes, short_passes: Some(short), ..Protocol::samples(9) };
        let done = |round, count| passes_of(round, count).passes_done(&sampling);
        assert_eq!((done(0.001, 1), done(0.001, 9)), (1, 9));
        assert_eq!((done(0.02, 1), done(0.02, 2), done(0.02, 3)), (3, 6, 9));
        let cut = passes_of(0.02, 2).followed_by(Outcome::Interrupted);
        assert_eq!(cut.passes_done(&sampling), 6, "the third was cut short");
    }
}
