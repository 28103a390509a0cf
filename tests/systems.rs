//! What another system measured of the same work, and what was measured as a peak rate, beside a run.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "fixtures/run.rs"]
mod fixture;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};
use syncscope_book::{Machines, comparison_table, system_table};
use syncscope_report::carried_book;
use syncscope_results::{
    Catalog, FINGERPRINT, MEASURING_CODE, Outcome, Parameters, Results, System, code_of_system, share_of_peak,
};
use syncscope_suite::experiment::Registry;

fn catalog() -> Catalog {
    Registry::builtin().catalog("cuda")
}

/// The file of a system that ran the rows `ids` of the fixture's run, and took twice as long for each.
fn twice_as_slow(ids: &[&str]) -> Value {
    let run = fixture::run();
    let rows = run.rows.iter().filter(|row| ids.contains(&row.spec.id.as_str())).map(|row| {
        let samples = row.series[0].outcome.values().unwrap();
        let samples: Vec<f64> = samples.iter().map(|sample| sample * 2.0).collect();
        let measured = json!({ "samples": samples, "stopped_by": "samples" });
        json!({ "id": row.spec.id, "parameters": row.spec.parameters, "unit": row.spec.unit, "outcome": { "measured": measured } })
    });
    json!({
        "schema_version": 2,
        "name": "PyTorch",
        "started": "2026-11-20T09:40:00Z",
        "versions": [["PyTorch", "2.11.0"], ["CUDA", "13.0"]],
        "machine": { "model": "Test device", "fingerprint": null, "driver": "580.00", "cpu": "Test processor" },
        "rows": rows.collect::<Vec<_>>(),
    })
}

const FINISH: [&str; 2] = ["overlap.finish.host-free", "overlap.finish.complete"];

fn finish() -> Value {
    twice_as_slow(&FINISH)
}

fn parsed(system: &Value) -> Result<System, String> {
    System::parse(&system.to_string(), "p.json", &catalog()).map_err(|error| error.to_string())
}

/// Three runs of each of the two, by turns.
fn by_turns(system: &Value) -> Results {
    let mut results = fixture::run();
    results.add_run(parsed(system).unwrap());
    for factor in [1.001, 0.999] {
        results = fixture::with_run(results, factor);
        results.add_run(parsed(system).unwrap());
    }
    results
}

fn with(system: &Value) -> Results {
    let mut results = fixture::run();
    results.attach(parsed(system).unwrap()).unwrap();
    results
}

/// The table of a document that holds a row, as text.
fn table(row: &str, results: Results) -> String {
    let documents = carried_book().documents(&catalog()).unwrap();
    let tables = documents.iter().flat_map(|document| document.tables.iter().map(move |table| (document, table)));
    let (document, table) = tables.into_iter().find(|(_, table)| table.row(row).is_some()).unwrap();
    comparison_table(document, table, &Machines::of(&[results])).to_console()
}

#[test]
fn a_system_of_the_same_work_has_a_column_and_a_ratio_with_its_interval() {
    assert!(!table(FINISH[0], fixture::run()).contains("PyTorch"));
    let text = table(FINISH[0], by_turns(&finish()));
    assert!(text.contains("PyTorch here (Test device)"), "{text}");
    assert!(text.contains("syncscope here (Test device)") && text.contains("syncscope / PyTorch"), "{text}");
    assert_eq!(text.lines().filter(|line| line.contains(" 0.50")).count(), FINISH.len(), "{text}");
    assert!(table(FINISH[0], with(&finish())).contains("one run of each has no interval"));
    let without_neighbour = fixture::with_run(by_turns(&finish()), 1.0);
    let text = table(FINISH[0], without_neighbour.clone());
    assert_eq!(text.lines().filter(|line| line.contains(" 0.50")).count(), FINISH.len(), "{text}");
    let apart = fixture::with_run(without_neighbour, 1.0);
    assert!(table(FINISH[0], apart).contains("no ratio: the runs did not alternate"));
    let other = table("overlap.nonzero.stall", with(&finish()));
    assert!(!other.contains("PyTorch"), "a table without a row of the system has no column for it");
}

