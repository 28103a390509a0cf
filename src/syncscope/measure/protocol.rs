//! The protocol of a measurement: how to warm up and when to stop.

use std::num::NonZeroUsize;

use crate::error::MeasureError;

/// How cases are sampled: the warm-up, and the stopping rules. Sampling stops at the first rule that is met; at least one
/// must be stated. The rules are checked after each complete round.
///
/// ```
/// use syncscope::measure::Protocol;
///
/// let protocol = Protocol::samples(30).with_warmup(3).with_time_limit(2.0);
/// assert!(protocol.validate().is_ok());
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Protocol {
    /// The fewest rounds before the first sample is kept: they load kernels, search matmul plans and raise clock rates. Up
    /// to three times as many are made while samples, clock rate or power still move.
    #[cfg_attr(feature = "serde", serde(default = "default_warmup"))]
    pub warmup: usize,
    /// Stop after this many samples of each case.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub samples: Option<NonZeroUsize>,
    /// Stop once the 95 % interval of each case's median is no wider than ± this share of the median. A case with a median
    /// of 0 may never reach it.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub relative_error: Option<f64>,
    /// Stop after this many seconds of sampling for each case, counted from the first round that is kept: cases that are
    /// sampled together share what each of them has. A round is always completed, and at least `fewest` rounds are kept, unless
    /// `samples` is lower.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub time_limit: Option<f64>,
    /// The fewest samples that a time limit leaves; where it is not stated, [`Protocol::MINIMUM`]. Fewer do where several runs
    /// give the interval.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub fewest: Option<NonZeroUsize>,
    /// In how many passes a run of a suite goes through its experiments. Each row takes its share of `samples` and `time_limit`
    /// in each pass, so that a disturbance which lasts for seconds meets a part of them. A row of which one sample takes longer
    /// than its share takes one in each pass, until it has the fewest. Not for a [`Sampler`](super::Sampler) by itself, which
    /// takes all at once.
    #[cfg_attr(feature = "serde", serde(default = "one", skip_serializing_if = "is_one"))]
    pub passes: NonZeroUsize,
    /// In how many passes the rows are sampled of which a round takes less than 10 ms: a multiple of `passes`. Such rows cost
    /// little, and what disturbs the host for a second shows in them most. In a run that another system makes they have `passes`.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub short_passes: Option<NonZeroUsize>,
    /// Seeds the order of the cases within a round.
    #[cfg_attr(feature = "serde", serde(default))]
    pub seed: u64,
}

#[cfg(feature = "serde")]
fn one() -> NonZeroUsize {
    NonZeroUsize::MIN
}

#[cfg(feature = "serde")]
fn is_one(passes: &NonZeroUsize) -> bool {
    passes.get() == 1
}

fn default_warmup() -> usize {
    2
}

/// Two warm-up rounds, then 30 samples or a second for each case, whichever comes first.
impl Default for Protocol {
    fn default() -> Self {
        Self::samples(30).with_time_limit(1.0)
    }
}

impl Protocol {
    /// The fewest rounds that a time limit leaves, unless [`fewest`](Self::fewest) says otherwise: fewer samples of one run
    /// give no 95 % interval of a median.
    pub const MINIMUM: usize = 6;

    /// The most rounds where `samples` is not stated: a relative error that is never reached must end, too, and a case of a
    /// few nanoseconds must not fill the memory.
    pub const MAXIMUM: usize = 10_000;

    /// The most rounds of warm-up that may be stated.
    const MAX_WARMUP: usize = 100_000;

    /// The most samples of each case that may be stated.
    const MAX_SAMPLES: usize = 1_000_000;

    /// The longest time limit, in seconds: a day.
    const MAX_SECONDS: f64 = 86_400.0;

    /// Stops after `count` samples of each case. 0 states no rule.
    pub fn samples(count: usize) -> Self {
        Self {
            warmup: default_warmup(),
            samples: NonZeroUsize::new(count),
            relative_error: None,
            time_limit: None,
            fewest: None,
            passes: NonZeroUsize::MIN,
            short_passes: None,
            seed: 0,
        }
    }

    /// Stops once each case's median is known to ± `share` of itself.
    ///
    /// ```
    /// use syncscope::measure::Protocol;
    ///
    /// assert_eq!(Protocol::until_relative_error(0.01).relative_error, Some(0.01));
    /// ```
    pub fn until_relative_error(share: f64) -> Self {
        Self { relative_error: Some(share), ..Self::samples(0) }
    }

    /// Stops after `seconds` for each case.
    pub fn for_seconds(seconds: f64) -> Self {
        Self::samples(0).with_time_limit(seconds)
    }

