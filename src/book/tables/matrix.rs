//! A matrix of a document's plot for the results of one machine: a table of yes (✓) and no (✗).
//!
//! A row holds measurements of more parameters than it names: a call with each kind of memory and each size. Where these decide,
//! there is a row for all that agree, which names them.

use std::collections::HashSet;

use super::figure::Drawn;
use super::left_out::unmeasured;
use crate::document::{Matrix, MatrixColumn};
use crate::in_order::{each_once, grouped, listed};
use crate::present::{Cell, Column, Missing, Role, Table, TableRow};
use crate::results::{Lookup, Metric, MetricSpec, MissingReason, Parameter, Parameters, Results};
use crate::units::{byte_size, counted};

/// A matrix as a table, or why there is nothing to show.
pub(super) fn matrix(matrix: &Matrix, title: &str, results: &Results) -> Drawn {
    let lookup = results.lookup_of(system(matrix, results));
    let found = shown_rows(matrix, &lookup);
    if found.iter().all(|(_, metric)| metric.is_err()) {
        let unmeasured = unmeasured(title, found.into_iter().filter_map(|(_, metric)| metric.err()));
        return Drawn { unmeasured: vec![unmeasured], ..Drawn::default() };
    }
    let table = matrix_table(matrix, title, results).to_html();
    Drawn { pictures: vec![format!("<div class=\"matrix\">\n{table}</div>\n")], ..Drawn::default() }
}

/// A row of the matrix: the measurements that it shows, and those of each column.
struct Cells<'a> {
    label: String,
    metrics: Vec<Found<'a>>,
    columns: Vec<Vec<Found<'a>>>,
}

/// What is shown. Rows stand in the order of the results.
fn matrix_table(matrix: &Matrix, title: &str, results: &Results) -> Table {
    let lookup = results.lookup_of(system(matrix, results));
    let found = selected(&matrix.id, &matrix.select, &lookup).into_iter();
    let found = grouped(found.map(|(spec, metric)| (own(matrix, &spec.parameters), (spec, metric)))).into_iter();
    let rows = |(select, metrics): (Parameters, _)| agreeing(matrix, &select, metrics, &lookup);
    let shown: Vec<Cells<'_>> = found.flat_map(rows).collect();
    let most = shown.iter().filter_map(trials).max();
    let rows = shown.iter().map(|row| {
        let few = trials(row).filter(|trials| most.is_some_and(|most| 2 * trials < most));
        let few = few.map(|trials| format!(" (only {} each)", counted(trials, "trial"))).unwrap_or_default();
        let cells = row.columns.iter().map(|found| cell(found));
        TableRow::new(row.label.clone() + &few, cells.collect())
    });
    let heads = matrix.columns.iter().map(|column| Column::new(Role::Fact, column.name.as_str()));
    Table::new(title, std::iter::once(Column::new(Role::Label, "call")).chain(heads).collect(), rows.collect())
}

type Found<'a> = (&'a MetricSpec, Result<Metric<'a>, MissingReason>);

/// The system whose measurements a matrix draws.
pub(crate) fn system<'a>(matrix: &Matrix, results: &'a Results) -> &'a str {
    let has = |system: &&str| {
        let found = selected(&matrix.id, &matrix.select, &results.lookup_of(system));
        found.iter().any(|(_, metric)| metric.is_ok())
    };
    results.systems().into_iter().find(has).unwrap_or(&results.run().system)
}

/// The measurements of a matrix: those of its cells, and the times of the same calls.
pub(crate) fn shown_rows<'a>(matrix: &'a Matrix, lookup: &Lookup<'a>) -> Vec<Found<'a>> {
    let mut ids = HashSet::new();
    let ids = matrix.ids().filter(|id| ids.insert(id.as_str()));
    let found = ids.flat_map(|id| selected(id, &matrix.select, lookup));
    // A time that has no meaning takes no line.
    let has_meaning = |(spec, metric): &Found<'_>| {
        !matrix.data.contains(&spec.id) || !matches!(metric, Err(MissingReason::NotApplicable(_)))
    };
    found.filter(has_meaning).collect()
}

fn selected<'a>(id: &str, select: &Parameters, lookup: &Lookup<'a>) -> Vec<Found<'a>> {
    lookup.specs_of(id, select).map(|spec| (spec, lookup.of(spec))).collect()
}

