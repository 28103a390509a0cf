//! When the samples taken so far are enough.

use super::estimate::of_sorted;
use super::protocol::{Protocol, StoppedBy};

/// The rules of a protocol, and what they need to know about the samples.
///
/// The relative error comes from the interval of [`Estimate`](super::Estimate), over samples that are kept sorted: a few comparisons for
/// each round and no resampling, so that the check hardly disturbs the caches between two rounds.
pub(crate) struct Stopping<'a> {
    protocol: &'a Protocol,
    /// The rounds kept so far.
    pub(crate) rounds: usize,
    sorted: Vec<Vec<f64>>,
    worst_error: Option<f64>,
}

impl<'a> Stopping<'a> {
    pub(super) fn new(protocol: &'a Protocol, cases: usize) -> Self {
        Self { protocol, rounds: 0, sorted: vec![Vec::new(); cases], worst_error: None }
    }

    /// Adds a complete round: one value for each case.
    pub(crate) fn keep(&mut self, round: impl IntoIterator<Item = f64>) {
        self.rounds += 1;
        if self.protocol.relative_error.is_none() {
            return;
        }
        for (sorted, value) in self.sorted.iter_mut().zip(round) {
            let place = sorted.partition_point(|kept| *kept < value);
            sorted.insert(place, value);
        }
        let estimates = || self.sorted.iter().map(|sorted| of_sorted(sorted));
        self.worst_error = estimates()
            .all(|estimate| estimate.is_interval())
            .then(|| estimates().map(|estimate| estimate.relative_error()).fold(0.0, f64::max));
    }

    /// The number of rounds after which sampling always stops.
    fn most_rounds(&self) -> usize {
        self.protocol.samples.map_or(Protocol::MAXIMUM, usize::from)
    }

    fn time_limit(&self) -> Option<f64> {
        self.protocol.time_limit_of(self.sorted.len())
    }

    /// The rule that is met, `elapsed` seconds after the first kept round began.
    pub(crate) fn met(&self, elapsed: f64) -> Option<StoppedBy> {
        if self.rounds >= self.most_rounds() {
            return Some(StoppedBy::Samples);
        }
        if self.protocol.relative_error.zip(self.worst_error).is_some_and(|(stated, reached)| reached <= stated) {
            return Some(StoppedBy::RelativeError);
        }
        let late = self.time_limit().is_some_and(|limit| elapsed >= limit);
        (late && self.rounds >= self.protocol.least_rounds()).then_some(StoppedBy::TimeLimit)
    }

    /// The progress of the rule that is nearest to being met, from 0 to 1.
    ///
    /// An interval narrows with the square root of the number of samples, so the progress of the relative error is the
    /// square of stated over reached.
    pub(crate) fn share(&self, elapsed: f64) -> f64 {
        let rounds = self.rounds as f64;
        let samples = rounds / self.most_rounds() as f64;
        let error = self.protocol.relative_error.zip(self.worst_error);
        let error = error.map_or(0.0, |(stated, reached)| if reached > 0.0 { (stated / reached).powi(2) } else { 1.0 });
        let time =
            self.time_limit().map_or(0.0, |limit| elapsed / limit).min(rounds / self.protocol.least_rounds() as f64);
        samples.max(error).max(time).clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use super::*;

    fn after(protocol: &Protocol, rounds: usize, value: impl Fn(usize) -> f64) -> Stopping<'_> {
        let mut stopping = Stopping::new(protocol, 1);
        (0..rounds).for_each(|round| stopping.keep([value(round)]));
        stopping
    }

    #[test]
    fn a_relative_error_needs_enough_samples_for_an_interval() {
        let protocol = Protocol::until_relative_error(0.1);
        assert_eq!(after(&protocol, 5, |_| 1.0).met(0.0), None);
        assert_eq!(after(&protocol, 6, |_| 1.0).met(0.0), Some(StoppedBy::RelativeError));
    }

    #[test]
    fn a_relative_error_that_cannot_be_reached_ends_at_the_maximum() {
        let protocol = Protocol::until_relative_error(0.1);
        let around_zero = |round| if round % 2 == 0 { 1.0 } else { -1.0 };
        assert_eq!(after(&protocol, 200, around_zero).met(0.0), None);
        let mut stopping = after(&protocol, 200, around_zero);
        stopping.rounds = Protocol::MAXIMUM;
        assert_eq!(stopping.met(0.0), Some(StoppedBy::Samples));
    }

    #[test]
    fn cases_that_are_sampled_together_share_the_time_of_each() {
        let protocol = Protocol { fewest: Some(NonZeroUsize::MIN), ..Protocol::for_seconds(2.0) };
        let mut stopping = Stopping::new(&protocol, 3);
        stopping.keep([1.0; 3]);
        assert_eq!((stopping.met(5.9), stopping.met(6.0)), (None, Some(StoppedBy::TimeLimit)));
        assert_eq!(stopping.share(3.0), 0.5);
    }

    #[test]
    fn the_share_is_that_of_the_nearest_rule() {
        let protocol = Protocol::samples(40).with_time_limit(2.0);
        assert_eq!(after(&protocol, 10, |_| 1.0).share(0.1), 0.25);
        assert_eq!(after(&protocol, 10, |_| 1.0).share(1.0), 0.5);
        assert_eq!(after(&protocol, 3, |_| 1.0).share(50.0), 0.5);
    }
}
