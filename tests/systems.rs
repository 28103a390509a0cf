//! What another program measured, and what was measured as a ceiling, beside a run.
#![cfg(feature = "report")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "fixtures/run.rs"]
mod fixture;

use std::path::Path;
use std::process::{Command, Output};

use syncscope::document::Document;
use syncscope::experiment::{Entry, Outcome, Parameter, Parameters, Row};
use syncscope::measure::{Clock, StoppedBy};
use syncscope::present::{Machines, mirrored};
use syncscope::run::{ExperimentRun, FINGERPRINT, Peer, PeerMachine, Run};
use syncscope::units::Unit;

/// The rows of the fixture's run with these identifiers, each taking twice as long.
fn twice_as_slow(ids: &[&str]) -> Vec<Row> {
    let run = fixture::run();
    let rows = run.rows().filter(|row| ids.contains(&row.id.as_str())).map(|row| {
        let samples = row.metric().unwrap().samples.iter().map(|sample| sample * 2.0).collect();
        let (instrument, stopped_by) = (Clock::Host, StoppedBy::Samples);
        Row { outcome: Outcome::Measured { instrument, samples, stopped_by }, ..row.clone() }
    });
    rows.collect()
}

fn peer(rows: Vec<Row>) -> Peer {
    let text = |text: &str| text.to_owned();
    Peer {
        schema_version: 1,
        name: text("PyTorch"),
        started: text("2026-11-20T09:40:00Z"),
        versions: vec![(text("PyTorch"), text("2.11.0")), (text("CUDA"), text("13.0"))],
        machine: PeerMachine {
            model: text("Test device"),
            fingerprint: None,
            driver: Some(text("580.00")),
            cpu: Some(text("Test processor")),
        },
        rows,
    }
}

fn finish() -> Peer {
    peer(twice_as_slow(&["overlap.finish.host-free", "overlap.finish.complete"]))
}

fn parsed(peer: &Peer) -> Result<Peer, String> {
    Peer::parse(&serde_json::to_string(peer).unwrap(), Path::new("p.json")).map_err(|error| error.to_string())
}

/// A table of the document `overlap`, as text.
fn table(id: &str, run: Run) -> String {
    let documents = Document::embedded().unwrap();
    let document = documents.iter().find(|document| document.id == "overlap").unwrap();
    mirrored(document, document.table(id).unwrap(), &Machines::of(&[run])).to_console()
}

#[test]
fn a_peer_of_the_same_work_has_a_column_and_a_ratio_with_its_interval() {
    let mut run = fixture::run();
    assert!(!table("finish", run.clone()).contains("PyTorch"));
    run.put_peer(parsed(&finish()).unwrap()).unwrap();
    let text = table("finish", run.clone());
    assert!(text.contains("PyTorch on this machine (Test device; PyTorch 2.11.0, CUDA 13.0)"), "{text}");
    assert!(text.contains("measured / PyTorch"), "{text}");
    let ratios = text.lines().filter(|line| line.contains(" 0.50"));
    assert_eq!(ratios.count(), 2, "{text}");
    assert!(text.contains("n = 8"), "{text}");
    assert!(!table("nonzero", run).contains("PyTorch"), "a table without a row of the peer has no column for it");
}

#[test]
fn other_parameters_are_named_and_have_no_ratio() {
    let mut other = finish();
    for row in &mut other.rows {
        row.parameters.insert("adds".to_owned(), Parameter::Integer(50));
    }
    let mut run = fixture::run();
    run.put_peer(other).unwrap();
    let text = table("finish", run);
    assert_eq!(text.matches("adds 50, in the run 100").count(), 2, "{text}");
    assert_eq!(text.matches("no ratio: measured with other parameters").count(), 2, "{text}");
}

#[test]
fn a_row_that_the_peer_did_not_measure_says_why() {
    let mut skipping = finish();
    skipping.rows[0].outcome = Outcome::Skipped { reason: "no such call".to_owned() };
    let mut run = fixture::run();
    run.put_peer(parsed(&skipping).unwrap()).unwrap();
    assert!(table("finish", run).contains("skipped: no such call"));
}