/// The parameters by which a measurement belongs to a row.
fn own(matrix: &Matrix, parameters: &Parameters) -> Parameters {
    let named = |name: &String| Some((name.clone(), parameters.get(name)?.clone()));
    matrix.rows.iter().filter_map(named).collect()
}

fn label(matrix: &Matrix, select: &Parameters) -> String {
    let values = matrix.rows.iter().filter_map(|name| Some(written(name, select.get(name)?)));
    values.collect::<Vec<_>>().join(", ")
}

/// The parameter that is a number of bytes.
const BYTES: &str = "bytes";

fn written(name: &str, value: &Parameter) -> String {
    match (name, value) {
        (BYTES, Parameter::Integer(bytes)) => byte_size(*bytes as f64),
        (_, Parameter::Integer(_)) => format!("{name} {value}"),
        (_, Parameter::Text(text)) if ["on", "off"].contains(&&**text) => format!("{name} {text}"),
        _ => value.to_string(),
    }
}

/// The rows of what `select` selects: one where the cells are the same whatever else differs between its measurements. What has no
/// cell has no row beside others.
fn agreeing<'a>(matrix: &Matrix, select: &Parameters, metrics: Vec<Found<'a>>, lookup: &Lookup<'a>) -> Vec<Cells<'a>> {
    let label = label(matrix, select);
    let is_here = |spec: &MetricSpec, column: &MatrixColumn| {
        let value = matrix.across.as_ref().zip(column.value.as_ref());
        value.is_none_or(|(across, value)| spec.parameters.get(across) == Some(value))
    };
    let of_column = |column: &MatrixColumn| -> Vec<Found<'a>> {
        let other = column.id.as_ref().map(|id| selected(id, select, lookup));
        let found = other.unwrap_or_else(|| metrics.clone());
        found.into_iter().filter(|(spec, _)| is_here(spec, column)).collect()
    };
    let all = Cells { label, columns: matrix.columns.iter().map(of_column).collect(), metrics };
    let Some(names) = deciding(matrix, &all.metrics) else { return vec![all] };
    let pair_of = |spec: &MetricSpec| names.map(|name| spec.parameters.get(name).cloned());
    let of = |pairs: &[Pair]| {
        // What lacks a parameter is of all its values.
        let is_of = |own: &Pair, pair: &Pair| own.iter().zip(pair).all(|(own, value)| own.is_none() || own == value);
        let own = |found: &Vec<Found<'a>>| -> Vec<Found<'a>> {
            let is_here = |(spec, _): &&Found<'a>| pairs.iter().any(|pair| is_of(&pair_of(spec), pair));
            found.iter().filter(is_here).cloned().collect()
        };
        Cells { label: String::new(), metrics: own(&all.metrics), columns: all.columns.iter().map(own).collect() }
    };
    let mut rows: Vec<(Vec<Says>, Vec<Pair>)> = Vec::new();
    for pair in each_once(all.metrics.iter().map(|(spec, _)| pair_of(spec))) {
        let said: Vec<Says> = of(std::slice::from_ref(&pair)).columns.iter().map(|found| says(found)).collect();
        match rows.iter_mut().find(|(known, _)| agree(known, &said)) {
            _ if said.iter().all(|said| *said == Says::Nothing) => {}
            Some((known, pairs)) => {
                let open = known.iter_mut().zip(said).filter(|(known, _)| **known == Says::Nothing);
                open.for_each(|(known, said)| *known = said);
                pairs.push(pair);
            }
            None => rows.push((said, vec![pair])),
        }
    }
    if rows.len() < 2 {
        return vec![all];
    }
    let pairs: Vec<Pair> = rows.iter().flat_map(|(_, pairs)| pairs.clone()).collect();
    let label = |own: &[Pair]| format!("{}: {}", all.label, in_words(names, own, &pairs));
    rows.iter().map(|(_, own)| Cells { label: label(own), ..of(own) }).collect()
}

/// The values of two parameters.
type Pair = [Option<Parameter>; 2];

/// What measurements say together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Says {
    Nothing,
    No,
    Yes,
    Both,
}

