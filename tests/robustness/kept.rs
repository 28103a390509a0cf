//! A run among full disks, folders that go away and signals.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use syncscope::results::{Outcome, Results, RunOutcome};

use super::{RUN, code, folder, measured, names, program, report, stderr};

/// The last experiment, by the order that the seed draws, has one sample that takes many seconds.
const LONG: &str = "title: Long
runs: 1
sampling: { samples: 2, warmup: 0, seed: 1 }
experiments:
  - launch-path: { operations: [1, 2], elements: 8, iterations: 2 }
  - ceilings: { copies: [64], sizes: [6000], link: [64] }
";

/// A run that has measured its first experiment and is in a long sample of its second.
fn in_a_long_sample(folder: &Path) -> Child {
    in_a_long_sample_for(folder, "results")
}

/// The same for the results file of this name without its ending.
fn in_a_long_sample_for(folder: &Path, out: &str) -> Child {
    fs::write(folder.join("suite.yaml"), LONG).unwrap();
    let mut run = program(folder);
    run.args(RUN).args(["--out", &format!("{out}.json")]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let run = run.spawn().unwrap();
    until(|| {
        let text = fs::read_to_string(folder.join(format!("{out}.checkpoint.json")));
        text.is_ok_and(|text| text.contains("launch-path."))
    });
    run
}

fn until(condition: impl Fn() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < Duration::from_secs(120), "it never came");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn signal(run: &Child, signal: &str) {
    let status = std::process::Command::new("kill").args([signal, &run.id().to_string()]).status();
    assert!(status.unwrap().success());
}

/// How many rows of the first experiment a file holds samples of.
fn kept(file: &Path) -> usize {
    let results = Results::read(file).unwrap();
    let measured = |outcome: &Outcome| matches!(outcome, Outcome::Measured { .. } | Outcome::Derived { .. });
    results.outcomes().filter(|(row, outcome)| row.spec.id.starts_with("launch-path") && measured(outcome)).count()
}

#[test]
fn a_run_that_is_killed_leaves_a_checkpoint_that_a_resumed_run_goes_on_from() {
    let folder = folder();
    let mut run = in_a_long_sample(folder.path());
    signal(&run, "-KILL");
    run.wait().unwrap();
    let checkpoint = folder.path().join("results.checkpoint.json");
    let rows = kept(&checkpoint);
    assert!(rows > 0 && !folder.path().join("results.json").exists());
    // The rest of the suite is made short.
    let text = fs::read_to_string(&checkpoint).unwrap().replace("6000", "8");
    fs::write(&checkpoint, text).unwrap();
    let output = report(&["run", "--resume", "results.checkpoint.json"], folder.path());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let results = Results::read(&folder.path().join("results.json")).unwrap();
    assert_eq!(results.run().outcome, RunOutcome::Complete);
    assert_eq!(kept(&folder.path().join("results.json")), rows);
    assert_eq!(names(folder.path()), ["results.json", "suite.yaml"]);
}

#[test]
fn a_checkpoint_that_an_earlier_run_left_is_named_once_and_none_where_there_is_none() {
    let folder = folder();
    let said = || {
        let output = report(&[&RUN[..], &["--runs", "2", "--out", "results.json"]].concat(), folder.path());
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        stderr(&output).matches("an earlier run did not end").count()
    };
    assert_eq!(said(), 0);
    fs::copy(folder.path().join("results.json"), folder.path().join("results.checkpoint.json")).unwrap();
    assert_eq!(said(), 1);
}

#[test]
fn a_file_that_a_run_goes_on_from_stays_where_the_results_go_elsewhere() {
    let folder = measured();
    let text = fs::read_to_string(folder.path().join("results.json")).unwrap();
    let mut results: serde_json::Value = serde_json::from_str(&text).unwrap();
    results["rows"].as_array_mut().unwrap().truncate(8);
    results["runs"][0]["outcome"] = "interrupted".into();
    let part = results.to_string();
    fs::write(folder.path().join("part.json"), &part).unwrap();
    let output = report(&["run", "--resume", "part.json", "--out", "new.json"], folder.path());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert_eq!(fs::read_to_string(folder.path().join("part.json")).unwrap(), part);
    assert_eq!(names(folder.path()), ["new.json", "part.json", "results.json", "suite.yaml"]);
}

#[test]
fn a_limit_on_the_length_of_files_ends_no_run() {
    let folder = folder();
    let mut limited = std::process::Command::new("sh");
    limited.current_dir(folder.path()).args(["-c", "ulimit -f 8; exec \"$0\" \"$@\""]);
    let output = limited.arg(env!("CARGO_BIN_EXE_report")).args(RUN).args(["--out", "r.json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("ulimit -f"), "{}", stderr(&output));
}

#[test]
fn a_signal_in_a_long_sample_ends_the_run_soon_and_what_was_measured_is_in_the_results() {
    let folder = folder();
    let mut run = in_a_long_sample(folder.path());
    signal(&run, "-INT");
    let begun = Instant::now();
    assert_eq!(run.wait().unwrap().code(), Some(130));
    // Two seconds, and as much again for a machine that is busy.
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    assert!(kept(&folder.path().join("results.json")) > 0);
    assert_eq!(names(folder.path()), ["results.json", "suite.yaml"]);
}

#[test]
fn a_second_signal_ends_the_run_at_once_and_loses_nothing() {
    let folder = folder();
    let mut run = in_a_long_sample(folder.path());
    signal(&run, "-INT");
    signal(&run, "-TERM");
    assert_eq!(run.wait().unwrap().code(), Some(130));
    assert!(kept(&folder.path().join("results.json")) > 0);
}

#[test]
fn a_run_goes_on_without_a_terminal() {
    let folder = folder();
    let mut run = in_a_long_sample(folder.path());
    signal(&run, "-HUP");
    assert_eq!(run.wait().unwrap().code(), Some(130));
    assert!(kept(&folder.path().join("results.json")) > 0);
}

#[test]
fn where_the_folder_is_gone_at_the_end_the_results_go_elsewhere_and_it_is_said_where() {
    let folder = folder();
    let place = folder.path().join("place");
    fs::create_dir(&place).unwrap();
    let run = in_a_long_sample_for(folder.path(), "place/results");
    // Every write beside the results file fails from now on, also for root.
    fs::remove_dir_all(&place).unwrap();
    fs::write(&place, "a file stands there now").unwrap();
    signal(&run, "-INT");
    let output = run.wait_with_output().unwrap();
    assert_eq!(code(&output), 130, "{}", stderr(&output));
    assert!(stderr(&output).contains("results.checkpoint.json"), "{}", stderr(&output));
    assert!(kept(&folder.path().join("results.checkpoint.json")) > 0);
}

#[test]
fn a_place_that_cannot_be_written_is_refused_before_anything_is_measured() {
    let folder = folder();
    fs::write(folder.path().join("file"), "").unwrap();
    let output = report(&[&RUN[..], &["--out", "file/results.json"]].concat(), folder.path());
    assert_eq!(code(&output), 2, "{}", stderr(&output));
    let closed = folder.path().join("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o500)).unwrap();
    // Root may write everywhere.
    if fs::write(closed.join("probe"), "").is_err() {
        let output = report(&[&RUN[..], &["--out", "closed/results.json"]].concat(), folder.path());
        assert_eq!(code(&output), 2, "{}", stderr(&output));
    }
}

#[test]
fn what_no_machine_has_room_for_fails_its_rows_and_not_the_run() {
    let folder = folder();
    let large = LONG.replace("[6000]", "[150000]")
        + "  - async-frontend: { iters: 1, size: 1000000, chain: 1, large_branch: 8, small_branch: 8, model: 8, steps: 1 }
  - overlap: { draws: 1000000000000, elements: 8, adds: 1, scales: 1, steps: 1 }
";
    fs::write(folder.path().join("suite.yaml"), large).unwrap();
    let output = report(&[&RUN[..], &["--out", "results.json"]].concat(), folder.path());
    assert_eq!(code(&output), 1, "{}", stderr(&output));
    let results = Results::read(&folder.path().join("results.json")).unwrap();
    let failed = results.outcomes().filter(|(_, outcome)| matches!(outcome, Outcome::Failed { .. })).count();
    assert!(failed > 0 && kept(&folder.path().join("results.json")) > 0);
}

#[test]
fn two_runs_do_not_write_the_same_file() {
    let folder = folder();
    let mut run = in_a_long_sample(folder.path());
    let output = report(&[&RUN[..], &["--out", "results.json"]].concat(), folder.path());
    assert_eq!(code(&output), 2, "{}", stderr(&output));
    assert!(stderr(&output).contains("another report"), "{}", stderr(&output));
    run.kill().unwrap();
    run.wait().unwrap();
}