/// A common factor of each pair of runs, of which one side failed in two.
#[test]
fn the_ratio_of_two_systems_is_of_the_pairs_of_runs_that_have_both_sides() {
    let mut results = fixture::run();
    for (factor, run) in [(1.0, 1), (2.0, 2), (4.0, 3), (8.0, 4), (16.0, 5)] {
        if run > 1 {
            results = fixture::with_run(results, factor);
        }
        results.add_run(parsed(&finish()).unwrap());
        let scatter = factor * (1.0 + 1e-4 * f64::from(run));
        for row in results.rows.iter_mut().filter(|row| FINISH.contains(&row.spec.id.as_str())) {
            let Some(series) = row.series.iter_mut().find(|series| series.run == format!("PyTorch-{run}")) else {
                continue;
            };
            series.outcome.values_mut().into_iter().for_each(|sample| *sample *= scatter);
        }
    }
    let row = results.rows.iter_mut().find(|row| row.spec.id == FINISH[1]).unwrap();
    for series in row.series.iter_mut().filter(|series| ["syncscope-2", "PyTorch-4"].contains(&series.run.as_str())) {
        series.outcome = Outcome::Failed { reason: "planted".to_owned() };
    }
    let text = table(FINISH[1], results);
    let line = text.lines().find(|line| line.contains("3 of 5 pairs of runs")).unwrap_or_else(|| panic!("{text}"));
    assert!(line.contains(" 0.500 ") || line.contains(" 0.49"), "{line}");
    assert!(line.contains("4 of 5 runs"), "{line}");
}

#[test]
fn other_parameters_are_named_and_have_no_ratio() {
    let mut other = finish();
    for row in other["rows"].as_array_mut().unwrap() {
        row["parameters"]["adds"] = json!(50);
    }
    let text = table(FINISH[0], with(&other));
    assert_eq!(text.matches("adds 50, in the run 100").count(), 2, "{text}");
    assert_eq!(text.matches("no ratio: measured with other parameters").count(), 2, "{text}");
}

#[test]
fn a_row_that_the_system_did_not_measure_says_why() {
    let mut skipping = finish();
    skipping["rows"][0]["outcome"] = json!({ "skipped": { "reason": "no such call" } });
    assert!(table(FINISH[0], with(&skipping)).contains("skipped: no such call"));
}

#[test]
fn what_follows_from_the_rows_of_a_system_is_computed_when_its_file_is_read() {
    const OF: [&str; 2] = ["sync-points.small.forced", "sync-points.small.async"];
    let computed = |system: &Value| {
        let rows = parsed(system).unwrap().rows.into_iter();
        rows.filter(|row| row.id == "sync-points.small.delta").map(|row| row.outcome).collect::<Vec<Outcome>>()
    };
    let mut system = twice_as_slow(&OF);
    let rows = parsed(&system).unwrap().rows;
    let samples =
        |id: &str| rows.iter().find(|row| row.id == id).and_then(|row| row.outcome.values()).unwrap().to_vec();
    let differences: Vec<f64> = samples(OF[0]).iter().zip(samples(OF[1])).map(|(one, other)| one - other).collect();
    assert_eq!(computed(&system)[0], Outcome::Derived { samples: differences });
    // What one of its rows lacks, it lacks, too; without one of them it is not there.
    let reason = "PyTorch finds one GPU".to_owned();
    for row in system["rows"].as_array_mut().unwrap().iter_mut().filter(|row| row["id"] == OF[1]) {
        row["outcome"] = json!({ "skipped": { "reason": reason } });
    }
    let absent = Outcome::Skipped { reason };
    assert!(computed(&system).iter().all(|outcome| *outcome == absent) && !computed(&system).is_empty());
    assert_eq!(computed(&twice_as_slow(&OF[..1])), []);
}

#[test]
fn a_system_of_another_machine_is_refused_with_what_differs() {
    let mut run = fixture::run();
    run.runs[0].environment.device.facts.push((FINGERPRINT.to_owned(), "26571bc2".to_owned()));
    let refused = |key: &str, value: &str| {
        let mut system = finish();
        system["machine"][key] = json!(value);
        let mut run = run.clone();
        let refused = run.attach(parsed(&system).unwrap()).unwrap_err();
        assert_eq!(run.systems(), ["syncscope"]);
        refused.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    };
    assert_eq!(refused("model", "Another device"), "device model differs: Another device and Test device");
    let gpu = refused("fingerprint", "00000001");
    assert_eq!(gpu, "GPU (by its fingerprint) differs: 00000001 and 26571bc2");
    assert_eq!(refused("driver", "570.00"), "driver differs: 570.00 and 580.00");
    assert!(refused("cpu", "Another").starts_with("host processor differs"));
}

