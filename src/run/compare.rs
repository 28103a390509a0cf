//! Two runs row by row: is the second faster, slower, or the same?
//!
//! # Method
//! Rows of the same identifier and parameters belong together; where a suite names an experiment twice, in their order.
//! Of a pair the quotient of the medians is taken with its interval ([`Ratio`]), and the interval is held against the
//! threshold of a change that matters:
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
//! own. Where there is no quotient (a median of 0 or below, a share, fewer than eight samples for 99 %), two values whose
//! median and interval are equal are the same, two whose intervals have nothing in common are different if they are no
//! times, and all else is uncertain. That takes six samples; fewer are always uncertain.
//!
//! # Why these thresholds
//! A run has a hundred rows and more, so intervals of 95 % would leave five outside by chance. At [`Tolerance`]'s 99 %
//! an interval that misses 1 is expected of one row in a hundred (measured: 0.5 % to 0.9 %, `tests/compare.rs`).
//!
//! The threshold stands for what the samples of one process cannot show: another process, memory layout or temperature
//! moves a median with nothing changed. Of two runs of the full suite, one after the other on one NVIDIA H200, half of the
//! 240 medians moved by 0.5 % or less, nine in ten by 11 % or less and 98 in 100 by 20 % or less; the largest moves were
//! of what the host's memory and launches cost. So 25 % is the least that one file a side can call a change without
//! crying wolf. Where a row is known to be steadier (a long kernel by device events moves by less than 1 %), state less.
//!
//! A row that is near the floor of its instrument on either side ([`Diagnosis::NearFloor`]) is the instrument's as much as
//! the row's, and is never called a change.
//!
//! # What it does not cover
//! A change of less than the threshold is called the same, however certain it is. Rows of one run that share a cause (a
//! clock, a neighbour) go wrong together: the number of false alarms scatters more than independent rows would.

use std::collections::{HashMap, HashSet};

use serde::Serialize;

use super::diagnoses::Diagnosed;
use super::results::Run;
use crate::experiment::{Metric, MissingReason, Parameters, Provenance, Row};
use crate::measure::{Change, Clock, Diagnosis, Estimate, Ratio};
use crate::units::Unit;

/// Which changes matter, and how sure they must be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Tolerance {
    /// The share from which on a change matters: 0.25.
    pub threshold: f64,
    /// The level of the interval of each quotient: 0.99.
    pub level: f64,
}

/// A change of 25 % matters, at 99 %.
impl Default for Tolerance {
    fn default() -> Self {
        Self { threshold: 0.25, level: 0.99 }
    }
}

/// What the second run's value is beside the first's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
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

impl Verdict {
    /// All, the worst first.
    pub const ALL: [Verdict; 5] =
        [Verdict::Slower, Verdict::Different, Verdict::Faster, Verdict::Uncertain, Verdict::Same];

    /// The verdict in a word.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Slower => "slower",
            Verdict::Different => "different",
            Verdict::Faster => "faster",
            Verdict::Uncertain => "uncertain",
            Verdict::Same => "same",
        }
    }

    /// Whether the two values are known to differ by what matters.
    pub fn is_change(self) -> bool {
        matches!(self, Verdict::Slower | Verdict::Different | Verdict::Faster)
    }
}

/// A row that both runs have samples of.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Pair {
    /// The row's identifier.
    pub id: String,
    /// Its parameters.
    pub parameters: Parameters,
    /// The unit of the estimates.
    pub unit: Unit,
    /// The first run's value, with its 95 % interval.
    pub a: Estimate,
    /// The second run's value, with its 95 % interval.
    pub b: Estimate,
    /// The second by the first, where that has a meaning and an interval.
    pub ratio: Option<Ratio>,
    /// What the second is beside the first.
    pub verdict: Verdict,
}

/// A row that at least one of the runs has no samples of.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Unpaired {
    /// The row's identifier.
    pub id: String,
    /// Its parameters.
    pub parameters: Parameters,
    /// Why the first run has none, where it has none.
    #[serde(serialize_with = "words")]
    pub a: Option<MissingReason>,
    /// Why the second run has none, where it has none.
    #[serde(serialize_with = "words")]
    pub b: Option<MissingReason>,
}

/// Two runs, row by row.
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
    /// How many pairs have this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.pairs.iter().filter(|pair| pair.verdict == verdict).count()
    }

    /// The rows that the first run has samples of and the second has not.
    pub fn missing(&self) -> impl Iterator<Item = &Unpaired> {
        self.unpaired.iter().filter(|row| row.a.is_none())
    }
}

