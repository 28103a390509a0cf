//! Two results files row by row: is the second faster, slower, or the same?
//!
//! # Method
//! Each system that both files have is compared with itself. Of a system, rows of the same identifier and parameters belong
//! together.
//!
//! | the row | of a time | of a rate | of anything else |
//! |---|---|---|---|
//! | changed, the whole interval above 1 + threshold | slower | faster | different |
//! | changed, the whole interval below 1 − threshold | faster | slower | different |
//! | the whole interval within 1 ± threshold | same | same | same |
//! | otherwise | uncertain | uncertain | uncertain |
//!
//! The interval is that of the quotient of two runs ([`Ratio`]). A row *changed* where the chance of what was seen, were the
//! two files of one machine and one program, is at most 5 % with the error held over all rows together
//! ([`chances_over_rows`]): whole runs are relabelled, and what the best of all rows comes to by chance is what a change has to
//! exceed. So at most 5 % of comparisons of equal files name any change, whatever the distribution of the rows and however
//! they depend on each other. *The same* is a statement about the row alone: the interval is a test of equivalence at 5 % on
//! each side, and takes a level of 90 % at least (D. J. Schuirmann, J. Pharmacokinet. Biopharm. 15, 1987).
//!
//! *Anything else* is an observation (a count, a quotient, a share of yes) and a difference of two rows: a difference is
//! a small part of its operands, so that a change of them that does not matter can double it; they are rows of their
//! own. Where there is no quotient (a value of 0 or below, a share), the values of the runs are compared as they are, any
//! change counts, and two files whose values are all equal are the same; a time without a quotient is uncertain.
//!
//! Each run counts once: by its median, or by its share of yes. So a call that waits in all trials of one run is one
//! observation, and not as many as it has trials.
//!
//! # What so many runs can show
//! With three runs in each file there are 20 relabellings, and the files as they are and exchanged are two of them: 10 %. So
//! three runs never name a change, and four (2 of 70) do. [`Compared::least_chance`] says it. Three runs can show that a row is
//! the same. Which changes more runs find, and how many runs an undecided row takes, follows from how the runs scatter
//! ([`Power`]).
//!
//! `tests/compare.rs` and `examples/false_alarms.rs` measure false alarms and power.
//!
//! What moves a whole system from one day to the next (a driver, a clock, a neighbour) moves all its rows and is in no
//! interval of one day. [`Compared::agreement`] says so, and how well the intervals of the two files meet.
//!
//! A row of yes and no (whether a call came back behind a closed gate) says what something does. Where all trials agree in most
//! runs of one file, and in most of the other's they do not agree on the same, [its behaviour
//! changed](Pair::behaviour_changed), whether chance can do that or not. A process that is stopped for long says yes once.
//!
//! A row that is near the floor of its instrument on either side ([`Diagnosis::NearFloor`]) is the instrument's as much as
//! the row's, and is never called a change.
//!
//! A run that is in both files says nothing of a difference, and hides one. Where there are such runs, no row is judged.
//!
//! # What it does not cover
//! Runs are taken to be exchangeable: a drift from one file to the other is a change. A change of less than the threshold is
//! called the same, however certain it is. A mode that no run of a file met is not in its interval.

use std::collections::{HashMap, HashSet};

use serde::Serialize;

use super::comparability::shared_runs;
use super::direction::Direction;
use super::metric::Metric;
use super::missing::MissingReason;
use super::row::{MetricSpec, Parameters, Provenance};
use super::run::Results;
use crate::measure::{Estimate, median};
use crate::statistics::{
    Power, Ratio, RowByRun, Scattered, chances_over_rows, least_chance, least_chance_of_pairs, mean, share_of_look,
};
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
    /// The level of the interval of each quotient: 0.95.
    pub level: f64,
    /// The chance that one change or more is named of equal files: 0.05.
    pub error: f64,
}

