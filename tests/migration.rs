//! A results file of schema 1 that was read, written and read again holds all that it held. What it held is taken from
//! its JSON, not by the program's reader.

#![cfg(feature = "report")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;
use syncscope_results::{Outcome, Parameters, Provenance, Results, Row};

/// The files of schema 1 in the repository: the fixture, and what is kept of old runs.
fn files() -> Vec<(PathBuf, Value)> {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let kept = std::fs::read_dir(root.join("book/results")).unwrap().map(|entry| entry.unwrap().path());
    let read = |path: PathBuf| {
        let value: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        (path, value)
    };
    let mut files: Vec<_> = kept.chain([root.join("tests/fixtures/results-v1.json")]).map(read).collect();
    files.retain(|(_, value)| value["schema_version"] == 1);
    assert!(!files.is_empty());
    files
}

/// What is read of a file, written, and read again.
fn read_again(path: &Path) -> Results {
    let folder = tempfile::tempdir().unwrap();
    let written = folder.path().join("r.json");
    let first = Results::read(path).unwrap();
    first.write(&written).unwrap();
    let text = std::fs::read_to_string(&written).unwrap();
    let second = Results::read(&written).unwrap();
    assert!(first == second, "{}", path.display());
    assert!(serde_json::from_str::<Value>(&text).unwrap()["schema_version"] == 2);
    second
}

/// The parameters of a row of schema 1, with their names of today.
fn parameters(row: &Value) -> Parameters {
    let parameters: BTreeMap<String, Value> =
        row["parameters"].as_object().cloned().unwrap_or_default().into_iter().collect();
    let today = |(name, value): (String, Value)| {
        (if name == "turns" { "iterations".to_owned() } else { name }, serde_json::from_value(value).unwrap())
    };
    parameters.into_iter().map(today).collect()
}

fn samples(value: &Value) -> Vec<u64> {
    value.as_array().unwrap().iter().map(|sample| sample.as_f64().unwrap().to_bits()).collect()
}

fn bits(samples: &[f64]) -> Vec<u64> {
    samples.iter().map(|sample| sample.to_bits()).collect()
}

/// What a run left of the rows of the same name and parameters as `old`, in their order.
fn found<'a>(results: &'a Results, run: &'a str, old: &Value) -> Vec<(&'a Row, &'a Outcome)> {
    let (id, parameters) = (old["id"].as_str().unwrap(), parameters(old));
    let same = results.rows.iter().filter(|row| row.spec.is(id, &parameters));
    same.filter_map(|row| Some((row, row.outcome(run)?))).collect()
}

/// Compares an outcome of schema 1 with what became of it.
fn check(title: &str, old: &Value, row: &Row, outcome: &Outcome) {
    if old == "interrupted" {
        assert_eq!(*outcome, Outcome::Interrupted, "{title}");
        return;
    }
    let (kind, body) = old.as_object().unwrap().iter().next().unwrap();
    match (kind.as_str(), outcome) {
        ("measured", Outcome::Measured { samples: new, stopped_by, .. }) => {
            assert_eq!(bits(new), samples(&body["samples"]), "{title}");
            assert_eq!(serde_json::to_value(stopped_by).unwrap(), body["stopped_by"], "{title}");
            let Provenance::Measured { clock, .. } = &row.spec.provenance else { panic!("{title} is not measured") };
            let instrument = match serde_json::to_value(clock).unwrap().as_str().unwrap() {
                "host" => "host-clock",
                "observed" => "observation",
                clock => clock,
            }
            .to_owned();
            assert_eq!(body["instrument"], instrument, "{title}");
        }
        ("derived", Outcome::Derived { samples: new }) => {
            assert_eq!(bits(new), samples(&body["samples"]), "{title}");
            let Provenance::Derived { derivation, formula, .. } = &row.spec.provenance else { panic!("{title}") };
            assert_eq!(serde_json::to_value(derivation).unwrap(), body["derivation"], "{title}");
            assert_eq!(body["formula"], *formula, "{title}");
        }
        ("not-applicable", Outcome::NotApplicable { reason })
        | ("skipped", Outcome::Skipped { reason })
        | ("failed", Outcome::Failed { reason }) => assert_eq!(body["reason"], *reason, "{title}"),
        (kind, outcome) => panic!("{title} was {kind} and is {outcome:?}"),
    }
}

