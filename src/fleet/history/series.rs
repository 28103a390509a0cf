//! The rows of a store over time, and their changes.

use std::collections::BTreeMap;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::Serialize;

use crate::began;
use crate::measure::{Change, ChangePoint, change_points};
use crate::results::{Direction, Results, Shift};
use crate::store::{Listed, described};
use crate::units::Unit;

/// All machines of a store.
///
/// ```
/// use std::path::Path;
/// use syncscope_results::error::FileError;
/// use syncscope_results::Results;
/// use syncscope_results::store::Index;
/// use syncscope_fleet::history::History;
///
/// let mut history = History::default();
/// let store = Index::of(Path::new("a-store-that-is-to-be"), &|file: &Path| Results::read(file), |listed, results| {
///     history.add(listed, results);
///     Ok::<_, FileError>(())
/// })?;
/// history.finish(0.05); // changes of 5 % and more
/// assert_eq!((store.files.len(), history.changes().count()), (0, 0));
/// # Ok::<(), FileError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct History {
    /// The machines, by name.
    pub machines: Vec<MachineHistory>,
}

/// A machine over time.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct MachineHistory {
    /// Its name; with the engine and the model behind it where a store has several machines of that name.
    pub name: String,
    /// The model of its device.
    pub model: String,
    /// The engine, and what device and host are.
    #[serde(skip)]
    identity: [String; 2],
    /// Its files in the order of time.
    pub entries: Vec<HistoryEntry>,
    /// Its rows, in the order of the files.
    pub tracks: Vec<RowHistory>,
}

/// A file of a machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct HistoryEntry {
    /// When its first run began, RFC 3339.
    pub started: String,
    /// What may change between files and may explain a change of values: commit, driver, versions, operating system.
    pub facts: BTreeMap<String, String>,
}

/// A row over time.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RowHistory {
    /// Identifier and parameters.
    pub title: String,
    /// What it is, in a few words.
    pub label: String,
    /// The unit of the values.
    pub unit: Unit,
    /// Which of two values is the faster one.
    #[serde(skip)]
    pub direction: Direction,
    /// The values in the order of time.
    pub values: Vec<HistoryValue>,
    /// The changes of level in the order of time.
    pub changes: Vec<SeriesChange>,
}

/// What a file says of a row: the expected median of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct HistoryValue {
    /// The place of the file among the machine's entries.
    pub entry: usize,
    /// The value.
    pub median: f64,
    /// Its 95 % interval, where it has one.
    pub interval: Option<(f64, f64)>,
}

/// A change of level of a row.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SeriesChange {
    /// Where and how large it is; places are those of the track's values.
    pub point: ChangePoint,
    /// What the new level is beside the old one.
    pub shift: Shift,
    /// What else changed between the file before it and its own: `driver: 570.1, then 580.2`.
    pub facts: Vec<String>,
}

impl History {
    /// Adds a file of a store.
    pub fn add(&mut self, listed: &Listed, results: &Results) {
        let identity = [listed.engine.clone(), described(results)];
        let is_own = |machine: &MachineHistory| machine.name == listed.machine && machine.identity == identity;
        let place = self.machines.iter().position(is_own).unwrap_or_else(|| {
            let (name, model) = (listed.machine.clone(), listed.model.clone());
            self.machines.push(MachineHistory { name, model, identity, entries: Vec::new(), tracks: Vec::new() });
            self.machines.len() - 1
        });
        self.machines[place].add(listed, results);
    }

    /// Puts the files in the order of time and finds the changes; one of less than `threshold` does not matter.
    pub fn finish(&mut self, threshold: f64) {
        self.machines.sort_by(|a, b| (&a.name, &a.identity).cmp(&(&b.name, &b.identity)));
        let names: Vec<String> = self.machines.iter().map(|machine| machine.name.clone()).collect();
        for machine in &mut self.machines {
            if names.iter().filter(|name| **name == machine.name).count() > 1 {
                machine.name = format!("{} ({}, {})", machine.name, machine.identity[0], machine.model);
            }
        }
        self.machines.iter_mut().for_each(|machine| machine.finish(threshold));
    }

    /// All changes, by machine and row.
    pub fn changes(&self) -> impl Iterator<Item = (&MachineHistory, &RowHistory, &SeriesChange)> {
        let tracks = self.machines.iter().flat_map(|machine| machine.tracks.iter().map(move |track| (machine, track)));
        tracks.flat_map(|(machine, track)| track.changes.iter().map(move |change| (machine, track, change)))
    }
}

