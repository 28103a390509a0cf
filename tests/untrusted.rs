//! Files from anywhere: whatever bytes a results file or a suite holds, reading them ends with a value or an error, and
//! what was read can be looked up, estimated, diagnosed, compared and shown without a panic.
//!
//! `SYNCSCOPE_CASES=200000 cargo test --release --test untrusted` runs longer than the default of a few seconds, and
//! `SYNCSCOPE_SECONDS=30` each of them for so long.

#![cfg(feature = "report")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "fixtures/run.rs"]
mod fixture;

use std::path::Path;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{Config, TestRunner};
use syncscope::book::document::{Document, TableEntry};
use syncscope::book::{
    BookProject, Machines, Source, Warning, Wording, compared, comparison_table, panel, summary, system_table, tally,
};
use syncscope::experiment::{Bench, Registry};
use syncscope::present::TimelinePlot;
use syncscope::results::{
    Catalog, MissingReason, Outcome, Parameters, Results, Run, Series, System, Tolerance, compare, mismatches, remarks,
    share_of_peak,
};
use syncscope::runner::Suite;
use syncscope::timeline::Timeline;

/// A file of schema 1.
const OLD: &str = include_str!("fixtures/results-v1.json");
const SUITES: [&str; 2] = [include_str!("../book/suites/quick.yaml"), include_str!("../book/suites/full.yaml")];

fn catalog() -> &'static Catalog {
    static CATALOG: LazyLock<Catalog> = LazyLock::new(|| Registry::builtin().catalog("cuda"));
    &CATALOG
}

fn documents() -> Vec<Document> {
    BookProject::embedded().documents(catalog()).unwrap()
}

/// Holds `property` to `usual` cases, or to what the environment says: so many, or for so long.
fn hold<S: Strategy>(usual: u32, strategy: &S, property: impl Fn(S::Value) -> Result<(), TestCaseError>) {
    let stated = |name| std::env::var(name).ok().and_then(|value| value.parse::<u32>().ok());
    let (cases, seconds) = (stated("SYNCSCOPE_CASES").unwrap_or(usual), stated("SYNCSCOPE_SECONDS"));
    let (begun, mut held) = (Instant::now(), 0_u64);
    loop {
        let config = Config { cases, failure_persistence: None, ..Config::default() };
        TestRunner::new(config).run(strategy, &property).unwrap();
        held += u64::from(cases);
        if seconds.is_none_or(|seconds| begun.elapsed() >= Duration::from_secs(seconds.into())) {
            break;
        }
    }
    let name = std::thread::current().name().unwrap_or_default().to_owned();
    println!("{name}: {held} inputs in {:.0} s", begun.elapsed().as_secs_f64());
}

/// A small results file with every outcome, two runs and a timeline: mutations of it hit structure rather than one of
/// thousands of samples.
fn small_results() -> String {
    let mut results = fixture::run_with_every_outcome();
    let mut seen = std::collections::BTreeSet::new();
    results.rows.retain(|row| {
        let outcome = serde_json::to_value(&row.series[0].outcome).unwrap();
        let kind = outcome.as_object().map_or_else(|| outcome.to_string(), |map| map.keys().next().unwrap().clone());
        seen.insert(format!("{} {kind} {:?} {:?}", row.spec.experiment(), row.spec.unit, row.spec.provenance))
    });
    let second = Run { id: "PyTorch-1".to_owned(), system: "PyTorch".to_owned(), ..results.run().clone() };
    results.runs.push(second);
    for row in &mut results.rows {
        let mut outcome = row.series[0].outcome.clone();
        if let Outcome::Measured { samples, .. } | Outcome::Derived { samples } = &mut outcome {
            samples.truncate(8);
        }
        row.series.push(Series { run: "PyTorch-1".to_owned(), outcome });
    }
    results.timelines.push(fixture::recorded("overlap.finish.complete"));
    serde_json::to_string(&results).unwrap()
}