    /// With `rounds` of warm-up.
    #[must_use]
    pub fn with_warmup(mut self, rounds: usize) -> Self {
        self.warmup = rounds;
        self
    }

    /// Also stops after `seconds` for each case.
    #[must_use]
    pub fn with_time_limit(mut self, seconds: f64) -> Self {
        self.time_limit = Some(seconds);
        self
    }

    /// How many passes there are.
    pub fn all_passes(&self) -> usize {
        self.short_passes.unwrap_or(self.passes).get()
    }

    /// Of how many passes a row takes part in one whose rounds take so many seconds.
    pub fn stride(&self, round: f64) -> usize {
        /// How long a round of a short row takes at most, in seconds.
        const SHORT: f64 = 0.01;
        if round < SHORT { 1 } else { self.all_passes() / self.passes.get() }
    }

    /// That of a row that takes part in one of so many passes only: with its share of all of them.
    #[must_use]
    pub fn of_stride(&self, stride: usize) -> Self {
        let samples =
            self.samples.map(|count| count.saturating_mul(NonZeroUsize::new(stride).unwrap_or(NonZeroUsize::MIN)));
        Self { samples, time_limit: self.time_limit.map(|limit| limit * stride as f64), ..self.clone() }
    }

    /// The protocol of one of its passes, from 0: a share of what the rules say. What a first warm-up loads is loaded later on,
    /// so that one round is enough then where nothing moves; and one sample is, since the other passes add theirs.
    #[must_use]
    pub fn of_pass(&self, pass: usize) -> Self {
        let passes = self.all_passes();
        let share = |count: NonZeroUsize| {
            let (each, more) = (count.get() / passes, count.get() % passes);
            NonZeroUsize::new(each + usize::from(pass < more)).unwrap_or(NonZeroUsize::MIN)
        };
        Self {
            warmup: if pass == 0 { self.warmup } else { self.warmup.min(1) },
            samples: self.samples.map(share),
            time_limit: self.time_limit.map(|limit| limit / passes as f64),
            fewest: if passes == 1 { self.fewest } else { Some(NonZeroUsize::MIN) },
            passes: NonZeroUsize::MIN,
            short_passes: None,
            ..self.clone()
        }
    }

    /// The time limit of so many cases that are sampled together, in seconds.
    pub fn time_limit_of(&self, cases: usize) -> Option<f64> {
        self.time_limit.map(|limit| limit * cases as f64)
    }

    /// The fewest rounds that a time limit leaves.
    pub fn least_rounds(&self) -> usize {
        self.fewest.map_or(Self::MINIMUM, NonZeroUsize::get)
    }

    /// With another order of the cases within the rounds, by this seed.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Checks that sampling stops.
    ///
    /// ```
    /// use syncscope::measure::Protocol;
    ///
    /// assert!(Protocol::samples(0).validate().is_err(), "it never stops");
    /// ```
    ///
    /// # Errors
    /// [`MeasureError::Plan`] says which rule is missing or meaningless.
    pub fn validate(&self) -> Result<(), MeasureError> {
        let refuse = |reason: String| Err(MeasureError::Plan(reason));
        if self.samples.is_none() && self.relative_error.is_none() && self.time_limit.is_none() {
            return refuse("it never stops; state `samples`, `relative_error` or `time_limit`".to_owned());
        }
        let samples = self.samples.map_or(0, NonZeroUsize::get);
        let excess = [
            ("warmup", self.warmup, Self::MAX_WARMUP),
            ("samples", samples, Self::MAX_SAMPLES),
            ("fewest", self.least_rounds(), Self::MAX_SAMPLES),
        ];
        if let Some((name, count, most)) = excess.into_iter().find(|(_, count, most)| count > most) {
            return refuse(format!("`{name}` is {count}, more than {most}, the most that a machine is asked for"));
        }
        let most = if samples > 0 { samples } else { Self::MAXIMUM };
        let short = self.short_passes.unwrap_or(self.passes);
        let shared = [("passes", self.passes.get()), ("short_passes", short.get())];
        if let Some((name, passes)) = shared.into_iter().find(|(_, passes)| *passes > most) {
            return refuse(format!("`{name}` is {passes}, more than {most}, the samples that they are to share"));
        }
        if !short.get().is_multiple_of(self.passes.get()) {
            return refuse(format!("`short_passes` is {short}, which is no multiple of `passes`, {}", self.passes));
        }
        match (self.relative_error, self.time_limit) {
            (Some(share), _) if !(share > 0.0 && share < 1.0) => {
                refuse(format!("`relative_error` is {share}; it is a share between 0 and 1, such as 0.01 for ± 1 %"))
            }
            (_, Some(seconds)) if !(seconds > 0.0 && seconds <= Self::MAX_SECONDS) => refuse(format!(
                "`time_limit` is {seconds}; it is a number of seconds greater than 0, and at most a day"
            )),
            _ => Ok(()),
        }
    }
}

