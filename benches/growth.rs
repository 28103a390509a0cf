//! How the time of what reads files grows with their size: `cargo bench --bench growth`.
//!
//! Each is timed at sizes that double; the exponent is the slope of the logarithms (least squares). n log n has one of
//! about 1.1 here. It ends with 1 where an exponent is above 1.35.

#![allow(clippy::unwrap_used)]

use std::hint::black_box;
use std::path::Path;
use std::process::ExitCode;

use rustix::time::{ClockId, clock_gettime};
use syncscope::measure::Samples;
use syncscope::timeline::Timeline;
use syncscope_audit::AuditReport;
use syncscope_book::{self as book, BookProject, Warning};
use syncscope_results::{
    Catalog, Derivation, ExperimentRun, FormulaOperand, Outcome, Parameter, Parameters, Provenance, Results, Row,
    Sample, Tolerance, compare,
};
use syncscope_suite::experiment::Registry;
use syncscope_suite::runner::{Suite, length, planned};

const MOST: f64 = 1.35;

fn main() -> ExitCode {
    let sizes = |first: usize| (0..6).map(move |doubled| first << doubled).collect::<Vec<usize>>();
    let picture = |n| {
        let timeline = recorded(n);
        time(|| timeline.plot("T".to_owned(), "M".to_owned()).to_svg("p"))
    };
    let path = |n| {
        let timeline = recorded(n);
        time(|| timeline.critical_path())
    };
    let estimate = |n| {
        let samples: Vec<f64> = (0..n).map(|i| 1.0 + ((i * 7919) % n) as f64).collect();
        time(|| Samples::new("a", samples.clone()).unwrap().estimate())
    };
    let suite = |n| {
        let (text, registry) = (suite_of(n), Registry::builtin());
        time(|| {
            let suite = Suite::parse(&text, "s.yaml", &registry).unwrap();
            length(&planned(&suite, &registry, "cuda"), &suite.sampling, "cuda")
        })
    };
    let audit = |n| {
        let text = trace_of(n);
        time(|| AuditReport::of_trace(&text, "t.json").unwrap())
    };
    let lookup = |n| {
        let (mut results, none) = (rows_of(n), Parameters::new());
        // Of samples nothing is asked, and the rows alone are more than a processor keeps at hand, however few.
        for row in &mut results.rows {
            row.series.truncate(1);
            row.series[0].outcome = Outcome::Interrupted;
        }
        let id = results.rows[0].spec.id.clone();
        let catalog = Catalog::new(results.rows.iter().map(|row| row.spec.clone()));
        time(|| (results.lookup().find(&id, &none, &none).is_err(), catalog.parameters(&[&id]).len()))
    };
    let compared = |n| {
        let both = [samples_of(n, 1.0), samples_of(n, 1.01)];
        time(|| compare(&both[0], &both[1], Tolerance::default()))
    };
    let samples_read = |n| {
        let text = serde_json::to_string(&samples_of(n, 1.0)).unwrap();
        time(|| Results::parse(&text, Path::new("r.json")).unwrap())
    };
    let rows_read = |n| {
        let text = serde_json::to_string(&rows_of(n)).unwrap();
        time(|| Results::parse(&text, Path::new("r.json")).unwrap())
    };
    let warned = |n| {
        let results = computed_rows_of(n);
        time(|| Warning::of(&results))
    };
    let (project, registry) = (BookProject::of_source_tree().unwrap(), Registry::builtin());
    let rendered = |n| {
        let results = [rows_of(n)];
        let catalog = registry.catalog("cuda").with_results(&results);
        let out = tempfile::tempdir().unwrap();
        time(|| book::render(&results, &project, &catalog, out.path()).unwrap())
    };
    let grown = [
        ("the picture of a timeline of n spans", exponent(&sizes(8_000), picture)),
        ("the critical path of n spans", exponent(&sizes(8_000), path)),
        ("the estimate of n samples", exponent(&sizes(32_000), estimate)),
        ("the plan of a suite of n values", exponent(&sizes(250), suite)),
        ("what n rows of one identifier differ in", exponent(&sizes(8_000), lookup)),
        ("the audit of a trace of n calls", exponent(&sizes(4_000), audit)),
        // A million at the largest.
        ("the comparison of two rows of n samples", exponent(&sizes(32_000), compared)),
        ("reading n samples of a row", exponent(&sizes(32_000), samples_read)),
        ("reading n rows", exponent(&sizes(1_000), rows_read)),
        ("the warnings of n computed rows of as many experiments", exponent(&sizes(1_000), warned)),
        ("the whole book, of n rows of one experiment", exponent(&sizes(250), rendered)),
    ];
    for (what, (exponent, last)) in &grown {
        println!("{what}: n^{exponent:.2}, {:.0} ms at the largest", last * 1e3);
    }
    ExitCode::from(u8::from(grown.iter().any(|(_, (exponent, _))| *exponent > MOST)))
}

/// The least of three times, in seconds of this thread's processor: what else the machine does is in none.
fn time<T>(run: impl Fn() -> T) -> f64 {
    let now = || {
        let now = clock_gettime(ClockId::ThreadCPUTime);
        now.tv_sec as f64 + now.tv_nsec as f64 * 1e-9
    };
    let once = || {
        let begun = now();
        black_box(run());
        now() - begun
    };
    (0..3).map(|_| once()).fold(f64::INFINITY, f64::min)
}

