//! Files from anywhere: whatever bytes a results file or a suite holds, reading them ends with a value or an error, and
//! what was read can be looked up, estimated, diagnosed, compared and shown without a panic.
//!
//! `SYNCSCOPE_CASES=200000 cargo test --release --test untrusted` runs longer than the default of a few seconds.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{Config, TestRunner};
use syncscope::document::{Comparison, Document};
use syncscope::experiment::{Entry, Parameters, share_of_ceiling};
use syncscope::present::{Machines, Wording, compared, mirrored, peer_table, summary, tally};
use syncscope::run::{Peer, Run, Suite, Tolerance, compare, mismatches, remarks};

const RESULTS: &str = include_str!("fixtures/results-v1.json");
const SUITES: [&str; 2] = [include_str!("../book/suites/quick.yaml"), include_str!("../book/suites/full.yaml")];

/// The number of cases of a property: `usual`, or what the environment says.
fn runner(usual: u32) -> TestRunner {
    let cases = std::env::var("SYNCSCOPE_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(usual);
    TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() })
}

/// A small results file with every outcome: mutations of it hit structure rather than one of thousands of samples.
fn small_results() -> String {
    let mut run: serde_json::Value = serde_json::from_str(RESULTS).unwrap();
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

/// Does to a run all that can be done without a device. Whatever it says, it says it without a panic.
fn use_run(run: &Run, documents: &[Document]) {
    let lookup = run.lookup();
    for row in run.rows() {
        if let Ok(metric) = row.metric() {
            if let Ok(estimate) = metric.estimate() {
                assert!(estimate.median.is_finite() && estimate.low <= estimate.high, "{estimate:?}");
                let _ = (estimate.to_string(), estimate.relative_error());
                let share = share_of_ceiling(&lookup, &metric, &estimate);
                assert!(share.is_none_or(|found| found.share.is_finite()), "{share:?}");
            }
            let _ = (metric.diagnose(), metric.is_difference(), metric.is_share());
        }
    }
    for document in documents {
        for table in &document.tables {
            let cases = table.cases_in(std::slice::from_ref(run));
            for comparison in Comparison::all(table, &cases) {
                let _ = comparison.measured(run);
            }
        }
        for claim in &document.claims {
            let _ = claim.judge(document, run);
        }
        for sentence in &document.answer {
            let _ = sentence.said(document, run);
        }
    }
    for entry in Entry::all("cuda") {
        let undocumented = Document::of_experiment(&entry, 0, std::slice::from_ref(run));
        for figure in &undocumented.figures {
            for panel in figure.panels.iter().filter(|panel| panel.timeline.is_none()) {
                let table = undocumented.table(&panel.table).unwrap();
                syncscope::present::panel(table, panel, "M", run, "p").unwrap();
            }
        }
        for plan in entry.experiment().rows() {
            let _ = lookup.find(plan.id, &Parameters::new(), &Parameters::new());
        }
        let rows = run.experiments.iter().filter(|experiment| experiment.name == entry.name());
        rows.for_each(|experiment| drop(summary(&entry, &experiment.rows)));
    }
    run.diagnoses().iter().for_each(|(_, _, diagnosis)| drop(diagnosis.to_string()));
    let _ = run.experiments.iter().map(|experiment| experiment.throttle_reasons().len()).sum::<usize>();
    let _ = (run.suite.sampling.validate(), run.selection.unknown(), run.has_failures());
}

fn use_both(a: &Run, b: &Run) {
    let result = compare(a, b, Tolerance::default());
    let ratios = result.pairs.iter().filter_map(|pair| pair.ratio);
    assert!(ratios.into_iter().all(|ratio| ratio.low <= ratio.high && ratio.high.is_finite()), "{result:?}");
    for wording in [Wording::Compare, Wording::Verify] {
        let _ = tally(&result, wording);
        for table in compared(&result, wording) {
            let _ = (table.to_console(), table.to_markdown(), table.to_html());
        }
    }
    let _ = (mismatches(a, b), remarks(a, b), serde_json::to_string(&result).unwrap());
}

#[test]
fn arbitrary_text_is_neither_results_nor_suite_and_ends_in_an_error() {
    let text =
        prop_oneof![vec(any::<u8>(), 0..300), "[\\[\\]{}:,\"&*!a-z0-9 \n.-]{0,200}".prop_map(String::into_bytes)];
    let property = |bytes: Vec<u8>| {
        let text = String::from_utf8_lossy(&bytes);
        prop_assert!(Run::parse(&text, Path::new("r.json")).is_err());
        let _ = Suite::parse(&text, "s.yaml").map_err(|error| error.to_string());
        Ok(())
    };
    runner(500).run(&text, property).unwrap();
}

#[test]
fn a_mutated_results_file_is_refused_or_can_be_used() {
    let text = small_results();
    let documents = Document::embedded().unwrap();
    let good = Run::parse(&text, Path::new("r.json")).unwrap();
    use_run(&good, &documents);
    use_both(&good, &good);
    let used = std::cell::Cell::new(0);
    let property = |mutations: Vec<Mutation>| {
        match Run::parse(&mutated(&text, &mutations), Path::new("r.json")) {
            Err(error) => drop(error.to_string()),
            Ok(run) => {
                used.set(used.get() + 1);
                use_run(&run, &documents);
                // Dear: a sample of them is enough.
                if used.get() % 8 == 0 {
                    use_both(&good, &run);
                    use_both(&run, &good);
                }
            }
        }
        Ok(())
    };
    runner(150).run(&vec(mutation(), 1..4), property).unwrap();
    assert!(used.get() > 0, "no mutation left a file that can be read");
}

#[test]
fn a_mutated_peer_is_refused_or_can_stand_beside_a_run() {
    let run = Run::parse(&small_results(), Path::new("r.json")).unwrap();
    let rows: Vec<_> = run.rows().filter(|row| row.metric().is_ok() && !row.id.starts_with("self-audit")).collect();
    let text = serde_json::json!({
        "schema_version": 1,
        "name": "PyTorch",
        "started": "2026-11-20T09:40:00Z",
        "versions": [["PyTorch", "2.11.0"]],
        "machine": { "model": "Test device", "fingerprint": null, "driver": null, "cpu": null },
        "rows": rows.iter().take(12).collect::<Vec<_>>(),
    });
    let text = text.to_string();
    let documents = Document::embedded().unwrap();
    let used = std::cell::Cell::new(0);
    let property = |mutations: Vec<Mutation>| {
        match Peer::parse(&mutated(&text, &mutations), Path::new("p.json")) {
            Err(error) => drop(error.to_string()),
            Ok(peer) => {
                let _ = peer_table(&peer).to_markdown();
                let mut run = run.clone();
                if run.put_peer(peer).is_ok() {
                    used.set(used.get() + 1);
                    for document in documents.iter().filter(|_| used.get() % 4 == 1) {
                        document.tables.iter().for_each(|table| {
                            drop(mirrored(document, table, &Machines::of(std::slice::from_ref(&run))).to_html());
                        });
                    }
                }
            }
        }
        Ok(())
    };
    runner(100).run(&vec(mutation(), 0..3), property).unwrap();
    assert!(used.get() > 0, "no mutation left a file that can be read");
}

#[test]
fn a_mutated_suite_is_refused_or_can_be_used() {
    let property = |(which, mutations): (usize, Vec<Mutation>)| {
        match Suite::parse(&mutated(SUITES[which], &mutations), "s.yaml") {
            Err(error) => drop(error.to_string()),
            Ok(suite) => {
                for entry in suite.experiments_on("cpu").iter().chain(suite.experiments_on("cuda")) {
                    prop_assert!(!entry.experiment().rows().is_empty() && !entry.name().is_empty());
                }
                prop_assert!(suite.sampling.validate().is_ok());
            }
        }
        Ok(())
    };
    runner(300).run(&(0..SUITES.len(), vec(mutation(), 1..4)), property).unwrap();
}

#[test]
fn nesting_and_aliases_without_end_are_refused_in_time() {
    for open in ["[", "{\"a\":", "{\"schema_version\":1,\"partial\":"] {
        assert!(Run::parse(&open.repeat(100_000), Path::new("r.json")).is_err());
    }
    for text in [
        "[".repeat(100_000),
        "- ".repeat(10_000),
        "title: ".to_owned() + &"{a: ".repeat(10_000),
        (0..60).fold("a0: &a0 [x, x]\n".to_owned(), |text, i| text + &format!("a{0}: &a{0} [*a{i}, *a{i}]\n", i + 1)),
    ] {
        assert!(Suite::parse(&text, "s.yaml").is_err());
    }
}