/// A change of 5 % matters, with intervals of 95 %, and with an error of 5 % over the file.
impl Default for Tolerance {
    fn default() -> Self {
        Self { threshold: 0.05, level: 0.95, error: 0.05 }
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
    /// What the second is beside the first.
    pub shift: Shift,
    /// The chance of what was seen, were the files equal, with the error held over all pairs.
    pub chance: f64,
    /// How many runs in each file a verdict takes in the middle, where this pair has none.
    pub runs_to_decide: Option<usize>,
    /// Of a row of yes and no: whether most runs of one file say one thing in all their trials, and most of the other's do not.
    pub behaviour_changed: bool,
    /// Why the intervals of the first and the second value are withheld, where they are: two levels, or a trend.
    pub no_interval: [Option<String>; 2],
    #[serde(skip)]
    pub(super) faster: Direction,
    /// Whether it can be named a change.
    #[serde(skip)]
    pub(super) may_change: bool,
    /// What each run came to.
    #[serde(skip)]
    pub(super) by_run: [ByRun; 2],
}

/// What a row came to in the runs of its system, by their places: its logarithm where there is a quotient.
pub(super) type ByRun = Vec<(usize, f64)>;

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
    /// How many runs each has.
    pub runs: [usize; 2],
    /// How many seconds a run of each took, in the middle; 0 where that was not recorded.
    pub run_seconds: [f64; 2],
    /// How many runs are in both: where there are any, no pair is judged.
    pub shared_runs: usize,
    /// The rows that both have, by system, in the order of the first.
    pub pairs: Vec<Pair>,
    /// The rows that one of them lacks, by system, in the order of the first and then of the second.
    pub unpaired: Vec<Unpaired>,
    /// How often the pairs of runs were looked at, where the runs of the two were made by turns.
    #[serde(skip)]
    pub looks: usize,
}

impl Compared {
    /// How many pairs moved like this.
    pub fn count(&self, shift: Shift) -> usize {
        self.pairs.iter().filter(|pair| pair.shift == shift).count()
    }

    /// The least chance that so many runs can show: above the [error](Tolerance::error), no change can be named.
    pub fn least_chance(&self) -> f64 {
        match self.looks {
            0 => least_chance(self.runs),
            looks => least_chance_of_pairs(self.runs[0]) / share_of_look(looks),
        }
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
    let mut compared = paired(a, b, tolerance);
    compared.judge();
    compared
}

impl Results {
    /// The change that a comparison of two files of so many runs finds in half of the rows, in four of five cases, as a share: by
    /// how the runs of this file scatter. `None` where so few runs find none, or where none of the rows shows its scatter.
    pub fn smallest_change(&self, runs: usize, tolerance: Tolerance) -> Option<f64> {
        let lookup = self.lookup();
        let near: HashSet<String> = lookup.near_floor().into_iter().map(key).collect();
        let compared = lookup.metrics().filter(|(spec, _)| !near.contains(&key(spec)));
        let compared = compared.filter_map(|(_, metric)| metric.ok().filter(|metric| !metric.is_share()));
        let rows: Vec<Scattered> = compared.filter_map(|metric| Scattered::of(&[&metric.run_medians()])).collect();
        Power::of(&rows, tolerance.threshold, tolerance.level, tolerance.error).smallest_change(runs)
    }
}

/// The rows of two results files beside each other, not judged.
pub(super) fn paired(a: &Results, b: &Results, tolerance: Tolerance) -> Compared {
    let [of_a, of_b] = [a, b].map(Results::systems);
    let in_both = |system: &&str| of_b.contains(system);
    let owned = |systems: Vec<&str>| systems.into_iter().map(str::to_owned).collect();
    let (both, alone): (Vec<&str>, Vec<&str>) = of_a.iter().copied().partition(in_both);
    let mut compared = Compared {
        tolerance,
        systems_of_b: owned(of_b.iter().copied().filter(|system| !of_a.contains(system)).collect()),
        systems_of_a: owned(alone),
        runs: [0; 2],
        run_seconds: [a, b].map(run_seconds),
        shared_runs: shared_runs(a, b).len(),
        pairs: Vec::new(),
        unpaired: Vec::new(),
        systems: owned(both.clone()),
        looks: 0,
    };
    for system in both {
        compared.add(system, a, b);
    }
    let last = |side: usize| {
        let places = compared.pairs.iter().filter_map(|pair| pair.by_run[side].last());
        places.map(|(place, _)| place + 1).max().unwrap_or(0)
    };
    compared.runs = [last(0), last(1)];
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
        let share = one.is_share() || other.is_share();
        let of_runs = || Ratio::of_runs(&other.run_medians(), &one.run_medians(), self.tolerance.level);
        let ratio = if share { None } else { of_runs() };
        let faster = Direction::of(&one);
        let by_run = |metric: &Metric<'_>| {
            let value = |run: &[f64]| match (share, &ratio) {
                (true, _) => mean(run),
                (_, Some(_)) => median(run.to_vec()).ln(),
                _ => median(run.to_vec()),
            };
            metric.places.iter().copied().zip(metric.runs.iter().map(|run| value(run))).collect()
        };
        let may_change = !near_floor && (ratio.is_some() || faster == Direction::Neither);
        let [was, is] = [&one, &other].map(|metric| if share { said(&metric.runs) } else { None });
        Ok(Pair {
            system: system.to_owned(),
            id: spec.id.clone(),
            parameters: spec.parameters.clone(),
            unit: spec.unit,
            may_change,
            by_run: [by_run(&one), by_run(&other)],
            a: first,
            b: second,
            ratio,
            shift: Shift::Uncertain,
            chance: 1.0,
            runs_to_decide: None,
            behaviour_changed: was != is,
            no_interval: [&one, &other].map(Metric::unsteady),
            faster,
        })
    }

    /// Says what each pair is, with the error held over all of them.
    fn judge(&mut self) {
        let Tolerance { threshold, error, .. } = self.tolerance;
        if self.shared_runs > 0 {
            return;
        }
        let [first, second] = self.runs;
        let row = |pair: &Pair| {
            let mut values = vec![None; first + second];
            for (by_run, begin) in pair.by_run.iter().filter(|_| pair.may_change).zip([0, first]) {
                by_run.iter().for_each(|(place, value)| values[begin + place] = Some(*value));
            }
            RowByRun { values, margin: pair.margin(threshold) }
        };
        let rows: Vec<RowByRun> = self.pairs.iter().map(row).collect();
        for (pair, chance) in self.pairs.iter_mut().zip(chances_over_rows(&rows, first, first + second)) {
            pair.chance = chance;
            pair.shift = pair.judged(threshold, chance <= error);
        }
        let power = self.power();
        let open = self.pairs.iter_mut().filter(|pair| pair.shift == Shift::Uncertain);
        let (mut open, scattered): (Vec<&mut Pair>, Vec<Scattered>) =
            open.filter_map(|pair| pair.scattered().map(|scattered| (pair, scattered))).unzip();
        for (pair, runs) in open.iter_mut().zip(power.runs_to_decide(&scattered)) {
            // More than there are: with these it is undecided.
            let more = pair.by_run.each_ref().map(Vec::len).into_iter().min().unwrap_or(0) + 1;
            pair.runs_to_decide = runs.map(|runs| runs.max(more));
        }
    }

    /// What more runs would say.
    fn power(&self) -> Power {
        let rows: Vec<Scattered> = self.pairs.iter().filter_map(Pair::scattered).collect();
        let Tolerance { threshold, level, error } = self.tolerance;
        Power::of(&rows, threshold, level, error)
    }

    /// The change that so many runs in each file find in half of the rows, in four of five cases, as a share.
    pub fn smallest_change(&self, runs: usize) -> Option<f64> {
        self.power().smallest_change(runs)
    }
}

