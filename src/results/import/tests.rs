use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::measure::Clock;
use crate::{Outcome, Parameter, Provenance, Results, Shift, Tolerance, compare};

fn value(name: &str, kind: &str, value: &str) -> Value {
    json!({ "name": name, "type": kind, "value": value })
}

fn summary(tag: &str, data: &[Value]) -> Value {
    json!({ "tag": tag, "name": "", "data": data })
}

fn seconds(tag: &str, seconds: f64) -> Value {
    summary(tag, &[value("value", "float64", &seconds.to_string())])
}

/// A file of nvbench with the samples of one state beside it, one state of which it kept the mean alone, and one that was
/// skipped.
fn nvbench(folder: &Path, name: &str, device: &str, samples: &[f32]) -> PathBuf {
    let beside = folder.join(format!("{name}-bin"));
    fs::create_dir_all(&beside).unwrap();
    fs::write(beside.join("0.bin"), samples.iter().flat_map(|sample| sample.to_le_bytes()).collect::<Vec<_>>())
        .unwrap();
    // Older versions wrote the path from where they were started.
    let file = format!("elsewhere/{name}-bin/0.bin");
    let count = samples.len().to_string();
    let axes = |size: &str| json!([value("Elements", "int64", size), value("T", "string", "I32")]);
    let content = json!({
        "meta": { "argv": ["/home/someone/bench", "--jsonbin", name],
                  "version": { "nvbench": { "string": "0.2.0" }, "json": { "string": "1.0.0" } } },
        "devices": [{ "id": 0, "name": "another" }, { "id": 1, "name": device }],
        "benchmarks": [{ "name": "copy", "states": [
            { "device": 1, "axis_values": axes("1024"), "is_skipped": false, "summaries": [
                seconds("nv/cold/time/gpu/mean", 5.0),
                seconds("nv/cold/time/cpu/mean", 4e-6),
                seconds("nv/batch/time/gpu/mean", 1e-6),
                summary("nv/json/bin:nv/cold/sample_times",
                        &[value("filename", "string", &file), value("size", "int64", &count)]),
            ] },
            { "device": 1, "axis_values": axes("2048"), "is_skipped": false,
              "summaries": [seconds("nv/cold/time/gpu/mean", 3e-6)] },
            { "device": 1, "axis_values": axes("4096"), "is_skipped": true, "skip_reason": "too large", "summaries": null },
        ] }],
    });
    let path = folder.join(name);
    fs::write(&path, content.to_string()).unwrap();
    path
}

fn criterion(folder: &Path, baseline: &str, benchmark: &Value, iters: &[f64], times: &[f64]) {
    let name = benchmark["directory_name"].as_str().unwrap();
    let folder = folder.join(name).join(baseline);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("benchmark.json"), benchmark.to_string()).unwrap();
    let samples = json!({ "sampling_mode": "Linear", "iters": iters, "times": times });
    fs::write(folder.join("sample.json"), samples.to_string()).unwrap();
}

#[test]
fn each_file_of_nvbench_is_a_run_of_its_stopwatches() {
    let folder = tempfile::tempdir().unwrap();
    let files = [[1e-6_f32, 2e-6, 3e-6], [2e-6, 3e-6, 4e-6]];
    let paths: Vec<PathBuf> =
        (1..).zip(&files).map(|(run, own)| nvbench(folder.path(), &format!("{run}.json"), "GPU", own)).collect();
    let results = Results::import(&paths, &[]).unwrap();
    let run = results.run();
    assert_eq!((results.runs.len(), run.system.as_str(), run.environment.device.model.as_str()), (2, "nvbench", "GPU"));
    assert_eq!(run.environment.program.command, ["bench", "--jsonbin", "1.json"]);
    let titles: Vec<String> = results.rows.iter().map(|row| row.spec.title()).collect();
    assert_eq!(
        titles,
        [
            "nvbench.copy.cold.gpu (Elements 1024, T I32)",
            "nvbench.copy.cold.cpu (Elements 1024, T I32)",
            "nvbench.copy.batch.gpu (Elements 1024, T I32)",
            "nvbench.copy.cold.gpu (Elements 2048, T I32)",
            "nvbench.copy.cold.gpu (Elements 4096, T I32)",
        ]
    );
    let of = |row: usize, run: usize| &results.rows[row].series[run].outcome;
    for (run, own) in files.iter().enumerate() {
        assert_eq!(*of(0, run).values().unwrap(), own.map(f64::from));
    }
    assert_eq!(*of(3, 0).values().unwrap(), [3e-6]);
    assert!(matches!(of(4, 1), Outcome::Skipped { reason } if reason == "too large"));
    assert_eq!(results.rows[2].spec.provenance, Provenance::measured(Clock::DeviceBatch));
    assert_eq!(results.rows[0].spec.parameters["Elements"], Parameter::Integer(1024));
}