/// The same of schema 1.
fn small_old_results() -> String {
    let mut run: serde_json::Value = serde_json::from_str(OLD).unwrap();
    let mut seen = std::collections::BTreeSet::new();
    for experiment in run["experiments"].as_array_mut().unwrap() {
        let rows = experiment["rows"].as_array_mut().unwrap();
        rows.retain(|row| {
            let outcome = &row["outcome"];
            let name =
                outcome.as_object().map_or_else(|| outcome.to_string(), |map| map.keys().next().unwrap().clone());
            seen.insert((name, row["unit"].to_string(), outcome["derived"]["derivation"].to_string()))
        });
        for row in rows {
            let Some(outcome) = row["outcome"].as_object_mut() else { continue };
            for body in outcome.values_mut() {
                if let Some(samples) = body.get_mut("samples").and_then(|samples| samples.as_array_mut()) {
                    samples.truncate(12);
                }
            }
        }
    }
    serde_json::to_string(&run).unwrap()
}

/// What stands where a number, a word or a value stood.
const STRANGE: [&str; 24] = [
    "0",
    "-1",
    "-0.0",
    "1e308",
    "-1e308",
    "1.7976931348623157e308",
    "5e-324",
    "1e400",
    "-1e400",
    "NaN",
    "Infinity",
    ".inf",
    ".nan",
    "18446744073709551616",
    "18446744073709551615",
    "99999999999999999999999999",
    "null",
    "true",
    "[]",
    "{}",
    "\"\"",
    "\"\\u0000\\ud800\"",
    "\"<script>|`*\"",
    "&a [*a]",
];

