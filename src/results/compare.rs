//! Two results files row by row: is the second faster, slower, or the same?
//!
//! # Method
//! Each system that both files have is compared with itself. Of a system, rows of the same identifier and parameters belong
//! together.
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
//! # Of a row, and of the whole file
//! The table is about each row alone. At [`Tolerance`]'s 99 % one interval in a hundred misses the truth (measured:
//! `examples/false_alarms.rs`), so of a file of hundreds of rows some are called slower by chance. A decision over the
//! file, such as that of a CI job, holds one level over all rows that were compared: the chance that anything is found
//! where no row changed by more than the threshold is 5 % at most. Of each pair it takes the chance of what was seen, were
//! the true quotient within 1 ± threshold: two one-sided tests of Welch, with the threshold as the margin of
//! non-inferiority (G. Piaggio et al., *Reporting of noninferiority and equivalence randomized trials*, JAMA 308, 2012);
//! of shares of yes Fisher's exact test, and of what has no quotient Welch's test of a difference. Holm's procedure then
//! says which changes [survive](Pair::survives). Rows need not be independent for that.
//!
//! `examples/false_alarms.rs` simulates it, and `tests/compare.rs` holds it. At a threshold of 0, where no margin helps,
//! 2.8 % of pairs of equal files of 60 rows have a surviving change with three runs on each side, and 3.8 % with five; by the
//! rows alone it is 27 % and 38 %. With the threshold of 5 %, one row of 600 that takes 20 % longer survives in 99.7 % of
//! cases with five runs on each side that scatter by 1 % (their samples by 2 %), and in 13 % with three, since the tail of
//! Student's t is then long: a gate takes five runs.
//!
//! What moves a whole system from one day to the next (a driver, a clock, a neighbour) moves all its rows and is in no
//! interval of one day. [`Compared::agreement`] says so, and how well the intervals of the two files meet.
//!
//! A row of yes and no (whether a call came back behind a closed gate) says what something does. Where all trials of one file
//! agree and those of the other do not say the same, [its behaviour changed](Pair::behaviour_changed). Where all of both
//! agree, on the contrary, and are six or more each, that is no matter of chance, and survives among however many rows: of
//! trials that come out either way equally often, 1 in 2,048 such pairs does it.
//!
//! A row that is near the floor of its instrument on either side ([`Diagnosis::NearFloor`]) is the instrument's as much as
//! the row's, and is never called a change.
//!
//! # What it does not cover
//! A change of less than the threshold is called the same, however certain it is. Rows of one run that share a cause (a
//! clock, a neighbour) go wrong together: the number of false alarms scatters more than independent rows would.

use std::collections::{HashMap, HashSet};

use serde::Serialize;

use super::metric::Metric;
use super::missing::MissingReason;
use super::row::{MetricSpec, Parameters, Provenance};
use super::run::Results;
use crate::measure::Estimate;
use crate::statistics::{Change, Ratio, Student, chance_of_shares, holm};
use crate::units::Unit;

/// Which changes matter, and how sure they must be.
///
/// ```
/// use syncscope_results::Tolerance;
///
/// assert_eq!(Tolerance::default().threshold, 0.05);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Tolerance {
    /// The share from which on a change matters: 0.05.
    pub threshold: f64,
    /// The level of the interval of each quotient: 0.99.
    pub level: f64,
    /// The chance that one surviving change or more is wrong, over the file: 0.05.
    pub error: f64,
}

/// A change of 5 % matters, at 99 % for a row alone, and with an error of 5 % over the file.
impl Default for Tolerance {
    fn default() -> Self {
        Self { threshold: 0.05, level: 0.99, error: 0.05 }
    }
}

/// What the second value is beside the first.
///
/// ```
/// use syncscope_results::Shift;
///
/// assert!(Shift::Slower.is_change() && !Shift::Uncertain.is_change());
/// assert_eq!(Shift::ALL.map(Shift::name)[0], "slower");
/// ```
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
        // In the order of the shifts.
        ["slower", "different", "faster", "uncertain", "same"][self as usize]
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
    /// The system that measured it.
    pub system: String,
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
    /// What the second is beside the first, by this row alone.
    pub shift: Shift,
    /// The chance of what was seen, or more, were there no change that matters.
    pub chance: f64,
    /// Whether it is a change that is also known with the error held over all pairs.
    pub survives: bool,
    /// Of a row of yes and no: whether all trials of one file agree, and those of the other do not say the same.
    pub behaviour_changed: bool,
    /// Why the intervals of the first and the second value are withheld, where they are: two regimes, or a trend.
    pub no_interval: [Option<String>; 2],
    #[serde(skip)]
    pub(super) faster: Direction,
}