#[test]
fn what_only_one_of_the_two_names_is_not_held_against_it() {
    let mut unknown = finish();
    unknown["machine"] = json!({ "model": "Test device", "fingerprint": "00000001", "driver": null, "cpu": null });
    assert_eq!(parsed(&unknown).unwrap().mismatches(&fixture::run()), []);
}

#[test]
fn a_newer_file_of_the_same_program_takes_the_place_of_the_older() {
    let mut results = with(&finish());
    let mut newer = twice_as_slow(&FINISH[..1]);
    newer["started"] = json!("2026-11-21T00:00:00Z");
    results.attach(parsed(&newer).unwrap()).unwrap();
    let mut another = finish();
    another["name"] = json!("Another");
    results.attach(parsed(&another).unwrap()).unwrap();
    assert_eq!(results.systems(), ["syncscope", "PyTorch", "Another"]);
    let run = results.runs_of("PyTorch").next().unwrap();
    assert_eq!(run.started, "2026-11-21T00:00:00Z");
    assert!(results.lookup_of("PyTorch").specs().all(|spec| spec.id == FINISH[0]), "the older one's rows are gone");
}

#[test]
fn a_results_file_keeps_its_systems_and_what_the_first_measured() {
    let results = with(&finish());
    let text = serde_json::to_string(&results).unwrap();
    let read = Results::parse(&text, Path::new("r.json")).unwrap();
    assert!(read == results);
    let own = |results: &Results| {
        let outcomes = results.rows.iter().filter_map(|row| row.outcome(fixture::RUN));
        outcomes.cloned().collect::<Vec<Outcome>>()
    };
    assert_eq!(own(&read), own(&fixture::run()));
}

#[test]
fn all_that_a_system_measured_stands_in_its_table() {
    let text = system_table(&with(&finish()), "PyTorch").to_console();
    for part in ["PyTorch on Test device (PyTorch 2.11.0, CUDA 13.0)", "overlap.finish.complete (adds 100, elements"] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn a_file_that_means_nothing_here_says_what() {
    let refused = |change: &dyn Fn(&mut Value)| {
        let mut system = finish();
        change(&mut system);
        parsed(&system).unwrap_err()
    };
    let unknown = refused(&|system| system["rows"][0]["id"] = json!("overlap.finish.compleet"));
    assert!(unknown.ends_with("there is no row `overlap.finish.compleet`; did you mean `overlap.finish.complete`?"));
    let unit = refused(&|system| system["rows"][0]["unit"] = json!("bytes"));
    assert!(unit.contains("is in Bytes, and here in Seconds"), "{unit}");
    let twice = refused(&|system| system["rows"][1] = system["rows"][0].clone());
    assert!(twice.contains("stands there twice"), "{twice}");
    let hollow = refused(&|system| system["rows"][0]["outcome"]["measured"]["samples"] = json!([]));
    assert!(hollow.contains("holds no samples"), "{hollow}");
    assert!(refused(&|system| system["rows"] = json!([])).contains("holds no rows"));
    assert!(refused(&|system| system["schema_version"] = json!(9)).contains("schema version 9"));
    assert!(refused(&|system| system["name"] = json!(" ")).contains("names no program"));
    let whole = finish().to_string();
    let cut = System::parse(&whole[..whole.len() / 2], "p.json", &catalog()).unwrap_err().to_string();
    assert!(cut.starts_with("p.json:1:"), "{cut}");
}

fn report(arguments: &[&str], folder: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_report")).args(arguments).current_dir(folder).output().unwrap()
}

#[test]
fn the_command_line_shows_a_system_attaches_it_to_a_run_and_refuses_with_2() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, system: &Value| std::fs::write(folder.path().join(name), system.to_string()).unwrap();
    let path = folder.path().join("r.json");
    fixture::run().write(&path).unwrap();
    write("p.json", &finish());
    let mut other = finish();
    other["machine"]["model"] = json!("Another device");
    write("other.json", &other);
    other["schema_version"] = json!(9);
    write("version.json", &other);

    let shown = report(&["attach", "p.json"], folder.path());
    let text = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.status.success() && text.contains("overlap.finish.complete (adds 100, elements 10000000)"), "{text}");
    let before = std::fs::read(&path).unwrap();
    for (file, part) in [
        ("other.json", "measured on another machine than r.json:\n  device model differs"),
        ("version.json", "schema version 9"),
        ("r.json", "r.json"),
        ("none.json", "none.json"),
    ] {
        let refused = report(&["attach", file, "--into", "r.json"], folder.path());
        let text = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(2), "{text}");
        assert!(text.contains(part), "{part}: {text}");
        assert!(std::fs::read(&path).unwrap() == before);
    }
    let attached = report(&["attach", "p.json", "--into", "r.json"], folder.path());
    assert!(attached.status.success(), "{}", String::from_utf8_lossy(&attached.stderr));
    assert!(Results::read(&path).unwrap() == with(&finish()));
    let rendered = report(&["render", "r.json", "--out", "out"], folder.path());
    assert!(rendered.status.success(), "{}", String::from_utf8_lossy(&rendered.stderr));
    let page = |name: &str| std::fs::read_to_string(folder.path().join("out/site").join(name)).unwrap();
    assert!(page("overlap.html").contains("PyTorch here"));
    assert!(page("machine.html").contains("PyTorch 2.11.0"));
}