#[test]
fn a_peer_of_another_machine_is_refused_with_what_differs() {
    let mut run = fixture::run();
    run.environment.device.facts.push((FINGERPRINT.to_owned(), "26571bc2".to_owned()));
    let refused = |change: &dyn Fn(&mut PeerMachine)| {
        let mut peer = finish();
        change(&mut peer.machine);
        let mut run = run.clone();
        let refused = run.put_peer(peer).unwrap_err();
        assert!(run.peers.is_empty());
        refused.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    };
    let other = |text: &str| Some(text.to_owned());
    let model = refused(&|machine| machine.model = "Another device".to_owned());
    assert_eq!(model, "device model differs: Another device and Test device");
    let gpu = refused(&|machine| machine.fingerprint = other("00000001"));
    assert_eq!(gpu, "GPU (by its fingerprint) differs: 00000001 and 26571bc2");
    assert_eq!(refused(&|machine| machine.driver = other("570.00")), "driver differs: 570.00 and 580.00");
    assert!(refused(&|machine| machine.cpu = other("Another")).starts_with("host processor differs"));
}

#[test]
fn what_only_one_of_the_two_names_is_not_held_against_it() {
    let mut unknown = finish();
    unknown.machine =
        PeerMachine { fingerprint: Some("00000001".to_owned()), driver: None, cpu: None, ..unknown.machine };
    assert_eq!(unknown.mismatches(&fixture::run()), []);
}

#[test]
fn a_newer_peer_of_the_same_program_takes_the_place_of_the_older() {
    let mut run = fixture::run();
    run.put_peer(finish()).unwrap();
    let newer = Peer { started: "2026-11-21T00:00:00Z".to_owned(), ..finish() };
    run.put_peer(newer.clone()).unwrap();
    run.put_peer(Peer { name: "Another".to_owned(), ..finish() }).unwrap();
    assert_eq!(run.peers.len(), 2);
    assert_eq!(run.peers[0], newer);
}

#[test]
fn a_results_file_keeps_its_peers_and_one_without_has_no_word_of_them() {
    let mut run = fixture::run();
    assert!(!serde_json::to_string(&run).unwrap().contains("peers"));
    run.put_peer(finish()).unwrap();
    let text = serde_json::to_string(&run).unwrap();
    assert!(Run::parse(&text, Path::new("r.json")).unwrap() == run);
}

#[test]
fn a_file_that_means_nothing_here_says_what() {
    let row = |change: &dyn Fn(&mut Row)| {
        let mut peer = finish();
        change(&mut peer.rows[0]);
        parsed(&peer).unwrap_err()
    };
    let unknown = row(&|row| row.id = "overlap.finish.compleet".to_owned());
    assert!(
        unknown
            .ends_with("no experiment leaves a row `overlap.finish.compleet`; did you mean `overlap.finish.complete`?")
    );
    assert!(row(&|row| row.unit = Unit::Bytes).contains("is in Bytes, and here in Seconds"));
    assert!(row(&|row| row.id = "overlap.finish.complete".to_owned()).contains("stands there twice"));
    let hollow = row(&|row| {
        let (instrument, stopped_by) = (Clock::Host, StoppedBy::Samples);
        row.outcome = Outcome::Measured { instrument, samples: Vec::new(), stopped_by }
    });
    assert!(hollow.contains("holds no samples"));
    assert!(parsed(&peer(Vec::new())).unwrap_err().contains("holds no rows"));
    assert!(parsed(&Peer { schema_version: 2, ..finish() }).unwrap_err().contains("schema version 2"));
    assert!(parsed(&Peer { name: " ".to_owned(), ..finish() }).unwrap_err().contains("names no program"));
    let whole = serde_json::to_string(&finish()).unwrap();
    let cut = Peer::parse(&whole[..whole.len() / 2], Path::new("p.json")).unwrap_err().to_string();
    assert!(cut.starts_with("p.json:1:"), "{cut}");
}

fn report(arguments: &[&str], folder: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_report")).args(arguments).current_dir(folder).output().unwrap()
}

#[test]
fn the_command_line_shows_a_peer_puts_it_beside_a_run_and_refuses_with_2() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, peer: &Peer| {
        std::fs::write(folder.path().join(name), serde_json::to_string(peer).unwrap()).unwrap();
    };
    let results = folder.path().join("r.json");
    fixture::run().write(&results).unwrap();
    write("p.json", &finish());
    let mut other = finish();
    other.machine.model = "Another device".to_owned();
    write("other.json", &other);
    write("version.json", &Peer { schema_version: 9, ..finish() });

    let shown = report(&["peers", "p.json"], folder.path());
    let text = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.status.success() && text.contains("overlap.finish.complete (adds 100, elements 10000000)"), "{text}");
    let before = std::fs::read(&results).unwrap();
    for (file, part) in [
        ("other.json", "measured on another machine than r.json:\n  device model differs"),
        ("version.json", "schema version 9"),
        ("r.json", "not the measurements of another program"),
        ("none.json", "none.json"),
    ] {
        let refused = report(&["peers", file, "--into", "r.json"], folder.path());
        let text = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(2), "{text}");
        assert!(text.contains(part), "{part}: {text}");
        assert!(std::fs::read(&results).unwrap() == before);
    }
    let put = report(&["peers", "p.json", "--into", "r.json"], folder.path());
    assert!(put.status.success(), "{}", String::from_utf8_lossy(&put.stderr));
    assert_eq!(Run::read(&results).unwrap().peers, [finish()]);
    let rendered = report(&["render", "r.json", "--out", "out"], folder.path());
    assert!(rendered.status.success());
    let page = |name: &str| std::fs::read_to_string(folder.path().join("out/site").join(name)).unwrap();
    assert!(page("overlap.html").contains("PyTorch on this machine"));
    assert!(page("machine.html").contains("What PyTorch measured beside it"));
}

