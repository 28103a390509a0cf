//! What has no meaning on any machine that is shown, and what a run has nothing of: it is left out of tables and plots, and one
//! line says what and why.
//!
//! And what else stands beside a table: how many cases say yes, and whether its rows were sampled alternately. Rows of different groups
//! are sampled one after the other, so that what drifts, such as a clock rate, may look like a difference between them.

use std::collections::{BTreeMap, HashMap};

use super::comparison::{Machines, SystemRows};
use crate::document::{DocumentRow, DocumentTable, TableCase, TableEntry};
use crate::in_order::{each_once, grouped, listed};
use crate::present::{Cell, Column, Role, Table, TableRow};
use crate::results::{Lookup, Metric, MissingReason, Outcome, Results, Row};

/// Something that is left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// The label of the row or of the line.
    pub what: String,
    /// The case, where the row has several.
    pub case: Option<String>,
    /// Why it has no meaning.
    pub reason: String,
}

impl LeftOut {
    pub(super) fn new(what: String, reason: String) -> Self {
        Self { what, case: None, reason }
    }

    pub(crate) fn of(row: &DocumentRow, case: &TableCase, reason: String) -> Self {
        Self { case: case.heading().map(str::to_owned), ..Self::new(row.label.clone(), reason) }
    }

    /// Each reason with the rows that share it and the same cases, in words.
    pub(crate) fn listed<'a>(all: &'a [Self]) -> Vec<(&'a str, String)> {
        let of_row = |one: &'a Self| ((one.what.as_str(), one.reason.as_str()), one.case.as_deref());
        let rows = grouped(all.iter().map(of_row)).into_iter();
        // Rows of the same cases stand together.
        let by_cases =
            rows.map(|((what, reason), cases)| ((reason, each_once(cases.into_iter().flatten())), format!("“{what}”")));
        let of_cases = grouped(by_cases).into_iter();
        of_cases.map(|((reason, cases), rows)| (reason, rows.join(", ") + &in_brackets(&cases))).collect()
    }

    /// All of them in one sentence: what they are, for which cases, and why; nothing where nothing is left out.
    pub fn sentence(all: &[Self], machine: &str) -> Option<String> {
        let listed = Self::listed(all);
        let of_reason = |parts: &[(&str, String)]| {
            let rows: Vec<&str> = parts.iter().map(|(_, rows)| rows.as_str()).collect();
            format!("{}, since {}", rows.join("; "), parts[0].0.trim_end_matches('.'))
        };
        let parts: Vec<String> = listed.chunk_by(|(one, _), (other, _)| one == other).map(of_reason).collect();
        (!parts.is_empty()).then(|| format!("Not applicable on {machine}, and left out: {}.", parts.join("; ")))
    }

    /// The same with one entry in place of those of all `cases` of a row.
    pub(crate) fn collapsed(all: Vec<Self>, cases: usize) -> Vec<Self> {
        let mut count: HashMap<(&str, &str), usize> = HashMap::new();
        all.iter().for_each(|one| *count.entry((&one.what, &one.reason)).or_default() += 1);
        let is_whole = |one: &Self| cases > 1 && count[&(one.what.as_str(), one.reason.as_str())] >= cases;
        let is_whole: Vec<bool> = all.iter().map(is_whole).collect();
        let with = |(one, whole): (Self, bool)| if whole { Self::new(one.what, one.reason) } else { one };
        all.into_iter().zip(is_whole).map(with).collect()
    }
}

fn in_brackets(cases: &[&str]) -> String {
    if cases.is_empty() { String::new() } else { format!(" ({})", cases.join("; ")) }
}

/// A panel by its title that is left out because nothing of it was measured, and why, each reason once.
pub(super) fn unmeasured(title: &str, reasons: impl Iterator<Item = MissingReason>) -> String {
    let mut reasons = each_once(reasons.map(|reason| reason.to_string()));
    if reasons.is_empty() {
        reasons.push(MissingReason::NotInRun.to_string());
    }
    format!("“{title}” ({})", reasons.join("; "))
}

/// Why there is none of some measurements.
#[derive(Default)]
struct Lacking {
    is_in_no_run: bool,
    no_meaning: Option<String>,
}

impl Lacking {
    /// `None` where there is one, or was to be.
    fn of<T>(found: impl Iterator<Item = Result<T, MissingReason>>) -> Option<Self> {
        let mut lacking = Self::default();
        for found in found {
            match found {
                Err(MissingReason::NotInRun) => lacking.is_in_no_run = true,
                Err(MissingReason::NotApplicable(why)) => lacking.no_meaning = lacking.no_meaning.or(Some(why)),
                _ => return None,
            }
        }
        Some(lacking)
    }
}

