//! What stands where the book is to go.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use super::{code, measured, names, report, stderr};

#[test]
fn a_folder_that_the_program_did_not_make_is_never_deleted() {
    let folder = measured();
    fs::create_dir(folder.path().join("book")).unwrap();
    fs::write(folder.path().join("book/mine.md"), "mine").unwrap();
    for arguments in
        [&["render", "results.json", "--out", "."][..], &["--suite", "suite.yaml", "--device", "cpu:0", "--out", "."]]
    {
        let before = fs::read(folder.path().join("results.json")).unwrap();
        let output = report(arguments, folder.path());
        assert_eq!(code(&output), 2, "{}", stderr(&output));
        assert!(stderr(&output).contains("--out"), "{}", stderr(&output));
        assert_eq!(fs::read_to_string(folder.path().join("book/mine.md")).unwrap(), "mine");
        // Refused before anything was measured.
        assert_eq!(fs::read(folder.path().join("results.json")).unwrap(), before);
        assert_eq!(names(folder.path()), ["book", "results.json", "suite.yaml"]);
    }
}

#[test]
fn a_file_of_the_users_that_is_named_like_the_results_is_not_replaced() {
    let folder = super::folder();
    fs::create_dir(folder.path().join("out")).unwrap();
    fs::write(folder.path().join("out/results.json"), "{\"mine\": true}").unwrap();
    let output = report(&["--suite", "suite.yaml", "--device", "cpu:0", "--out", "out"], folder.path());
    assert_eq!(code(&output), 2, "{}", stderr(&output));
    assert_eq!(fs::read_to_string(folder.path().join("out/results.json")).unwrap(), "{\"mine\": true}");
    assert_eq!(names(&folder.path().join("out")), ["results.json"]);
}

#[test]
fn a_book_that_the_program_made_is_replaced() {
    let folder = measured();
    for _ in 0..2 {
        let output = report(&["render", "results.json", "--out", "out"], folder.path());
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        assert_eq!(names(&folder.path().join("out")), ["book", "site"]);
    }
}

/// What another system measured on the machine of `results.json`, in the file `name`.
pub(crate) fn system(folder: &Path, name: &str) {
    let text = fs::read_to_string(folder.join("results.json")).unwrap();
    let results: serde_json::Value = serde_json::from_str(&text).unwrap();
    let environment = &results["runs"][0]["environment"];
    let machine = serde_json::json!({ "model": environment["device"]["model"], "cpu": environment["host"]["cpu"] });
    let row = serde_json::json!({
        "id": "launch-path.graph.capture", "unit": "seconds",
        "outcome": { "measured": { "samples": [1.0, 2.0], "stopped_by": "samples" } },
    });
    let system = serde_json::json!({
        "schema_version": 2, "name": name, "versions": [[name, "1"]], "started": "2026-01-01T00:00:00Z",
        "machine": machine, "rows": [row],
    });
    fs::write(folder.join(name), system.to_string()).unwrap();
}

#[test]
fn attachments_at_once_are_all_kept() {
    let folder = measured();
    let systems: Vec<String> = (0..6).map(|number| format!("system-{number}")).collect();
    systems.iter().for_each(|name| system(folder.path(), name));
    let attach = |name: &String| {
        let mut command = super::program(folder.path());
        command.args(["attach", name, "--into", "results.json"]).stderr(Stdio::piped()).spawn().unwrap()
    };
    let attaching: Vec<_> = systems.iter().map(attach).collect();
    for process in attaching {
        let output = process.wait_with_output().unwrap();
        assert_eq!(code(&output), 0, "{}", stderr(&output));
    }
    let text = fs::read_to_string(folder.path().join("results.json")).unwrap();
    assert!(systems.iter().all(|name| text.contains(name)), "an attachment was lost");
}
