//! The program where whoever started it, or the system, gives it less than is usual.

use std::fs;
use std::process::{Command, Output, Stdio};

use super::{RUN, code, folder, measured, names, program, report, stderr};

/// The program, behind a command that changes what it is given.
fn under(before: &[&str], arguments: &[&str], folder: &std::path::Path) -> Output {
    let own = program(folder);
    let mut command = Command::new(before[0]);
    command.args(&before[1..]).arg(own.get_program()).args(arguments).current_dir(folder);
    command.output().unwrap()
}

#[test]
fn the_end_of_a_process_is_known_with_sigchld_ignored() {
    let folder = folder();
    for (arguments, ends) in [
        (&[&RUN[..], &["--runs", "2", "--out", "r.json"]].concat()[..], 0),
        (&["--suite", "suite.yaml", "--device", "cpu:0", "--out", "out"], 0),
        (&["audit", "--", "sh", "-c", "exit 3"], 3),
    ] {
        let output = under(&["env", "--ignore-signal=CHLD"], arguments, folder.path());
        assert_eq!(code(&output), ends, "{arguments:?}: {}", stderr(&output));
    }
}

/// However many threads or processes there may be, a command does its work, or says in words that it cannot.
#[test]
#[cfg(target_os = "linux")]
fn without_a_thread_or_a_process_more_a_command_says_so_or_does_without() {
    let start = measured();
    let collect = report(&["collect", "results.json", "--into", "store"], start.path());
    assert_eq!(code(&collect), 0, "{}", stderr(&collect));
    // How many threads of its own each begins, and processes.
    for (arguments, threads, processes) in [
        (&[&RUN[..], &["--out", "r.json"]].concat()[..], 4, 2),
        (&["bench", "launch-path", "--device", "cpu:0", "--iters", "1", "--samples", "2"], 12, 0),
        (&["collect", "results.json", "--into", "store"], 2, 0),
        (&["audit", "--", "true"], 1, 1),
    ] {
        let tried = [("FAULT_THREADS", threads), ("FAULT_PROCESSES", processes)];
        for (what, from) in tried.into_iter().flat_map(|(what, all)| (1..=all).map(move |from| (what, from))) {
            let mut command = program(start.path());
            command.args(arguments).env("LD_PRELOAD", super::faults::library()).env(what, from.to_string());
            let output = command.output().unwrap();
            let said = stderr(&output);
            assert!(matches!(code(&output), 0..=2), "{what}={from} {arguments:?}: {said}");
            assert!(code(&output) == 0 || said.contains("error: ") || said.contains("failed: "), "{said}");
            assert!(!said.contains("panicked"), "{what}={from} {arguments:?}: {said}");
        }
    }
}

#[test]
fn any_file_name_takes_results_or_is_refused_before_measuring() {
    let folder = folder();
    let long = |length: usize| "r".repeat(length - 5) + ".json";
    for (length, ends) in [(200, 0), (223, 0), (240, 2), (255, 2), (256, 2)] {
        let (name, before) = (long(length), names(folder.path()));
        let output = report(&[&RUN[..], &["--out", &name]].concat(), folder.path());
        assert_eq!(code(&output), ends, "{length}: {}", stderr(&output));
        let made: Vec<String> = names(folder.path()).into_iter().filter(|name| !before.contains(name)).collect();
        assert_eq!(made, if ends == 0 { vec![name] } else { Vec::new() });
        assert!(ends == 0 || stderr(&output).contains("File name too long"), "{}", stderr(&output));
    }
}

/// Of each command that allocates much, one ends where there is no more memory: what a checkpoint held stays.
#[test]
#[cfg(target_os = "linux")]
fn a_limit_on_memory_loses_no_row_that_a_checkpoint_held() {
    let folder = folder();
    let suite = "title: Large\nruns: 1\nsampling: { samples: 2, warmup: 0, seed: 1 }\nexperiments:
  - launch-path: { operations: [1, 2], elements: 8, iterations: 2 }
  - ceilings: { copies: [400000000], sizes: [8], link: [64] }\n";
    fs::write(folder.path().join("suite.yaml"), suite).unwrap();
    let limited = "ulimit -v 1000000; exec \"$0\" \"$@\"";
    let output = under(&["sh", "-c", limited], &[&RUN[..], &["--out", "results.json"]].concat(), folder.path());
    assert_eq!(code(&output), 1, "{}", stderr(&output));
    let text = fs::read_to_string(folder.path().join("results.json")).unwrap();
    assert!(text.contains("launch-path."), "{}", stderr(&output));
}

/// A file system that is full is no place for what is measured: another is, and the user is told.
#[test]
#[cfg(target_os = "linux")]
#[ignore = "mounts a file system, which not every machine allows: `.ci/long` runs it"]
fn results_that_a_full_file_system_does_not_take_go_elsewhere() {
    let folder = folder();
    let small = folder.path().join("small");
    fs::create_dir(&small).unwrap();
    // In a namespace of its own, where any user may mount.
    let script = "mount -t tmpfs -o size=32k none small && exec \"$0\" \"$@\"";
    let arguments = [&RUN[..], &["--out", "small/results.json"]].concat();
    let mounted = under(&["unshare", "-rm", "sh", "-c", script], &arguments, folder.path());
    assert_eq!(code(&mounted), 1, "{}", stderr(&mounted));
    assert!(stderr(&mounted).contains("the results went to results.checkpoint.json instead"), "{}", stderr(&mounted));
    let resumed = report(&["check", "results.checkpoint.json", "--whole"], folder.path());
    assert_eq!(code(&resumed), 0, "{}", stderr(&resumed));
}

