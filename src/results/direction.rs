//! Which of two values is the faster one: of a time the lower, of a rate the higher.

use super::compare::Shift;
use super::metric::Metric;
use crate::statistics::Change;
use crate::units::Unit;

/// Which of two values of a row is the faster one.
///
/// ```
/// use syncscope_results::statistics::Change;
/// use syncscope_results::{Direction, Shift};
///
/// // More seconds are slower, and more bytes a second are faster.
/// assert_eq!(Direction::Less.shift(Change::Above), Shift::Slower);
/// assert_eq!(Direction::More.shift(Change::Above), Shift::Faster);
/// assert_eq!(Direction::Less.shift(Change::Unclear), Shift::Uncertain);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The lower one: it is a time.
    Less,
    /// The higher one: it is a rate.
    More,
    /// Neither: it is an observation or a difference.
    Neither,
}

impl Direction {
    /// That of a row.
    pub fn of(metric: &Metric<'_>) -> Self {
        match metric.spec.unit {
            _ if metric.is_difference() => Direction::Neither,
            Unit::BytesPerSecond | Unit::FlopsPerSecond => Direction::More,
            Unit::Seconds if !metric.is_observed() => Direction::Less,
            _ => Direction::Neither,
        }
    }

    /// What a change of the value is.
    pub fn shift(self, change: Change) -> Shift {
        match (change, self) {
            (Change::Within, _) => Shift::Same,
            (Change::Unclear, _) => Shift::Uncertain,
            (Change::Above | Change::Below, Direction::Neither) => Shift::Different,
            (Change::Above, Direction::Less) | (Change::Below, Direction::More) => Shift::Slower,
            (Change::Above, Direction::More) | (Change::Below, Direction::Less) => Shift::Faster,
        }
    }
}
