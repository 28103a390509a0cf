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
    /// That of `cases`; as [`sample`](Self::sample).
    pub fn sweep<'a, V: fmt::Display, C: Cases<'a>>(
        &self,
        axis: Axis<V>,
        mut cases: impl FnMut(&V) -> Result<C, CaseError>,
    ) -> Result<Swept, MeasureError> {
        let Axis { name, values } = axis;
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
    /// A row for each value, a column for each case.
    pub fn table(&self) -> Table {
        let cases = self.points.first().into_iter().flat_map(|(_, sets)| sets);
        let measured = cases.map(|set| Column::new(Role::Measured, set.name()));
        let cell = |set: &Samples| {
            Cell::Value(Box::new(Value::estimated(&set.estimate(), Unit::Seconds, Precision::Interval)))
        };
        let row = |(value, sets): &(String, Vec<Samples>)| TableRow::new(value, sets.iter().map(cell).collect());
        let columns = std::iter::once(Column::new(Role::Label, &self.axis)).chain(measured).collect();
        Table::new(format!("Times by {}", self.axis), columns, self.points.iter().map(row).collect())
    }
}

/// Writes the table.
impl fmt::Display for Swept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.table().to_console().trim_end())
    }
}