/// A row that at least one of the files has no samples of.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Unpaired {
    /// The system.
    pub system: String,
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
    /// The systems that both have, in the order of the first: these were compared.
    pub systems: Vec<String>,
    /// The systems that the first alone has.
    pub systems_of_a: Vec<String>,
    /// The systems that the second alone has.
    pub systems_of_b: Vec<String>,
    /// The rows that both have, by system, in the order of the first.
    pub pairs: Vec<Pair>,
    /// The rows that one of them lacks, by system, in the order of the first and then of the second.
    pub unpaired: Vec<Unpaired>,
}

impl Compared {
    /// How many pairs moved like this, each by itself.
    pub fn count(&self, shift: Shift) -> usize {
        self.pairs.iter().filter(|pair| pair.shift == shift).count()
    }

    /// How many pairs moved like this, with the error held over all of them.
    pub fn surviving(&self, shift: Shift) -> usize {
        self.pairs.iter().filter(|pair| pair.survives && pair.shift == shift).count()
    }

    /// The rows that the first has samples of and the second has not, of the systems that both have.
    pub fn missing(&self) -> impl Iterator<Item = &Unpaired> {
        self.unpaired.iter().filter(|row| row.a.is_none())
    }

    /// The rows of yes and no that say something else in the second file.
    pub fn changed_behaviour(&self) -> impl Iterator<Item = &Pair> {
        self.pairs.iter().filter(|pair| pair.behaviour_changed)
    }
}

/// The rows of two results files beside each other, whatever else they share: see [`mismatches`](super::mismatches).
pub fn compare(a: &Results, b: &Results, tolerance: Tolerance) -> Compared {
    let [of_a, of_b] = [a, b].map(Results::systems);
    let in_both = |system: &&str| of_b.contains(system);
    let owned = |systems: Vec<&str>| systems.into_iter().map(str::to_owned).collect();
    let (both, alone): (Vec<&str>, Vec<&str>) = of_a.iter().copied().partition(in_both);
    let mut compared = Compared {
        tolerance,
        systems_of_b: owned(of_b.iter().copied().filter(|system| !of_a.contains(system)).collect()),
        systems_of_a: owned(alone),
        pairs: Vec::new(),
        unpaired: Vec::new(),
        systems: owned(both.clone()),
    };
    for system in both {
        compared.add(system, a, b);
    }
    let chances: Vec<f64> = compared.pairs.iter().map(|pair| pair.chance).collect();
    for (pair, small) in compared.pairs.iter_mut().zip(holm(&chances, tolerance.error)) {
        pair.survives = small && pair.shift.is_change();
    }
    compared
}

impl Compared {
    /// Compares one system of both files.
    fn add(&mut self, system: &str, a: &Results, b: &Results) {
        let [one, other] = [a, b].map(|results| results.lookup_of(system));
        let mut others: HashMap<String, _> = other.metrics().map(|(spec, metric)| (key(spec), metric)).collect();
        let near: HashSet<String> =
            [&one, &other].into_iter().flat_map(|lookup| lookup.near_floor()).map(key).collect();
        for (spec, metric) in one.metrics() {
            let other = others.remove(&key(spec)).map_or(Err(MissingReason::NotInRun), value);
            match self.pair(system, spec, value(metric), other, near.contains(&key(spec))) {
                Ok(pair) => self.pairs.push(pair),
                Err((a, b)) => self.unpaired.push(Unpaired::of(system, spec, a, b)),
            }
        }
        for spec in other.specs() {
            if let Some(metric) = others.remove(&key(spec)) {
                let absent = Some(MissingReason::NotInRun);
                self.unpaired.push(Unpaired::of(system, spec, absent, value(metric).err()));
            }
        }
    }