#[test]
fn the_script_for_pytorch_names_only_rows_that_there_are() {
    let entries: Vec<Entry> = Entry::NAMES.iter().filter_map(|name| Entry::default_for(name, "cuda")).collect();
    let plans: Vec<_> = entries.iter().flat_map(|entry| entry.experiment().rows()).collect();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("book/peers/pytorch_rows.py");
    let script = std::fs::read_to_string(script).unwrap();
    let begins =
        |text: &&str| Entry::NAMES.iter().any(|name| text.strip_prefix(name).is_some_and(|rest| rest.starts_with('.')));
    let named: Vec<&str> = script.split('"').filter(begins).collect();
    assert!(named.len() > 40, "{named:?}");
    for id in named {
        // A name with a placeholder is held against the beginnings of rows.
        let (start, open) = id.split_once('{').map_or((id, false), |(start, _)| (start, true));
        let found = plans.iter().any(|plan| if open { plan.id.starts_with(start) } else { plan.id == id });
        assert!(found, "{id}");
    }
}

/// A run with one ceiling of each kind: 1 TB/s, 1 TFLOP/s, 50 GB/s, 1 µs a launch.
fn with_ceilings() -> Run {
    let rate = |id: &str, unit, rate: f64, parameters: &[(&str, Parameter)]| {
        let parameters: Parameters =
            parameters.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let (instrument, stopped_by) = (Clock::Observed, StoppedBy::Samples);
        let outcome = Outcome::Measured { instrument, samples: vec![rate; 8], stopped_by };
        Row { id: id.to_owned(), parameters, unit, outcome }
    };
    let bytes = |bytes: u64| ("bytes", Parameter::Integer(bytes));
    let mut run = fixture::run();
    let rows = vec![
        rate("ceilings.copy.rate", Unit::BytesPerSecond, 1e12, &[bytes(40_000_000)]),
        rate("ceilings.copy.rate", Unit::BytesPerSecond, 9e12, &[bytes(1 << 30)]),
        rate("ceilings.matmul.rate", Unit::FlopsPerSecond, 1e12, &[("dtype", Parameter::Text("fp32".to_owned()))]),
        rate("ceilings.h2d.rate", Unit::BytesPerSecond, 50e9, &[bytes(1 << 28)]),
    ];
    let audit = &mut run.experiments[0].rows;
    audit.retain(|row| row.id != "self-audit.enqueue.raw");
    audit.push(rate("self-audit.enqueue.raw", Unit::Seconds, 1e-6, &[]));
    let last = run.experiments.last().unwrap().clone();
    run.experiments.push(ExperimentRun { name: "ceilings".to_owned(), rows, ..last });
    run
}

#[test]
fn a_row_whose_work_is_known_says_its_share_of_the_measured_ceiling() {
    let run = with_ceilings();
    let lookup = run.lookup();
    let share = |id: &str| {
        let metric = lookup.find(id, &Parameters::new(), &Parameters::new()).unwrap();
        let estimate = metric.estimate().unwrap();
        let found = syncscope::experiment::share_of_ceiling(&lookup, &metric, &estimate);
        found.map(|found| {
            assert!(found.interval.0 <= found.share && found.share <= found.interval.1);
            found.share * estimate.median
        })
    };
    // The share by the time is the time that the ceiling allows.
    let close =
        |found: Option<f64>, expected: f64| assert!((found.unwrap() / expected - 1.0).abs() < 1e-9, "{found:?}");
    close(share("overlap.finish.complete"), 8.04e9 / 1e12);
    close(share("overlap.finish.host-free"), 101e-6);
    close(share("async-frontend.complete"), 10.0 * 2e9 / 1e12);
    assert_eq!(share("sync-points.big.async"), None, "no product of fp16 was measured as a ceiling");
    assert_eq!(share("overlap.implicit.item.stall"), None);
    assert!(table("finish", run).contains("% of the measured copy rate"));
    assert!(!table("finish", fixture::run()).contains("of the measured"));
}