impl MachineHistory {
    fn add(&mut self, listed: &Listed, results: &Results) {
        let entry = self.entries.len();
        self.entries.push(HistoryEntry::of(listed, results));
        let mut places: BTreeMap<String, usize> =
            self.tracks.iter().enumerate().map(|(place, track)| (track.title.clone(), place)).collect();
        for (spec, metric) in results.lookup().metrics() {
            let Ok(metric) = metric else { continue };
            let Ok(estimate) = metric.estimate() else { continue };
            let place = *places.entry(spec.title()).or_insert_with(|| {
                let (title, label, unit) = (spec.title(), spec.label.clone(), spec.unit);
                let (direction, values, changes) = (Direction::of(&metric), Vec::new(), Vec::new());
                self.tracks.push(RowHistory { title, label, unit, direction, values, changes });
                self.tracks.len() - 1
            });
            let interval = estimate.is_interval().then_some((estimate.low, estimate.high));
            self.tracks[place].values.push(HistoryValue { entry, median: estimate.median, interval });
        }
    }

    fn finish(&mut self, threshold: f64) {
        let mut order: Vec<usize> = (0..self.entries.len()).collect();
        order.sort_by_key(|place| began(&self.entries[*place].started));
        let mut places = vec![0; order.len()];
        order.iter().enumerate().for_each(|(new, old)| places[*old] = new);
        self.entries = order.iter().map(|old| self.entries[*old].clone()).collect();
        for track in &mut self.tracks {
            track.values.iter_mut().for_each(|value| value.entry = places[value.entry]);
            // A row that a suite names twice has two values of one file, which stay beside each other.
            track.values.sort_by_key(|value| value.entry);
            track.find(&self.entries, threshold);
        }
    }
}

impl RowHistory {
    fn find(&mut self, entries: &[HistoryEntry], threshold: f64) {
        let medians: Vec<f64> = self.values.iter().map(|value| value.median).collect();
        let found = change_points(&medians).into_iter().map(|point| {
            let shift = match point.ratio {
                Some(ratio) => self.direction.shift(ratio.change(threshold)),
                // Values that do not scatter have no interval, and need none.
                None if point.before > 0.0 && point.after > 0.0 => {
                    let ratio = point.after / point.before;
                    self.direction.shift(Change::of((ratio, ratio), threshold))
                }
                None => Shift::Different,
            };
            let [before, after] =
                [point.at.saturating_sub(1), point.at].map(|place| &entries[self.values[place].entry]);
            SeriesChange { facts: after.differs(before), shift, point }
        });
        self.changes = found.collect();
    }
}

impl HistoryEntry {
    fn of(listed: &Listed, results: &Results) -> Self {
        let environment = results.environment();
        let own = [("commit", &listed.commit), ("operating system", &environment.host.system)];
        let own = own.into_iter().filter_map(|(name, fact)| Some((name.to_owned(), fact.clone()?)));
        let facts = environment.device.facts.iter().cloned().chain(own).collect();
        Self { started: listed.started.clone(), facts }
    }

    /// What is other than of the entry `before`, in words.
    pub fn differs(&self, before: &Self) -> Vec<String> {
        let unknown = || "not stated".to_owned();
        let names: std::collections::BTreeSet<&String> = self.facts.keys().chain(before.facts.keys()).collect();
        let changed = names.into_iter().filter(|name| self.facts.get(*name) != before.facts.get(*name));
        let value = |of: &Self, name: &str| of.facts.get(name).cloned().unwrap_or_else(unknown);
        changed.map(|name| format!("{name}: {}, then {}", value(before, name), value(self, name))).collect()
    }

    /// The day on which it was made, in UTC.
    pub fn day(&self) -> Date {
        began(&self.started).to_zoned(TimeZone::UTC).date()
    }
}

impl SeriesChange {
    /// Whether it was found with a file of the day `since` (UTC) or later.
    pub fn is_new(&self, machine: &MachineHistory, track: &RowHistory, since: Date) -> bool {
        machine.entries[track.values[self.point.found].entry].day() >= since
    }

    /// The change in words: `slower: 1.052 × (1.048 … 1.057)`.
    pub fn text(&self, unit: Unit) -> String {
        let name = self.shift.name();
        match self.point.ratio {
            Some(ratio) => format!("{name}: {:.3} × ({:.3} … {:.3})", ratio.value, ratio.low, ratio.high),
            None => format!("{name}: {}, then {}", unit.format(self.point.before, 3), unit.format(self.point.after, 3)),
        }
    }

    /// When it happened, and when at the earliest and latest: `2026-03-05 (2026-03-04 … 2026-03-07)`.
    pub fn when(&self, machine: &MachineHistory, track: &RowHistory) -> String {
        let day = |place: usize| machine.entries[track.values[place.min(track.values.len() - 1)].entry].day();
        let point = &self.point;
        format!("{} ({} … {})", day(point.at), day(point.earliest), day(point.latest))
    }
}
