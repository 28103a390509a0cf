//! The clock of a device against the clock of the host.
//!
//! # Method
//! The host asks the device for its time, and reads its own clock before it asks and after it has seen the answer. The device
//! told its time between the two. Each question so gives two bounds of the difference of the clocks; of some questions, the
//! narrowest two hold. A time of the device is told on the host's clock by the middle of these bounds. It is off by at most
//! half of their distance and a step of the device's clock.
//!
//! # Limits
//! The clocks are compared after the time that is told, within some hundred microseconds. That one of them is faster by some
//! millionths makes no difference in so short a time.

use std::time::{Duration, Instant};

/// A time of the host's clock that was read on another one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ByHost {
    /// The time.
    pub(crate) at: Instant,
    /// By how much it may be off, in either direction.
    pub(crate) within: Duration,
}

/// A question to the device, and the time that it told, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    /// When the host asked.
    pub(crate) asked: Instant,
    /// What the device told.
    pub(crate) told: u64,
    /// When the host saw the answer.
    pub(crate) seen: Instant,
}

/// Seconds from one instant to another one, which may lie before it.
pub(crate) fn seconds(from: Instant, to: Instant) -> f64 {
    match to.checked_duration_since(from) {
        Some(later) => later.as_secs_f64(),
        None => -from.duration_since(to).as_secs_f64(),
    }
}

/// A time of the device, whose clock goes in steps of so many nanoseconds, on the host's clock; none without answers.
pub(crate) fn by_host(time: u64, step: u64, answers: &[Answer]) -> Option<ByHost> {
    let first = answers.first()?;
    // In nanoseconds since the first question and since its answer.
    let of_host = |instant: Instant| seconds(first.asked, instant) * 1e9;
    let of_device = |time: u64| time.wrapping_sub(first.told).cast_signed() as f64;
    let earliest = answers.iter().map(|answer| of_host(answer.asked) - of_device(answer.told));
    let latest = answers.iter().map(|answer| of_host(answer.seen) - of_device(answer.told));
    let (earliest, latest) = (earliest.fold(f64::NEG_INFINITY, f64::max), latest.fold(f64::INFINITY, f64::min));
    let since = of_device(time) + (earliest + latest) / 2.0;
    let within = (latest - earliest).abs() / 2.0 + step as f64;
    let apart = Duration::from_secs_f64(since.abs() / 1e9);
    let at = if since < 0.0 { first.asked.checked_sub(apart)? } else { first.asked.checked_add(apart)? };
    Some(ByHost { at, within: Duration::from_secs_f64(within / 1e9) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: Duration = Duration::from_micros(1);

    /// A question at `asked` microseconds, whose answer takes this long each way; the device's clock shows `AHEAD` more.
    fn answer(zero: Instant, asked: u32, there: u32, back: u32) -> Answer {
        let (asked, told) = (zero + asked * US, AHEAD.wrapping_add(1000 * u64::from(asked + there)));
        Answer { asked, told, seen: asked + (there + back) * US }
    }

    const AHEAD: u64 = u64::MAX - 5_000;

    #[test]
    fn a_device_time_is_found_on_the_hosts_clock_within_the_stated_bound() {
        let zero = Instant::now() + Duration::from_secs(1);
        // The first is slow to get there, the second slow to come back: together they bound both sides.
        let answers = [answer(zero, 100, 9, 1), answer(zero, 200, 2, 9), answer(zero, 300, 8, 8)];
        for before in [0, 50, 250] {
            let told = by_host(AHEAD.wrapping_add(1000 * before), 32, &answers).unwrap();
            let truth = zero + u32::try_from(before).unwrap() * US;
            assert!(seconds(truth, told.at).abs() <= told.within.as_secs_f64(), "{before}: {told:?}");
            // Half of 1 + 2 microseconds, and a step.
            assert!((told.within.as_secs_f64() - 1.532e-6).abs() < 1e-9, "{told:?}");
        }
        assert_eq!(by_host(0, 1, &[]), None);
    }

    #[test]
    fn a_time_between_two_instants_has_a_sign() {
        let now = Instant::now();
        assert_eq!([seconds(now, now + 3 * US), seconds(now + 3 * US, now)], [3e-6, -3e-6]);
    }
}
