//! `report submit`: what is handed on holds every sample and nothing that names its owner.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::{TINY, code, folder_with, report, stderr, stdout};

const KEPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../book/results/two-gpus.json.gz");

fn read(folder: &Path, name: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(folder.join(name)).unwrap()).unwrap()
}

/// A folder with results of a host, of a user and of a GPU that are named all over.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut results: Value = serde_json::to_value(syncscope_results::Results::read(Path::new(KEPT)).unwrap()).unwrap();
    for run in results["runs"].as_array_mut().unwrap() {
        let environment = &mut run["environment"];
        let facts =
            environment["host"].as_object_mut().unwrap().entry("facts").or_insert_with(|| Value::Array(Vec::new()));
        facts.as_array_mut().unwrap().extend([
            serde_json::json!(["machine", "sekret-node7"]),
            serde_json::json!(["serial", "1654922003427"]),
            serde_json::json!(["container", "sekret0a1b2c3d"]),
        ]);
        environment["program"]["command"] = serde_json::json!(["report", "run", "--out", "/home/sekret/results.json"]);
        environment["cuda_unavailable"] = "sekret: no /home/sekret/libcuda.so".into();
    }
    fs::write(folder.path().join("r.json"), results.to_string()).unwrap();
    folder
}

#[test]
fn what_is_handed_on_names_nobody_and_can_be_checked_compared_and_rendered() {
    let folder = folder();
    let output = report(&["submit", "r.json", "--out", "s.json", "--yes"], folder.path());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let text = fs::read_to_string(folder.path().join("s.json")).unwrap();
    for secret in ["sekret", "1654922003427", "/home"] {
        assert!(!text.contains(secret), "{secret}");
    }
    let (before, after) = (read(folder.path(), "r.json"), read(folder.path(), "s.json"));
    assert_eq!(after["rows"], before["rows"]);
    assert_eq!(after["suite"]["sampling"], before["suite"]["sampling"]);
    assert_eq!(after["suite"]["experiments"], before["suite"]["experiments"]);
    for key in ["cpu", "memory_bytes", "logical_cpus"] {
        assert_eq!(after["runs"][0]["environment"]["host"][key], before["runs"][0]["environment"]["host"][key]);
    }
    let model = |results: &Value| results["runs"][0]["environment"]["device"]["model"].clone();
    assert!(model(&after).is_string() && model(&after) == model(&before));
    for arguments in [
        &["check", "s.json"][..],
        &["compare", "r.json", "s.json", "--fail-on", "different,missing"],
        &["render", "s.json", "--out", "book"],
        &["collect", "s.json", "--into", "store"],
        // What was handed on once can be handed on again.
        &["submit", "s.json", "--out", "t.json", "--yes"],
    ] {
        let output = report(arguments, folder.path());
        assert_eq!(code(&output), 0, "{arguments:?}: {}{}", stdout(&output), stderr(&output));
    }
}

#[test]
fn of_a_run_on_the_cpu_engine_no_fact_goes_that_is_not_of_the_site() {
    let folder = folder_with(TINY);
    let run = ["run", "--suite", "suite.yaml", "--device", "cpu:0", "--machine", "sekret7", "--out", "r.json"];
    assert_eq!(code(&report(&run, folder.path())), 0);
    let output = report(&["submit", "r.json", "--json"], folder.path());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let told: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let site = ["suite.title", "environment.host", "environment.program", "environment.cuda_unavailable"];
    for (place, texts) in told["places"].as_object().unwrap() {
        let is_of_the_site = site.iter().any(|part| place.contains(part)) || place.contains("reason");
        assert!(is_of_the_site || texts["taken_out"].as_array().unwrap().is_empty(), "{place}: {texts}");
        assert!(!texts["stays"].to_string().contains("sekret"), "{place}: {texts}");
    }
}

#[test]
fn what_stays_and_what_goes_is_shown_and_nothing_is_written_before_somebody_agrees() {
    let folder = folder();
    for arguments in [&["submit", "r.json"][..], &["submit", "r.json", "--out", "s.json"]] {
        let asks = arguments.len() > 2;
        let output = report(arguments, folder.path());
        assert_eq!(code(&output), if asks { 2 } else { 0 }, "{}", stderr(&output));
        assert_eq!(stderr(&output).contains("--yes"), asks, "{}", stderr(&output));
        let said = stdout(&output);
        for part in ["runs[].environment.host.cpu", "Intel(R) Xeon(R) Processor", "sekret-node7", "fingerprint"] {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert!(!folder.path().join("s.json").exists());
    }
}

#[test]
fn a_file_that_did_not_end_or_contradicts_itself_is_not_handed_on() {
    let folder = folder();
    let whole = read(folder.path(), "r.json");
    let mut open = whole.clone();
    open["runs"][0]["outcome"] = "interrupted".into();
    let mut altered = whole;
    altered.as_object_mut().unwrap().remove("samples_sha256");
    let rows = altered["rows"].as_array_mut().unwrap();
    let computed = rows.iter_mut().flat_map(|row| row["series"].as_array_mut().unwrap());
    let mut computed = computed.filter_map(|series| series["outcome"].get_mut("derived")?.get_mut("samples"));
    computed.next().unwrap()[0] = 12345.0.into();
    for (results, says) in [(open, "did not end"), (altered, "contradicts itself")] {
        fs::write(folder.path().join("x.json"), results.to_string()).unwrap();
        let output = report(&["submit", "x.json", "--out", "s.json", "--yes"], folder.path());
        assert!(code(&output) == 2 && stderr(&output).contains(says), "{says}: {}", stderr(&output));
        assert!(!folder.path().join("s.json").exists());
    }
}

#[test]
fn check_says_what_an_unfinished_file_lacks_and_how_to_resume() {
    let folder = folder();
    let mut open = read(folder.path(), "r.json");
    open["runs"][0]["outcome"] = "interrupted".into();
    open["plan"]["runs"] = 9.into();
    fs::write(folder.path().join("open.json"), open.to_string()).unwrap();
    fs::write(folder.path().join("suite.yaml"), TINY).unwrap();
    let output = report(&["check", "--whole", "open.json"], folder.path());
    assert_eq!(code(&output), 1);
    let said = stdout(&output) + &stderr(&output);
    assert!(said.contains("the run syncscope-1 was interrupted"), "{said}");
    assert!(said.contains("syncscope: 5 of 9 runs are there"), "{said}");
    let again = ["run", "--suite", "suite.yaml", "--device", "cpu:0", "--out", "open.json"];
    let said = stderr(&report(&again, folder.path()));
    assert!(said.contains("open.json is of runs that did not end") && said.contains("--resume open.json"), "{said}");
}