/// A change of a text.
#[derive(Clone, Debug)]
enum Mutation {
    /// One byte is another.
    Flip(Index, u8),
    /// It ends here.
    Truncate(Index),
    /// A part of it stands there a second time.
    Duplicate(Index, usize, Index),
    /// A part of it is gone.
    Remove(Index, usize),
    /// A run of digits is something else.
    Number(Index, &'static str),
    /// Something is put in.
    Insert(Index, &'static str),
    /// Brackets are put in, this deep.
    Nest(Index, &'static str, usize),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    prop_oneof![
        2 => (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Mutation::Flip(at, byte)),
        1 => any::<Index>().prop_map(Mutation::Truncate),
        2 => (any::<Index>(), 1..400_usize, any::<Index>()).prop_map(|(from, n, to)| Mutation::Duplicate(from, n, to)),
        1 => (any::<Index>(), 1..400_usize).prop_map(|(from, n)| Mutation::Remove(from, n)),
        8 => (any::<Index>(), select(&STRANGE[..])).prop_map(|(at, text)| Mutation::Number(at, text)),
        1 => (any::<Index>(), select(&STRANGE[..])).prop_map(|(at, text)| Mutation::Insert(at, text)),
        1 => (any::<Index>(), select(&["[", "{\"a\":", "- ", "{a: ", "(", "!!x "][..]), 1..5_000_usize)
            .prop_map(|(at, open, depth)| Mutation::Nest(at, open, depth)),
    ]
}

fn mutated(text: &str, mutations: &[Mutation]) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for mutation in mutations {
        if bytes.is_empty() {
            break;
        }
        let n = bytes.len();
        let part = |from: &Index, length: usize| from.index(n)..(from.index(n) + length).min(n);
        let put = |bytes: &mut Vec<u8>, range: std::ops::Range<usize>, text: &[u8]| {
            bytes.splice(range, text.iter().copied());
        };
        match mutation {
            Mutation::Flip(at, byte) => bytes[at.index(n)] = *byte,
            Mutation::Truncate(at) => bytes.truncate(at.index(n)),
            Mutation::Duplicate(from, length, to) => {
                let copy = bytes[part(from, *length)].to_vec();
                put(&mut bytes, to.index(n)..to.index(n), &copy);
            }
            Mutation::Remove(from, length) => put(&mut bytes, part(from, *length), b""),
            Mutation::Number(at, text) => {
                let Some(range) = number_after(&bytes, at.index(n)) else { continue };
                put(&mut bytes, range, text.as_bytes());
            }
            Mutation::Insert(at, text) => put(&mut bytes, at.index(n)..at.index(n), text.as_bytes()),
            Mutation::Nest(at, open, depth) => {
                put(&mut bytes, at.index(n)..at.index(n), open.repeat(*depth).as_bytes())
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The first number at or behind a place, or, where none follows, in the text.
fn number_after(bytes: &[u8], from: usize) -> Option<std::ops::Range<usize>> {
    let part = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'e');
    let start = (from..bytes.len()).chain(0..from).find(|&place| bytes[place].is_ascii_digit())?;
    let end = bytes[start..].iter().position(|byte| !part(byte)).map_or(bytes.len(), |length| start + length);
    Some(start..end)
}

/// Does to results all that can be done without a device. Whatever it says, it says it without a panic.
fn use_results(results: &Results, documents: &[Document]) {
    for system in results.systems() {
        let lookup = results.lookup_of(system);
        for metric in lookup.metrics().filter_map(|(_, metric)| metric.ok()) {
            match metric.estimate() {
                Ok(estimate) => {
                    assert!(estimate.median.is_finite() && estimate.low <= estimate.high, "{estimate:?}");
                    let _ = (estimate.to_string(), estimate.relative_error());
                    let share = share_of_peak(&lookup, &metric, &estimate);
                    assert!(share.is_none_or(|found| found.share.is_finite()), "{share:?}");
                }
                Err(reason) => assert!(matches!(reason, MissingReason::Inconsistent(_)), "{reason}"),
            }
            let _ = (metric.diagnose(), metric.is_difference(), metric.is_share());
        }
        let _ = system_table(results, system).to_markdown();
    }
    for document in documents {
        for table in &document.tables {
            let cases = table.cases_in(std::slice::from_ref(results));
            for entry in TableEntry::all(table, &cases) {
                let _ = entry.measured(&results.lookup());
            }
        }
        for claim in &document.claims {
            let _ = claim.judge(document, results);
        }
        for sentence in &document.answer {
            let _ = sentence.said(document, results);
        }
    }
    let named = results.rows.iter().map(|row| row.spec.experiment());
    for name in named.chain(results.runs.iter().flat_map(|run| &run.order).map(|ran| ran.name.as_str())).take(12) {
        let undocumented = Document::of_experiment(name, 0, std::slice::from_ref(results));
        for figure in &undocumented.figures {
            for drawn in figure.panels.iter().filter(|drawn| drawn.timeline.is_none()) {
                panel(undocumented.table(&drawn.table).unwrap(), drawn, "M", results, "p").unwrap();
            }
        }
        let _ = (summary(results, name), results.run().throttle_reasons(name));
    }
    results.diagnoses().iter().for_each(|(_, diagnosis)| drop(diagnosis.to_string()));
    Warning::of(results).iter().for_each(|warning| drop(warning.to_string()));
    let _ = (results.selection.unknown(catalog().ids()), results.has_failures(), results.is_partial());
    let _ = Suite::of_results(&results.suite, "r.json", &Registry::builtin()).map_err(|error| error.to_string());
    let mut described = results.clone();
    described.describe(catalog());
    let _ = described.lookup().find("overlap.finish.complete", &Parameters::new(), &Parameters::new());
}

fn use_both(a: &Results, b: &Results) {
    let result = compare(a, b, Tolerance::default());
    let ratios = result.pairs.iter().filter_map(|pair| pair.ratio);
    assert!(ratios.into_iter().all(|ratio| ratio.low <= ratio.high && ratio.high.is_finite()), "{result:?}");
    for wording in [Wording::Compare, Wording::Reproduce] {
        let _ = tally(&result, wording);
        for table in compared(&result, wording) {
            let _ = (table.to_console(), table.to_markdown(), table.to_html());
        }
    }
    let _ = (mismatches(a, b), remarks(a, b), serde_json::to_string(&result).unwrap());
}

#[test]
fn arbitrary_text_is_neither_results_nor_suite_nor_document_and_ends_in_an_error() {
    let text =
        prop_oneof![vec(any::<u8>(), 0..300), "[\\[\\]{}:,\"&*!a-z0-9 \n.-]{0,200}".prop_map(String::into_bytes)];
    let names = BookProject::embedded().names(catalog()).unwrap();
    let property = |bytes: Vec<u8>| {
        let text = String::from_utf8_lossy(&bytes);
        prop_assert!(Results::parse(&text, Path::new("r.json")).is_err());
        prop_assert!(System::parse(&text, "p.json", catalog()).is_err());
        prop_assert!(Document::parse("d.yaml", &text, &names).is_err());
        let _ = Suite::parse(&text, "s.yaml", &Registry::builtin()).map_err(|error| error.to_string());
        Ok(())
    };
    hold(500, &text, property);
}

/// Reads mutations of a results file, and uses what can be read.
fn mutate_results(text: &str, cases: u32) {
    let documents = documents();
    let good = Results::parse(text, Path::new("r.json")).unwrap();
    use_results(&good, &documents);
    use_both(&good, &good);
    let used = std::cell::Cell::new(0);
    let property = |mutations: Vec<Mutation>| {
        match Results::parse(&mutated(text, &mutations), Path::new("r.json")) {
            Err(error) => drop(error.to_string()),
            Ok(results) => {
                used.set(used.get() + 1);
                use_results(&results, &documents);
                // Dear: a sample of them is enough.
                if used.get() % 8 == 0 {
                    use_both(&good, &results);
                    use_both(&results, &good);
                }
                if used.get() % 16 == 1 {
                    let book = Source::of(&[results], &BookProject::embedded(), catalog());
                    prop_assert!(book.is_ok(), "{:?}", book.err());
                }
            }
        }
        Ok(())
    };
    hold(cases, &vec(mutation(), 1..4), property);
    assert!(used.get() > 0, "no mutation left a file that can be read");
}

#[test]
fn a_mutated_results_file_is_refused_or_can_be_used() {
    mutate_results(&small_results(), 100);
}

#[test]
fn a_mutated_results_file_of_schema_1_is_refused_or_can_be_used() {
    mutate_results(&small_old_results(), 100);
}

#[test]
fn a_mutated_system_is_refused_or_can_stand_beside_a_run() {
    let results = fixture::run();
    let measured = |row: &&syncscope::results::Row| matches!(row.series[0].outcome, Outcome::Measured { .. });
    let rows = results.rows.iter().filter(measured).take(12).map(|row| {
        let Outcome::Measured { samples, .. } = &row.series[0].outcome else { unreachable!() };
        let measured = serde_json::json!({ "instrument": "host-clock", "samples": samples, "stopped_by": "samples" });
        let (id, parameters, unit) = (&row.spec.id, &row.spec.parameters, row.spec.unit);
        serde_json::json!({ "id": id, "parameters": parameters, "unit": unit, "outcome": { "measured": measured } })
    });
    let text = serde_json::json!({
        "schema_version": 1,
        "name": "PyTorch",
        "started": "2026-11-20T09:40:00Z",
        "versions": [["PyTorch", "2.11.0"]],
        "machine": { "model": "Test device", "fingerprint": null, "driver": null, "cpu": null },
        "rows": rows.collect::<Vec<_>>(),
    });
    let (text, documents) = (text.to_string(), documents());
    let used = std::cell::Cell::new(0);
    let property = |mutations: Vec<Mutation>| {
        match System::parse(&mutated(&text, &mutations), "p.json", catalog()) {
            Err(error) => drop(error.to_string()),
            Ok(system) => {
                let (mut results, name) = (results.clone(), system.name.clone());
                if results.attach(system).is_ok() {
                    used.set(used.get() + 1);
                    let _ = system_table(&results, &name).to_markdown();
                    for document in documents.iter().filter(|_| used.get() % 4 == 1) {
                        document.tables.iter().for_each(|table| {
                            let machines = Machines::of(std::slice::from_ref(&results));
                            drop(comparison_table(document, table, &machines).to_html());
                        });
                    }
                }
            }
        }
        Ok(())
    };
    hold(100, &vec(mutation(), 0..3), property);
    assert!(used.get() > 0, "no mutation left a file that can be read");
}

#[test]
fn a_mutated_document_is_refused_with_its_place_or_can_be_shown() {
    let project = BookProject::embedded();
    let names = project.names(catalog()).unwrap();
    let all = documents();
    let texts: Vec<&str> =
        all.iter().map(|document| project.text(&format!("documents/{}.yaml", document.id)).unwrap()).collect();
    let results = [fixture::run()];
    let used = std::cell::Cell::new(0);
    let property = |(which, mutations): (Index, Vec<Mutation>)| {
        match Document::parse("d.yaml", &mutated(texts[which.index(texts.len())], &mutations), &names) {
            Err(error) => prop_assert!(error.to_string().starts_with("d.yaml"), "{error}"),
            Ok(document) => {
                used.set(used.get() + 1);
                let machines = Machines::of(&results);
                let tables = document.tables.iter().filter(|_| used.get() % 4 == 1);
                tables.for_each(|table| drop(comparison_table(&document, table, &machines).to_html()));
            }
        }
        Ok(())
    };
    hold(150, &(any::<Index>(), vec(mutation(), 1..4)), property);
    assert!(used.get() > 0, "no mutation left a document that can be read");
}

#[test]
fn a_mutated_suite_is_refused_or_can_be_used() {
    let property = |(which, mutations): (usize, Vec<Mutation>)| {
        match Suite::parse(&mutated(SUITES[which], &mutations), "s.yaml", &Registry::builtin()) {
            Err(error) => drop(error.to_string()),
            Ok(suite) => {
                for engine in ["cpu", "cuda"] {
                    for experiment in suite.experiments_on(engine) {
                        let _ = Bench::plan(experiment.as_ref(), engine);
                    }
                }
                prop_assert!(suite.sampling.validate().is_ok());
            }
        }
        Ok(())
    };
    hold(300, &(0..SUITES.len(), vec(mutation(), 1..4)), property);
}

#[test]
fn nesting_and_aliases_without_end_are_refused_in_time() {
    for open in ["[", "{\"a\":", "{\"schema_version\":1,\"partial\":"] {
        assert!(Results::parse(&open.repeat(100_000), Path::new("r.json")).is_err());
    }
    for text in [
        "[".repeat(100_000),
        "- ".repeat(10_000),
        "title: ".to_owned() + &"{a: ".repeat(10_000),
        (0..60).fold("a0: &a0 [x, x]\n".to_owned(), |text, i| text + &format!("a{0}: &a{0} [*a{i}, *a{i}]\n", i + 1)),
    ] {
        assert!(Suite::parse(&text, "s.yaml", &Registry::builtin()).is_err());
    }
}

#[test]
fn a_mutated_timeline_is_refused_or_can_be_followed_drawn_and_written_as_a_trace() {
    let text = serde_json::to_string(&fixture::timeline()).unwrap();
    let property = |mutations: Vec<Mutation>| {
        let Ok(timeline) = serde_json::from_str::<Timeline>(&mutated(&text, &mutations)) else { return Ok(()) };
        let path = timeline.critical_path();
        prop_assert!(path.segments.windows(2).all(|pair| pair[0].end_ns <= pair[1].end_ns));
        let trace: Result<serde_json::Value, _> = serde_json::from_str(&timeline.to_trace());
        prop_assert!(trace.is_ok());
        let plot = TimelinePlot { title: "T".to_owned(), machine: "M".to_owned(), timeline: &timeline };
        prop_assert!(plot.to_svg("p").is_ok());
        Ok(())
    };
    hold(200, &vec(mutation(), 1..4), property);
}
