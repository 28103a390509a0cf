//! A run among full disks, folders that go away and signals.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use syncscope_results::{Outcome, Results, RunOutcome};

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
    begun(program(folder), folder, out)
}

/// The same of a program that is begun in a way of its own.
fn begun(mut run: Command, folder: &Path, out: &str) -> Child {
    fs::write(folder.join("suite.yaml"), LONG).unwrap();
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
    let status = Command::new("kill").args([signal, &run.id().to_string()]).status();
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
    let whole = Results::read(&checkpoint).unwrap().to_content(&checkpoint).unwrap();
    let text = String::from_utf8(whole).unwrap().replace("6000", "8");
    let mut short: serde_json::Value = serde_json::from_str(&text).unwrap();
    // The figure may stand in a sample, too.
    short.as_object_mut().unwrap().remove("samples_sha256");
    fs::write(&checkpoint, short.to_string()).unwrap();
    let output = report(&["run", "--resume", "results.checkpoint.json"], folder.path());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let results = Results::read(&folder.path().join("results.json")).unwrap();
    assert_eq!(results.run().outcome, RunOutcome::Complete);
    assert_eq!(kept(&folder.path().join("results.json")), rows);
    assert_eq!(names(folder.path()), ["results.json", "suite.yaml"]);
}

#[test]
fn a_run_that_is_killed_as_its_process_begins_leaves_none_that_measures() {
    let folder = folder();
    // No machine takes all samples while the test waits.
    let endless = LONG.replace("samples: 2", "samples: 1000000, time_limit: 86400");
    fs::write(folder.path().join("suite.yaml"), endless).unwrap();
    let mut run =
        program(folder.path()).args(RUN).args(["--out", "results.json"]).stderr(Stdio::null()).spawn().unwrap();
    let measuring = || {
        let found =
            Command::new("pgrep").args(["-P", &run.id().to_string(), "-f", "--", "next-run.* -- "]).output().unwrap();
        String::from_utf8(found.stdout).unwrap().trim().to_owned()
    };
    until(|| !measuring().is_empty());
    let process = measuring();
    signal(&run, "-KILL");
    run.wait().unwrap();
    until(|| !Path::new("/proc").join(&process).exists());
}

#[test]
fn a_run_that_is_killed_before_its_results_are_in_their_place_is_gone_on_with() {
    let folder = measured();
    let [results, checkpoint] = ["results.json", "results.checkpoint.json"].map(|name| folder.path().join(name));
    let content = fs::read(&results).unwrap();
    fs::rename(&results, &checkpoint).unwrap();
    let output = report(&["run", "--resume", "results.checkpoint.json"], folder.path());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(fs::read(&results).unwrap() == content);
    assert_eq!(names(folder.path()), ["results.json", "suite.yaml"]);
}

#[test]
fn a_run_whose_process_is_killed_says_how_it_ended_and_keeps_what_it_had() {
    let folder = folder();
    let run = in_a_long_sample(folder.path());
    let killed = Command::new("pkill").args(["-KILL", "-P", &run.id().to_string()]).status();
    assert!(killed.unwrap().success());
    let output = run.wait_with_output().unwrap();
    assert_eq!(code(&output), 1, "{}", stderr(&output));
    assert!(stderr(&output).contains("run 1: its process was ended by signal 9"), "{}", stderr(&output));
    assert!(kept(&folder.path().join("results.json")) > 0);
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
    part(folder.path(), "part.json", |_| {});
    let part = fs::read_to_string(folder.path().join("part.json")).unwrap();
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
    assert!(!stderr(&output).contains("nothing was measured"), "{}", stderr(&output));
}