    fn pair(
        &self,
        system: &str,
        spec: &MetricSpec,
        a: Valued<'_>,
        b: Valued<'_>,
        near_floor: bool,
    ) -> Result<Pair, Absent> {
        let ((one, first), (other, second)) = match (a, b) {
            (Ok(one), Ok(other)) => (one, other),
            (one, other) => return Err((one.err(), other.err())),
        };
        if let Some(reason) = unlike(one.spec, other.spec) {
            return Err((None, Some(MissingReason::Inconsistent(reason))));
        }
        let Tolerance { threshold, level, .. } = self.tolerance;
        let share = one.is_share() || other.is_share();
        let of_runs = || Ratio::of_runs(&other.run_medians(), &one.run_medians(), level);
        let ratio = if share { None } else { of_runs() };
        let faster = Direction::of(&one);
        let [was, is] = [&one, &other].map(|metric| if share { agreed(&metric.samples()) } else { None });
        let behaviour_changed = was != is;
        let is_contrary = behaviour_changed && was.is_some() && is.is_some();
        let are_many = one.count().min(other.count()) >= ENOUGH_TRIALS;
        let (shift, chance) = match &ratio {
            None if is_contrary && are_many => (Shift::Different, 0.0),
            Some(ratio) => (faster.shift(ratio.change(threshold)), ratio.chance(threshold)),
            None if share => {
                (without_ratio(&first, &second, faster), chance_of_shares(&one.samples(), &other.samples()))
            }
            None => (without_ratio(&first, &second, faster), chance_of_difference(&one, &other)),
        };
        let hidden = near_floor && shift.is_change();
        let (id, parameters, system) = (spec.id.clone(), spec.parameters.clone(), system.to_owned());
        Ok(Pair {
            system,
            id,
            parameters,
            unit: spec.unit,
            a: first,
            b: second,
            ratio,
            shift: if hidden { Shift::Uncertain } else { shift },
            chance: if hidden { 1.0 } else { chance },
            survives: false,
            behaviour_changed,
            no_interval: [&one, &other].map(Metric::unsteady),
            faster,
        })
    }
}

impl Unpaired {
    fn of(system: &str, spec: &MetricSpec, a: Option<MissingReason>, b: Option<MissingReason>) -> Self {
        Self { system: system.to_owned(), id: spec.id.clone(), parameters: spec.parameters.clone(), a, b }
    }
}

type Valued<'a> = Result<(Metric<'a>, Estimate), MissingReason>;
/// Why the first and the second have none.
type Absent = (Option<MissingReason>, Option<MissingReason>);

/// What makes two rows the same one. Debug writing tells a number from a text of the same digits.
fn key(spec: &MetricSpec) -> String {
    format!("{} {:?}", spec.id, spec.parameters)
}

fn value(metric: Result<Metric<'_>, MissingReason>) -> Valued<'_> {
    let metric = metric?;
    let estimate = metric.estimate()?;
    Ok((metric, estimate))
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

/// How many trials of each file that contradict each other are no matter of chance.
const ENOUGH_TRIALS: usize = 6;

/// What all samples are, where they agree.
fn agreed(trials: &[f64]) -> Option<f64> {
    trials.first().copied().filter(|first| trials.iter().all(|trial| trial == first))
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

/// The chance that two values without a quotient differ as much as they do, or more, were they equal. One run says nothing
/// of another, unless no sample of either differs from the rest: then it is no matter of chance.
fn chance_of_difference(a: &Metric<'_>, b: &Metric<'_>) -> f64 {
    let constant = |metric: &Metric<'_>| agreed(&metric.samples()).filter(|_| metric.count() > 1);
    if let (Some(one), Some(other)) = (constant(a), constant(b)) {
        return f64::from(u8::from(one == other));
    }
    if a.runs.len() < 2 || b.runs.len() < 2 {
        return 1.0;
    }
    let [b, a] = [b, a].map(Metric::run_medians);
    Student::between(&b, &a).map_or(1.0, |student| student.chance_outside(0.0, 0.0))
}

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

fn words<S: serde::Serializer>(absence: &Option<MissingReason>, serializer: S) -> Result<S::Ok, S::Error> {
    absence.as_ref().map(ToString::to_string).serialize(serializer)
}
