//! When a warm-up has lasted long enough.
//!
//! # Method
//! After the rounds that the protocol asks for, the warm-up goes on until nothing moves any more: the last three samples of
//! no case rise or fall in one direction by more than 5 %, and in the last round the device's clock rate has moved by no more
//! than 2 % and its power by no more than 10 %, where it has sensors. It ends in any case after three times the
//! rounds asked for, or after the time limit: then also before all rounds asked for, but not before two of them. What was
//! not steady then shows in the samples that are kept, as a trend.
//!
//! One round shows no movement, and two show little. Where one is asked for, a second follows if the first took less than
//! 60 ms, and a third if a case fell by more than 30 % from the first to the second: the first load of code, of a cache, or of
//! what a stream keeps is then behind it. Longer rounds are mostly of work beside which that is little. Shorter ones go on until
//! they have taken 3 ms together, or are eight: calls of some microseconds take twice as long until the host's caches hold again
//! what other work has driven out of them.

use super::protocol::Protocol;
use crate::device::Telemetry;

/// How far the last three samples of a case may move in one direction.
const SAMPLES_MOVE: f64 = 0.05;
/// How far the clock rate may move from one round to the next.
const CLOCK_MOVES: f64 = 0.02;
/// How far the power may move from one round to the next.
const POWER_MOVES: f64 = 0.1;
/// How far a case falls from the first round to the second where the first still loaded something.
const LOADS: f64 = 0.3;
/// How long a round may take that a second one is added to, in seconds.
const SHORT: f64 = 0.06;
/// Up to how many rounds follow where one is asked for and all of them are short, and how long they take together, in seconds.
const BRIEF_ROUNDS: usize = 8;
const BRIEF: f64 = 0.003;
/// The limit, in rounds asked for.
const MAX_ROUNDS: usize = 3;
/// The rounds that are made of those asked for, however long they take: the first loads what the others only run.
const FEWEST_ROUNDS: usize = 2;

/// The warm-up of some cases.
pub(crate) struct Warmup<'a> {
    protocol: &'a Protocol,
    /// What was sampled, case by case.
    pub(crate) samples: Vec<Vec<f64>>,
    /// The rounds kept so far.
    pub(crate) rounds: usize,
    /// Clock rate and power before the first round and after each, where they can be read.
    conditions: Vec<(Option<f64>, Option<f64>)>,
}

impl<'a> Warmup<'a> {
    /// One that begins under the conditions that `sensors` show.
    pub(super) fn new(protocol: &'a Protocol, cases: usize, sensors: Option<&Telemetry>) -> Self {
        Self { protocol, samples: vec![Vec::new(); cases], rounds: 0, conditions: vec![conditions(sensors)] }
    }

    /// Adds a complete round.
    pub(crate) fn keep(&mut self, round: impl Iterator<Item = f64>, sensors: Option<&Telemetry>) {
        self.samples.iter_mut().zip(round).for_each(|(samples, value)| samples.push(value));
        self.rounds += 1;
        self.conditions.push(conditions(sensors));
    }

    /// Whether it has lasted long enough, `elapsed` seconds after it began.
    pub(crate) fn is_over(&self, elapsed: f64) -> bool {
        let (rounds, asked) = (self.rounds, self.protocol.warmup);
        let limit = self.protocol.time_limit_of(self.samples.len());
        let is_late = limit.is_some_and(|limit| elapsed >= limit);
        let asked = if is_late { asked.min(FEWEST_ROUNDS) } else { asked };
        // Without a warm-up asked for there is none.
        let is_long = || is_late || rounds >= asked.saturating_mul(MAX_ROUNDS);
        let is_one = rounds == 1 && elapsed < SHORT;
        let is_brief = asked == 1 && rounds < BRIEF_ROUNDS && elapsed < BRIEF && !is_late;
        asked == 0 || rounds >= asked && !is_brief && (is_long() || !is_one && self.is_steady())
    }

    fn is_steady(&self) -> bool {
        self.samples.iter().all(|samples| !is_moving(samples)) && self.conditions_are_steady()
    }

    fn conditions_are_steady(&self) -> bool {
        let [.., before, last] = self.conditions.as_slice() else { return true };
        let within = |a: Option<f64>, b: Option<f64>, share: f64| match (a, b) {
            (Some(a), Some(b)) => (a - b).abs() <= share * a.abs(),
            _ => true,
        };
        within(before.0, last.0, CLOCK_MOVES) && within(before.1, last.1, POWER_MOVES)
    }
}

