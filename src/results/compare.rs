//! Two results files row by row: is the second faster, slower, or the same?
//!
//! # Method
//! Rows of the same identifier and parameters belong together; where a suite names an experiment twice, in their order.
//! Of a pair the quotient of the expected medians of a run is taken with its interval ([`Ratio`]), and the interval is held
//! against the threshold of a change that matters:
//!
//! | the whole interval | of a time | of a rate | of anything else |
//! |---|---|---|---|
//! | within 1 ± threshold | same | same | same |
//! | above 1 + threshold | slower | faster | different |
//! | below 1 − threshold | faster | slower | different |
//! | otherwise | uncertain | uncertain | uncertain |
//!
//! *Anything else* is an observation (a count, a quotient, a share of yes) and a difference of two rows: a difference is
//! a small part of its operands, so that a change of them that does not matter can double it; they are rows of their
//! own. Where there is no quotient (a value of 0 or below, a share), two values whose median and interval are equal are the
//! same, two whose intervals have nothing in common are different if they are no times, and all else is uncertain.
//!
//! One run a side says nothing of another run: a time or rate is then always uncertain.
//!
//! # Why these limits
//! A file has a hundred rows and more, so intervals of 95 % would leave five outside by chance. At [`Tolerance`]'s 99 % one
//! row in a hundred is expected to miss (measured: `examples/false_alarms.rs`). The threshold guards against nothing: it
//! says from which size on a change is of interest.
//!
//! What moves a whole machine from one day to the next (a driver, a clock, a neighbour) moves all rows and is in no
//! interval of one day. [`Compared::machine`] is the middle of all quotients of times and rates, so that it can be said.
//!
//! A row that is near the floor of its instrument on either side ([`Diagnosis::NearFloor`]) is the instrument's as much as
//! the row's, and is never called a change.
//!
//! # What it does not cover
//! A change of less than the threshold is called the same, however certain it is. Rows of one run that share a cause (a
//! clock, a neighbour) go wrong together: the number of false alarms scatters more than independent rows would.

use std::collections::{HashMap, HashSet};

use serde::Serialize;

use super::diagnose::Diagnosed;
use super::lookup::Metric;
use super::missing::MissingReason;
use super::row::{MetricSpec, Parameters, Provenance};
use super::run::Results;
use crate::measure::{Change, Diagnosis, Estimate, Ratio, Samples};
use crate::units::Unit;

/// Which changes matter, and how sure they must be.
///
/// ```
/// use syncscope::results::Tolerance;
///
/// assert_eq!(Tolerance::default().threshold, 0.05);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Tolerance {
    /// The share from which on a change matters: 0.05.
    pub threshold: f64,
    /// The level of the interval of each quotient: 0.99.
    pub level: f64,
}

/// A change of 5 % matters, at 99 %.
impl Default for Tolerance {
    fn default() -> Self {
        Self { threshold: 0.05, level: 0.99 }
    }
}

/// What the second value is beside the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shift {
    /// It takes longer, or has the lower rate.
    Slower,
    /// It is another value, of a kind that is neither fast nor slow.
    Different,
    /// It takes less time, or has the higher rate.
    Faster,
    /// The samples do not tell.
    Uncertain,
    /// No change that matters.
    Same,
}

impl Shift {
    /// All, the worst first.
    pub const ALL: [Shift; 5] = [Shift::Slower, Shift::Different, Shift::Faster, Shift::Uncertain, Shift::Same];

    /// The shift in a word.
    pub fn name(self) -> &'static str {
        match self {
            Shift::Slower => "slower",
            Shift::Different => "different",
            Shift::Faster => "faster",
            Shift::Uncertain => "uncertain",
            Shift::Same => "same",
        }
    }

    /// Whether the two values are known to differ by what matters.
    pub fn is_change(self) -> bool {
        matches!(self, Shift::Slower | Shift::Different | Shift::Faster)
    }
}

