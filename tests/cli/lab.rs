//! Labs on a stand-in for the kernel, which says of cells what a test needs; `.ci/jupyter/labs` grades them in the true one.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

use super::{code, stderr, stdout};

/// Runs the program in `folder`, where Jupyter has its data.
fn lab(arguments: &[&str], folder: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_report"));
    command.arg("lab").args(arguments).current_dir(folder).env("JUPYTER_DATA_DIR", folder.join("data"));
    command.output().unwrap()
}

/// A kernel that says `ran` of the cells that it is asked to run, and keeps what it was asked in `asked.json`.
fn install(folder: &Path, ran: &Value) {
    let kernel = folder.join("data/kernels/syncscope");
    fs::create_dir_all(kernel.join("warm")).unwrap();
    let program = kernel.join("notebook-runner");
    fs::write(kernel.join("dependency.toml"), "").unwrap();
    let asked = folder.join("asked.json");
    let script = format!("#!/bin/sh\ntest \"$1\" = attempt && cp \"$2\" '{}'\necho '{ran}'\n", asked.display());
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(kernel.join("kernel.json"), json!({"argv": [program, "kernel"], "env": {}}).to_string()).unwrap();
}

/// A lab of one task with one check.
fn notebook(folder: &Path, name: &str) {
    let mark = |id: &str, grade: bool| {
        json!({"nbgrader": {"grade": grade, "grade_id": id, "locked": grade, "points": 2,
        "schema_version": 3, "solution": !grade, "task": false, "cell_type": "code"}})
    };
    let cell = |source: &str, metadata: Value| {
        json!({"cell_type": "code", "id": "a", "metadata": metadata,
        "source": [source], "outputs": [], "execution_count": null})
    };
    let cells = [
        cell(
            "fn f() -> u32 {\n    // ### BEGIN SOLUTION\n    1\n    // ### END SOLUTION\n}",
            mark("own-answer", false),
        ),
        cell("assert!(f() == 1);", mark("own-check", true)),
    ];
    let text = json!({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}).to_string();
    fs::write(folder.join(name), text).unwrap();
}

#[test]
fn a_lab_is_graded_as_a_table_and_as_json_and_missing_points_are_an_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    notebook(folder.path(), "own.ipynb");
    install(folder.path(), &json!([null, {"kind": "Panic", "message": "not yet implemented: your answer"}]));
    let output = lab(&["check", "own.ipynb"], folder.path());
    assert_eq!(code(&output), 1, "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.contains("own.ipynb: 0 of 2 points") && text.contains("not yet implemented: your answer"), "{text}");
    let asked: Value = serde_json::from_str(&fs::read_to_string(folder.path().join("asked.json")).unwrap()).unwrap();
    assert_eq!(asked["cells"][1], "assert!(f() == 1);");

    install(folder.path(), &json!([null, null]));
    let output = lab(&["check", "own.ipynb", "own.ipynb", "--json"], folder.path());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let facts: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!((&facts["command"], &facts["schema_version"]), (&json!("lab"), &json!(1)));
    assert_eq!(facts["labs"].as_array().unwrap().len(), 2);
    let own = &facts["labs"][0];
    assert_eq!((&own["points"], &own["of"], &own["lab"]), (&json!(2.0), &json!(2.0), &Value::Null));
    assert_eq!(own["checks"][0]["id"], "own-check");
}

#[test]
fn the_checks_of_a_lab_of_the_course_are_the_courses_own() {
    let folder = tempfile::tempdir().unwrap();
    let kept = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("notebooks/00-quick-start.ipynb");
    let mut content: Value = serde_json::from_str(&fs::read_to_string(kept).unwrap()).unwrap();
    let (mut codes, mut changed) = (0, false);
    for cell in content["cells"].as_array_mut().unwrap() {
        codes += usize::from(cell["cell_type"] == "code");
        if !changed && cell["metadata"]["nbgrader"]["grade"] == true {
            cell["source"] = json!(["// nothing is checked"]);
            changed = true;
        }
    }
    fs::write(folder.path().join("mine.ipynb"), content.to_string()).unwrap();
    install(folder.path(), &Value::Array(vec![Value::Null; codes]));
    let output = lab(&["check", "mine.ipynb", "--json"], folder.path());
    let facts: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(facts["labs"][0]["lab"], "notebooks/00-quick-start.ipynb");
    let changed = |check: &&Value| check["was_changed"] == true;
    assert_eq!(facts["labs"][0]["checks"].as_array().unwrap().iter().filter(changed).count(), 1);
    let asked = fs::read_to_string(folder.path().join("asked.json")).unwrap();
    assert!(!asked.contains("nothing is checked"), "{asked}");
}

