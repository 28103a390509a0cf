//! The program as a user runs it: the main job, and what wrong input gets.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::{Command, Output};

use syncscope::device::Device;

const TINY: &str = "title: Tiny
sampling: { samples: 3, warmup: 1 }
experiments:
  - sync-points: { iters: 2, big: 32, small: 8, steps: 3, samples: 2 }
  - ceilings: { copies: [64], sizes: [8], link: [64] }
";

fn report(arguments: &[&str], folder: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_report")).args(arguments).current_dir(folder).output().unwrap()
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn folder_with(suite: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("suite.yaml"), suite).unwrap();
    folder
}

#[test]
fn the_main_job_leaves_results_and_a_book_and_says_where() {
    let folder = folder_with(TINY);
    let output = report(&["--suite", "suite.yaml", "--device", "cpu:0", "--out", "out"], folder.path());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let text = stdout(&output);
    for part in ["Big product", "Small product", "Takeaways", "results: out/results.json", "out/site/index.html"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let order = ["Big product", "Small product", "Implicit synchronization", "Scalar read after"].map(|p| text.find(p));
    assert!(order.is_sorted(), "{text}");
    assert!(folder.path().join("out/site/sync-points.html").is_file());
}

#[test]
fn a_book_is_rendered_from_a_results_file_alone_and_twice_alike() {
    let folder = folder_with(TINY);
    let run = report(&["run", "--suite", "suite.yaml", "--device", "cpu:0", "--out", "r.json"], folder.path());
    assert_eq!(code(&run), 0, "{}", stderr(&run));
    for out in ["a", "b"] {
        let output = report(&["render", "r.json", "--out", out], folder.path());
        assert_eq!(code(&output), 0, "{}", stderr(&output));
    }
    let page = |out: &str| std::fs::read(folder.path().join(out).join("site/sync-points.html")).unwrap();
    assert!(page("a") == page("b"));
}

#[test]
fn a_wrong_suite_is_refused_with_its_place_and_runs_nothing() {
    for (wrong, parts) in [
        (TINY.replace("iters", "itres"), vec!["suite.yaml:4:", "`itres`", "did you mean `iters`?"]),
        (TINY.replace("sync-points", "sync-pionts"), vec!["suite.yaml:4:", "did you mean `sync-points`?"]),
        (TINY.replace("big: 32", "big: 0"), vec!["suite.yaml:4:", "nonzero"]),
        (TINY.replace("iters: 2", "dtypes: [fp8]"), vec!["suite.yaml:4:", "`fp8`", "fp16"]),
        (TINY.replace("title: Tiny", "title: [1]"), vec!["suite.yaml:1:", "string"]),
        ("title: [".to_owned(), vec!["suite.yaml:"]),
    ] {
        let folder = folder_with(&wrong);
        for command in [&["check", "suite.yaml"][..], &["--suite", "suite.yaml", "--out", "out"]] {
            let output = report(command, folder.path());
            let text = stderr(&output);
            assert_eq!(code(&output), 2, "{text}");
            assert!(parts.iter().all(|part| text.contains(part)), "{parts:?}: {text}");
            assert!(!folder.path().join("out").exists());
        }
    }
}

#[test]
fn a_missing_device_experiment_or_file_is_named() {
    let folder = folder_with(TINY);
    for (arguments, exit, part) in [
        (&["run", "--device", "cuda:77"][..], 2, "there is no device `cuda:77`; there are: "),
        (&["run", "--device", "gpu"], 2, "there is no device `gpu`"),
        (&["run", "--suite", "none.yaml"], 2, "none.yaml"),
        (&["bench", "sync-point"], 2, "there are: self-audit"),
        (&["bench", "self-audit", "--dtype", "fp16", "--device", "cpu:0"], 2, "no element type"),
        (&["bench", "sync-points", "--dtype", "fp8"], 2, "fp16, bf16, fp32"),
        (&["bench", "sync-points", "--iters", "0"], 2, "iters"),
        (&["render", "none.json"], 2, "none.json"),
        (&["run", "--out", "suite.yaml/r.json", "--device", "cpu:0"], 2, "suite.yaml"),
        (&["frobnicate"], 2, "frobnicate"),
    ] {
        let output = report(arguments, folder.path());
        let text = stderr(&output);
        assert_eq!(code(&output), exit, "{arguments:?}: {text}");
        assert!(text.contains(part) && !text.contains("panicked"), "{arguments:?}: {text}");
    }
}

#[test]
fn a_broken_results_file_says_what_is_wrong_and_leaves_the_site_that_stood_there() {
    let folder = folder_with(TINY);
    let run = report(&["--suite", "suite.yaml", "--device", "cpu:0", "--out", "out"], folder.path());
    assert_eq!(code(&run), 0, "{}", stderr(&run));
    let good = std::fs::read_to_string(folder.path().join("out/results.json")).unwrap();
    let site = || std::fs::read(folder.path().join("out/site/sync-points.html")).unwrap();
    let before = site();
    for (text, part) in [
        (good[..good.len() / 2].to_owned(), "not a whole results file"),
        ("title: no JSON".to_owned(), "not a whole results file"),
        (good.replace("\"schema_version\": 1", "\"schema_version\": 999"), "schema version 999"),
        (good.replace("\"rows\"", "\"rosw\""), "rosw"),
        ("{}".to_owned(), "schema_version"),
    ] {
        std::fs::write(folder.path().join("bad.json"), text).unwrap();
        let output = report(&["render", "bad.json", "--out", "out"], folder.path());
        let text = stderr(&output);
        assert_eq!(code(&output), 2, "{text}");
        assert!(text.contains("bad.json") && text.contains(part), "{part}: {text}");
        assert!(site() == before, "the site changed");
    }
}

#[test]
fn a_row_that_fails_is_recorded_the_others_run_and_the_exit_code_says_so() {
    let folder = folder_with(&TINY.replace("big: 32", "dtypes: [fp32], big: 8000000"));
    let output = report(&["--suite", "suite.yaml", "--device", "cpu:0", "--out", "out"], folder.path());
    assert_eq!(code(&output), 1, "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.contains("failed: ") && text.contains("has no room for"), "{text}");
    let chapter = std::fs::read_to_string(folder.path().join("out/site/sync-points.html")).unwrap();
    assert!(chapter.contains("has no room for"));
}

/// Starts a long run, interrupts it once its second experiment has begun, and goes on from what it left.
#[cfg(unix)]
#[test]
fn an_interrupted_run_keeps_what_was_measured_and_can_be_resumed() {
    use std::io::{BufRead, BufReader};
    use std::process::Stdio;

    let folder = folder_with(&TINY.replace("samples: 3", "samples: 200"));
    let mut child = Command::new(env!("CARGO_BIN_EXE_report"))
        .args(["run", "--suite", "suite.yaml", "--device", "cpu:0", "--out", "r.json"])
        .current_dir(folder.path())
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().starts_with("2/3 sync-points")), "the second experiment began");
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{rest:?}");
    assert!(rest.iter().any(|line| line.contains("report run --resume r.json")), "{rest:?}");

    let read = || -> serde_json::Value {
        serde_json::from_slice(&std::fs::read(folder.path().join("r.json")).unwrap()).unwrap()
    };
    let partial = read();
    assert_eq!(partial["partial"], true);
    let resumed = report(&["run", "--resume", "r.json"], folder.path());
    assert_eq!(code(&resumed), 0, "{}", stderr(&resumed));
    let whole = read();
    assert_eq!(whole["partial"], false);
    assert_eq!(whole["experiments"][0], partial["experiments"][0], "what was finished is kept");
    let again = report(&["run", "--resume", "r.json"], folder.path());
    assert_eq!(code(&again), 2, "{}", stderr(&again));
}