/// Says that no run has a row of a table, where that is so: then it is left out. A table of a text's figures shows these.
pub(crate) fn nothing_of(table: &DocumentTable, machines: &Machines<'_>) -> Option<String> {
    let cases = table.cases_in(machines.results);
    let of_all = |entry: TableEntry<'_>| {
        machines.systems.iter().flatten().map(|(_, lookup)| entry.measured(lookup).map(drop)).collect::<Vec<_>>()
    };
    let lacking = Lacking::of(TableEntry::all(table, &cases).flat_map(of_all))?;
    (lacking.is_in_no_run && !table.has_published())
        .then(|| format!("Left out, since no row of this table is in the run of {}.", listed(&machines.labels)))
}

/// Why the system that a file is about has no value in any row of a table that is shown, where none that its run has has a
/// meaning in it: then it has no column. A table of a text's figures sets all against them.
pub(super) fn without_meaning(table: &DocumentTable, machines: &Machines<'_>, place: usize) -> Option<String> {
    let (_, lookup) = machines.systems[place].first().filter(|_| !table.has_published())?;
    let cases = table.cases_in(machines.results);
    let shown = TableEntry::all(table, &cases).filter(|entry| left_out(*entry, machines).is_none());
    Lacking::of(shown.map(|entry| entry.measured(lookup)))?.no_meaning
}

/// Which columns of a table are left out, and why, in a sentence each.
pub(crate) fn columns_left_out(table: &DocumentTable, machines: &Machines<'_>) -> Vec<String> {
    let named = machines.named().enumerate().filter_map(|(place, (results, machine))| {
        let (system, reason) = (&results.run().system, without_meaning(table, machines, place)?);
        let reason = reason.trim_end_matches('.');
        Some(format!("A column of {system} on {machine} is left out, since no row has a meaning in it: {reason}."))
    });
    named.collect()
}

/// Why an entry of a table has no meaning on any of the machines, for any system; `None` where it has one somewhere, or
/// where the document prints a figure for it.
pub(super) fn left_out(entry: TableEntry<'_>, machines: &Machines<'_>) -> Option<String> {
    if entry.published().is_some() {
        return None;
    }
    let own = machines.systems.iter().filter_map(|systems| systems.first());
    // Another system need not have the row.
    let is_own = !Lacking::of(own.map(|(_, lookup)| entry.measured(lookup)))?.is_in_no_run;
    let all = machines.systems.iter().flatten();
    Lacking::of(all.map(|(_, lookup)| entry.measured(lookup)))?.no_meaning.filter(|_| is_own)
}

