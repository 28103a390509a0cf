//! Files that grow in one way each: so many rows, sets of parameters, runs and so on, of what the kept results hold.

use std::path::Path;

use syncscope::measure::StoppedBy;
use syncscope_results::{
    Derivation, FormulaOperand, Outcome, Parameter, Plan, Provenance, Recorded, Results, Row, Series,
};

/// The samples of each row: too many hide what a row costs.
const SAMPLES: usize = 6;

/// A file of the kept results by its name.
fn kept(name: &str) -> Results {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../book/results"));
    Results::read(&folder.join(name)).unwrap()
}

/// The rows of the first run of a kept file, with few samples, and no timelines.
fn short(name: &str) -> Results {
    let mut results = kept(name);
    results.runs.truncate(1);
    results.plan = Plan::default();
    results.timelines.clear();
    let run = results.run().id.clone();
    for row in results.rows.iter_mut() {
        row.series.retain(|series| series.run == run);
        row.series.iter_mut().for_each(|series| series.outcome = few(&series.outcome));
    }
    results.rows.retain(|row| !row.series.is_empty());
    results
}

fn few(outcome: &Outcome) -> Outcome {
    let Some(values) = outcome.values() else { return outcome.clone() };
    let samples: Vec<f64> = values.iter().take(SAMPLES).copied().collect();
    match outcome {
        Outcome::Derived { .. } => Outcome::Derived { samples },
        _ => Outcome::of_samples(samples, StoppedBy::Samples),
    }
}

/// A file of its own rows, each made of a measured one.
fn of_rows(rows: impl Fn(&Row) -> Vec<Row>) -> Results {
    let mut results = short("one-gpu.json.gz");
    let row = results.rows.iter().find(|row| matches!(row.series[0].outcome, Outcome::Measured(_))).unwrap();
    results.rows = rows(row).into();
    results
}

/// `n` identifiers of one experiment.
pub(super) fn rows(n: usize) -> Results {
    of_rows(|row| (0..n).map(|i| named(row, format!("launch-path.row-{i}"))).collect())
}

/// One row of each of `n` experiments.
pub(super) fn experiments(n: usize) -> Results {
    let mut results = of_rows(|row| (0..n).map(|i| named(row, format!("experiment-{i}.row"))).collect());
    let ran = results.runs[0].order[0].clone();
    let named = |row: &Row| {
        let mut ran = ran.clone();
        ran.name = row.spec.experiment().to_owned();
        ran
    };
    results.runs[0].order = results.rows.iter().map(named).collect();
    results
}

/// `n` values of a parameter that no text asks for.
pub(super) fn copies(n: usize) -> Results {
    of_rows(|row| (0..n).map(|i| with(row, "copy", Parameter::from(i))).collect())
}

/// The rows of an experiment at `n` values of one of its parameters.
pub(super) fn sets(n: usize, (file, experiment, parameter): (&str, &str, &str)) -> Results {
    let mut results = short(file);
    let mut rows: Vec<Row> = Vec::new();
    for row in results.rows.iter().filter(|row| row.spec.experiment() == experiment) {
        let Some(value) = row.spec.parameters.get(parameter) else { continue };
        // The other rows differ from the first in this parameter alone.
        let first = with(row, parameter, value_at(value, 0));
        if !rows.iter().any(|known| known.spec.is(&first.spec.id, &first.spec.parameters)) {
            rows.push(first);
        }
    }
    let all = (0..n)
        .flat_map(|i| rows.iter().map(move |row| with(row, parameter, value_at(&row.spec.parameters[parameter], i))));
    results.rows = all.collect::<Vec<Row>>().into();
    results
}

fn value_at(value: &Parameter, i: usize) -> Parameter {
    match value {
        Parameter::Integer(_) => Parameter::from(i + 1),
        Parameter::Number(_) => Parameter::Number((i + 1) as f64 * 1e-5),
        Parameter::Text(_) => Parameter::from(format!("value-{i}")),
    }
}

/// `n` runs of twenty rows, which scatter.
pub(super) fn runs(n: usize) -> Results {
    let mut results = short("one-gpu.json.gz");
    let first = results.runs[0].clone();
    let run = |i: usize| {
        let mut run = first.clone();
        run.id = format!("syncscope-{}", i + 1);
        run.telemetry.truncate(2);
        run
    };
    results.runs = (0..n).map(run).collect();
    results.plan.runs = u32::try_from(n).unwrap();
    results.rows.retain(|row| matches!(row.series[0].outcome, Outcome::Measured(_)));
    results.rows.truncate(20);
    for row in results.rows.iter_mut() {
        let values = row.series[0].outcome.values().unwrap().to_vec();
        let series = |(i, run): (usize, _)| {
            let factor = 1.0 + 0.01 * ((i * 7919) % n) as f64 / n as f64;
            let samples = values.iter().map(|value| factor * value).collect();
            Series { run, outcome: Outcome::of_samples(samples, StoppedBy::Samples) }
        };
        row.series = results.runs.iter().map(|run| run.id.clone()).enumerate().map(series).collect();
    }
    results
}