#[test]
fn rows_are_chosen_by_name_and_an_unknown_name_is_refused() {
    let folder = folder_with(TINY);
    let arguments =
        ["run", "--suite", "suite.yaml", "--device", "cpu:0", "--only", "sync-points.timing", "--out", "r.json"];
    let output = report(&arguments, folder.path());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let text = std::fs::read_to_string(folder.path().join("r.json")).unwrap();
    let run: serde_json::Value = serde_json::from_str(&text).unwrap();
    let rows = run["experiments"][0]["rows"].as_array().unwrap();
    let measured = rows.iter().filter(|row| row["outcome"].get("measured").is_some());
    assert_eq!(measured.map(|row| row["id"].as_str().unwrap()).collect::<Vec<_>>().len(), 3);
    let unknown = report(&["run", "--skip", "sync-pints", "--device", "cpu:0"], folder.path());
    assert_eq!(code(&unknown), 2, "{}", stderr(&unknown));
}

#[test]
fn the_lists_name_what_there_is() {
    let folder = tempfile::tempdir().unwrap();
    let devices = stdout(&report(&["devices"], folder.path()));
    assert!(Device::list().iter().all(|device| devices.contains(&device.name)), "{devices}");
    assert_eq!(devices.contains("no GPU: "), Device::cuda_unavailable().is_some(), "{devices}");
    let experiments = stdout(&report(&["experiments"], folder.path()));
    for id in ["self-audit.timer.cost", "sync-points.big.async", "sync-points.multi-stream.two-streams"] {
        assert!(experiments.contains(id), "{id}");
    }
}

#[test]
fn the_schemas_are_json_and_the_carried_suites_are_good() {
    let folder = tempfile::tempdir().unwrap();
    for of in ["suite", "results"] {
        let schema: serde_json::Value = serde_json::from_str(&stdout(&report(&["schema", of], folder.path()))).unwrap();
        assert!(schema["properties"].is_object(), "{of}");
    }
    for suite in ["quick", "full"] {
        assert_eq!(code(&report(&["check", suite], folder.path())), 0, "{suite}");
    }
}

#[test]
fn every_subcommand_has_an_example_in_its_help() {
    let folder = tempfile::tempdir().unwrap();
    for command in ["run", "render", "bench", "compare", "verify", "devices", "experiments", "check", "schema"] {
        let help = stdout(&report(&[command, "--help"], folder.path()));
        assert!(help.contains("Example") && help.contains(&format!("\n  report {command}")), "{help}");
    }
}