#[test]
fn the_script_for_pytorch_names_only_rows_that_there_are() {
    let catalog = catalog();
    let script = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("book/peers/pytorch.py");
    let listed = std::process::Command::new("python3").arg(script).arg("--list").output().unwrap();
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    let named = String::from_utf8(listed.stdout).unwrap();
    assert!(named.lines().count() > 100, "{named}");
    let unknown: Vec<&str> = named.lines().filter(|id| catalog.get(id).is_none()).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

#[test]
fn a_row_whose_work_is_known_says_its_share_of_the_measured_peak() {
    const TENSOR: f64 = 4.0 * 10e6;
    let mut results = fixture::run();
    // Faster than every other row of the run.
    let rates = |size: f64| size * 1e12;
    let mut copies: Vec<f64> = Vec::new();
    let mut seen = BTreeSet::new();
    for row in results.rows.iter_mut() {
        let size = |name: &str| row.spec.parameters.get(name).and_then(|value| value.number());
        let value = match row.spec.id.as_str() {
            "ceilings.copy.rate" => {
                let bytes = size("bytes").unwrap();
                copies.push(bytes);
                rates(bytes)
            }
            // Of several sizes the fastest counts.
            "ceilings.matmul.rate" => {
                if row.spec.parameters["dtype"] == "fp32".into() && seen.insert("fp32") {
                    2e24
                } else {
                    1e24
                }
            }
            "self-audit.enqueue.raw" => 1e-18,
            _ => continue,
        };
        row.series[0].outcome = fixture::sampled(&row.spec.provenance, vec![value; 8]);
    }
    let copy = rates(copies.into_iter().max_by(f64::total_cmp).unwrap());

    let lookup = results.lookup();
    let time_at_the_peak = |id: &str| {
        let metric = lookup.find(id, &Parameters::new(), &Parameters::new()).unwrap();
        let estimate = metric.estimate().unwrap();
        share_of_peak(&lookup, &metric, &estimate).map(|found| {
            let (low, high) = found.interval.unwrap();
            assert!(low <= found.share && found.share <= high);
            // The share by the time is the time that the peak rate allows.
            found.share * estimate.median
        })
    };
    for (id, expected) in [
        ("overlap.finish.complete", (1.0 + 2.0 * 100.0) * TENSOR / copy),
        ("overlap.finish.host-free", 101.0 * 1e-18),
        ("async-frontend.complete", 10.0 * 2.0 * 1000.0_f64.powi(3) / 2e24),
    ] {
        let found = time_at_the_peak(id).unwrap_or_else(|| panic!("{id} has no share"));
        assert!((found / expected - 1.0).abs() < 1e-9, "{id}: {found} for {expected}");
    }
    assert_eq!(time_at_the_peak("overlap.implicit.item.stall"), None);
}

#[test]
fn the_script_and_the_build_compute_the_same_digest_of_the_measuring_code() {
    let program = "import sys; sys.dont_write_bytecode = True; sys.path.insert(0, 'book/peers'); \
                   from pytorch_system.code import digest; print(digest())";
    let output = Command::new("python3")
        .args(["-c", program])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .output()
        .unwrap();
    let digest = String::from_utf8(output.stdout).unwrap();
    Registry::builtin();
    assert_eq!(Some(digest.trim()), code_of_system("PyTorch"), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_run_of_another_system_names_the_code_that_measured_it() {
    let mut system = finish();
    system["code"] = json!("0123456789abcdef");
    let mut results = fixture::run();
    results.attach(parsed(&system).unwrap()).unwrap();
    let facts: Vec<_> = results.runs[1].environment.facts().filter(|(name, _)| name == MEASURING_CODE).collect();
    assert!(facts.len() == 1 && facts[0].1 == "0123456789abcdef", "{facts:?}");
}