#[test]
fn what_cannot_be_graded_is_refused_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    notebook(folder.path(), "own.ipynb");
    fs::write(folder.path().join("plain.ipynb"), r#"{"nbformat": 4, "cells": []}"#).unwrap();
    install(folder.path(), &json!([]));
    for (file, words) in [("none.ipynb", "none.ipynb"), ("plain.ipynb", "no lab"), ("data", "data")] {
        let output = lab(&["check", file], folder.path());
        assert!(code(&output) == 2 && stderr(&output).contains(words), "{file}: {}", stderr(&output));
    }
    let short = lab(&["check", "own.ipynb"], folder.path());
    assert!(code(&short) == 1 && stderr(&short).contains("0 of 2 cells"), "{}", stderr(&short));
    install(folder.path(), &json!("no cells"));
    assert_eq!(code(&lab(&["check", "own.ipynb"], folder.path())), 1);
}

#[test]
fn the_students_notebook_has_no_answer_and_replaces_only_notebooks() {
    let folder = tempfile::tempdir().unwrap();
    notebook(folder.path(), "own.ipynb");
    let release = || lab(&["release", "own.ipynb", "--out", "student"], folder.path());
    assert_eq!(code(&release()), 0);
    let text = fs::read_to_string(folder.path().join("student/own.ipynb")).unwrap();
    assert!(text.contains("YOUR CODE HERE") && !text.contains("SOLUTION"), "{text}");
    assert_eq!(code(&release()), 0, "a notebook is replaced");
    fs::write(folder.path().join("student/own.ipynb"), "words").unwrap();
    assert_eq!(code(&release()), 2);
}

/// A lab's sheet names the command by which it is graded, in the folder of syncscope.
#[test]
fn the_command_that_each_lab_names_grades_it() {
    let folder = tempfile::tempdir().unwrap();
    let kept = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("notebooks");
    fs::create_dir(folder.path().join("notebooks")).unwrap();
    let mut graded = 0;
    for path in fs::read_dir(kept).unwrap().map(|entry| entry.unwrap().path()) {
        if path.extension().is_none_or(|ending| ending != "ipynb") {
            continue;
        }
        let name = path.file_name().unwrap().to_str().unwrap();
        fs::copy(&path, folder.path().join("notebooks").join(name)).unwrap();
        let content: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        let (code_cells, others): (Vec<&Value>, Vec<&Value>) =
            content["cells"].as_array().unwrap().iter().partition(|cell| cell["cell_type"] == "code");
        let words: String =
            others.iter().flat_map(|cell| cell["source"].as_array().unwrap()).filter_map(Value::as_str).collect();
        install(folder.path(), &Value::Array(vec![Value::Null; code_cells.len()]));
        for command in words.split('`').filter_map(|code| code.strip_prefix("cargo run --release --bin report -- ")) {
            let arguments: Vec<&str> = command.split(' ').chain(["--json"]).collect();
            assert_eq!(arguments[0], "lab", "{name}: {command}");
            let output = lab(&arguments[1..], folder.path());
            let facts: Value = serde_json::from_str(&stdout(&output)).unwrap();
            assert_eq!(facts["labs"][0]["lab"], format!("notebooks/{name}"), "{command}");
            graded += 1;
        }
    }
    assert_eq!(graded, fs::read_dir(folder.path().join("notebooks")).unwrap().count(), "each names one");
}
