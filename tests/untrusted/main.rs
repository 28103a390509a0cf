//! Files from anywhere: whatever bytes a results file or a suite holds, reading them ends with a value or an error, and
//! what was read can be looked up, estimated, diagnosed, compared and shown without a panic.
//!
//! `SYNCSCOPE_CASES=10000000 cargo test --release --test untrusted` takes so many inputs of each kind, and
//! `SYNCSCOPE_SECONDS=30` as many as there is time for. A fifth of the time goes into the use of what could be read.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod course;
#[cfg(feature = "nsys")]
#[path = "../fixtures/nsys.rs"]
mod export;
#[path = "../fixtures/run.rs"]
mod fixture;
mod mutation;
mod others;
mod results;

use std::cell::Cell;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use syncscope_book::document::Document;
use syncscope_report::carried_book;
use syncscope_results::Catalog;
use syncscope_suite::experiment::Registry;

fn catalog() -> &'static Catalog {
    static CATALOG: LazyLock<Catalog> = LazyLock::new(|| Registry::builtin().catalog("cuda"));
    &CATALOG
}

fn documents() -> Vec<Document> {
    carried_book().documents(catalog()).unwrap()
}

/// Holds `property` to `usual` inputs, or to what the environment says: so many, or for so long.
fn hold<S: Strategy>(usual: u32, strategy: &S, property: impl Fn(S::Value) -> Result<(), TestCaseError>) {
    let stated = |name| std::env::var(name).ok().and_then(|value| value.parse::<u32>().ok());
    let (cases, seconds) = (stated("SYNCSCOPE_CASES").unwrap_or(usual), stated("SYNCSCOPE_SECONDS"));
    let (begun, mut held) = (Instant::now(), 0_u64);
    loop {
        let usual = Config::default();
        // Each round takes other inputs, also where the first are stated.
        let rng_seed = match usual.rng_seed {
            RngSeed::Fixed(seed) => RngSeed::Fixed(seed.wrapping_add(held)),
            random => random,
        };
        let config = Config { cases, rng_seed, failure_persistence: None, ..usual };
        TestRunner::new(config).run(strategy, &property).unwrap();
        held += u64::from(cases);
        if seconds.is_none_or(|seconds| begun.elapsed() >= Duration::from_secs(seconds.into())) {
            break;
        }
    }
    let name = std::thread::current().name().unwrap_or_default().to_owned();
    // A row of a table, on a line of its own: target, inputs, seconds.
    println!("\n| {name} | {held} | {:.0} |", begun.elapsed().as_secs_f64());
}

/// The uses of what could be read, which take longer than reading.
struct Uses {
    begun: Instant,
    spent: Cell<Duration>,
    count: Cell<u64>,
}

impl Default for Uses {
    fn default() -> Self {
        Self { begun: Instant::now(), spent: Cell::default(), count: Cell::default() }
    }
}

impl Uses {
    /// All of the first are used, and of the others as many as leave four fifths of the time to reading.
    const FIRST: u64 = 200;

    fn turn(&self, used: impl FnOnce(u64)) {
        let count = self.count.get();
        if count < Self::FIRST || self.spent.get() * 5 < self.begun.elapsed() {
            let begun = Instant::now();
            used(count);
            self.spent.set(self.spent.get() + begun.elapsed());
            self.count.set(count + 1);
        }
    }

    fn end(&self) {
        assert!(self.count.get() > 0, "no mutation left a file that can be read");
        println!("of the inputs {} were used", self.count.get());
    }
}
