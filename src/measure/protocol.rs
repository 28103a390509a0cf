//! The plan of a sampling: how to warm up and when to stop.

use std::num::NonZeroUsize;

use crate::error::MeasureError;

/// How cases are sampled: warm-up, and the rules that end it. Protocol ends at the first rule that is met; at least
/// one must be stated. The rules are checked after each whole round.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "report", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
#[non_exhaustive]
pub struct Protocol {
    /// Rounds before the first sample is kept: they load kernels, search matmul plans and raise clocks.
    #[cfg_attr(feature = "serde", serde(default = "default_warmup"))]
    pub warmup: usize,
    /// Stop after this many samples of each case.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub samples: Option<NonZeroUsize>,
    /// Stop once the 95 % interval of each case's median is no wider than ± this share of the median. A case whose median
    /// is 0 may never get there.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub relative_error: Option<f64>,
    /// Stop after this many seconds of sampling, counted from the first round that is kept. A round that has begun is
    /// finished, and at least [`Protocol::MINIMUM`] rounds are kept, unless `samples` says fewer.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub time_limit: Option<f64>,
    /// Seeds the order of the cases within a round.
    #[cfg_attr(feature = "serde", serde(default))]
    pub seed: u64,
}

fn default_warmup() -> usize {
    2
}

/// Two warm-up rounds, then 30 samples or 2 seconds, whichever comes first.
impl Default for Protocol {
    fn default() -> Self {
        Self::samples(30).with_time_limit(2.0)
    }
}

impl Protocol {
    /// The fewest rounds that a time limit leaves: fewer samples have no 95 % interval of a median.
    pub const MINIMUM: usize = 6;

    /// The most rounds where `samples` is not stated, so that a relative error that is never reached ends too, and a
    /// case of a few nanoseconds does not fill the memory.
    pub const MAXIMUM: usize = 10_000;

    /// Ends after `count` samples of each case. 0 states no rule.
    pub fn samples(count: usize) -> Self {
        Self::without_rule().with_samples(count)
    }

    /// Ends once each case's median is known to ± `share` of itself.
    pub fn until_relative_error(share: f64) -> Self {
        Self::without_rule().with_relative_error(share)
    }

    /// Ends after `seconds`.
    pub fn for_seconds(seconds: f64) -> Self {
        Self::without_rule().with_time_limit(seconds)
    }

    fn without_rule() -> Self {
        Self { warmup: default_warmup(), samples: None, relative_error: None, time_limit: None, seed: 0 }
    }

    /// With `rounds` of warm-up.
    #[must_use]
    pub fn with_warmup(mut self, rounds: usize) -> Self {
        self.warmup = rounds;
        self
    }

    /// Also ends after `count` samples of each case. 0 takes the rule away.
    #[must_use]
    pub fn with_samples(mut self, count: usize) -> Self {
        self.samples = NonZeroUsize::new(count);
        self
    }

    /// Also ends once each case's median is known to ± `share` of itself.
    #[must_use]
    pub fn with_relative_error(mut self, share: f64) -> Self {
        self.relative_error = Some(share);
        self
    }

    /// Also ends after `seconds`.
    #[must_use]
    pub fn with_time_limit(mut self, seconds: f64) -> Self {
        self.time_limit = Some(seconds);
        self
    }

    /// With another order of the cases within the rounds.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Checks that the plan ends.
    ///
    /// # Errors
    /// [`MeasureError::Plan`] says which rule is missing or has no meaning.
    pub fn validate(&self) -> Result<(), MeasureError> {
        let refuse = |reason: String| Err(MeasureError::Plan(reason));
        if self.samples.is_none() && self.relative_error.is_none() && self.time_limit.is_none() {
            return refuse("it never ends; state `samples`, `relative_error` or `time_limit`".to_owned());
        }
        match (self.relative_error, self.time_limit) {
            (Some(share), _) if !(share > 0.0 && share < 1.0) => {
                refuse(format!("`relative_error` is {share}; it is a share between 0 and 1, such as 0.01 for ± 1 %"))
            }
            (_, Some(seconds)) if !(seconds > 0.0 && seconds.is_finite()) => {
                refuse(format!("`time_limit` is {seconds}; it is a number of seconds greater than 0"))
            }
            _ => Ok(()),
        }
    }
}

/// What takes a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "report", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Clock {
    /// The host's monotonic clock.
    Host,
    /// Two events on a stream of the device.
    DeviceEvents,
    /// Not a time: a value that was observed.
    Observed,
}

/// Which rule ended the sampling of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "report", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum StoppedBy {
    /// The stated number of samples was reached, or, where none was stated, [`Protocol::MAXIMUM`].
    Samples,
    /// The stated relative error of every case's median was reached.
    RelativeError,
    /// The stated time had passed.
    TimeLimit,
    /// The user asked to stop; what had been taken is kept.
    Interrupt,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_plan_and_every_single_rule_are_valid() {
        for plan in [
            Protocol::default(),
            Protocol::samples(1),
            Protocol::until_relative_error(0.01),
            Protocol::for_seconds(0.5).with_warmup(0).with_seed(3),
        ] {
            assert!(plan.validate().is_ok(), "{plan:?}");
        }
        assert_eq!((Protocol::default().warmup, Protocol::default().time_limit), (2, Some(2.0)));
    }

    #[test]
    fn a_plan_that_cannot_end_is_refused() {
        for plan in [
            Protocol::samples(0),
            Protocol::until_relative_error(0.0),
            Protocol::until_relative_error(1.0),
            Protocol::samples(5).with_relative_error(f64::NAN),
            Protocol::for_seconds(0.0),
            Protocol::for_seconds(f64::INFINITY),
            Protocol::samples(5).with_time_limit(f64::NAN),
        ] {
            assert!(matches!(plan.validate(), Err(MeasureError::Plan(_))), "{plan:?}");
        }
    }
}
