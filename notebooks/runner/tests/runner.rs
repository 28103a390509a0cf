//! The runner over notebooks whose cells fail in each way that there is, and over one whose cells do not.

#![allow(clippy::unwrap_used, reason = "a test ends where its set-up fails")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name).with_extension("ipynb")
}

/// Runs the runner, in a folder of its own: two sessions that share one collide.
fn runner(arguments: &[&str], notebook: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_notebook-runner"));
    command.args(arguments).arg(notebook).env_remove("EVCXR_TMPDIR").output().unwrap()
}

/// Runs a fixture that fails in `cell` and gives what was said of it.
#[track_caller]
fn failure(name: &str, arguments: &[&str], cell: &str) -> String {
    let output = runner(arguments, &fixture(name));
    let (said, printed) = (String::from_utf8(output.stderr).unwrap(), String::from_utf8(output.stdout).unwrap());
    assert_eq!(output.status.code(), Some(1), "{said}{printed}");
    assert!(said.contains(&format!("{name}.ipynb: {cell}: ")), "names notebook and cell: {said}");
    assert!(!said.contains("reached") && !printed.contains("reached"), "goes on after the failure: {said}{printed}");
    said
}

#[test]
fn a_cell_that_panics_fails_with_its_message() {
    let said = failure("panics", &[], "cell 2 (panics-2)");
    assert!(said.contains("the list is short") && said.contains("at line "), "{said}");
}

#[test]
fn a_cell_that_returns_an_error_fails_with_it() {
    assert!(failure("returns-err", &[], "cell 2 (returns-err-2)").contains("no such reading"));
}

#[test]
fn a_cell_that_exits_fails_even_with_code_0() {
    assert!(failure("exits", &[], "cell 2 (exits-2)").contains("exit status: 0"));
}

#[test]
fn a_cell_that_never_ends_is_ended() {
    assert!(failure("overruns", &["--timeout", "2"], "cell 1 (overruns-1)").contains("took longer than 2 s"));
}

#[test]
fn a_cell_that_reads_input_finds_its_end_and_so_does_what_it_starts() {
    let folder = tempfile::tempdir().unwrap();
    let notebook = folder.path().join("reads-input.ipynb");
    fs::copy(fixture("reads-input"), &notebook).unwrap();
    // Long enough for any machine; it is a wait without an end that fails.
    let output = runner(&["--write", "--timeout", "100"], &notebook);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let stored: serde_json::Value = serde_json::from_str(&fs::read_to_string(&notebook).unwrap()).unwrap();
    let said = [1, 2].map(|cell: usize| stored["cells"][cell]["outputs"][0]["text"][0].clone());
    assert_eq!(said, ["0 of kept\n", "0 kept\n"]);
}

#[test]
fn a_cell_that_does_not_compile_fails_with_the_compilers_words() {
    assert!(failure("does-not-compile", &[], "cell 2 (does-not-compile-2)").contains("mismatched types"));
}

#[test]
fn variables_outlive_their_cell_and_outputs_are_stored_and_checked() {
    let folder = tempfile::tempdir().unwrap();
    let notebook = folder.path().join("kept.ipynb");
    fs::copy(fixture("keeps-state"), &notebook).unwrap();
    let text = || fs::read_to_string(&notebook).unwrap();
    let before = text();

    let output = runner(&["--check"], &notebook);
    assert!(
        String::from_utf8_lossy(&output.stderr)
            .contains("the stored outputs are nothing, and the cell left stream stdout")
    );
    assert_eq!(text(), before, "checking writes nothing");

    assert!(runner(&["--write"], &notebook).status.success());
    let stored: serde_json::Value = serde_json::from_str(&text()).unwrap();
    let output = |cell: usize| &stored["cells"][cell]["outputs"][0];
    assert_eq!(output(1)["text"], serde_json::json!(["3 kept\n"]));
    assert_eq!(output(2)["data"]["text/plain"], serde_json::json!(["[1, 2, 3, 4]"]));
    assert_eq!(output(3)["data"]["text/html"], serde_json::json!(["<b>4</b>"]));
    assert_eq!(stored["cells"][1]["id"], "keeps-state-2", "identifiers stay");

    let written = text();
    assert!(runner(&["--check"], &notebook).status.success());
    assert!(runner(&["--write"], &notebook).status.success());
    assert_eq!(text(), written, "equal outputs are an equal file");
}

#[test]
fn a_notebook_as_a_program_leaves_what_its_cells_do() {
    let folder = tempfile::tempdir().unwrap();
    let (notebook, built) = (folder.path().join("keeps-state.ipynb"), folder.path().join("built"));
    fs::copy(fixture("keeps-state"), &notebook).unwrap();
    assert!(runner(&["--write"], &notebook).status.success());
    let executed = fs::read_to_string(&notebook).unwrap();

    fs::copy(fixture("keeps-state"), &notebook).unwrap();
    let output = runner(&["build", "--out", built.to_str().unwrap()], &notebook);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let program = Command::new(built.join("target/release/keeps-state")).output().unwrap();
    assert!(program.status.success());
    let record = folder.path().join("record");
    fs::write(&record, program.stdout).unwrap();
    let stored = Command::new(env!("CARGO_BIN_EXE_notebook-runner")).arg("store").args([&notebook, &record]).status();
    assert!(stored.unwrap().success());
    assert_eq!(fs::read_to_string(&notebook).unwrap(), executed);
}

#[test]
fn a_program_whose_cell_fails_says_which() {
    let folder = tempfile::tempdir().unwrap();
    let built = folder.path().join("built");
    assert!(runner(&["build", "--out", built.to_str().unwrap()], &fixture("panics")).status.success());
    let program = Command::new(built.join("target/release/panics")).output().unwrap();
    assert_eq!(program.status.code(), Some(1));
    let record = folder.path().join("record");
    fs::write(&record, program.stdout).unwrap();
    let copy = folder.path().join("copy.ipynb");
    let stored = Command::new(env!("CARGO_BIN_EXE_notebook-runner"))
        .arg("store")
        .args([&fixture("panics"), &record])
        .arg("--out")
        .arg(&copy)
        .output()
        .unwrap();
    let said = String::from_utf8(stored.stderr).unwrap();
    assert!(!stored.status.success() && said.contains("panics-2") && said.contains("the list is short"), "{said}");
    assert!(!copy.exists());
}