#[test]
fn a_baseline_of_criterion_is_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let fib = json!({ "group_id": "fib", "function_id": "iter", "value_str": "15", "directory_name": "fib/iter/15" });
    let alone = json!({ "group_id": "alone", "function_id": null, "value_str": null, "directory_name": "alone" });
    for (baseline, factor) in [("a-1", 1.0), ("a-2", 1.01), ("new", 2.0)] {
        criterion(folder.path(), baseline, &fib, &[10.0, 20.0], &[100.0 * factor, 200.0 * factor]);
        criterion(folder.path(), baseline, &alone, &[5.0], &[5.0]);
    }
    let results = Results::import(&[folder.path().to_owned()], &["a-1".to_owned(), "a-2".to_owned()]).unwrap();
    let titles: Vec<String> = results.rows.iter().map(|row| row.spec.title()).collect();
    assert_eq!(
        (results.runs.len(), titles),
        (2, vec!["criterion.alone".to_owned(), "criterion.fib.iter (parameter 15)".to_owned()])
    );
    let row = &results.rows[1];
    assert_eq!(row.spec.provenance, Provenance::Measured { clock: Clock::Host, iterations: 10 });
    let values = row.series[0].outcome.values().unwrap();
    assert!(values.iter().all(|value| (value - 10e-9).abs() < 1e-15), "{values:?}");
}

#[test]
fn what_is_imported_can_be_written_read_and_compared() {
    let folder = tempfile::tempdir().unwrap();
    let import = |name: &str, factor: f32| {
        let run = |run: usize| {
            let samples: Vec<f32> = (0..9).map(|place| factor * (1e-6 + 1e-9 * (place + run) as f32)).collect();
            nvbench(folder.path(), &format!("{name}-{run}.json"), "GPU", &samples)
        };
        let results = Results::import(&(0..5).map(run).collect::<Vec<_>>(), &[]).unwrap();
        let path = folder.path().join(format!("{name}.json"));
        results.write(&path).unwrap();
        Results::read(&path).unwrap()
    };
    let compared = compare(&import("before", 1.0), &import("after", 2.0), Tolerance::default());
    assert_eq!((compared.count(Shift::Slower), compared.count(Shift::Faster)), (1, 0));
}

#[test]
fn what_is_neither_is_refused_with_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |paths: &[&Path]| {
        let paths: Vec<PathBuf> = paths.iter().map(|path| path.to_path_buf()).collect();
        Results::import(&paths, &["new".to_owned()]).unwrap_err().to_string()
    };
    let good = nvbench(folder.path(), "good.json", "GPU", &[1e-6]);
    let other = nvbench(folder.path(), "other.json", "another GPU", &[1e-6]);
    assert!(
        refused(&[&good, &other]).ends_with("device model differs: another GPU and GPU"),
        "{}",
        refused(&[&good, &other])
    );
    assert!(refused(&[folder.path()]).contains("no benchmark of criterion has a baseline `new`"));

    let broken = nvbench(folder.path(), "broken.json", "GPU", &[f32::NAN]);
    assert!(refused(&[&broken]).contains("is no number of seconds"));
    fs::write(folder.path().join("broken.json-bin/0.bin"), [0; 3]).unwrap();
    assert!(refused(&[&broken]).contains("0.bin: it has 3 bytes, and is to hold 1 samples"));
    fs::remove_file(folder.path().join("broken.json-bin/0.bin")).unwrap();
    assert!(refused(&[&broken]).contains("0.bin: No such file"));

    let twice: Value = serde_json::from_str(&fs::read_to_string(&good).unwrap()).unwrap();
    let states = twice["benchmarks"][0]["states"].as_array().unwrap();
    let mut twice = twice.clone();
    twice["benchmarks"][0]["states"] = json!([states[1], states[1]]);
    let path = folder.path().join("twice.json");
    fs::write(&path, twice.to_string()).unwrap();
    assert!(refused(&[&path]).contains("nvbench.copy.cold.gpu (Elements 2048, T I32)"), "{}", refused(&[&path]));

    criterion(folder.path(), "new", &json!({ "group_id": "g", "directory_name": "g" }), &[0.0], &[1.0]);
    assert!(refused(&[folder.path()]).contains("sample.json: a time or a count of iterations"));
    assert!(refused(&[&good, folder.path()]).contains("sample.json"));
}