/// Clock rate and power.
fn conditions(sensors: Option<&Telemetry>) -> (Option<f64>, Option<f64>) {
    let clock = sensors.and_then(|sensors| sensors.sm_clock_mhz).map(f64::from);
    (clock, sensors.and_then(|sensors| sensors.power_w))
}

fn is_moving(samples: &[f64]) -> bool {
    match *samples {
        [a, b] => b < (1.0 - LOADS) * a,
        [.., a, b, c] => ((a < b && b < c) || (a > b && b > c)) && (c - a).abs() > SAMPLES_MOVE * b.abs(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(rounds: &[f64], clocks: &[u32], asked: usize) -> bool {
        let protocol = Protocol::samples(10).with_warmup(asked);
        let sensors = |clock: &u32| Telemetry { sm_clock_mhz: Some(*clock), ..Telemetry::default() };
        let clocks: Vec<Telemetry> = clocks.iter().map(sensors).collect();
        let mut warmup = Warmup::new(&protocol, 1, clocks.first());
        for (place, value) in rounds.iter().enumerate() {
            warmup.keep([*value].into_iter(), clocks.get(place + 1));
        }
        warmup.is_over(0.0)
    }

    #[test]
    fn it_lasts_until_the_samples_no_longer_move() {
        assert!(!after(&[1.0, 1.0], &[], 3));
        assert!(after(&[1.0, 1.0, 1.0], &[], 3));
        assert!(!after(&[1.5, 1.3, 1.1], &[], 3));
        assert!(after(&[1.5, 1.3, 1.1, 1.12], &[], 3));
        assert!(after(&[1.02, 1.01, 1.0], &[], 3), "a move of 2 % is none");
    }

    #[test]
    fn it_lasts_until_the_clock_no_longer_moves() {
        assert!(!after(&[1.0; 3], &[345, 1980, 1980, 1600], 3));
        assert!(after(&[1.0; 4], &[345, 1980, 1980, 1600, 1605], 3));
        assert!(after(&[1.0; 2], &[345, 1980, 1980], 2));
    }

    #[test]
    fn where_one_round_is_asked_for_a_long_one_is_enough_and_short_are_more() {
        let over = |rounds: &[f64], elapsed: f64| {
            let protocol = Protocol::samples(10).with_warmup(1);
            let mut warmup = Warmup::new(&protocol, 1, None);
            rounds.iter().for_each(|value| warmup.keep([*value].into_iter(), None));
            warmup.is_over(elapsed)
        };
        assert!(!over(&[1.0], 0.01) && over(&[1.0], 0.06));
        assert!(over(&[1.0, 0.75], 0.02) && !over(&[1.0, 0.65], 0.02));
        assert!(over(&[1.0, 0.6, 0.3], 0.03));
        assert!(!over(&[1.0; 7], 0.002) && over(&[1.0; 8], 0.002) && over(&[1.0; 2], 0.003), "brief ones are more");
    }

    #[test]
    fn it_ends_at_its_limit_whatever_moves() {
        let falling: Vec<f64> = (0..9).map(|i| 10.0 - f64::from(i)).collect();
        assert!(!after(&falling[..8], &[], 3) && after(&falling, &[], 3));
        assert!(after(&[], &[], 0), "none was asked for");
        let protocol = Protocol::samples(10).with_warmup(2).with_time_limit(2.0);
        let mut warmup = Warmup::new(&protocol, 1, None);
        [4.0, 3.0, 2.0].into_iter().for_each(|value| warmup.keep([value].into_iter(), None));
        assert!(!warmup.is_over(1.9), "what moves is waited for up to the limit");
        assert!(warmup.is_over(2.0));
    }

    #[test]
    fn the_time_limit_ends_a_warm_up_of_any_number_of_rounds() {
        let protocol = Protocol::samples(10).with_warmup(usize::MAX).with_time_limit(2.0);
        let mut warmup = Warmup::new(&protocol, 1, None);
        warmup.keep([1.0].into_iter(), None);
        assert!(!warmup.is_over(9.0), "one round has loaded and not yet run");
        warmup.keep([1.0].into_iter(), None);
        assert!(!warmup.is_over(1.9) && warmup.is_over(2.0));
    }
}