/// `n` rows, each computed from the one before.
pub(super) fn chain(n: usize) -> Results {
    of_rows(|row| {
        let computed = (1..=n).map(|i| computed(row, i, "a", &[format!("launch-path.row-{}", i - 1)], 1.0));
        std::iter::once(named(row, "launch-path.row-0".to_owned())).chain(computed).collect()
    })
}

/// `n` rows, each the sum of the one before and a measured one.
pub(super) fn sums(n: usize) -> Results {
    of_rows(|row| {
        let measured = (0..=n).map(|i| named(row, format!("launch-path.term-{i}")));
        let computed = (1..=n).map(|i| {
            let before = if i == 1 { "launch-path.term-0".to_owned() } else { format!("launch-path.row-{}", i - 1) };
            computed(row, i, "a + b", &[before, format!("launch-path.term-{i}")], (i + 1) as f64)
        });
        measured.chain(computed).collect()
    })
}

fn computed(row: &Row, i: usize, formula: &str, of: &[String], factor: f64) -> Row {
    let mut row = named(row, format!("launch-path.row-{i}"));
    let operand = |(name, id): (&str, &String)| FormulaOperand {
        name: name.to_owned(),
        id: id.clone(),
        parameters: Some(row.spec.parameters.clone()),
    };
    let operands = ["a", "b"].into_iter().zip(of).map(operand).collect();
    let values = row.series[0].outcome.values().unwrap();
    let samples = values.iter().map(|value| factor * value).collect();
    row.spec.provenance =
        Provenance::Derived { derivation: Derivation::Computation, formula: formula.to_owned(), operands };
    row.series[0].outcome = Outcome::Derived { samples };
    row
}

/// `n` recorded timelines, each of a row.
pub(super) fn timelines(n: usize) -> Results {
    let all = kept("one-gpu.json.gz").timelines;
    let recorded = all.into_iter().find(|one| matches!(one.recorded, Recorded::Timeline(_))).unwrap();
    let mut results = rows(n);
    let of_row = |row: &Row| {
        let mut own = recorded.clone();
        own.run.clone_from(&results.run().id);
        own.name.clone_from(&row.spec.id);
        own
    };
    results.timelines = results.rows.iter().map(of_row).collect();
    results
}

fn named(row: &Row, id: String) -> Row {
    let mut row = row.clone();
    (row.spec.label, row.spec.id) = (id.clone(), id);
    row
}

fn with(row: &Row, name: &str, value: Parameter) -> Row {
    let mut row = row.clone();
    row.spec.parameters.insert(name.to_owned(), value);
    row
}

/// A day's results of one machine, of five rows.
pub(super) fn of_day(machine: usize, day: usize) -> Results {
    let mut results = rows(5);
    results.runs[0].started = format!("{}-{:02}-{:02}T09:30:00Z", 2000 + day / 336, 1 + day / 28 % 12, 1 + day % 28);
    results.runs[0].environment.host.name_machine(&format!("node{machine:05}"));
    let factor = 1.0 + 0.01 * ((machine * 31 + day * 7919) % 1000) as f64 / 1000.0;
    for outcome in results.rows.iter_mut().flat_map(|row| &mut row.series).map(|series| &mut series.outcome) {
        outcome.values_mut().into_iter().for_each(|value| *value *= factor);
    }
    results
}

/// A trace of `n` calls that wait, each for a kernel and each in a Python function of its own, five deep.
pub(super) fn trace(n: usize) -> String {
    let event = |category: &str, name: String, place: (u64, u64), (start, length): (usize, usize), i: usize| {
        let arguments = serde_json::json!({ "correlation": i, "stream": 7 });
        serde_json::json!({ "ph": "X", "cat": category, "name": name, "pid": place.0, "tid": place.1, "ts": start,
            "dur": length, "args": arguments })
    };
    let of_call = |i: usize| {
        let frame = |deep: usize| {
            let name = format!("file_{}.py({}): function_{i}", i % 97, i + deep);
            event("python_function", name, (1, 1), (i * 20 + deep, 18 - 2 * deep), i)
        };
        let wait = event("cuda_runtime", "cudaStreamSynchronize".to_owned(), (1, 1), (i * 20 + 6, 4), i);
        let kernel = event("kernel", format!("kernel_{}", i % 50), (0, 7), (i * 20 + 5, 4), i);
        (0..5).map(frame).chain([kernel, wait]).collect::<Vec<_>>()
    };
    let events: Vec<serde_json::Value> = (0..n).flat_map(of_call).collect();
    serde_json::json!({ "schemaVersion": 1, "traceEvents": events }).to_string()
}

/// A suite with a row for each of `n` values.
pub(super) fn suite(n: usize) -> String {
    let values: Vec<String> = (1..=n).map(|value| value.to_string()).collect();
    format!(
        "title: N\nsampling: {{ samples: 3 }}\nexperiments: [launch-path: {{ operations: [{}], elements: 8 }}]\n",
        values.join(", ")
    )
}
