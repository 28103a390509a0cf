//! A matrix of a document's plot for the results of one machine.

use std::collections::HashSet;

use super::figure::Drawn;
use super::left_out::unmeasured;
use crate::document::{Matrix, MatrixColumn, MatrixTime};
use crate::in_order::grouped;
use crate::present::{MatrixCell, MatrixPlot, MatrixRow};
use crate::results::{Lookup, Metric, MetricSpec, MissingReason, Parameter, Parameters, Results};
use crate::units::{Unit, byte_size, counted};

/// A matrix as a picture, or why there is nothing to draw; `id` must be unique in the page.
pub(super) fn matrix(matrix: &Matrix, title: &str, machine: &str, results: &Results, id: &str) -> Drawn {
    let lookup = results.lookup_of(system(matrix, results));
    let found = shown_rows(matrix, &lookup);
    if found.iter().all(|(_, metric)| metric.is_err()) {
        let unmeasured = unmeasured(title, found.into_iter().filter_map(|(_, metric)| metric.err()));
        return Drawn { unmeasured: vec![unmeasured], ..Drawn::default() };
    }
    let picture = matrix_plot(matrix, title, machine, results).to_svg(id);
    Drawn { pictures: vec![picture], ..Drawn::default() }
}

/// The cells of a row of the matrix: what makes it, and its measurements.
struct Cells<'a> {
    select: Parameters,
    label: String,
    metrics: Vec<Found<'a>>,
}

