//! How well two sets of runs agree, system by system: the question behind a comparison of two files of one machine.
//!
//! # Method
//! The factor that moved all rows comes first: a driver, a clock or a neighbour of one day moves a whole system, and is in no
//! interval of the other day. It is the middle of all quotients of times and rates, unless more rows are apart with it taken out
//! than as they are: then it is that of some rows and not of the machine. Then the rows are counted whose published
//! intervals, those of 95 % between runs, do not meet; once as they are, and once with the factor taken out. Of rows that are
//! equal two such intervals miss each other in 1 of 200 cases, with three runs as with ten (`tests/compare.rs` holds it), so
//! that a larger share says that the intervals do not hold what another day brings. How wide the intervals are says what that
//! is worth: wide ones always meet.
//!
//! Rows whose intervals are withheld (two levels, a trend), and shares and counts, whose intervals are not between runs, are
//! not counted.

use serde::Serialize;

use super::compare::{Compared, Pair};
use super::direction::Direction;
use crate::measure::{Estimate, Samples};
use crate::units::Unit;

/// How the runs of one system in two files agree.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Agreement {
    /// The system.
    pub system: String,
    /// By which factor all rows take longer in the second file, with its interval, where that is not 1.
    pub factor: Option<Estimate>,
    /// How many rows have a published interval in both files.
    pub rows: usize,
    /// How many of these intervals do not meet.
    pub apart: usize,
    /// The same with the factor taken out of the second file; as many where there is none.
    pub apart_without_factor: usize,
    /// How wide the intervals of times and rates are in the first file, and in the second.
    pub half_widths: [Option<HalfWidths>; 2],
}

/// Half widths of intervals, as shares of their values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct HalfWidths {
    /// How many intervals there are.
    pub rows: usize,
    /// The middle one.
    pub middle: f64,
    /// The one that nine in ten do not exceed.
    pub nine_in_ten: f64,
}

impl HalfWidths {
    /// Those of estimates that have an interval; `None` without one.
    pub fn of<'e>(estimates: impl Iterator<Item = &'e Estimate>) -> Option<Self> {
        // The lower end may have been cut at 0.
        let mut shares: Vec<f64> = estimates.map(|it| (it.high - it.median) / it.median.abs()).collect();
        shares.retain(|share| share.is_finite());
        shares.sort_unstable_by(f64::total_cmp);
        let at = |share: f64| shares.get(((shares.len() as f64 * share).ceil() as usize).saturating_sub(1)).copied();
        Some(Self { rows: shares.len(), middle: at(0.5)?, nine_in_ten: at(0.9)? })
    }
}

impl Compared {
    /// The middle of all quotients of a system's times and rates, each as longer or shorter; with the interval of a median
    /// of independent values. `None` without ten of them.
    pub fn moved(&self, system: &str) -> Option<Estimate> {
        const FEWEST: usize = 10;
        let slower = |pair: &Pair| {
            let ratio = pair.ratio?.value;
            match pair.unit {
                Unit::BytesPerSecond | Unit::FlopsPerSecond => Some(1.0 / ratio),
                Unit::Seconds if pair.faster == Direction::Less => Some(ratio),
                _ => None,
            }
        };
        let ratios: Vec<f64> = self.of(system).filter_map(slower).collect();
        if ratios.len() < FEWEST {
            return None;
        }
        Samples::new("quotients", ratios).ok().map(|samples| samples.estimate())
    }

    /// How well each system agrees with itself.
    pub fn agreement(&self) -> Vec<Agreement> {
        self.systems.iter().map(|system| self.agreement_of(system)).collect()
    }

    fn agreement_of(&self, system: &str) -> Agreement {
        let published: Vec<&Pair> = self.of(system).filter(|pair| pair.is_published()).collect();
        let apart = |by: f64| published.iter().filter(|pair| pair.is_apart(by)).count();
        let as_they_are = apart(1.0);
        let moved = self.moved(system).filter(|moved| moved.low > 1.0 || moved.high < 1.0);
        let without = moved.map(|moved| (moved, apart(moved.median))).filter(|(_, apart)| *apart <= as_they_are);
        let timed = || published.iter().filter(|pair| pair.faster != Direction::Neither);
        let half_widths = [HalfWidths::of(timed().map(|pair| &pair.a)), HalfWidths::of(timed().map(|pair| &pair.b))];
        Agreement {
            system: system.to_owned(),
            factor: without.map(|(factor, _)| factor),
            rows: published.len(),
            apart: as_they_are,
            apart_without_factor: without.map_or(as_they_are, |(_, apart)| apart),
            half_widths,
        }
    }

    fn of(&self, system: &str) -> impl Iterator<Item = &Pair> {
        self.pairs.iter().filter(move |pair| pair.system == system)
    }
}

impl Pair {
    /// Whether both files publish an interval between runs of it.
    fn is_published(&self) -> bool {
        let between_runs = |estimate: &Estimate| estimate.spread.is_some() && estimate.is_interval();
        self.no_interval.iter().all(Option::is_none) && [&self.a, &self.b].into_iter().all(between_runs)
    }

    /// Whether the intervals do not meet, where all times of the second file are divided by a factor.
    fn is_apart(&self, by: f64) -> bool {
        let by = match self.unit {
            Unit::Seconds => by,
            Unit::BytesPerSecond | Unit::FlopsPerSecond => 1.0 / by,
            _ => 1.0,
        };
        self.a.high < self.b.low / by || self.b.high / by < self.a.low
    }
}
