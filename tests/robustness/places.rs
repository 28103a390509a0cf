//! What stands where the book is to go.

use std::fs;

use super::{code, measured, names, report, stderr};

#[test]
fn a_folder_that_the_program_did_not_make_is_never_deleted() {
    let folder = measured();
    fs::create_dir(folder.path().join("book")).unwrap();
    fs::write(folder.path().join("book/mine.md"), "mine").unwrap();
    for arguments in [
        &["render", "results.json", "--out", "."][..],
        &["--suite", "suite.yaml", "--device", "cpu:0", "--out", "."],
    ] {
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
fn a_book_that_the_program_made_is_replaced() {
    let folder = measured();
    for _ in 0..2 {
        let output = report(&["render", "results.json", "--out", "out"], folder.path());
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        assert_eq!(names(&folder.path().join("out")), ["book", "site"]);
    }
}

#[test]
fn attachments_at_once_are_all_kept() {
    let folder = measured();
    let systems: Vec<String> = (0..6).map(|number| format!("system-{number}")).collect();
    let results: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(folder.path().join("results.json")).unwrap()).unwrap();
    let device = &results["runs"][0]["environment"];
    for name in &systems {
        let mut machine = serde_json::json!({ "model": device["device"]["model"], "cpu": device["host"]["cpu"] });
        for fact in device["device"]["facts"].as_array().unwrap() {
            if fact[0] == "driver" {
                machine["driver"] = fact[1].clone();
            }
        }
        let system = serde_json::json!({
            "schema_version": 1, "name": name, "versions": [[name, "1"]], "started": "2026-01-01T00:00:00Z",
            "machine": machine, "rows": [],
        });
        fs::write(folder.path().join(name), system.to_string()).unwrap();
    }
    let attach = |name: &String| super::program(folder.path()).args(["attach", name, "--into", "results.json"]).spawn();
    let attaching: Vec<_> = systems.iter().map(|name| attach(name).unwrap()).collect();
    for mut process in attaching {
        assert!(process.wait().unwrap().success());
    }
    let text = fs::read_to_string(folder.path().join("results.json")).unwrap();
    assert!(systems.iter().all(|name| text.contains(name)), "an attachment was lost");
}
