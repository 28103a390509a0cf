//! The same cases at several sizes.

use std::fmt;

use super::compared::Cases;
use super::sampler::Sampler;
use super::samples::Samples;
use crate::error::{CaseError, MeasureError};
use crate::present::{Cell, Column, Precision, Role, Table, TableRow, Value};
use crate::units::Unit;

/// A name, and the values that it takes: of a [`sweep`](Sampler::sweep).
#[derive(Clone, Debug, PartialEq)]
pub struct Axis<V> {
    name: String,
    values: Vec<V>,
}

/// An axis of these values.
pub fn axis<V>(name: impl Into<String>, values: impl IntoIterator<Item = V>) -> Axis<V> {
    Axis { name: name.into(), values: values.into_iter().collect() }
}

/// What the cases of a sweep take at each value of its axis.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Swept {
    /// The name of the axis.
    pub axis: String,
    /// Its values as they are written, each with the samples of its cases in their order.
    pub points: Vec<(String, Vec<Samples>)>,
}

impl Sampler {
    /// Samples the cases that `cases` makes of each value of the axis: those of one value interleaved, one value after the other.
    ///
    /// ```
    /// use syncscope::measure::{Protocol, Sampler, axis};
    ///
    /// let swept = Sampler::new(Protocol::samples(5)).sweep(axis("elements", [10, 1000]), |elements| {
    ///     let numbers = vec![1_u64; *elements];
    ///     Ok([("sum", move || numbers.iter().sum::<u64>())])
    /// })?;
    /// println!("{swept}");
    /// assert_eq!(swept.points.len(), 2);
    /// # Ok::<(), syncscope::error::MeasureError>(())
    /// ```
    ///
    /// # Errors
    /// That of `cases`; as [`sample`](Self::sample); [`MeasureError::Plan`] for an axis without values.
    pub fn sweep<'a, V: fmt::Display, C: Cases<'a>>(
        &self,
        axis: Axis<V>,
        mut cases: impl FnMut(&V) -> Result<C, CaseError>,
    ) -> Result<Swept, MeasureError> {
        let Axis { name, values } = axis;
        if values.is_empty() {
            return Err(MeasureError::Plan(format!("the axis `{name}` has no values")));
        }
        let point = |value: &V| {
            let at = format!("{name} {value}");
            let cases = cases(value).map_err(|cause| MeasureError::Case { case: at, cause })?;
            Ok((value.to_string(), self.sample(cases)?.sets))
        };
        let points = values.iter().map(point).collect::<Result<_, MeasureError>>()?;
        Ok(Swept { axis: name, points })
    }
}

impl Swept {
    /// A row for each value, a column for each case, whichever values have it.
    pub fn table(&self) -> Table {
        let mut cases: Vec<&str> = Vec::new();
        for set in self.points.iter().flat_map(|(_, sets)| sets) {
            if !cases.contains(&set.name()) {
                cases.push(set.name());
            }
        }
        let cell = |set: Option<&Samples>| match set {
            Some(set) => Cell::Value(Box::new(Value::estimated(&set.estimate(), set.unit(), Precision::Interval))),
            None => Cell::Text("–".to_owned()),
        };
        let row = |(value, sets): &(String, Vec<Samples>)| {
            let of = |case: &&str| cell(sets.iter().find(|set| set.name() == *case));
            TableRow::new(value, cases.iter().map(of).collect())
        };
        let measured = cases.iter().map(|case| Column::new(Role::Measured, *case));
        let columns = std::iter::once(Column::new(Role::Label, &self.axis)).chain(measured).collect();
        let is_time = self.points.iter().flat_map(|(_, sets)| sets).all(|set| set.unit() == Unit::Seconds);
        let what = if is_time { "Times" } else { "Values" };
        Table::new(format!("{what} by {}", self.axis), columns, self.points.iter().map(row).collect())
    }
}

/// Writes the table.
impl fmt::Display for Swept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.table().to_console().trim_end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::{Case, Protocol};

    #[test]
    fn a_case_of_some_values_has_a_column_and_no_value_is_an_error() {
        let sampler = Sampler::new(Protocol::samples(3));
        let case = |name: String| Case::observed(name, || 1.0);
        let swept =
            sampler.sweep(axis("n", [1, 3]), |n| Ok((0..*n).map(|i| case(format!("case {i}"))).collect::<Vec<_>>()));
        let text = swept.map(|swept| swept.to_string()).unwrap_or_default();
        assert!(["case 0", "case 1", "case 2", "–"].iter().all(|part| text.contains(part)), "{text}");
        let none = sampler.sweep(axis("n", Vec::<usize>::new()), |_| Ok([case("a".to_owned())]));
        assert!(matches!(none, Err(MeasureError::Plan(_))), "{none:?}");
    }
}