/// What cannot be opened is not said to be somebody else's.
#[test]
fn with_too_few_descriptors_what_the_program_made_stays_its_own() {
    let folder = measured();
    for arguments in [
        &["collect", "results.json", "--into", "store", "--csv", "medians.csv"][..],
        &["history", "store", "--page", "page.html"],
        &["submit", "results.json", "--out", "handed-on.json", "--yes"],
        &["render", "results.json", "--out", "out"],
        &[&RUN[..], &["--out", "again.json"]].concat(),
    ] {
        assert_eq!(code(&report(arguments, folder.path())), 0, "{arguments:?}");
        // With less its libraries are not found.
        for most in 4.. {
            let limited = format!("ulimit -n {most}; exec \"$0\" \"$@\"");
            let output = under(&["sh", "-c", &limited], arguments, folder.path());
            let said = stderr(&output) + &String::from_utf8_lossy(&output.stdout);
            for wrong in ["not made by report", "not a file that report wrote", "panicked"] {
                assert!(!said.contains(wrong), "{most} {arguments:?}: {said}");
            }
            if code(&output) == 0 {
                break;
            }
            assert!(said.contains("Too many open files") && most < 40, "{most} {arguments:?}: {said}");
        }
    }
}

#[test]
fn a_suite_whose_results_no_file_can_hold_is_refused_before_anything_is_measured() {
    let folder = folder();
    let text = fs::read_to_string(folder.path().join("suite.yaml")).unwrap();
    let text = text.replace("runs: 1", "runs: 30").replace("samples: 3", "samples: 65535");
    fs::write(folder.path().join("large.yaml"), text).unwrap();
    let run = ["run", "--suite", "large.yaml", "--device", "cpu:0", "--out", "out/r.json"];
    for arguments in [&["check", "large.yaml"][..], &run, &["--suite", "large.yaml", "--device", "cpu:0"]] {
        let output = report(arguments, folder.path());
        assert_eq!(code(&output), 2, "{}", stderr(&output));
        assert!(stderr(&output).contains("256 MB are the most of a file"), "{}", stderr(&output));
    }
    let few = report(&[&run[..], &["--runs", "1", "--only", "launch-path.graph.capture"]].concat(), folder.path());
    assert_eq!(code(&few), 0, "{}", stderr(&few));
    let many = report(&[&RUN[..], &["--runs", "20000"]].concat(), folder.path());
    assert!(code(&many) == 2 && stderr(&many).contains("more than 1000, the most runs"), "{}", stderr(&many));
    assert_eq!(names(folder.path()), ["large.yaml", "out", "suite.yaml"]);
}

#[test]
fn a_file_without_room_for_a_further_run_is_not_gone_on_with_and_stays_as_it_is() {
    let folder = folder();
    let path = folder.path().join("r.json");
    assert_eq!(code(&report(&[&RUN[..], &["--out", "r.json"]].concat(), folder.path())), 0);
    let mut results = syncscope_results::Results::read(&path).unwrap();
    results.plan.runs = 2;
    let reason = "x".repeat(syncscope_results::LONGEST_FILE / 2 + 1);
    results.rows[0].series[0].outcome = syncscope_results::Outcome::Failed { reason };
    results.write(&path).unwrap();
    let before = fs::metadata(&path).unwrap().len();
    let output = report(&["run", "--resume", "r.json"], folder.path());
    assert_eq!(code(&output), 1, "{}", stderr(&output));
    assert!(stderr(&output).contains("another run of syncscope would make the results longer"), "{}", stderr(&output));
    assert!(!stderr(&output).contains("--resume"), "{}", stderr(&output));
    assert_eq!(
        (names(folder.path()), fs::metadata(&path).unwrap().len()),
        (vec!["r.json".into(), "suite.yaml".into()], before)
    );
    // What is longer than a file may be is not written.
    let series = results.rows[0].series[0].clone();
    results.runs.push(syncscope_results::Run { id: "syncscope-2".to_owned(), ..results.runs[0].clone() });
    results.rows[0].series.push(syncscope_results::Series { run: "syncscope-2".to_owned(), ..series });
    let error = results.write(&path).unwrap_err().to_string();
    assert!(error.contains("longer than 256 MB") && fs::metadata(&path).unwrap().len() == before, "{error}");
}

#[test]
fn a_current_folder_that_goes_away_ends_no_run_of_several() {
    let folder = folder();
    let place = folder.path().join("place");
    fs::create_dir(&place).unwrap();
    let out = folder.path().join("results.json");
    let mut run = program(&place);
    run.args(["run", "--device", "cpu:0", "--runs", "3", "--suite"]).arg(folder.path().join("suite.yaml"));
    run.arg("--out").arg(&out).stdout(Stdio::piped()).stderr(Stdio::piped());
    let run = run.spawn().unwrap();
    // The first process of the run has begun by then, or the program has not read its suite: each is a moment to bear it.
    fs::remove_dir_all(&place).unwrap();
    let output = run.wait_with_output().unwrap();
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert_eq!(syncscope_results::Results::read(&out).unwrap().runs.len(), 3);
    assert_eq!(names(folder.path()), ["results.json", "suite.yaml"]);
}