/// The rows of two runs beside each other, whatever else the runs share: see [`mismatches`](super::mismatches).
pub fn compare(a: &Run, b: &Run, tolerance: Tolerance) -> Compared {
    let mut others: HashMap<String, Vec<&Row>> = HashMap::new();
    for row in b.rows() {
        others.entry(key(row)).or_default().push(row);
    }
    // Taken from the end.
    others.values_mut().for_each(|rows| rows.reverse());
    let (mut pairs, mut unpaired) = (Vec::new(), Vec::new());
    let near: HashSet<String> = [a, b].into_iter().flat_map(near_floor).collect();
    for row in a.rows() {
        match others.get_mut(&key(row)).and_then(Vec::pop) {
            Some(other) => match pair(row, other, tolerance, near.contains(&key(row))) {
                Ok(pair) => pairs.push(pair),
                Err(absent) => unpaired.push(*absent),
            },
            None => unpaired.push(lone(row, value(row).err(), Some(MissingReason::NotInRun))),
        }
    }
    for row in b.rows() {
        let rows = others.get_mut(&key(row));
        if let Some(row) = rows.and_then(Vec::pop) {
            unpaired.push(lone(row, Some(MissingReason::NotInRun), value(row).err()));
        }
    }
    Compared { tolerance, pairs, unpaired }
}

/// What makes two rows the same one. Debug writing tells a number from a text of the same digits.
fn key(row: &Row) -> String {
    key_of(&row.id, &row.parameters)
}

fn key_of(id: &str, parameters: &Parameters) -> String {
    format!("{id} {parameters:?}")
}

/// The rows of a run that are near the floor of their instrument.
fn near_floor(run: &Run) -> Vec<String> {
    let near = |(.., diagnosis): &Diagnosed| matches!(diagnosis, Diagnosis::NearFloor { .. });
    run.diagnoses().iter().filter(|found| near(found)).map(|(id, parameters, _)| key_of(id, parameters)).collect()
}

fn lone(row: &Row, a: Option<MissingReason>, b: Option<MissingReason>) -> Unpaired {
    Unpaired { id: row.id.clone(), parameters: row.parameters.clone(), a, b }
}

fn value(row: &Row) -> Result<(Metric<'_>, Estimate), MissingReason> {
    let metric = row.metric()?;
    Ok((metric, metric.estimate()?))
}

fn pair(a: &Row, b: &Row, tolerance: Tolerance, near_floor: bool) -> Result<Pair, Box<Unpaired>> {
    let ((one, first), (other, second)) = match (value(a), value(b)) {
        (Ok(one), Ok(other)) => (one, other),
        (one, other) => return Err(Box::new(lone(a, one.err(), other.err()))),
    };
    if let Some(reason) = unlike(&one, &other) {
        return Err(Box::new(lone(a, None, Some(MissingReason::Inconsistent(reason)))));
    }
    let share = one.is_share() || other.is_share();
    let ratio = if share { None } else { Ratio::of(other.samples, one.samples, tolerance.level) };
    let faster = Faster::of(&one);
    let verdict = match &ratio {
        Some(ratio) => faster.verdict(ratio.change(tolerance.threshold)),
        None => without_ratio(&first, &second, faster),
    };
    let verdict = if near_floor && verdict.is_change() { Verdict::Uncertain } else { verdict };
    let (id, parameters) = (a.id.clone(), a.parameters.clone());
    Ok(Pair { id, parameters, unit: a.unit, a: first, b: second, ratio, verdict })
}

/// Why two rows of one name are not of one kind.
fn unlike(a: &Metric<'_>, b: &Metric<'_>) -> Option<String> {
    if a.row.unit != b.row.unit {
        return Some(format!("its unit is another: {:?}, then {:?}", a.row.unit, b.row.unit));
    }
    match (a.origin, b.origin) {
        (Provenance::Measured(one), Provenance::Measured(other)) if one == other => None,
        (Provenance::Derived(one, _), Provenance::Derived(other, _)) if one == other => None,
        _ => Some("it was taken in another way".to_owned()),
    }
}

fn without_ratio(a: &Estimate, b: &Estimate, faster: Faster) -> Verdict {
    if !a.is_interval() || !b.is_interval() {
        return Verdict::Uncertain;
    }
    let known = |estimate: &Estimate| (estimate.median, estimate.low, estimate.high);
    let apart = a.high < b.low || b.high < a.low;
    if known(a) == known(b) {
        Verdict::Same
    } else if apart && faster == Faster::Neither {
        Verdict::Different
    } else {
        Verdict::Uncertain
    }
}

/// Which of two values is the faster one.
#[derive(Clone, Copy, PartialEq)]
enum Faster {
    Less,
    More,
    Neither,
}

impl Faster {
    fn of(metric: &Metric<'_>) -> Self {
        let observed = metric.origin == Provenance::Measured(Clock::Observed);
        match metric.row.unit {
            _ if metric.is_difference() => Faster::Neither,
            Unit::BytesPerSecond | Unit::FlopsPerSecond => Faster::More,
            Unit::Seconds if !observed => Faster::Less,
            _ => Faster::Neither,
        }
    }

    fn verdict(self, change: Change) -> Verdict {
        match (change, self) {
            (Change::Within, _) => Verdict::Same,
            (Change::Unclear, _) => Verdict::Uncertain,
            (Change::Above | Change::Below, Faster::Neither) => Verdict::Different,
            (Change::Above, Faster::Less) | (Change::Below, Faster::More) => Verdict::Slower,
            (Change::Above, Faster::More) | (Change::Below, Faster::Less) => Verdict::Faster,
        }
    }
}

fn words<S: serde::Serializer>(absence: &Option<MissingReason>, serializer: S) -> Result<S::Ok, S::Error> {
    absence.as_ref().map(ToString::to_string).serialize(serializer)
}
