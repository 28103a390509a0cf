//! The rows of a results file, and where those of an identifier and of given parameters stand.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use serde::{Deserialize, Serialize};

use super::lookup::{Known, agrees, holds};
use super::row::{Parameter, Parameters, Row};

/// Rows, in the order in which they were measured first. A book looks up thousands of quantities among them, so where they
/// stand, and what a lookup finds out about all of them, is found once, and again after a change.
#[derive(Clone, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct Rows {
    rows: Vec<Row>,
    #[serde(skip)]
    index: OnceLock<Index>,
    /// By the runs of the lookup.
    #[serde(skip)]
    known: Arc<Mutex<HashMap<Vec<String>, Arc<Known>>>>,
}

/// The places of rows, in the order of the file, by a hash of what they are asked for by.
#[derive(Clone, Debug, Default)]
struct Index {
    hasher: RandomState,
    places: HashMap<u64, Vec<usize>>,
}

/// What rows are asked for by: their experiment, or their identifier, alone or with all parameters, the name of one or its
/// value.
#[derive(Hash)]
enum Key<'a> {
    Experiment(&'a str),
    Id(&'a str),
    Spec(&'a str, &'a Parameters),
    Name(&'a str, &'a str),
    Value(&'a str, &'a str, &'a Parameter),
}

impl Index {
    fn at(&self, key: Key<'_>) -> &[usize] {
        self.places.get(&self.hasher.hash_one(key)).map_or(&[], Vec::as_slice)
    }

    fn put(&mut self, place: usize, key: Key<'_>) {
        self.places.entry(self.hasher.hash_one(key)).or_default().push(place);
    }
}

impl Rows {
    /// The rows with this identifier, in the order of the file.
    pub fn of(&self, id: &str) -> impl Iterator<Item = &Row> {
        self.among(self.index().at(Key::Id(id)), id)
    }

    /// The rows of an experiment, in the order of the file.
    pub fn of_experiment(&self, name: &str) -> impl Iterator<Item = &Row> {
        let places = self.index().at(Key::Experiment(name)).iter();
        places.map(|place| &self.rows[*place]).filter(move |row| row.spec.experiment() == name)
    }

    /// Those whose parameters hold all of `select`.
    pub(super) fn having(&self, id: &str, select: &Parameters) -> impl Iterator<Item = &Row> {
        let index = self.index();
        let of_values = select.iter().map(|(name, value)| index.at(Key::Value(id, name, value)));
        let fewest = of_values.min_by_key(|places| places.len()).unwrap_or_else(|| index.at(Key::Id(id)));
        self.among(fewest, id).filter(move |row| holds(&row.spec.parameters, select))
    }

    /// Those that have no other value of a parameter of `select`.
    pub(super) fn agreeing(&self, id: &str, select: &Parameters) -> impl Iterator<Item = &Row> {
        let (index, all) = (self.index(), self.index().at(Key::Id(id)));
        // Where some rows lack the parameter, those agree, too.
        let is_of_all = |name: &String| index.at(Key::Name(id, name)).len() == all.len();
        let of_values = select
            .iter()
            .filter(|(name, _)| is_of_all(name))
            .map(|(name, value)| index.at(Key::Value(id, name, value)));
        let fewest = of_values.min_by_key(|places| places.len()).unwrap_or(all);
        self.among(fewest, id).filter(move |row| agrees(&row.spec.parameters, select))
    }

    /// Those with these parameters.
    pub(super) fn at(&self, id: &str, parameters: &Parameters) -> impl Iterator<Item = &Row> {
        self.among(self.index().at(Key::Spec(id, parameters)), id).filter(move |row| row.spec.parameters == *parameters)
    }

    /// The place of one of these rows.
    pub(super) fn place(&self, row: &Row) -> usize {
        (std::ptr::from_ref(row).addr() - self.rows.as_ptr().addr()) / size_of::<Row>()
    }

    /// What is found out once for all lookups of these runs.
    pub(super) fn known(&self, runs: &[&str]) -> Arc<Known> {
        let runs = runs.iter().map(|run| (*run).to_owned()).collect();
        self.known.lock().unwrap_or_else(PoisonError::into_inner).entry(runs).or_default().clone()
    }

    fn among<'a>(&'a self, places: &'a [usize], id: &str) -> impl Iterator<Item = &'a Row> {
        places.iter().map(|place| &self.rows[*place]).filter(move |row| row.spec.id == id)
    }

    fn index(&self) -> &Index {
        self.index.get_or_init(|| {
            let mut index = Index::default();
            for (place, Row { spec, .. }) in self.rows.iter().enumerate() {
                let id = spec.id.as_str();
                index.put(place, Key::Experiment(spec.experiment()));
                index.put(place, Key::Id(id));
                index.put(place, Key::Spec(id, &spec.parameters));
                for (name, value) in &spec.parameters {
                    index.put(place, Key::Name(id, name));
                    index.put(place, Key::Value(id, name, value));
                }
            }
            index
        })
    }
}

impl Deref for Rows {
    type Target = Vec<Row>;

    fn deref(&self) -> &Vec<Row> {
        &self.rows
    }
}

impl DerefMut for Rows {
    fn deref_mut(&mut self) -> &mut Vec<Row> {
        (self.index, self.known) = Default::default();
        &mut self.rows
    }
}

impl PartialEq for Rows {
    fn eq(&self, other: &Self) -> bool {
        self.rows == other.rows
    }
}

impl From<Vec<Row>> for Rows {
    fn from(rows: Vec<Row>) -> Self {
        Self { rows, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Clock;
    use crate::units::Unit;
    use crate::{MetricSpec, Provenance};

    fn row(id: &str, label: &str) -> Row {
        let (group, parameters) = (String::new(), Parameters::new());
        let provenance = Provenance::measured(Clock::Host);
        let (id, label, unit) = (id.to_owned(), label.to_owned(), Unit::Seconds);
        let spec = MetricSpec { id, group, label, unit, parameters, provenance, work: None, floor: None };
        Row { spec, series: Vec::new() }
    }

    fn labels(rows: &Rows, id: &str) -> String {
        rows.of(id).map(|row| row.spec.label.as_str()).collect()
    }

    #[test]
    fn rows_are_found_by_identifier_in_file_order_and_after_changes() {
        let mut rows: Rows = vec![row("b", "1"), row("a", "2"), row("b", "3")].into();
        assert_eq!((labels(&rows, "b"), labels(&rows, "a"), labels(&rows, "c")), ("13".into(), "2".into(), "".into()));
        rows.push(row("a", "4"));
        assert_eq!(labels(&rows, "a"), "24");
        rows.retain(|row| row.spec.id == "a");
        assert_eq!((labels(&rows, "a"), labels(&rows, "b")), ("24".into(), "".into()));
        for row in rows.iter_mut() {
            row.spec.id = "b".to_owned();
        }
        assert_eq!((labels(&rows, "a"), labels(&rows, "b")), ("".into(), "24".into()));
        assert_eq!(rows, rows.to_vec().into());
    }

    #[test]
    fn rows_are_found_by_parameters_however_a_number_is_written() {
        let of_size = |size: Parameter| Parameters::from([("size".to_owned(), size)]);
        let sized = |label: &str, size: Parameter| {
            let mut row = row("a", label);
            row.spec.parameters = of_size(size);
            row
        };
        let labels = |rows: &Rows, id: &str, parameters: &Parameters| -> String {
            rows.at(id, parameters).map(|row| row.spec.label.as_str()).collect()
        };
        let (two, four) = (of_size(2_usize.into()), of_size(Parameter::Number(4.0)));
        let mut rows: Rows = vec![row("a", "1"), sized("2", 2_usize.into()), sized("3", 4_usize.into())].into();
        assert_eq!((labels(&rows, "a", &two), labels(&rows, "a", &four)), ("2".into(), "3".into()));
        assert_eq!((labels(&rows, "a", &Parameters::new()), labels(&rows, "b", &two)), ("1".into(), "".into()));
        rows.push(sized("4", Parameter::Number(2.0)));
        assert_eq!(labels(&rows, "a", &two), "24");
    }
}
