//! An axis: its ends, its ticks, and where a value lies between them.

/// How an axis is divided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, schemars::JsonSchema), serde(rename_all = "kebab-case"))]
pub enum Spacing {
    /// Equal steps are equally far apart.
    #[default]
    Linear,
    /// Equal factors are equally far apart; linear where a value is not above 0.
    Log,
}

/// The most steps that an axis is divided into.
pub(super) const STEPS: f64 = 4.5;

/// The most powers of ten that a logarithmic axis is marked with.
const MAX_POWERS: usize = 12;

/// The round values from 0 to `largest` that are apart by the least round number by which there are at most so many steps.
pub(super) fn round_ticks(largest: f64, steps: f64) -> impl Iterator<Item = f64> {
    let step = round_step(largest / steps);
    // Counted, as a step beside which nothing is larger, or which is 0, comes to no end.
    (0..=steps as u32).map(move |count| f64::from(count) * step).take_while(move |tick| *tick <= largest * 1.0001)
}

/// The next greater of 1, 2 and 5 times a power of ten.
fn round_step(step: f64) -> f64 {
    let power = 10_f64.powf(step.log10().floor());
    [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power).into_iter().find(|round| *round >= step).unwrap_or(10.0 * power)
}

/// An axis from `low` to `high`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Axis {
    /// How it is divided, which may be linear where a logarithm was asked for.
    pub(super) spacing: Spacing,
    low: f64,
    high: f64,
    /// The values that are marked, ascending.
    pub(super) ticks: Vec<f64>,
}

impl Axis {
    /// An axis that ends at the least and the largest of `values`, with a tick at each.
    pub(super) fn through(values: impl Iterator<Item = f64>, spacing: Spacing) -> Self {
        let mut ticks: Vec<f64> = values.filter(|value| value.is_finite()).collect();
        ticks.sort_by(f64::total_cmp);
        ticks.dedup();
        let (low, high) = (ticks.first().copied().unwrap_or(0.0), ticks.last().copied().unwrap_or(1.0));
        Self { spacing: spacing.that_holds(low), low, high, ticks }
    }

    /// An axis around `values` that begins and ends at round numbers; a linear one begins at 0 unless a value is below.
    pub(super) fn around(values: impl Iterator<Item = f64>, spacing: Spacing) -> Self {
        let values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let largest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let (least, largest) = if least <= largest { (least, largest) } else { (0.0, 1.0) };
        match spacing.that_holds(least) {
            Spacing::Log => Self::decades(least, largest),
            Spacing::Linear => Self::steps(least.min(0.0), largest.max(0.0)),
        }
    }

    fn decades(least: f64, largest: f64) -> Self {
        let (first, last) = (least.log10().floor() as i32, largest.log10().ceil() as i32);
        let round = (first..=last).flat_map(|exponent| [1.0, 2.0, 5.0].map(|digit| digit * 10_f64.powi(exponent)));
        // Beyond these a power of ten is 0 or infinite.
        let round: Vec<f64> = round.filter(|tick| tick.is_normal()).collect();
        // The rounding of a power of ten must not push a round value out of its own axis.
        let low = round.iter().copied().rfind(|tick| *tick <= least * (1.0 + 1e-9)).unwrap_or(least);
        let high = round.iter().copied().find(|tick| *tick >= largest * (1.0 - 1e-9) && *tick > low);
        let high = high.unwrap_or(largest);
        let inside = |tick: &f64| tick.is_normal() && *tick >= low && *tick <= high;
        let powers: Vec<f64> = (first..=last).map(|exponent| 10_f64.powi(exponent)).filter(inside).collect();
        let ticks = match powers.len() {
            0..=2 => round.into_iter().filter(inside).collect(),
            count => powers.into_iter().step_by(count.div_ceil(MAX_POWERS)).collect(),
        };
        Self { spacing: Spacing::Log, low, high, ticks }
    }

    fn steps(least: f64, largest: f64) -> Self {
        let span = if largest > least { (largest - least).min(f64::MAX) } else { 1.0 };
        // Beside the least numbers a step has no value of its own.
        let step = round_step(span / STEPS).max(f64::MIN_POSITIVE);
        let (first, last) = ((least / step).floor() as i64, (least + span).max(largest) / step);
        let last = (last - 1e-9).ceil().max(first as f64 + 1.0);
        let ticks: Vec<f64> = (first..=last as i64).map(|count| count as f64 * step).collect();
        let [low, high] = [first as f64 * step, last * step].map(|end| end.clamp(f64::MIN, f64::MAX));
        Self { spacing: Spacing::Linear, low, high, ticks: ticks.into_iter().filter(|tick| tick.is_finite()).collect() }
    }