/// The rule that ended the sampling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum StoppedBy {
    /// The stated number of samples was reached, or, where none was stated, [`Protocol::MAXIMUM`].
    Samples,
    /// The stated relative error of every case's median was reached.
    RelativeError,
    /// The stated time had passed.
    TimeLimit,
    /// The user asked to stop; the samples taken so far are kept.
    Interrupt,
    /// A later pass of the run failed; the samples of those before it are kept.
    Failure,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In so many passes; 0 short ones are as many as the others.
    fn in_passes(protocol: Protocol, passes: usize, short: usize) -> Protocol {
        let passes = NonZeroUsize::new(passes).unwrap();
        Protocol { passes, short_passes: NonZeroUsize::new(short), ..protocol }
    }

    #[test]
    fn the_default_protocol_and_every_single_rule_are_valid() {
        for protocol in [
            Protocol::default(),
            Protocol::samples(1),
            Protocol::until_relative_error(0.01),
            Protocol::for_seconds(0.5).with_warmup(0).with_seed(3),
        ] {
            assert!(protocol.validate().is_ok(), "{protocol:?}");
        }
        assert_eq!((Protocol::default().warmup, Protocol::default().time_limit), (2, Some(1.0)));
    }

    #[test]
    fn the_passes_share_what_the_rules_say() {
        let of_two = Protocol { fewest: NonZeroUsize::new(2), ..Protocol::samples(11).with_time_limit(0.9) };
        let whole = in_passes(of_two.with_warmup(3), 3, 0);
        let shares: Vec<Protocol> = (0..3).map(|pass| whole.of_pass(pass)).collect();
        let samples = shares.iter().filter_map(|share| share.samples).map(usize::from);
        assert_eq!(samples.collect::<Vec<_>>(), [4, 4, 3]);
        assert_eq!(shares.iter().map(Protocol::least_rounds).collect::<Vec<_>>(), [1, 1, 1], "one at least");
        assert_eq!(shares.iter().map(|share| share.warmup).collect::<Vec<_>>(), [3, 1, 1]);
        assert!(shares.iter().all(|share| (share.time_limit.unwrap() - 0.3).abs() < 1e-12 && share.validate().is_ok()));
        assert_eq!(whole.clone().with_warmup(0).of_pass(1).warmup, 0);
        let one = Protocol::samples(11).with_time_limit(0.9);
        assert_eq!(one.of_pass(0), one, "one pass has all");
    }

    #[test]
    fn short_rows_have_more_passes_and_the_others_one_of_several_with_its_share_of_all() {
        let whole = in_passes(Protocol::samples(14).with_time_limit(0.6), 2, 6);
        assert!(whole.validate().is_ok());
        let share = whole.of_pass(0);
        assert_eq!((share.samples.map(usize::from), share.all_passes()), (Some(3), 1));
        assert!((share.time_limit.unwrap() - 0.1).abs() < 1e-12);
        assert_eq!((whole.stride(0.009), whole.stride(0.01)), (1, 3));
        let long = share.of_stride(3);
        assert_eq!(long.samples.map(usize::from), Some(9));
        assert!((long.time_limit.unwrap() - 0.3).abs() < 1e-12);
        assert_eq!(in_passes(Protocol::samples(9), 3, 0).stride(1.0), 1);
    }

    #[test]
    fn a_protocol_that_never_stops_is_refused() {
        for protocol in [
            Protocol::samples(0),
            Protocol::until_relative_error(0.0),
            Protocol::until_relative_error(1.0),
            Protocol { relative_error: Some(f64::NAN), ..Protocol::samples(5) },
            Protocol::for_seconds(0.0),
            Protocol::for_seconds(f64::INFINITY),
            Protocol::samples(5).with_time_limit(f64::NAN),
            Protocol::samples(5).with_time_limit(1e300),
            Protocol::samples(usize::MAX),
            Protocol::samples(5).with_warmup(usize::MAX),
            Protocol { fewest: Some(NonZeroUsize::MAX), ..Protocol::samples(5) },
            in_passes(Protocol::samples(5), 6, 0),
            in_passes(Protocol::for_seconds(1.0), usize::MAX, 0),
            in_passes(Protocol::samples(5), 2, 6),
            in_passes(Protocol::samples(9), 2, 5),
        ] {
            assert!(matches!(protocol.validate(), Err(MeasureError::Plan(_))), "{protocol:?}");
        }
    }
}
