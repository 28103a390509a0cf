//! Which calls have their stacks taken where not all have.
//!
//! # Method
//! The times of the calls are put one behind the other, and the stack of the call is taken in which the next mark falls.
//! The distance to the mark after it is drawn evenly from 0 to twice its mean. So each nanosecond in a call is as likely as
//! any other to be found (sampling in proportion to size), a loop cannot run in step with the marks, and a call that is
//! twice as long as the mean distance is always found.
//!
//! The mean distance is such that stacks take [`SHARE`] of the time that passes: what a stack took, and which part of the
//! time calls took, are measured as it goes on. Where calls are rare, each has its stack. What such a time leaves of the share
//! is spent soon after it: a short loop behind a long start has its stacks, too.

use std::sync::atomic::{AtomicU64, Ordering};

/// Stacks of calls take one part of the time in so many, and samples of threads another.
pub(crate) const SHARE: u64 = 200;
/// What a stack takes before one was taken, in nanoseconds.
const EXPECTED: u64 = 10_000;
/// What is left of the share is spent within this time, in nanoseconds, and no more is kept for later than makes so many of the
/// share.
const SOON: u64 = 500_000_000;
const AT_MOST: u64 = 10;

/// Where random numbers begin.
pub(crate) const SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// The random number after this one, which is not 0.
pub(crate) fn shuffled(mut random: u64) -> u64 {
    random ^= random << 13;
    random ^= random >> 7;
    random ^ random << 17
}

/// All times are nanoseconds.
pub(crate) struct Sampling {
    /// The time in calls since the last mark.
    passed: AtomicU64,
    /// Where in it the next mark is.
    mark: AtomicU64,
    /// When the last stack had been taken; 0 before the first.
    since: AtomicU64,
    /// What a stack takes, smoothed.
    cost: AtomicU64,
    /// What is left of the share.
    left: AtomicU64,
    random: AtomicU64,
}

impl Sampling {
    /// The first call has its stack taken.
    pub(crate) const fn new() -> Self {
        Self {
            passed: AtomicU64::new(0),
            mark: AtomicU64::new(1),
            since: AtomicU64::new(0),
            cost: AtomicU64::new(EXPECTED),
            left: AtomicU64::new(0),
            random: AtomicU64::new(SEED),
        }
    }

    /// Whether a mark falls in a call of this length. After that none does, on any thread, until the stack was [`taken`].
    ///
    /// [`taken`]: Self::taken
    pub(crate) fn falls_in(&self, call: u64) -> bool {
        // No call is without length: the clock is too coarse.
        let call = call.max(1);
        let before = self.passed.fetch_add(call, Ordering::Relaxed);
        let mark = self.mark.load(Ordering::Relaxed);
        before < mark && mark <= before.saturating_add(call)
    }