impl Pair {
    /// The distance that a change exceeds: with a quotient, the longer of the two ways on a logarithmic scale.
    pub(super) fn margin(&self, threshold: f64) -> f64 {
        if self.ratio.is_some() { -(1.0 - threshold).ln() } else { 0.0 }
    }

    /// How its runs scatter, where it has a quotient and can be named a change.
    fn scattered(&self) -> Option<Scattered> {
        self.ratio.filter(|_| self.may_change)?;
        let [a, b] = self.by_run.each_ref().map(|runs| runs.iter().map(|(_, value)| value.exp()).collect::<Vec<f64>>());
        Scattered::of(&[&a, &b])
    }

    fn judged(&self, threshold: f64, changed: bool) -> Shift {
        /// The least level of an interval that shows that a row is the same.
        const EQUIVALENCE: f64 = 0.9;
        let Some(ratio) = &self.ratio else {
            let known = |estimate: &Estimate| (estimate.median, estimate.low, estimate.high);
            return match self.faster {
                Direction::Neither if changed => Shift::Different,
                Direction::Neither if known(&self.a) == known(&self.b) => Shift::Same,
                _ => Shift::Uncertain,
            };
        };
        match self.faster.shift(ratio.change(threshold)) {
            shift if shift.is_change() && !changed => Shift::Uncertain,
            Shift::Same if ratio.level < EQUIVALENCE => Shift::Uncertain,
            shift => shift,
        }
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

/// How long a run took in the middle: until its last pass ended.
fn run_seconds(results: &Results) -> f64 {
    let mut ended: HashMap<&str, f64> = HashMap::new();
    for series in results.rows.iter().flat_map(|row| &row.series) {
        let last = ended.entry(&series.run).or_default();
        *last = series.outcome.passes().iter().fold(*last, |last, pass| last.max(pass.ended));
    }
    let ended: Vec<f64> = ended.into_values().collect();
    if ended.is_empty() { 0.0 } else { median(ended) }
}

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

/// Yes or no, where that is what all trials say in most of the runs.
fn said<R: AsRef<[f64]>>(runs: &[R]) -> Option<bool> {
    let say = |value: f64| runs.iter().filter(|run| run.as_ref().iter().all(|trial| *trial == value)).count();
    [false, true].into_iter().find(|&yes| 2 * say(f64::from(yes)) > runs.len())
}

fn words<S: serde::Serializer>(absence: &Option<MissingReason>, serializer: S) -> Result<S::Ok, S::Error> {
    absence.as_ref().map(ToString::to_string).serialize(serializer)
}