/// A row that both files have samples of.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Pair {
    /// The row's identifier.
    pub id: String,
    /// Its parameters.
    pub parameters: Parameters,
    /// The unit of the estimates.
    pub unit: Unit,
    /// The first value, with its 95 % interval.
    pub a: Estimate,
    /// The second value, with its 95 % interval.
    pub b: Estimate,
    /// The second by the first, where that has a meaning and an interval.
    pub ratio: Option<Ratio>,
    /// What the second is beside the first.
    pub shift: Shift,
    #[serde(skip)]
    faster: Direction,
}

/// A row that at least one of the files has no samples of.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Unpaired {
    /// The row's identifier.
    pub id: String,
    /// Its parameters.
    pub parameters: Parameters,
    /// Why the first has none, where it has none.
    #[serde(serialize_with = "words")]
    pub a: Option<MissingReason>,
    /// Why the second has none, where it has none.
    #[serde(serialize_with = "words")]
    pub b: Option<MissingReason>,
}

/// Two results files, row by row.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Compared {
    /// Which changes were taken to matter.
    pub tolerance: Tolerance,
    /// The rows that both have, in the order of the first.
    pub pairs: Vec<Pair>,
    /// The rows that one of them lacks, in the order of the first and then of the second.
    pub unpaired: Vec<Unpaired>,
}

impl Compared {
    /// How many pairs moved like this.
    pub fn count(&self, shift: Shift) -> usize {
        self.pairs.iter().filter(|pair| pair.shift == shift).count()
    }

    /// The rows that the first has samples of and the second has not.
    pub fn missing(&self) -> impl Iterator<Item = &Unpaired> {
        self.unpaired.iter().filter(|row| row.a.is_none())
    }

    /// The middle of all quotients of times and rates, each as longer or shorter; with the interval of a median of
    /// independent values. `None` without ten of them.
    pub fn machine(&self) -> Option<Estimate> {
        const FEWEST: usize = 10;
        let slower = |pair: &Pair| {
            let ratio = pair.ratio?.value;
            match pair.unit {
                Unit::BytesPerSecond | Unit::FlopsPerSecond => Some(1.0 / ratio),
                Unit::Seconds if pair.faster == Direction::Less => Some(ratio),
                _ => None,
            }
        };
        let ratios: Vec<f64> = self.pairs.iter().filter_map(slower).collect();
        if ratios.len() < FEWEST {
            return None;
        }
        Samples::new("quotients", ratios).ok().map(|samples| samples.estimate())
    }
}

/// The rows of two results files beside each other, whatever else they share: see [`mismatches`](super::mismatches).
pub fn compare(a: &Results, b: &Results, tolerance: Tolerance) -> Compared {
    let (one, other) = (a.lookup(), b.lookup());
    let mut others: HashMap<String, Vec<Found<'_>>> = HashMap::new();
    for found in other.metrics() {
        others.entry(key(found.0)).or_default().push(found);
    }
    // Taken from the end.
    others.values_mut().for_each(|rows| rows.reverse());
    let (mut pairs, mut unpaired) = (Vec::new(), Vec::new());
    let near: HashSet<String> = [a, b].into_iter().flat_map(near_floor).collect();
    for (spec, metric) in one.metrics() {
        match others.get_mut(&key(spec)).and_then(Vec::pop) {
            Some((_, other)) => match pair(spec, value(metric), value(other), tolerance, near.contains(&key(spec))) {
                Ok(pair) => pairs.push(pair),
                Err(absent) => unpaired.push(*absent),
            },
            None => unpaired.push(lone(spec, value(metric).err(), Some(MissingReason::NotInRun))),
        }
    }
    for (spec, _) in other.metrics() {
        if let Some((_, metric)) = others.get_mut(&key(spec)).and_then(Vec::pop) {
            unpaired.push(lone(spec, Some(MissingReason::NotInRun), value(metric).err()));
        }
    }
    Compared { tolerance, pairs, unpaired }
}