fn says(found: &[Found<'_>]) -> Says {
    match counts(found) {
        (_, 0) => Says::Nothing,
        (0, _) => Says::No,
        (yes, all) if yes == all => Says::Yes,
        _ => Says::Both,
    }
}

/// Whether cells say the same, as far as both say something.
fn agree(one: &[Says], other: &[Says]) -> bool {
    one.iter().zip(other).all(|(one, other)| one == other || [*one, *other].contains(&Says::Nothing))
}

/// The one or two parameters that differ between the measurements of a row beside those that the matrix names; a size is the last.
fn deciding<'a>(matrix: &Matrix, metrics: &[Found<'a>]) -> Option<[&'a str; 2]> {
    let is_other = |name: &&str| !matrix.rows.iter().chain(&matrix.across).any(|own| own == name);
    let values = |name: &str| each_once(metrics.iter().map(|(spec, _)| spec.parameters.get(name)));
    let names = each_once(metrics.iter().flat_map(|(spec, _)| spec.parameters.keys().map(String::as_str)));
    let mut names: Vec<&str> = names.into_iter().filter(is_other).filter(|name| values(name).len() > 1).collect();
    names.sort_by_key(|name| *name == BYTES);
    match names[..] {
        [one] => Some([one; 2]),
        [one, other] => Some([one, other]),
        _ => None,
    }
}

/// Some of `all` pairs of values of two parameters: `pinned; pageable of 4 B`.
fn in_words(names: [&str; 2], pairs: &[Pair], all: &[Pair]) -> String {
    let word = |place: usize, value: &Option<Parameter>| match value {
        Some(value) => written(names[place], value),
        None => "none".to_owned(),
    };
    let seconds = |pairs: &[Pair], first: &Option<Parameter>| -> Vec<String> {
        pairs.iter().filter(|pair| pair[0] == *first).map(|pair| word(1, &pair[1])).collect()
    };
    let firsts = each_once(pairs.iter().map(|pair| pair[0].clone()));
    let with = |first: &Option<Parameter>| {
        let own = seconds(pairs, first);
        if own.len() == seconds(all, first).len() { Vec::new() } else { own }
    };
    let mut of = grouped(firsts.iter().map(|first| (with(first), word(0, first))));
    let every = each_once(all.iter().map(|pair| &pair[0])).len() == firsts.len();
    // Those that are whole come first: what stands behind them is of the others alone.
    of.sort_by_key(|(with, _)| !with.is_empty());
    let parts = of.iter().map(|(with, firsts)| match (&with[..], &of[..]) {
        ([], _) => firsts.join(", "),
        (_, [_]) if every => with.join(", "),
        _ => {
            let each = if firsts.len() > 1 { ", each" } else { "" };
            let of = if names[1] == BYTES { "of" } else { "with" };
            format!("{}{each} {of} {}", listed(firsts), with.join(", "))
        }
    });
    parts.collect::<Vec<_>>().join("; ")
}

/// How many trials each measurement of a row has: the fewest.
fn trials(row: &Cells<'_>) -> Option<usize> {
    row.metrics.iter().filter_map(|(_, metric)| Some(metric.as_ref().ok()?.count())).min()
}

