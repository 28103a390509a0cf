//! What the program itself costs the host: enqueueing on the CPU engine, statistics, reading results, rendering a book.
//!
//! `cargo bench` runs all; `cargo bench -- parse` those whose name holds the word. After the benchmarks it prints how each
//! family of sizes grows: the slope `k` of a straight line through the logarithms of size and median time, so that time
//! goes with size to the power of `k`.

#![allow(clippy::unwrap_used, reason = "a benchmark may panic")]

use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion};
use syncscope::device::Device;
use syncscope::measure::{Samples, judge};
use syncscope_book::{Source, render};
use syncscope_report::carried_book;
use syncscope_results::{Catalog, Outcome, Parameter, Results, Row};
use syncscope_suite::experiment::Registry;

/// Measurements in a results file.
const SIZES: [usize; 3] = [10, 100, 1000];

/// The seconds of each iteration of a benchmark, by the family and the size.
type Times = BTreeMap<(&'static str, usize), Vec<f64>>;

fn main() {
    let mut criterion = Criterion::default().sample_size(20).configure_from_args();
    let mut times = Times::new();
    enqueue(&mut criterion);
    statistics(&mut criterion);
    results(&mut criterion, &mut times);
    book(&mut criterion);
    criterion.final_summary();
    growth(&times);
}

/// The host's time for one operation on a small tensor of the CPU engine, enqueued and not waited for.
fn enqueue(criterion: &mut Criterion) {
    /// Operations that are let run before more are enqueued, outside of the time.
    const QUEUE: u64 = 1000;
    let device = Device::open("cpu:0").unwrap();
    let stream = device.stream().unwrap();
    let x = stream.zeros::<f32>([16]).unwrap();
    let looped = |iterations: u64, operation: &dyn Fn()| {
        let (mut time, mut left) = (Duration::ZERO, iterations);
        while left > 0 {
            let now = left.min(QUEUE);
            let start = Instant::now();
            (0..now).for_each(|_| operation());
            time += start.elapsed();
            stream.synchronize().unwrap();
            left -= now;
        }
        time
    };
    let mut group = criterion.benchmark_group("enqueue");
    group.bench_function("in-place", |bencher| {
        bencher.iter_custom(|iterations| looped(iterations, &|| x.affine_in_place(1.0, 1.0).unwrap()));
    });
    group.bench_function("allocating", |bencher| {
        bencher.iter_custom(|iterations| looped(iterations, &|| drop(black_box(x.affine(1.0, 1.0).unwrap()))));
    });
    group.finish();
}

/// What is computed from samples: a median with its interval, a ratio, a bootstrap; and all of a full run.
fn statistics(criterion: &mut Criterion) {
    let samples: Vec<f64> = (0..30).map(|i| 1e-3 * (1.0 + 0.01 * f64::from(i * 7 % 30))).collect();
    let full = frozen();
    let documents = carried_book().documents(&catalog()).unwrap();
    let mut group = criterion.benchmark_group("statistics");
    group.bench_function("estimate of 30 samples", |bencher| {
        bencher.iter(|| Samples::new("a", samples.clone()).unwrap().estimate());
    });
    group.bench_function("a claim about 30 samples", |bencher| {
        let samples = Samples::new("a", samples.clone()).unwrap();
        bencher.iter(|| judge([&samples], |[median]| median > 0.0));
    });
    group.sample_size(10);
    group.bench_function("a full run: estimates, diagnoses, verdicts", |bencher| {
        bencher.iter(|| {
            let estimates = full.lookup().metrics().filter_map(|(_, metric)| metric.ok()?.estimate().ok()).count();
            let judged = documents.iter().flat_map(|document| {
                let full = &full;
                document.claims.iter().map(move |claim| claim.judge(document, full))
            });
            (estimates, full.diagnoses(), judged.count())
        });
    });
    group.finish();
}

/// Reading a results file of so many measurements, and making the pages of a book of it.
fn results(criterion: &mut Criterion, times: &mut Times) {
    let (project, catalog) = (carried_book(), catalog());
    let mut group = criterion.benchmark_group("results");
    for size in SIZES {
        let results = [of_size(size)];
        let text = serde_json::to_string_pretty(&results[0]).unwrap();
        group.bench_function(BenchmarkId::new("parse", size), |bencher| {
            bencher.iter_custom(|iterations| {
                timed(iterations, times.entry(("parse", size)).or_default(), || {
                    Results::parse(&text, Path::new("r.json")).unwrap()
                })
            });
        });
        group.bench_function(BenchmarkId::new("write", size), |bencher| {
            bencher.iter_custom(|iterations| {
                timed(iterations, times.entry(("write", size)).or_default(), || {
                    serde_json::to_string_pretty(&results[0]).unwrap()
                })
            });
        });
        group.bench_function(BenchmarkId::new("pages", size), |bencher| {
            bencher.iter_custom(|iterations| {
                timed(iterations, times.entry(("pages", size)).or_default(), || {
                    Source::of(&results, &project, &catalog).unwrap()
                })
            });
        });
    }
    group.finish();
}

/// The whole book of the frozen results, down to the site.
fn book(criterion: &mut Criterion) {
    let out = tempfile::tempdir().unwrap();
    let (results, project, catalog) = ([frozen()], carried_book(), catalog());
    let mut group = criterion.benchmark_group("book");
    group.sample_size(10);
    group.bench_function("frozen results to site", |bencher| {
        bencher.iter(|| render(&results, &project, &catalog, out.path()).unwrap())
    });
    group.finish();
}

fn timed<R>(iterations: u64, times: &mut Vec<f64>, work: impl Fn() -> R) -> Duration {
    let start = Instant::now();
    for _ in 0..iterations {
        black_box(work());
    }
    let time = start.elapsed();
    times.push(time.as_secs_f64() / iterations as f64);
    time
}

/// The rows that documents may name.
fn catalog() -> Catalog {
    Registry::builtin().catalog("cuda")
}

/// The results of a full run on a GPU that come with the repository.
fn frozen() -> Results {
    Results::read(&Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("book/results/one-gpu.json.gz"))
        .unwrap()
}

/// The frozen results with `size` measured rows and no timelines: their own, in turn, told apart by a parameter.
fn of_size(size: usize) -> Results {
    let mut results = frozen();
    results.runs.truncate(1);
    results.timelines.clear();
    let run = results.runs[0].id.clone();
    let has_samples =
        |row: &&Row| matches!(row.outcome(&run), Some(Outcome::Measured { .. } | Outcome::Derived { .. }));
    let mut measured: Vec<Row> = results.rows.iter().filter(has_samples).cloned().collect();
    measured.iter_mut().for_each(|row| row.series.retain(|series| series.run == run));
    let copies = (0..size).zip(measured.iter().cycle()).map(|(place, row)| {
        let mut row = row.clone();
        row.spec.parameters.insert("copy".to_owned(), Parameter::Integer((place / measured.len()) as u64));
        row
    });
    results.rows = copies.collect::<Vec<Row>>().into();
    results
}

/// How the time of each family goes with the size.
fn growth(times: &Times) {
    let families: std::collections::BTreeSet<&str> = times.keys().map(|(family, _)| *family).collect();
    for family in families {
        let points: Vec<(f64, f64)> = SIZES
            .iter()
            .filter_map(|&size| {
                let mut seconds = times.get(&(family, size))?.clone();
                seconds.sort_by(f64::total_cmp);
                Some(((size as f64).ln(), seconds.get(seconds.len() / 2)?.ln()))
            })
            .collect();
        if points.len() == SIZES.len() {
            println!("growth of {family}: time goes with size to the power of {:.2}", slope(&points));
        }
    }
}

/// The slope of the straight line of least squares.
fn slope(points: &[(f64, f64)]) -> f64 {
    let n = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / n;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let products: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    products / points.iter().map(|point| (point.0 - x).powi(2)).sum::<f64>()
}
