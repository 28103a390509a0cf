//! The rows of a results file, and where those of an identifier stand.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::ops::{Deref, DerefMut};
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use super::row::{Parameters, Row};

/// Rows, in the order in which they were measured first. A book looks up thousands of quantities among them, so where they
/// stand is found once, and again after a change.
#[derive(Clone, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct Rows {
    rows: Vec<Row>,
    /// The places of the rows, sorted by identifier; those of one identifier, in the order of the file.
    #[serde(skip)]
    by_id: OnceLock<Vec<usize>>,
    /// The places of the rows, in the order of the file, by a hash of their identifier and parameters.
    #[serde(skip)]
    by_spec: OnceLock<(RandomState, HashMap<u64, Vec<usize>>)>,
}

impl Rows {
    /// The rows with this identifier, in the order of the file.
    pub fn of<'a>(&'a self, id: &str) -> impl Iterator<Item = &'a Row> + use<'a> {
        let id_at = |place: &usize| self.rows[*place].spec.id.as_str();
        let sorted = self.by_id.get_or_init(|| {
            let mut places: Vec<usize> = (0..self.rows.len()).collect();
            places.sort_by_key(id_at);
            places
        });
        let start = sorted.partition_point(|place| id_at(place) < id);
        let count = sorted[start..].partition_point(|place| id_at(place) == id);
        sorted[start..start + count].iter().map(|place| &self.rows[*place])
    }

    /// The rows with this identifier and these parameters, in the order of the file.
    pub(super) fn at<'a, 'b>(
        &'a self,
        id: &'b str,
        parameters: &'b Parameters,
    ) -> impl Iterator<Item = &'a Row> + use<'a, 'b> {
        let (hasher, places) = self.by_spec.get_or_init(|| {
            let (hasher, mut places) = (RandomState::new(), HashMap::<u64, Vec<usize>>::new());
            for (place, Row { spec, .. }) in self.rows.iter().enumerate() {
                places.entry(hasher.hash_one((spec.id.as_str(), &spec.parameters))).or_default().push(place);
            }
            (hasher, places)
        });
        let found = places.get(&hasher.hash_one((id, parameters))).into_iter().flatten();
        found.map(|place| &self.rows[*place]).filter(move |row| row.spec.is(id, parameters))
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
        (self.by_id, self.by_spec) = Default::default();
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

impl FromIterator<Row> for Rows {
    fn from_iter<T: IntoIterator<Item = Row>>(rows: T) -> Self {
        Vec::from_iter(rows).into()
    }
}

impl IntoIterator for Rows {
    type Item = Row;
    type IntoIter = std::vec::IntoIter<Row>;

    fn into_iter(self) -> Self::IntoIter {
        self.rows.into_iter()
    }
}

impl<'a> IntoIterator for &'a Rows {
    type Item = &'a Row;
    type IntoIter = std::slice::Iter<'a, Row>;

    fn into_iter(self) -> Self::IntoIter {
        self.rows.iter()
    }
}

impl<'a> IntoIterator for &'a mut Rows {
    type Item = &'a mut Row;
    type IntoIter = std::slice::IterMut<'a, Row>;

    fn into_iter(self) -> Self::IntoIter {
        (**self).iter_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Clock;
    use crate::units::Unit;
    use crate::{MetricSpec, Parameter, Provenance};

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
    fn rows_are_found_by_their_identifier_in_the_order_of_the_file_and_after_each_change() {
        let mut rows: Rows = [row("b", "1"), row("a", "2"), row("b", "3")].into_iter().collect();
        assert_eq!((labels(&rows, "b"), labels(&rows, "a"), labels(&rows, "c")), ("13".into(), "2".into(), "".into()));
        rows.push(row("a", "4"));
        assert_eq!(labels(&rows, "a"), "24");
        rows.retain(|row| row.spec.id == "a");
        assert_eq!((labels(&rows, "a"), labels(&rows, "b")), ("24".into(), "".into()));
        for row in &mut rows {
            row.spec.id = "b".to_owned();
        }
        assert_eq!((labels(&rows, "a"), labels(&rows, "b")), ("".into(), "24".into()));
        assert_eq!(rows, rows.to_vec().into());
    }

    #[test]
    fn rows_are_found_by_their_parameters_however_a_number_is_written_and_after_each_change() {
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
        let mut rows: Rows =
            [row("a", "1"), sized("2", 2_usize.into()), sized("3", 4_usize.into())].into_iter().collect();
        assert_eq!((labels(&rows, "a", &two), labels(&rows, "a", &four)), ("2".into(), "3".into()));
        assert_eq!((labels(&rows, "a", &Parameters::new()), labels(&rows, "b", &two)), ("1".into(), "".into()));
        rows.push(sized("4", Parameter::Number(2.0)));
        assert_eq!(labels(&rows, "a", &two), "24");
    }
}