/// All trials of the measurements of a cell. Where they differ, the share of yes.
fn cell(found: &[Found<'_>]) -> Cell {
    match says(found) {
        Says::No => Cell::Text("✗".to_owned()),
        Says::Yes => Cell::Text("✓".to_owned()),
        Says::Both => {
            let (yes, all) = counts(found);
            Cell::Text(format!("{yes} of {all}"))
        }
        Says::Nothing => match found.iter().find_map(|(_, metric)| metric.as_ref().err()) {
            None | Some(MissingReason::NotApplicable(_)) => Cell::Nothing,
            Some(reason) => Cell::Missing(Missing::new(reason.state(), None)),
        },
    }
}

/// How many trials say yes, and how many there are.
fn counts(found: &[Found<'_>]) -> (usize, usize) {
    let of = |(_, metric): &Found<'_>| {
        let samples = metric.as_ref().map(|metric| metric.samples()).unwrap_or_default();
        (samples.iter().filter(|sample| **sample > 0.5).count(), samples.len())
    };
    found.iter().map(of).fold((0, 0), |(yes, all), (more, of)| (yes + more, all + of))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::{Clock, StoppedBy};
    use crate::results::{Outcome, Provenance, Row, Series};
    use crate::units::Unit;

    const MATRIX: &str = "{id: d.blocks, select: {bytes: 4}, rows: [call], across: held, \
                          columns: [{value: same, name: same}]}";

    fn row(id: &str, parameters: &str, samples: &[f64]) -> Row {
        let parameters: Parameters = serde_saphyr::from_str(parameters).unwrap();
        let outcome = Outcome::of_samples(samples.to_vec(), StoppedBy::Samples);
        let spec = MetricSpec {
            id: id.to_owned(),
            group: String::new(),
            label: String::new(),
            unit: Unit::Ratio,
            parameters,
            provenance: Provenance::measured(Clock::Observed),
            work: None,
            floor: None,
        };
        Row { spec, series: vec![Series { run: "syncscope-1".to_owned(), outcome }] }
    }

    fn blocks(kind: &str, samples: &[f64]) -> Row {
        row("d.blocks", &format!("{{call: c, held: same, bytes: 4, memory: {kind}}}"), samples)
    }

    fn table(rows: Vec<Row>) -> Vec<TableRow> {
        let mut results = crate::tests::results().clone();
        results.runs.truncate(1);
        results.rows = rows.into();
        let matrix: Matrix = serde_saphyr::from_str(MATRIX).unwrap();
        matrix_table(&matrix, "T", &results).groups.remove(0).rows
    }

    #[test]
    fn a_call_of_less_than_half_the_trials_of_another_says_how_many() {
        let of = |call: &str, trials: usize| {
            row("d.blocks", &format!("{{call: {call}, held: same, bytes: 4}}"), &vec![1.0; trials])
        };
        let labels = |rows: Vec<Row>| table(rows).into_iter().map(|row| row.label).collect::<Vec<_>>();
        let few = labels(vec![of("c", 9), of("d", 3), of("e", 1)]);
        assert_eq!(few, ["c", "d (only 3 trials each)", "e (only 1 trial each)"]);
        assert_eq!(labels(vec![of("c", 3), of("d", 3)]), ["c", "d"]);
        assert_eq!(labels(vec![of("c", 30), of("d", 21)]), ["c", "d"]);
    }

    #[test]
    fn a_row_holds_all_kinds_that_agree_and_names_them_where_others_do_not() {
        let shown = |rows: Vec<Row>| -> Vec<(String, String)> {
            let text = |cell: Cell| if let Cell::Text(text) = cell { text } else { String::new() };
            table(rows).into_iter().map(|mut row| (row.label, text(row.cells.remove(0)))).collect()
        };
        let pair = |label: &str, cell: &str| (label.to_owned(), cell.to_owned());
        let (yes, no) = ([1.0; 3], [0.0; 3]);
        assert_eq!(shown(vec![blocks("a", &yes), blocks("b", &yes)]), [pair("c", "✓")]);
        assert_eq!(shown(vec![blocks("a", &no), blocks("b", &no)]), [pair("c", "✗")]);
        assert_eq!(shown(vec![blocks("a", &[1.0, 0.0, 1.0])]), [pair("c", "2 of 3")]);
        let three = vec![blocks("a", &yes), blocks("b", &no), blocks("d", &yes)];
        assert_eq!(shown(three), [pair("c: a, d", "✓"), pair("c: b", "✗")]);
    }

    #[test]
    fn two_parameters_that_decide_are_told_as_short_as_they_can_be() {
        let pair = |memory: &str, bytes: u64| -> Pair {
            [Some(Parameter::Text(memory.to_owned())), Some(Parameter::Integer(bytes))]
        };
        let all = ["a", "b"].map(|memory| [4, 1000, 4000].map(|bytes| pair(memory, bytes))).concat();
        let told = |pairs: &[Pair]| in_words(["memory", "bytes"], pairs, &all);
        assert_eq!(told(&all[..3]), "a");
        assert_eq!(told(&[&all[..3], &all[4..]].concat()), "a; b of 1 kB, 4 kB");
        assert_eq!(told(&[all[1].clone(), all[4].clone()]), "1 kB");
        let three = ["a", "b", "c"].map(|memory| [4, 1000].map(|bytes| pair(memory, bytes))).concat();
        let told = |pairs: &[Pair]| in_words(["memory", "bytes"], pairs, &three);
        assert_eq!(told(&[three[0].clone(), three[2].clone()]), "a and b, each of 4 B");
        assert_eq!(told(&[&three[..1], &three[4..]].concat()), "c; a of 4 B");
    }
}