    /// Sets the next mark: the stack was taken between these two times.
    pub(crate) fn taken(&self, begin: u64, end: u64) {
        // Only the one thread whose stack was taken comes here.
        let took = end.saturating_sub(begin);
        let cost = (3 * self.cost.load(Ordering::Relaxed) + took) / 4;
        self.cost.store(cost, Ordering::Relaxed);
        let since = self.since.swap(end, Ordering::Relaxed);
        let elapsed = begin.saturating_sub(since).max(1);
        let gained = if since == 0 { 0 } else { end.saturating_sub(since) / SHARE };
        let left = (self.left.load(Ordering::Relaxed) + gained).saturating_sub(took).min((AT_MOST - 1) * SOON / SHARE);
        self.left.store(left, Ordering::Relaxed);
        let passed = self.passed.load(Ordering::Relaxed);
        let share = SHARE as f64 / (1.0 + (SHARE * left) as f64 / SOON as f64);
        let mean = share * cost as f64 * passed.min(elapsed) as f64 / elapsed as f64;
        let random = shuffled(self.random.load(Ordering::Relaxed));
        self.random.store(random, Ordering::Relaxed);
        let distance = 1 + random % (2 * mean as u64).max(1);
        // In this order: a mark that was passed already is none.
        self.mark.store(distance, Ordering::Relaxed);
        self.passed.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls of these lengths in turn, each this long after the one before, and stacks that take `cost`: how many of each
    /// were found, and which part of all time stacks took.
    fn run(lengths: &[u64], between: u64, cost: u64, rounds: usize) -> (Vec<u64>, f64) {
        let sampling = Sampling::new();
        let (mut now, mut spent) = (0, 0);
        let mut found = vec![0; lengths.len()];
        for _ in 0..rounds {
            for (length, found) in lengths.iter().zip(&mut found) {
                now += between + length;
                if sampling.falls_in(*length) {
                    *found += 1;
                    sampling.taken(now, now + cost);
                    now += cost;
                    spent += cost;
                }
            }
        }
        (found, spent as f64 / now as f64)
    }

    #[test]
    fn stacks_take_half_a_hundredth_of_the_time_of_dense_calls() {
        for (length, cost) in [(3_000, 13_000), (1_000, 50_000), (60_000, 13_000), (100, 13_000)] {
            let (_, share) = run(&[length], 1_000, cost, 400_000);
            assert!((0.0025..0.00625).contains(&share), "{length} ns, {cost} ns: {share}");
        }
    }

    #[test]
    fn a_short_loop_behind_a_long_start_has_its_stacks_and_a_long_one_no_more_than_the_share() {
        let found_in = |rounds| {
            let sampling = Sampling::new();
            let (mut now, cost) = (0, 190_000);
            // The start: a call in 100 ms.
            for _ in 0..40 {
                now += 100_000_000;
                if sampling.falls_in(50_000) {
                    sampling.taken(now, now + cost);
                }
            }
            // A loop with a call of 2.5 ms and two of 0.8 ms in 8 ms.
            let mut found = [0_u64; 3];
            for _ in 0..rounds {
                for (length, found) in [2_500_000, 800_000, 800_000].into_iter().zip(&mut found) {
                    now += 1_300_000 + length;
                    if sampling.falls_in(length) {
                        *found += 1;
                        sampling.taken(now, now + cost);
                        now += cost;
                    }
                }
            }
            found
        };
        let short = found_in(38);
        assert!(short.iter().all(|found| *found >= 5), "{short:?}");
        let long: u64 = found_in(38_000).iter().sum();
        let share = long as f64 * 190e-6 / (38_000.0 * 8e-3);
        assert!((0.004..0.006).contains(&share), "{share}");
    }

    #[test]
    fn calls_are_found_in_proportion_to_their_time_and_not_to_their_place_in_a_loop() {
        let (found, _) = run(&[3_000, 3_000, 12_000, 3_000], 500, 13_000, 400_000);
        let all: u64 = found.iter().sum();
        assert!(all > 2_000, "{found:?}");
        for (found, share) in found.iter().zip([1.0 / 7.0, 1.0 / 7.0, 4.0 / 7.0, 1.0 / 7.0]) {
            let found = *found as f64 / all as f64;
            assert!((found - share).abs() < 0.03, "{found} for {share}");
        }
    }

    #[test]
    fn a_call_that_is_rare_or_much_longer_than_a_stack_takes_is_always_found() {
        let (found, _) = run(&[20_000], 10_000_000, 13_000, 500);
        assert!(found[0] == 500, "{found:?}");
        let (found, _) = run(&[3_000, 3_000, 3_000, 3_000, 6_000_000], 500, 13_000, 500);
        assert!(found[4] == 500, "{found:?}");
    }

    #[test]
    fn no_other_call_is_found_before_the_stack_was_taken() {
        let sampling = Sampling::new();
        assert!(sampling.falls_in(5));
        assert!(!(0..1_000).any(|_| sampling.falls_in(1 << 40)));
        sampling.taken(10, 20);
        assert!((0..1_000).any(|_| sampling.falls_in(1 << 40)));
    }
}