/// What is drawn. Rows stand in the order of the results.
fn matrix_plot(matrix: &Matrix, title: &str, machine: &str, results: &Results) -> MatrixPlot {
    let lookup = results.lookup_of(system(matrix, results));
    let found = selected(&matrix.id, &matrix.select, &lookup).into_iter();
    let found = grouped(found.map(|(spec, metric)| (own(matrix, &spec.parameters), (spec, metric)))).into_iter();
    let cells = |(select, metrics)| Cells { label: label(matrix, &select), select, metrics };
    let drawn: Vec<Cells<'_>> = found.map(cells).collect();
    let named = |(of, text): (&MatrixTime, String)| format!("{} {text}", of.name);
    let most = drawn.iter().filter_map(trials).max();
    let rows = drawn.iter().map(|row| {
        let below = matrix.below.iter().filter_map(|of| Some((of, time(row, matrix, of, &lookup)?))).map(named);
        let few = trials(row).filter(|trials| Some(*trials) < most);
        let few = few.map(|trials| format!("only {} each", counted(trials, "trial")));
        MatrixRow {
            label: row.label.clone(),
            cells: matrix.columns.iter().map(|column| cell(row, matrix, column, &lookup)).collect(),
            beside: matrix.beside.iter().map(|of| time(row, matrix, of, &lookup).unwrap_or("–".to_owned())).collect(),
            below: below.chain(few).collect(),
        }
    });
    let heads = matrix.columns.iter().map(|column| &column.name).chain(matrix.beside.iter().map(|time| &time.name));
    MatrixPlot {
        title: title.to_owned(),
        machine: machine.to_owned(),
        legend: matrix.legend.clone(),
        columns: heads.cloned().collect(),
        rows: rows.collect(),
    }
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

/// The measurements of a matrix: those of its cells, and the times beside them.
pub(crate) fn shown_rows<'a>(matrix: &'a Matrix, lookup: &Lookup<'a>) -> Vec<Found<'a>> {
    let ids = matrix.columns.iter().filter_map(|column| column.id.as_ref()).filter(|id| **id != matrix.id);
    let columns = ids.flat_map(|id| selected(id, &matrix.select, lookup));
    let mut found: Vec<Found<'a>> = selected(&matrix.id, &matrix.select, lookup).into_iter().chain(columns).collect();
    let mut times_of = HashSet::new();
    let times = matrix.beside.iter().map(|time| (time, true)).chain(matrix.below.iter().map(|time| (time, false)));
    for (time, has_column) in times {
        let select = matrix.select.iter().chain(&time.select).map(|(name, value)| (name.clone(), value.clone()));
        let mut of_time = selected(&time.id, &select.collect::<Parameters>(), lookup);
        // What is preferred tells nothing where no measurement has it.
        let is_preferred =
            |(spec, _): &Found<'_>| time.prefer.iter().all(|(name, value)| spec.parameters.get(name) == Some(value));
        if of_time.iter().any(is_preferred) {
            of_time.retain(is_preferred);
        }
        of_time.retain(|(spec, _)| times_of.insert(std::ptr::from_ref(*spec)));
        // What has no meaning takes no place below the cells.
        of_time.retain(|(_, metric)| has_column || !matches!(metric, Err(MissingReason::NotApplicable(_))));
        found.extend(of_time);
    }
    found
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
    let values = matrix.rows.iter().filter_map(|name| {
        let value = select.get(name)?;
        match (name.as_str(), value) {
            ("bytes", Parameter::Integer(bytes)) => Some(byte_size(*bytes as f64)),
            _ => Some(value.to_string()),
        }
    });
    values.collect::<Vec<_>>().join(", ")
}

/// How many trials each measurement of a row has: the fewest.
fn trials(row: &Cells<'_>) -> Option<usize> {
    row.metrics.iter().filter_map(|(_, metric)| Some(metric.as_ref().ok()?.count())).min()
}

/// All trials of the measurements of a row in one column.
fn cell(row: &Cells<'_>, matrix: &Matrix, column: &MatrixColumn, lookup: &Lookup<'_>) -> MatrixCell {
    let other = column.id.as_ref().map(|id| selected(id, &row.select, lookup));
    let value = matrix.across.as_ref().zip(column.value.as_ref());
    let is_here = |spec: &MetricSpec| value.is_none_or(|(across, value)| spec.parameters.get(across) == Some(value));
    let here = other.as_ref().unwrap_or(&row.metrics).iter().filter(|(spec, _)| is_here(spec));
    let (mut yes, mut all, mut state) = (0, 0, MissingReason::NotInRun.state());
    let mut trials_differ = false;
    for (_, metric) in here {
        match metric {
            Ok(metric) => {
                let samples = metric.samples();
                let own = samples.iter().filter(|sample| **sample > 0.5).count();
                trials_differ |= (1..samples.len()).contains(&own);
                yes += own;
                all += samples.len();
            }
            Err(reason) => state = reason.state(),
        }
    }
    match all {
        0 => MatrixCell::Missing(state),
        // Each measurement agrees with itself, so that the trials are not what differs.
        _ if (1..all).contains(&yes) && !trials_differ => MatrixCell::Mixed(yes, all),
        _ => MatrixCell::Trials(yes, all),
    }
}

/// A time of the one measurement that the row is of, where it was measured.
fn time(row: &Cells<'_>, matrix: &Matrix, time: &MatrixTime, lookup: &Lookup<'_>) -> Option<String> {
    let mut wanted = row.select.clone();
    wanted.extend(matrix.select.clone());
    wanted.extend(time.select.clone());
    let estimate = lookup.find(&time.id, &wanted, &time.prefer).and_then(|metric| metric.estimate()).ok()?;
    Some(Unit::Seconds.format(estimate.median, 2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::{Clock, StoppedBy};
    use crate::results::{Outcome, Provenance, Row, Series};

    const MATRIX: &str = "{id: d.blocks, select: {bytes: 4}, rows: [call], across: held, columns: [{value: same, name: same}], \
                          beside: [{id: d.behind, name: behind, prefer: {wait: spin}}], \
                          below: [{id: d.behind, name: blocking, select: {wait: block}}], legend: [waits, differs, returns]}";

    fn row(id: &str, parameters: &str, unit: Unit, samples: &[f64]) -> Row {
        let parameters: Parameters = serde_saphyr::from_str(parameters).unwrap();
        let outcome = Outcome::of_samples(samples.to_vec(), StoppedBy::Samples);
        let clock = if unit == Unit::Ratio { Clock::Observed } else { Clock::Host };
        let spec = MetricSpec {
            id: id.to_owned(),
            group: String::new(),
            label: String::new(),
            unit,
            parameters,
            provenance: Provenance::measured(clock),
            work: None,
            floor: None,
        };
        Row { spec, series: vec![Series { run: "syncscope-1".to_owned(), outcome }] }
    }

    fn blocks(kind: &str, samples: &[f64]) -> Row {
        row("d.blocks", &format!("{{call: c, held: same, bytes: 4, memory: {kind}}}"), Unit::Ratio, samples)
    }

    fn behind(wait: &str, bytes: usize, seconds: f64) -> Row {
        row("d.behind", &format!("{{call: c, bytes: {bytes}, wait: {wait}}}"), Unit::Seconds, &[seconds; 3])
    }

    /// The first row of the matrix of some rows.
    fn drawn(rows: Vec<Row>) -> MatrixRow {
        plotted(rows).remove(0)
    }

    fn plotted(rows: Vec<Row>) -> Vec<MatrixRow> {
        let mut results = crate::tests::results().clone();
        results.runs.truncate(1);
        results.rows = rows.into();
        let matrix: Matrix = serde_saphyr::from_str(MATRIX).unwrap();
        matrix_plot(&matrix, "T", "M", &results).rows
    }

    /// The CPU engine has one way to wait, which is none of the driver's.
    #[test]
    fn a_time_in_the_only_way_to_wait_passes_for_no_other_way() {
        let only = drawn(vec![blocks("a", &[1.0; 3]), behind("condition variable", 4, 1e-3)]);
        assert_eq!((only.beside, only.below.len()), (vec!["1.0 ms".to_owned()], 0));
        let ways = [("spin", 4, 1e-3), ("block", 4, 2e-3), ("spin", 65536, 5e-3)];
        let rows = ways.map(|(wait, bytes, seconds)| behind(wait, bytes, seconds));
        let several = drawn([blocks("a", &[1.0; 3])].into_iter().chain(rows).collect());
        assert_eq!((several.beside, several.below), (vec!["1.0 ms".to_owned()], vec!["blocking 2.0 ms".to_owned()]));
    }

    #[test]
    fn a_call_of_fewer_trials_than_another_says_how_many() {
        let of = |call: &str, trials: usize| {
            row("d.blocks", &format!("{{call: {call}, held: same, bytes: 4}}"), Unit::Ratio, &vec![1.0; trials])
        };
        let below = |rows: Vec<Row>| plotted(rows).into_iter().map(|row| row.below.join("")).collect::<Vec<_>>();
        assert_eq!(below(vec![of("c", 9), of("d", 3), of("e", 1)]), ["", "only 3 trials each", "only 1 trial each"]);
        assert_eq!(below(vec![of("c", 3), of("d", 3)]), ["", ""]);
    }

    #[test]
    fn kinds_that_differ_from_each_other_are_told_from_trials_that_differ() {
        let cell = |rows: Vec<Row>| drawn(rows).cells.remove(0);
        let [yes, no, both] = [[1.0; 3], [0.0; 3], [1.0, 0.0, 1.0]];
        assert_eq!(cell(vec![blocks("a", &yes), blocks("b", &no)]), MatrixCell::Mixed(3, 6));
        assert_eq!(cell(vec![blocks("a", &both), blocks("b", &no)]), MatrixCell::Trials(2, 6));
        assert_eq!(cell(vec![blocks("a", &yes), blocks("b", &yes)]), MatrixCell::Trials(6, 6));
    }
}
