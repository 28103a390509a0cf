//! The newest values of each machine, and the machines that differ from the rest of their model.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::began;
use crate::measure::{FEWEST, Outliers, Tail, outliers};
use crate::results::{Direction, Results};
use crate::store::Listed;
use crate::units::Unit;

/// The machines of a store.
///
/// ```
/// use std::path::Path;
/// use syncscope_results::error::FileError;
/// use syncscope_results::Results;
/// use syncscope_results::store::Index;
/// use syncscope_fleet::Fleet;
///
/// let mut fleet = Fleet::default();
/// let store = Index::of(Path::new("a-store-that-is-to-be"), &|file: &Path| Results::read(file), |listed, results| {
///     fleet.add(listed, results);
///     Ok::<_, FileError>(())
/// })?;
/// assert_eq!((store.files.len(), fleet.different().len()), (0, 0));
/// # Ok::<(), FileError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Fleet {
    /// The machines, by name.
    pub members: Vec<Member>,
    /// The rows, in the order in which files have them.
    pub rows: Vec<FleetRow>,
    places: BTreeMap<String, usize>,
}

/// A machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Member {
    /// Its name.
    pub name: String,
    /// The model of its device.
    pub model: String,
    /// When the first run of its newest file began.
    pub started: String,
}

/// A row of all machines.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FleetRow {
    /// Identifier and parameters.
    pub title: String,
    /// What it is, in a few words.
    pub label: String,
    /// The unit of the values.
    pub unit: Unit,
    /// Which of two values is the faster one.
    pub direction: Direction,
    /// What each machine's newest file says, in the order of the machines.
    pub values: Vec<Option<Newest>>,
}

/// What the newest file of a machine says of a row.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Newest {
    /// The expected median of a run.
    pub median: f64,
    /// Its 95 % interval, where it has one.
    pub interval: Option<(f64, f64)>,
}

/// A machine that differs from the rest of its model in a row.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Different {
    /// The machine.
    pub machine: String,
    /// The row.
    pub row: String,
    /// Its value by the geometric mean of the rest.
    pub ratio: f64,
    /// Whether it is the slower one; none of a value that is neither.
    pub is_slower: bool,
}

impl Different {
    /// Whether it is slower or faster than the rest, in a word.
    pub fn word(&self) -> &'static str {
        if self.is_slower { "slower" } else { "faster" }
    }

    /// By how many percent its value is above that of the rest.
    pub fn percent(&self) -> f64 {
        (self.ratio - 1.0) * 100.0
    }
}

impl Fleet {
    /// Adds a file of a store; an older file of the same machine gives way.
    pub fn add(&mut self, listed: &Listed, results: &Results) {
        let member =
            Member { name: listed.machine.clone(), model: listed.model.clone(), started: listed.started.clone() };
        let place = match self.members.iter().position(|other| other.name == member.name) {
            Some(place) if began(&self.members[place].started) > began(&member.started) => return,
            Some(place) => {
                self.members[place] = member;
                self.rows.iter_mut().for_each(|row| row.values[place] = None);
                place
            }
            None => {
                self.members.push(member);
                self.rows.iter_mut().for_each(|row| row.values.push(None));
                self.members.len() - 1
            }
        };
        for (spec, metric) in results.lookup().metrics() {
            let Ok(metric) = metric else { continue };
            let Ok(estimate) = metric.estimate() else { continue };
            let row = *self.places.entry(spec.title()).or_insert_with(|| {
                let (title, label, unit) = (spec.title(), spec.label.clone(), spec.unit);
                let (direction, values) = (Direction::of(&metric), vec![None; self.members.len()]);
                self.rows.push(FleetRow { title, label, unit, direction, values });
                self.rows.len() - 1
            });
            let interval = estimate.is_interval().then_some((estimate.low, estimate.high));
            self.rows[row].values[place] = Some(Newest { median: estimate.median, interval });
        }
    }

    /// The models, by name, each with the places of its machines.
    pub fn models(&self) -> BTreeMap<&str, Vec<usize>> {
        let mut models: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (place, member) in self.members.iter().enumerate() {
            models.entry(&member.model).or_default().push(place);
        }
        models
    }

    /// How many tests of a row in a model there are.
    pub fn tests(&self) -> usize {
        self.rows.iter().filter(|row| row.direction != Direction::Neither).count() * self.models().len().max(1)
    }

    /// How far the values of these machines, which are of one model, reach where none differs.
    pub fn tail_of(&self, machines: &[usize]) -> Tail {
        let judged = self.rows.iter().filter(|row| row.direction != Direction::Neither);
        let value = |row: &FleetRow, place: usize| row.values[place].as_ref().map(|own| own.median);
        let rows: Vec<Vec<Option<f64>>> =
            judged.map(|row| machines.iter().map(|place| value(row, *place)).collect()).collect();
        Tail::of(&rows)
    }

    /// What a row comes to among these machines, and the machines that have it.
    pub fn outliers_of(&self, row: &FleetRow, machines: &[usize], tail: Tail) -> Option<(Outliers, Vec<usize>)> {
        if row.direction == Direction::Neither {
            return None;
        }
        let have: Vec<usize> = machines.iter().copied().filter(|place| row.values[*place].is_some()).collect();
        let values: Vec<f64> =
            have.iter().filter_map(|place| row.values[*place].as_ref()).map(|own| own.median).collect();
        // Before the tests are counted: there may be as many small models as machines.
        if values.len() < FEWEST {
            return None;
        }
        Some((outliers(&values, self.tests(), tail)?, have))
    }

    /// The machines that differ from the rest of their model, the furthest first.
    pub fn different(&self) -> Vec<Different> {
        let mut found = Vec::new();
        for machines in self.models().values() {
            let tail = self.tail_of(machines);
            for row in &self.rows {
                let Some((outliers, have)) = self.outliers_of(row, machines, tail) else { continue };
                for outlier in outliers.found {
                    let machine = have[outlier.place];
                    found.push(Different {
                        machine: self.members[machine].name.clone(),
                        row: row.title.clone(),
                        ratio: outlier.ratio,
                        is_slower: (outlier.ratio > 1.0) == (row.direction == Direction::Less),
                    });
                }
            }
        }
        let far = |different: &Different| different.ratio.ln().abs();
        found.sort_by(|a, b| far(b).total_cmp(&far(a)).then_with(|| a.machine.cmp(&b.machine)));
        found
    }
}
