//! Which runs lack rows that others of their system measured, and why.

use std::collections::BTreeMap;

use crate::in_order::grouped;
use crate::results::{Metric, MissingReason, Results};

/// A run that lacks rows for one reason.
pub(crate) struct Lacks {
    /// The run's identifier.
    pub run: String,
    /// Why it lacks them.
    pub reason: MissingReason,
    /// The rows in words; those of a part of which it has none, by the part.
    pub rows: String,
}

/// What the runs of all systems lack of the rows of their system.
pub(crate) fn lacking_of(results: &Results) -> Vec<Lacks> {
    let of_system = |system| {
        let lookup = results.lookup_of(system);
        let measured = |(_, metric): (_, Result<_, _>)| metric.ok();
        let metrics = lookup.metrics().filter_map(measured);
        lacking(metrics.map(|metric: Metric<'_>| (metric.spec.experiment(), metric.spec.title(), metric)))
    };
    results.systems().into_iter().flat_map(of_system).collect()
}

/// What the runs of a system lack of its rows, each given with the part that it is of and with its name.
fn lacking<'a>(rows: impl Iterator<Item = (&'a str, String, Metric<'a>)>) -> Vec<Lacks> {
    let mut count: BTreeMap<&str, usize> = BTreeMap::new();
    let mut found = Vec::new();
    for (part, row, metric) in rows {
        *count.entry(part).or_default() += 1;
        let lacks = metric.lacking.into_iter().map(|lacking| (lacking.run.to_owned(), lacking.reason.clone()));
        found.extend(lacks.map(|which| (which, (part, row.clone()))));
    }
    let words = |(part, rows): (&str, Vec<String>)| match rows.len() == count[part] {
        true => format!("any row of {part}"),
        false => rows.join(", "),
    };
    let lacks = |((run, reason), rows)| {
        let rows = grouped(rows).into_iter().map(words).collect::<Vec<String>>().join(", ");
        Lacks { run, reason, rows }
    };
    grouped(found).into_iter().map(lacks).collect()
}