#[test]
fn a_limit_on_file_sizes_is_told_and_leaves_no_working_folder() {
    let folder = measured();
    let mut limited = std::process::Command::new("sh");
    limited.current_dir(folder.path()).args(["-c", "ulimit -f 8; exec \"$0\" \"$@\""]);
    let output = limited.args([env!("CARGO_BIN_EXE_report"), "render", "results.json", "--out", "o"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("error: "), "{}", stderr(&output));
    assert!(names(&folder.path().join("o")).is_empty());
}

#[test]
fn an_interrupt_before_the_first_row_leaves_no_file_and_names_none() {
    let folder = folder();
    let mut run = program(folder.path());
    run.args(RUN).args(["--out", "r.json"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut run = run.spawn().unwrap();
    let mut lines = BufReader::new(run.stderr.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().starts_with("run 1 of 1")), "the run began");
    signal(&run, "-INT");
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    let output = run.wait_with_output().unwrap();
    assert_eq!(code(&output), 130, "{rest:?}");
    // Where the process that measures was quick, it has left rows, and their file is named.
    let is_kept = folder.path().join("r.json").exists();
    let said = |part: &str| rest.iter().any(|line| line.contains(part));
    assert_eq!(
        (said("nothing was measured"), said("--resume"), output.stdout.is_empty()),
        (!is_kept, is_kept, !is_kept)
    );
    assert_eq!(names(folder.path()).len(), if is_kept { 2 } else { 1 });
}

#[test]
fn two_runs_that_are_rescued_into_one_folder_keep_both_results() {
    let folder = folder();
    let runs = ["p", "q"].map(|place| {
        fs::create_dir(folder.path().join(place)).unwrap();
        in_a_long_sample_for(folder.path(), &format!("{place}/results"))
    });
    for place in ["p", "q"].map(|place| folder.path().join(place)) {
        fs::remove_dir_all(&place).unwrap();
        fs::write(&place, "a file stands there now").unwrap();
    }
    runs.iter().for_each(|run| signal(run, "-INT"));
    for run in runs {
        let output = run.wait_with_output().unwrap();
        assert_eq!(code(&output), 130, "{}", stderr(&output));
    }
    for name in ["results.checkpoint.json", "results.checkpoint-2.json"] {
        assert!(kept(&folder.path().join(name)) > 0, "{name}");
    }
}

/// Makes a part of a finished run's results, in the file `name`.
fn part(folder: &Path, name: &str, change: impl FnOnce(&mut serde_json::Value)) {
    let text = fs::read_to_string(folder.join("results.json")).unwrap();
    let mut results: serde_json::Value = serde_json::from_str(&text).unwrap();
    results["rows"].as_array_mut().unwrap().truncate(8);
    results["runs"][0]["outcome"] = "interrupted".into();
    // The digest is of all samples.
    results.as_object_mut().unwrap().remove("samples_sha256");
    change(&mut results);
    fs::write(folder.join(name), results.to_string()).unwrap();
}

#[test]
fn of_two_that_go_on_with_one_file_the_second_replaces_nothing() {
    let folder = measured();
    part(folder.path(), "part.json", |_| {});
    let resume = || {
        let mut command = program(folder.path());
        command.args(["run", "--resume", "part.json"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let both = [resume(), resume()].map(|run| run.wait_with_output().unwrap());
    let mut codes = both.each_ref().map(code);
    codes.sort_unstable();
    assert_eq!(codes, [0, 2], "{:?}", both.each_ref().map(stderr));
    let refusal = both.iter().find(|output| code(output) == 2).map(stderr).unwrap();
    assert!(refusal.contains("the run is complete") || refusal.contains("another report"), "{refusal}");
}

#[test]
fn the_results_of_another_run_are_not_replaced_by_a_checkpoint_of_that_name_alone() {
    let folder = measured();
    part(folder.path(), "results.checkpoint.json", |results| {
        results["runs"][0]["started"] = "2020-01-01T00:00:00Z".into();
    });
    let read = |name: &str| fs::read(folder.path().join(name)).unwrap();
    let before = [read("results.json"), read("results.checkpoint.json")];
    let resume = ["run", "--resume", "results.checkpoint.json"];
    let output = report(&resume, folder.path());
    assert_eq!(code(&output), 2, "{}", stderr(&output));
    assert!(stderr(&output).contains("results.json: it holds another run"), "{}", stderr(&output));
    assert_eq!([read("results.json"), read("results.checkpoint.json")], before);
    let output = report(&[&resume[..], &["--out", "results.json"]].concat(), folder.path());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert_eq!(names(folder.path()), ["results.json", "suite.yaml"]);
}

#[test]
fn a_signal_in_a_long_sample_ends_the_run_and_keeps_its_samples() {
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
    let run = in_a_long_sample(folder.path());
    signal(&run, "-INT");
    signal(&run, "-TERM");
    let output = run.wait_with_output().unwrap();
    assert_eq!(code(&output), 130, "{}", stderr(&output));
    assert!(kept(&folder.path().join("results.json")) > 0);
    // The one file that is there in the end is named, and no other.
    let text = stderr(&output);
    assert!(text.contains("run --resume results.json") && !text.contains("checkpoint"), "{text}");
}

/// The program with signals as `trap` says, options of `env`.
fn trapped(folder: &Path, trap: &str) -> Child {
    let own = program(folder);
    let mut run = Command::new("env");
    run.args(trap.split(' ')).arg("--").arg(own.get_program()).current_dir(folder);
    run.envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
    begun(run, folder, "results")
}

#[test]
fn a_terminal_that_goes_away_ends_a_run_and_keeps_what_it_measured() {
    let folder = folder();
    let mut run = trapped(folder.path(), "--default-signal=HUP");
    signal(&run, "-HUP");
    assert_eq!(run.wait().unwrap().code(), Some(130));
    assert!(kept(&folder.path().join("results.json")) > 0);
}

#[test]
fn a_run_that_is_to_outlive_its_terminal_ends_by_another_signal_alone() {
    let folder = folder();
    let mut run = trapped(folder.path(), "--ignore-signal=HUP");
    let status = fs::read_to_string(format!("/proc/{}/status", run.id())).unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap().trim();
    assert_eq!(u64::from_str_radix(ignored, 16).unwrap() & 1, 1, "it listens for the end of its terminal");
    signal(&run, "-HUP");
    signal(&run, "-TERM");
    assert_eq!(run.wait().unwrap().code(), Some(130));
    assert!(kept(&folder.path().join("results.json")) > 0);
}

#[test]
fn a_signal_that_a_run_is_to_ignore_asks_nothing_of_it_and_of_its_processes() {
    for (ignored, asks) in [("INT", "-TERM"), ("INT,TERM", "-HUP")] {
        let folder = folder();
        let mut run = trapped(folder.path(), &format!("--ignore-signal={ignored} --default-signal=HUP"));
        for signal_ in ignored.split(',') {
            signal(&run, &format!("-{signal_}"));
        }
        assert!(run.try_wait().unwrap().is_none(), "{ignored}");
        let status = fs::read_to_string(format!("/proc/{}/status", run.id())).unwrap();
        let set = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap().trim();
        assert_eq!(u64::from_str_radix(set, 16).unwrap() >> 1 & 1, 1, "it listens for an interrupt");
        signal(&run, asks);
        assert_eq!(run.wait().unwrap().code(), Some(130), "{ignored}");
        assert!(kept(&folder.path().join("results.json")) > 0);
    }
}

#[test]
fn results_are_found_in_a_folder_whose_name_is_no_text() {
    let outer = folder();
    let (place, other) = (outer.path().join("place"), outer.path().join(OsStr::from_bytes(b"t\xff")));
    fs::create_dir(&place).unwrap();
    fs::create_dir(&other).unwrap();
    let mut own = program(&place);
    own.env("TMPDIR", &other);
    let run = begun(own, &place, "results");
    // Neither beside the results file nor in the current folder can anything be written from now on.
    fs::remove_dir_all(&place).unwrap();
    signal(&run, "-INT");
    let output = run.wait_with_output().unwrap();
    assert_eq!(code(&output), 130, "{}", stderr(&output));
    let kept_there = fs::read_dir(&other).unwrap().map(|entry| entry.unwrap().path());
    let file = kept_there.into_iter().find(|path| path.extension().is_some_and(|ending| ending == "json"));
    assert!(kept(&file.unwrap()) > 0);
}

#[test]
fn results_go_elsewhere_where_their_folder_is_gone_at_the_end() {
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
  - overlap: { draws: 60000000000, elements: 8, adds: 1, scales: 1, steps: 1 }
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