type Found<'a> = (&'a MetricSpec, Result<Metric<'a>, MissingReason>);
type Valued<'a> = Result<(Metric<'a>, Estimate), MissingReason>;

/// What makes two rows the same one. Debug writing tells a number from a text of the same digits.
fn key(spec: &MetricSpec) -> String {
    format!("{} {:?}", spec.id, spec.parameters)
}

/// The rows of a file that are near the floor of their clock.
fn near_floor(results: &Results) -> Vec<String> {
    let near = |(_, diagnosis): &&Diagnosed<'_>| matches!(diagnosis, Diagnosis::NearFloor { .. });
    results.diagnoses().iter().filter(near).map(|(spec, _)| key(spec)).collect()
}

fn lone(spec: &MetricSpec, a: Option<MissingReason>, b: Option<MissingReason>) -> Unpaired {
    Unpaired { id: spec.id.clone(), parameters: spec.parameters.clone(), a, b }
}

fn value(metric: Result<Metric<'_>, MissingReason>) -> Valued<'_> {
    let metric = metric?;
    let estimate = metric.estimate()?;
    Ok((metric, estimate))
}

fn pair(
    spec: &MetricSpec,
    a: Valued<'_>,
    b: Valued<'_>,
    tolerance: Tolerance,
    near_floor: bool,
) -> Result<Pair, Box<Unpaired>> {
    let ((one, first), (other, second)) = match (a, b) {
        (Ok(one), Ok(other)) => (one, other),
        (one, other) => return Err(Box::new(lone(spec, one.err(), other.err()))),
    };
    if let Some(reason) = unlike(one.spec, other.spec) {
        return Err(Box::new(lone(spec, None, Some(MissingReason::Inconsistent(reason)))));
    }
    let share = one.is_share() || other.is_share();
    let of_runs = || Ratio::of_runs(&other.run_medians(), &one.run_medians(), tolerance.level);
    let ratio = if share { None } else { of_runs() };
    let faster = Direction::of(&one);
    let shift = match &ratio {
        Some(ratio) => faster.shift(ratio.change(tolerance.threshold)),
        None => without_ratio(&first, &second, faster),
    };
    let shift = if near_floor && shift.is_change() { Shift::Uncertain } else { shift };
    let (id, parameters) = (spec.id.clone(), spec.parameters.clone());
    Ok(Pair { id, parameters, unit: spec.unit, a: first, b: second, ratio, shift, faster })
}

/// Why two rows of one name are not of one kind.
fn unlike(a: &MetricSpec, b: &MetricSpec) -> Option<String> {
    if a.unit != b.unit {
        return Some(format!("its unit is another: {:?}, then {:?}", a.unit, b.unit));
    }
    match (&a.provenance, &b.provenance) {
        (Provenance::Measured { clock: one, .. }, Provenance::Measured { clock: other, .. }) if one == other => None,
        (Provenance::Derived { derivation: one, .. }, Provenance::Derived { derivation: other, .. })
            if one == other =>
        {
            None
        }
        _ => Some("it was taken in another way".to_owned()),
    }
}

fn without_ratio(a: &Estimate, b: &Estimate, faster: Direction) -> Shift {
    let known = |estimate: &Estimate| (estimate.median, estimate.low, estimate.high);
    let apart = a.is_interval() && b.is_interval() && (a.high < b.low || b.high < a.low);
    if known(a) == known(b) {
        Shift::Same
    } else if apart && faster == Direction::Neither {
        Shift::Different
    } else {
        Shift::Uncertain
    }
}

/// Which of two values of a row is the faster one.
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

fn words<S: serde::Serializer>(absence: &Option<MissingReason>, serializer: S) -> Result<S::Ok, S::Error> {
    absence.as_ref().map(ToString::to_string).serialize(serializer)
}
