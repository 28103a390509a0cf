//! Compares two baselines of criterion, whose benchmarks are named on standard input, one a line. Nothing is measured.

use criterion::Criterion;

fn main() {
    // A tenth of the usual resamples: its verdicts hardly change, and hundreds of them take minutes.
    let mut criterion = Criterion::default().nresamples(10_000).without_plots().configure_from_args();
    for name in std::io::stdin().lines() {
        let name = name.expect("standard input can be read");
        criterion.bench_function(&name, |bencher| bencher.iter(|| ()));
    }
}