/// The rows of schema 1 that have this name and these parameters, each with its place among them.
fn each_row<'a>(rows: impl Iterator<Item = &'a Value>, mut compare: impl FnMut(&str, &Value, usize)) {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for old in rows {
        let title = format!("{} {}", old["id"], old["parameters"]);
        let place = seen.entry(title.clone()).or_default();
        compare(&title, old, *place);
        *place += 1;
    }
}

fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value[key].as_array().into_iter().flatten()
}

#[test]
fn every_row_of_a_kept_file_keeps_its_samples_unit_parameters_and_outcome() {
    for (path, old) in files() {
        let results = read_again(&path);
        let mut count = 0;
        each_row(list(&old, "experiments").flat_map(|experiment| list(experiment, "rows")), |title, old, place| {
            let (row, outcome) = found(&results, "syncscope-1", old)[place];
            assert_eq!(serde_json::to_value(row.spec.unit).unwrap(), old["unit"], "{title}");
            check(title, &old["outcome"], row, outcome);
            count += 1;
        });
        assert!(count > 0 && results.outcomes().count() == count, "{}: {count} rows", path.display());
    }
}

#[test]
fn every_row_of_another_system_in_a_kept_file_keeps_its_samples() {
    for (path, old) in files() {
        let results = read_again(&path);
        for peer in list(&old, "peers") {
            let name = peer["name"].as_str().unwrap();
            let run = results.runs_of(name).next().unwrap_or_else(|| panic!("{name} is gone from {}", path.display()));
            assert_eq!(run.started, peer["started"].as_str().unwrap());
            assert_eq!(run.environment.device.model, peer["machine"]["model"].as_str().unwrap());
            each_row(list(peer, "rows"), |title, old, place| {
                let (row, outcome) = found(&results, &run.id, old)[place];
                check(title, &old["outcome"], row, outcome);
            });
        }
        assert_eq!(results.systems().len(), 1 + list(&old, "peers").count());
    }
}

#[test]
fn the_experiments_timelines_and_environment_of_a_kept_file_are_kept() {
    for (path, old) in files() {
        let results = read_again(&path);
        let run = results.run();
        let names: Vec<&str> = list(&old, "experiments").map(|one| one["name"].as_str().unwrap()).collect();
        assert!(run.order.iter().map(|ran| ran.name.as_str()).eq(names), "{}", path.display());
        for (ran, old) in run.order.iter().zip(list(&old, "experiments")) {
            assert_eq!(
                (Some(ran.duration), ran.failure.as_deref()),
                (old["duration"].as_f64(), old["failure"].as_str())
            );
            let sensors = ["before", "after"].iter().map(|when| &old[*when]).filter(|said| !said.is_null());
            let kept =
                run.telemetry_of(&ran.name).into_iter().map(|sample| serde_json::to_value(&sample.sensors).unwrap());
            assert!(kept.eq(sensors.cloned()), "{}", ran.name);
        }
        let timelines: Vec<&Value> = list(&old, "experiments").flat_map(|one| list(one, "timelines")).collect();
        assert_eq!(results.timelines.len(), timelines.len());
        for (new, old) in results.timelines.iter().zip(timelines) {
            assert_eq!(new.name, old["name"].as_str().unwrap());
            // What a call waits for has another key today.
            let old = old["recorded"].to_string().replace("\"barrier\":", "\"sync\":");
            let recorded: Value = serde_json::from_str(&old).unwrap();
            assert!(serde_json::to_value(&new.recorded).unwrap() == recorded, "{} differs", new.name);
        }
        let (new, old) = (serde_json::to_value(&run.environment).unwrap(), &old["environment"]);
        for part in ["host", "device", "program"] {
            for (name, value) in old[part].as_object().unwrap() {
                assert_eq!(new[part][name], *value, "{part}.{name}");
            }
        }
        assert_eq!(run.started, old["started"].as_str().unwrap());
    }
}

/// The titles and figures that a suite states, but for its keys, which have their names of today.
#[test]
fn the_suite_of_a_kept_file_is_kept() {
    for (path, old) in files() {
        let results = read_again(&path);
        let (new, old) = (&results.suite, &old["suite"]);
        assert_eq!((&new["title"], &new["sampling"]), (&old["title"], &old["sampling"]), "{}", path.display());
        let text = old["experiments"].to_string().replace("\"turns\"", "\"iterations\"");
        assert_eq!(new["experiments"], serde_json::from_str::<Value>(&text).unwrap());
    }
}