/// The exponent of the growth, and the time at the largest size.
fn exponent(sizes: &[usize], time: impl Fn(usize) -> f64) -> (f64, f64) {
    let times: Vec<f64> = sizes.iter().map(|n| time(*n)).collect();
    let points: Vec<(f64, f64)> = sizes.iter().zip(&times).map(|(n, t)| ((*n as f64).ln(), t.ln())).collect();
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / points.len() as f64;
    let (x, y) = (mean(|p| p.0), mean(|p| p.1));
    let slope = points.iter().map(|p| (p.0 - x) * (p.1 - y)).sum::<f64>()
        / points.iter().map(|p| (p.0 - x).powi(2)).sum::<f64>();
    (slope, times.last().copied().unwrap_or_default())
}

/// Measured rows that differ in a parameter, and of each a row that is computed from it, in `n` experiments.
fn computed_rows_of(n: usize) -> Results {
    let mut results = rows_of(n);
    let computed = |(place, mut row): (usize, Row)| {
        let operand = FormulaOperand { name: "a".to_owned(), id: row.spec.id.clone(), parameters: None };
        row.spec.id = format!("experiment-{place}.b");
        row.spec.provenance = Provenance::Derived {
            derivation: Derivation::Computation,
            formula: "2 · a".to_owned(),
            operands: vec![operand],
        };
        let samples = row.series[0].outcome.values().unwrap().iter().map(|sample| 2.0 * sample).collect();
        row.series[0].outcome = Outcome::Derived { samples };
        row
    };
    let of_computed: Vec<Row> = results.rows.iter().cloned().enumerate().map(computed).collect();
    let ran = |row: &Row| {
        let (name, summary) = (row.spec.experiment().to_owned(), String::new());
        ExperimentRun { name, summary, duration: 1.0, code: None, failure: None }
    };
    results.runs[0].order = of_computed.iter().map(ran).collect();
    results.rows.extend(of_computed);
    results
}

/// A measured row of the kept results, `n` times: they differ in a parameter.
fn rows_of(n: usize) -> Results {
    let mut results =
        Results::read(&Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("book/results/one-gpu.json.gz"))
            .unwrap();
    let run = results.run().id.clone();
    let row = results.rows.iter().find(|row| row.outcome(&run).is_some_and(|outcome| outcome.values().is_some()));
    let row: Row = row.unwrap().clone();
    let copies = (0..n).map(|place| {
        let mut row = row.clone();
        row.spec.parameters.insert("copy".to_owned(), Parameter::from(place));
        row
    });
    results.rows = copies.collect();
    // They are of rows that are not there.
    results.timelines.clear();
    results
}

/// One row with `n` samples, each of them about `factor`.
fn samples_of(n: usize, factor: f64) -> Results {
    let mut results = rows_of(1);
    for outcome in results.rows.iter_mut().flat_map(|row| &mut row.series).map(|series| &mut series.outcome) {
        let value = |i| factor * (1.0 + ((i * 7919) % n) as f64 / n as f64);
        match outcome {
            // When each sample began, in which place and pass, and beside what, is not told: a file may leave it out.
            Outcome::Measured(measured) => {
                let sample = |i| Sample { value: value(i), order: None, started: None, slowdown: None };
                measured.samples = (0..n).map(sample).collect();
                measured.passes.clear();
            }
            Outcome::Derived { samples } => *samples = (0..n).map(value).collect(),
            _ => {}
        }
    }
    results
}

/// A suite with a row for each of `n` values.
fn suite_of(n: usize) -> String {
    let values: Vec<String> = (1..=n).map(|value| value.to_string()).collect();
    format!(
        "title: N\nsampling: {{ samples: 3 }}\nexperiments: [launch-path: {{ operations: [{}], elements: 8 }}]\n",
        values.join(", ")
    )
}

/// A trace of `n` calls that wait, each for a kernel.
fn trace_of(n: usize) -> String {
    let event = |category: &str, name: &str, place: (u64, u64), i: usize| {
        let arguments = serde_json::json!({ "correlation": i, "stream": 7 });
        serde_json::json!({ "ph": "X", "cat": category, "name": name, "pid": place.0, "tid": place.1, "ts": i * 3, "dur": 1,
            "args": arguments })
    };
    let both = |i| [event("kernel", "k", (0, 7), i), event("cuda_runtime", "cudaStreamSynchronize", (1, 1), i)];
    let events: Vec<serde_json::Value> = (0..n).flat_map(both).collect();
    serde_json::json!({ "schemaVersion": 1, "traceEvents": events }).to_string()
}

/// A timeline of about `n` spans on eight streams, with many names, waits and synchronization points.
fn recorded(n: usize) -> Timeline {
    let spans: Vec<serde_json::Value> = (0..n / 2)
        .flat_map(|i| {
            let (start, stream) = (i as u64 * 100, i % 8);
            let kind = if i % 50 == 0 { "synchronize" } else { "enqueue" };
            let work = if i % 20 == 0 { "wait" } else { "kernel" };
            [
                serde_json::json!({ "name": format!("call {i}"), "kind": kind, "track": 0, "start_ns": start,
                    "end_ns": start + 60, "correlation": i, "stream": stream }),
                serde_json::json!({ "name": format!("kernel {i}"), "kind": work, "track": 1 + stream,
                    "start_ns": start + 30, "end_ns": start + 700, "correlation": i, "stream": stream }),
            ]
        })
        .collect();
    let tracks: Vec<serde_json::Value> = std::iter::once(serde_json::json!({ "host": "main" }))
        .chain((0..8).map(|stream| serde_json::json!({ "stream": stream })))
        .collect();
    let timeline = serde_json::json!({ "device": "cuda:0", "source": "made up", "tracks": tracks, "spans": spans,
        "dropped": 0, "region_ns": n as u64 * 50 });
    serde_json::from_value(timeline).unwrap()
}