/// Why there is no measurement on a machine; `None` where there is one. What has no meaning in the system of the first run is
/// looked for in the others.
pub(crate) fn absence<T>(
    results: &Results,
    measured: impl Fn(&Lookup<'_>) -> Result<T, MissingReason>,
) -> Option<MissingReason> {
    let mut absence = measured(&results.lookup()).err()?;
    let others = results.systems().into_iter().filter(|system| *system != results.run().system);
    for system in others {
        if !matches!(absence, MissingReason::NotApplicable(_)) {
            break;
        }
        match measured(&results.lookup_of(system)) {
            Ok(_) => return None,
            Err(MissingReason::NotInRun) => {}
            Err(reason) => absence = reason,
        }
    }
    Some(absence)
}

/// All that is left out of a table.
pub(crate) fn left_out_of(table: &DocumentTable, machines: &Machines<'_>) -> Vec<LeftOut> {
    let cases = table.cases_in(machines.results);
    let entries = TableEntry::all(table, &cases);
    let all = entries.filter_map(|entry| Some(LeftOut::of(entry.row, entry.case, left_out(entry, machines)?)));
    LeftOut::collapsed(all.collect(), cases.len())
}

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

/// Says of a machine that the measured rows of a table were not sampled alternately, where that is so or is not known.
pub(crate) fn sampled(table: &DocumentTable, results: &Results, machine: &str) -> Option<String> {
    let (lookup, cases) = (results.lookup(), table.cases_in(std::slice::from_ref(results)));
    let mut rows: Vec<(&str, &Row)> = Vec::new();
    for entry in TableEntry::all(table, &cases) {
        let Ok(measured) = entry.measured(&lookup) else { continue };
        let spec = measured.metric.spec;
        let found = lookup.at(&spec.id, &spec.parameters);
        let is_measured = |row: &&Row| row.series.iter().any(|one| matches!(one.outcome, Outcome::Measured { .. }));
        rows.extend(found.filter(is_measured).map(|row| (entry.case.label.as_str(), row)));
    }
    let all: Vec<&Row> = rows.iter().map(|(_, row)| *row).collect();
    if all.len() < 2 {
        return None;
    }
    Some(if !is_told(&all) {
        format!("The results from {machine} do not say whether the rows of this table were sampled alternately.")
    } else if grouped(rows).iter().any(|(_, of_case)| are_apart(of_case)) {
        format!(
            "On {machine}, not all rows of this table were sampled alternately: a drift between two of them may look like a \
             difference."
        )
    } else if are_apart(&all) {
        format!(
            "On {machine}, the rows of each case were sampled alternately, and the cases one after the other: a drift between \
             two cases may look like a difference."
        )
    } else {
        return None;
    })
}

/// Whether two of some rows were not sampled alternately in a run that measured both.
fn are_apart(rows: &[&Row]) -> bool {
    let of_runs = grouped(rows.iter().flat_map(|row| &row.series).map(|series| (series.run.as_str(), &series.outcome)));
    of_runs.iter().any(|(_, outcomes)| {
        let passes = outcomes[0].began();
        let differ = outcomes.iter().any(|outcome| outcome.began() != passes);
        if differ || !passes.is_empty() {
            return differ;
        }
        // Where all times have a moment in common, each two overlap.
        let windows = outcomes.iter().filter_map(|outcome| outcome.window());
        let common = windows.reduce(|one, other| [one[0].max(other[0]), one[1].min(other[1])]);
        common.is_some_and(|[start, end]| start > end)
    })
}

/// Whether a run says of all of some rows when they were sampled.
fn is_told(rows: &[&Row]) -> bool {
    let series = rows.iter().flat_map(|row| &row.series);
    let told = series.filter(|series| !series.outcome.passes().is_empty() || series.outcome.window().is_some());
    grouped(told.map(|series| (series.run.as_str(), ()))).iter().any(|(_, told)| told.len() == rows.len())
}

/// The counts of a table that asks for them, of each system that measured it.
pub(crate) fn counts_table(table: &DocumentTable, machines: &Machines<'_>) -> Option<Table> {
    let cases = table.cases_in(machines.results);
    let mut counted: Vec<(Column, Vec<usize>)> = Vec::new();
    for ((_, machine), systems) in machines.named().zip(&machines.systems) {
        for system in systems {
            let counts: Vec<[usize; 3]> =
                (0..table.rows.len()).map(|place| counts(table, place, &cases, system)).collect();
            if counts.iter().flatten().all(|count| *count == 0) {
                continue;
            }
            for (place, heading) in ["in every trial", "in some trials", "in no trial"].into_iter().enumerate() {
                let column = Column::new(Role::Measured, heading).of(format!("{}, {machine}", system.0.system));
                counted.push((column, counts.iter().map(|counts| counts[place]).collect()));
            }
        }
    }
    let row = |(place, row): (usize, &DocumentRow)| {
        let counts = || counted.iter().map(|(_, counts)| counts[place]);
        let cells = counts().map(|count| Cell::Text(count.to_string())).collect();
        // A row that no system has a case of counts nothing.
        counts().any(|count| count > 0).then(|| TableRow::new(&row.label, cells).of(&row.id))
    };
    let rows = table.rows.iter().enumerate().filter_map(row).collect();
    let columns = std::iter::once(Column::new(Role::Label, "")).chain(counted.iter().map(|(column, _)| column.clone()));
    (table.counts && !counted.is_empty()).then(|| Table::new(&table.title, columns.collect(), rows))
}

/// Of how many cases a row is yes in every trial, in some, and in none.
fn counts(table: &DocumentTable, place: usize, cases: &[TableCase], (_, lookup): &SystemRows<'_>) -> [usize; 3] {
    let mut counts = [0; 3];
    for case in cases {
        let Ok(measured) = (TableEntry { table, row: &table.rows[place], case }).measured(lookup) else { continue };
        let samples = measured.metric.samples();
        let yes = samples.iter().filter(|sample| **sample > 0.5).count();
        counts[match yes {
            0 => 2,
            yes if yes < samples.len() => 1,
            _ => 0,
        }] += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_the_same_cases_stand_together_and_each_reason_once() {
        let one = |what: &str, case: Option<&str>, reason: &str| LeftOut {
            what: what.to_owned(),
            case: case.map(str::to_owned),
            reason: reason.to_owned(),
        };
        let all = [
            one("dispatch", Some("pinned"), "there is no link"),
            one("rate", Some("pinned"), "there is no link"),
            one("rate", Some("pinned"), "there is no link"),
            one("flushed", None, "caches are shared"),
        ];
        let sentence = LeftOut::sentence(&all, "M").unwrap();
        let expected = "Not applicable on M, and left out: “dispatch”, “rate” (pinned), since there is no link; “flushed”, \
                        since caches are shared.";
        assert_eq!(sentence, expected);
        let listed = [("there is no link", "“dispatch”, “rate” (pinned)"), ("caches are shared", "“flushed”")];
        assert_eq!(LeftOut::listed(&all), listed.map(|(reason, rows)| (reason, rows.to_owned())));
        assert_eq!(LeftOut::sentence(&[], "M"), None);
    }

    #[test]
    fn a_row_that_is_left_out_in_all_cases_names_none() {
        let one = |case: &str| LeftOut { case: Some(case.to_owned()), ..LeftOut::new("a".to_owned(), "b".to_owned()) };
        let whole = LeftOut::collapsed(vec![one("1"), one("2")], 2);
        assert!(whole.iter().all(|one| one.case.is_none()));
        assert_eq!(LeftOut::collapsed(vec![one("1")], 2), [one("1")]);
    }
}
