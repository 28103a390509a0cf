//! How the time of what reads files grows with their size: `cargo bench --bench growth`, with words behind `--` of those
//! that hold them alone.
//!
//! Each is timed at sizes that double; the exponent is the slope of the logarithms (least squares). n log n has one of
//! about 1.1 here. It ends with 1 where an exponent is above 1.2.

#![allow(clippy::unwrap_used)]

mod commands;
mod files;

use std::fmt;
use std::hint::black_box;
use std::path::Path;
use std::process::ExitCode;

use rustix::time::{ClockId, clock_gettime};
use syncscope::measure::Samples;
use syncscope::timeline::Timeline;
use syncscope_book::Warning;
use syncscope_results::{
    Catalog, Derivation, ExperimentRun, FormulaOperand, Outcome, Parameter, Parameters, Provenance, Results, Row,
    Tolerance, compare,
};

const MOST: f64 = 1.2;

/// The seconds that something of a size takes.
type Time<'a> = dyn Fn(usize) -> f64 + 'a;

fn main() -> ExitCode {
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
    let lookup = |n| {
        let (mut results, none) = (rows_of(n), Parameters::new());
        // Of samples nothing is asked, and the rows alone are more than a processor keeps at hand, however few.
        for row in results.rows.iter_mut() {
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
    // Behind what cargo adds.
    let wanted = std::env::args().skip(1).find(|argument| !argument.starts_with("--")).unwrap_or_default();
    let timed: [(&str, usize, &Time); 8] = [
        ("the picture of a timeline of n spans", 8_000, &picture),
        ("the critical path of n spans", 8_000, &path),
        ("the estimate of n samples", 32_000, &estimate),
        ("what n rows of one identifier differ in", 8_000, &lookup),
        // A million at the largest.
        ("the comparison of two rows of n samples", 32_000, &compared),
        ("reading n samples of a row", 32_000, &samples_read),
        ("reading n rows", 1_000, &rows_read),
        ("the warnings of n computed rows of as many experiments", 1_000, &warned),
    ];
    let timed = timed.into_iter().filter(|(what, ..)| what.contains(&wanted)).map(|(what, first, time)| {
        let points = (0..6).map(|doubled| first << doubled).map(|n| (n, time(n)));
        Growth::of(what.to_owned(), points.collect())
    });
    let mut steepest: f64 = 0.0;
    for grown in timed.chain(commands::grown(&wanted)) {
        println!("{grown}");
        steepest = steepest.max(grown.exponent.unwrap_or_default());
    }
    ExitCode::from(u8::from(steepest > MOST))
}

/// How a time grows.
struct Growth {
    what: String,
    /// Sizes, and the seconds at each.
    points: Vec<(usize, f64)>,
    /// None where too few take long enough.
    exponent: Option<f64>,
}

impl Growth {
    fn of(what: String, points: Vec<(usize, f64)>) -> Self {
        let logarithms: Vec<(f64, f64)> = points.iter().map(|(n, time)| ((*n as f64).ln(), time.ln())).collect();
        let mean = |of: fn(&(f64, f64)) -> f64| logarithms.iter().map(of).sum::<f64>() / logarithms.len() as f64;
        let (x, y) = (mean(|point| point.0), mean(|point| point.1));
        let slope = logarithms.iter().map(|point| (point.0 - x) * (point.1 - y)).sum::<f64>()
            / logarithms.iter().map(|point| (point.0 - x).powi(2)).sum::<f64>();
        Self { what, exponent: (points.len() > 2).then_some(slope), points }
    }
}

impl fmt::Display for Growth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let times: Vec<String> = self.points.iter().map(|(n, time)| format!("{n}: {:.0} ms", time * 1e3)).collect();
        match self.exponent {
            Some(exponent) => write!(f, "{}: n^{exponent:.2} ({})", self.what, times.join(", ")),
            None => write!(f, "{}: too short to tell", self.what),
        }
    }
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
    results.rows = copies.collect::<Vec<Row>>().into();
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
                let samples = (0..n).map(value).collect();
                *outcome = Outcome::of_samples(samples, measured.stopped_by);
            }
            Outcome::Derived { samples } => *samples = (0..n).map(value).collect(),
            _ => {}
        }
    }
    results
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