    /// Where `value` lies: 0 at the low end, 1 at the high end, between them for what lies beyond.
    pub(crate) fn place(&self, value: f64) -> f64 {
        let along = |value: f64| if self.spacing == Spacing::Log { value.max(self.low).ln() } else { value };
        let (low, high) = (along(self.low), along(self.high));
        // By halves: the distance of two numbers can be beyond all numbers.
        let from_low = |value: f64| value / 2.0 - low / 2.0;
        if high > low { (from_low(along(value)) / from_low(high)).clamp(0.0, 1.0) } else { 0.5 }
    }
}

impl Spacing {
    /// This spacing, or a linear one where the least value has no logarithm.
    fn that_holds(self, least: f64) -> Self {
        if least > 0.0 { self } else { Self::Linear }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn values_beside_the_least_number_and_the_largest_have_few_ticks() {
        for values in
            [vec![5e-324], vec![-5e-324, 5e-324], vec![0.0], vec![f64::MAX, f64::MIN, 5e-324], vec![-0.0, 1e-310]]
        {
            for spacing in [Spacing::Linear, Spacing::Log] {
                let axis = Axis::around(values.iter().copied(), spacing);
                assert!(axis.ticks.len() < 40, "{values:?}: {axis:?}");
                assert!(values.iter().all(|value| (0.0..=1.0).contains(&axis.place(*value))), "{values:?}: {axis:?}");
            }
        }
    }

    #[test]
    fn a_linear_axis_begins_at_zero_and_ends_at_a_round_number() {
        let axis = Axis::around([3.0, 37.0].into_iter(), Spacing::Linear);
        assert_eq!(axis.ticks, [0.0, 10.0, 20.0, 30.0, 40.0]);
        assert_eq!(axis.place(20.0), 0.5);
    }

    #[test]
    fn steps_of_an_axis_are_round() {
        assert_eq!([0.3, 7.0, 18.0, 20.0].map(round_step), [0.5, 10.0, 20.0, 20.0]);
    }

    proptest! {
        #[test]
        fn an_axis_of_any_values_has_few_ticks_in_order_and_a_place_for_each(
            values in proptest::collection::vec(proptest::num::f64::ANY, 0..5),
            is_log in proptest::bool::ANY,
        ) {
            let spacing = if is_log { Spacing::Log } else { Spacing::Linear };
            let axis = Axis::around(values.iter().copied(), spacing);
            prop_assert!(axis.ticks.len() <= 16 && axis.ticks.is_sorted(), "{axis:?}");
            for value in values.into_iter().filter(|value| value.is_finite()) {
                prop_assert!((0.0..=1.0).contains(&axis.place(value)), "{value:e} in {axis:?}");
                prop_assert!(round_ticks(value, STEPS).count() <= 6, "{value:e}");
            }
        }
    }

    #[test]
    fn a_value_below_zero_stays_on_the_axis() {
        let axis = Axis::around([-3.0, 5.0].into_iter(), Spacing::Linear);
        assert!(axis.ticks[0] <= -3.0 && axis.place(-3.0) < axis.place(0.0));
    }

    #[test]
    fn equal_factors_are_equally_far_apart_on_a_logarithmic_axis() {
        let axis = Axis::around([1e-5, 1e-2].into_iter(), Spacing::Log);
        let ends = (axis.place(1e-4) - axis.place(1e-5), axis.place(1e-2) - axis.place(1e-3));
        assert!((ends.0 - ends.1).abs() < 1e-9, "{ends:?}");
        assert_eq!(axis.ticks.len(), 4);
    }

    #[test]
    fn a_narrow_logarithmic_axis_still_has_ticks() {
        assert!(Axis::around([3.0, 4.0].into_iter(), Spacing::Log).ticks.len() >= 2);
    }

    #[test]
    fn zero_has_no_logarithm_and_the_axis_is_linear() {
        assert_eq!(Axis::around([0.0, 4.0].into_iter(), Spacing::Log).place(2.0), 0.5);
    }
}
