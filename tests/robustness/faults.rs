//! Every call that changes files fails once, and the process dies once before and after it: what is there then is the old
//! or the new, and no measured row is lost that a checkpoint held.
//!
//! Of a command with many calls a part is taken, the last ones, which put things in place, among them;
//! `SYNCSCOPE_FAULTS=1/1` takes each, and `SYNCSCOPE_FAULTS=2/8` each eighth from the second on. The book is of a course
//! without notebooks and documents, as its files are many alike.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use syncscope_results::{Outcome, Results};
use tempfile::TempDir;

use super::{RUN, code, measured, program, report, stderr};

/// Dead before the call, failed at it, failed from it on, not allowed. Dead after a call is dead before the next, but for the
/// last.
const MODES: [&str; 4] = ["kill", "fail", "full", "deny"];

/// The library that is put between, compiled once.
pub(super) fn library() -> &'static Path {
    static LIBRARY: OnceLock<(TempDir, PathBuf)> = OnceLock::new();
    let (_, path) = LIBRARY.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("faults.so");
        let source = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("tests/robustness/faults.c");
        let status = Command::new("cc").args(["-shared", "-fPIC", "-O1", "-o"]).arg(&path).arg(source).status();
        assert!(status.unwrap().success());
        (folder, path)
    });
    path
}

/// A sample that takes minutes is left, and so is a process that a library keeps from its end.
#[test]
fn an_interrupted_run_ends_also_where_a_library_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let suite = "title: Long\nruns: 1\nsampling: { samples: 1 }\nexperiments:\n  - sync-points: { big: 8192 }\n";
    fs::write(folder.path().join("suite.yaml"), suite).unwrap();
    let mut command = program(folder.path());
    command.args(["run", "--suite", "suite.yaml", "--device", "cpu:0", "--only", "sync-points.big", "--out", "r.json"]);
    command.env("LD_PRELOAD", library()).env("FAULT_MODE", "stay").stderr(Stdio::piped());
    let mut run = command.spawn().unwrap();
    let mut lines = BufReader::new(run.stderr.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("sync-points")), "the experiment began");
    assert!(Command::new("kill").args(["-INT", &run.id().to_string()]).status().unwrap().success());
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = run.try_wait().unwrap() {
            break status;
        }
        if begun.elapsed() > Duration::from_secs(120) {
            let _ = Command::new("pkill").args(["-KILL", "-P", &run.id().to_string()]).status();
            panic!("the run goes on");
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    assert_eq!(status.code(), Some(130));
}

fn faulty(folder: &Path, arguments: &[&str], at: usize, mode: &str) -> Output {
    let temporary = folder.join("tmp");
    fs::create_dir_all(&temporary).unwrap();
    let mut command = program(folder);
    command.args(arguments).env("LD_PRELOAD", library()).env("TMPDIR", temporary);
    command.env("FAULT_AT", at.to_string()).env("FAULT_MODE", mode).env("FAULT_COUNT", folder.join("tmp/count"));
    command.output().unwrap()
}

/// A copy of a folder.
pub(super) fn copied(start: &Path) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let status = Command::new("cp").arg("-a").arg(start.join(".")).arg(folder.path()).status();
    assert!(status.unwrap().success());
    folder
}

/// Runs the command on copies of `start` with a fault at each of its calls, and has `holds` look at each copy.
pub(super) fn at_each_call(
    start: &Path,
    arguments: &[&str],
    most: usize,
    mut holds: impl FnMut(&Path, &str, usize, &Output),
) {
    let whole = copied(start);
    let output = faulty(whole.path(), arguments, 0, "");
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let calls: usize = fs::read_to_string(whole.path().join("tmp/count")).unwrap().parse().unwrap();
    assert!(calls > 3, "the library counted {calls} calls: it does not see them");
    let step = calls.div_ceil(most / 2).max(1);
    let part = std::env::var("SYNCSCOPE_FAULTS").ok().map(|value| {
        let (part, of) = value.split_once('/').unwrap();
        (part.parse::<usize>().unwrap(), of.parse::<usize>().unwrap())
    });
    let chosen = (1..=calls).filter(|call| match part {
        Some((part, of)) => call % of == part % of,
        None => call % step == 0 || call + most / 2 > calls,
    });
    let (begun, mut ended) = (Instant::now(), BTreeMap::new());
    for call in chosen {
        for mode in MODES.into_iter().chain((call == calls).then_some("killed")) {
            let folder = copied(start);
            let output = faulty(folder.path(), arguments, call, mode);
            let killed = output.status.signal() == Some(9);
            assert!(killed || matches!(code(&output), 0..=2), "{mode} {call}: {:?} {}", output.status, stderr(&output));
            if output.status.code() == Some(2) {
                assert!(mode == "deny", "{mode} {call}: no fault of the command: {}", stderr(&output));
                assert!(users(folder.path()) == users(start), "{mode} {call}: refused, and something was done");
            }
            holds(folder.path(), mode, call, &output);
            let end = output.status.code().map_or_else(|| "killed".to_owned(), |code| format!("exit code {code}"));
            *ended.entry(mode).or_insert_with(BTreeMap::new).entry(end).or_insert(0) += 1;
        }
    }
    // Rows of a table: the command, the fault, how often it was tried, what came of it. Each held, or the test had ended.
    let name = arguments.join(" ");
    println!();
    for (mode, ends) in ended {
        let (tried, ends): (usize, Vec<String>) =
            (ends.values().sum(), ends.iter().map(|(end, count)| format!("{end}: {count}")).collect());
        println!("| {name} ({calls} calls) | {mode} | {tried} | {} |", ends.join(", "));
    }
    println!("{name}: {:.0} s", begun.elapsed().as_secs_f64());
}

/// A folder with results and a small course.
pub(super) fn with_course() -> TempDir {
    let start = measured();
    let course = start.path().join("course");
    assert_eq!(code(&report(&["init", "course"], start.path())), 0);
    for folder in ["notebooks", "documents"] {
        fs::remove_dir_all(course.join(folder)).unwrap();
        fs::create_dir(course.join(folder)).unwrap();
    }
    let settings = fs::read_to_string(course.join("book.toml")).unwrap();
    let small = "\n[output.html.search]\nenable = false\n[output.html.print]\nenable = false\n";
    fs::write(course.join("book.toml"), settings + small).unwrap();
    start
}

/// The content of the files of a folder that a user sees, by their path.
fn users(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let is_seen = |path: &PathBuf| {
        let hidden = path.iter().any(|part| part.to_string_lossy().starts_with('.') && part != ".syncscope");
        !hidden && !path.starts_with("tmp")
    };
    tree(folder).into_iter().filter(|(path, _)| is_seen(path)).collect()
}

/// The content of all files below a folder, by their path.
pub(super) fn tree(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(
                tree(&path).into_iter().map(|(name, text)| (Path::new(path.file_name().unwrap()).join(name), text)),
            );
        } else {
            files.insert(path.file_name().unwrap().into(), fs::read(path).unwrap());
        }
    }
    files
}

#[test]
fn of_a_book_the_old_or_the_new_stands_whole_whatever_fails() {
    let start = with_course();
    let results = fs::read_to_string(start.path().join("results.json")).unwrap();
    fs::write(start.path().join("new.json"), results.replace("\"Tiny\"", "\"Another title\"")).unwrap();
    let [old, new] = ["results.json", "new.json"].map(|file| {
        let output = report(&["render", file, "--course", "course", "--out", "out"], start.path());
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        ["book", "site"].map(|name| tree(&start.path().join("out").join(name)))
    });
    assert_eq!(code(&report(&["render", "results.json", "--course", "course", "--out", "out"], start.path())), 0);
    let again = ["render", "new.json", "--course", "course", "--out", "out"];
    at_each_call(start.path(), &again, 6, |folder, mode, call, output| {
        for (place, name) in ["book", "site"].into_iter().enumerate() {
            let there = tree(&folder.join("out").join(name));
            assert!(there == old[place] || there == new[place], "{mode} {call}: {name} is neither old nor new");
            assert!(output.status.code() != Some(0) || there == new[place], "{mode} {call}: {name} is old");
        }
        // The next run clears what this one left.
        if output.status.code() != Some(0) {
            assert_eq!(code(&report(&again, folder)), 0);
            assert_eq!(super::names(&folder.join("out")), ["book", "site"], "{mode} {call}");
        }
    });
}

#[test]
fn of_the_whole_job_results_and_book_are_old_or_new_whatever_fails() {
    let start = with_course();
    let job = ["--suite", "suite.yaml", "--device", "cpu:0", "--course", "course", "--out", "out"];
    let output = report(&job, start.path());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let suite = fs::read_to_string(start.path().join("suite.yaml")).unwrap();
    fs::write(start.path().join("suite.yaml"), suite.replace("Tiny", "Another title")).unwrap();
    let [old_book, old_site] = ["book", "site"].map(|name| tree(&start.path().join("out").join(name)));
    let is_new = |text: &[u8]| String::from_utf8_lossy(text).contains("Another title");
    at_each_call(start.path(), &job, 4, |folder, mode, call, output| {
        let out = folder.join("out");
        let results = fs::read(out.join("results.json")).unwrap();
        assert!(Results::read(&out.join("results.json")).is_ok(), "{mode} {call}");
        let mut all = vec![is_new(&results)];
        for (name, old) in [("book", &old_book), ("site", &old_site)] {
            let there = tree(&out.join(name));
            // Of new samples nobody knows the text; each page that had the title has the new one.
            let titled = old.iter().filter(|(_, text)| String::from_utf8_lossy(text).contains("Tiny"));
            let whole = there.keys().eq(old.keys()) && titled.clone().all(|(path, _)| is_new(&there[path]));
            assert!(titled.count() > 0);
            assert!(there == *old || whole, "{mode} {call}: {name} is neither old nor new");
            all.push(there != *old);
        }
        assert!(output.status.code() != Some(0) || all.iter().all(|new| *new), "{mode} {call}: {all:?}");
    });
}

#[test]
fn of_an_attachment_the_old_or_the_new_file_stands_whole_whatever_fails() {
    let start = measured();
    super::places::system(start.path(), "other");
    let old = Results::read(&start.path().join("results.json")).unwrap();
    at_each_call(start.path(), &["attach", "other", "--into", "results.json"], 8, |folder, mode, call, output| {
        let now = Results::read(&folder.join("results.json")).unwrap();
        assert!(now == old || now.systems().contains(&"other"), "{mode} {call}");
        assert!(output.status.code() != Some(0) || now != old, "{mode} {call}: said to be done");
    });
}

#[test]
fn of_a_run_no_row_is_lost_that_a_checkpoint_held_whatever_fails() {
    let start = measured();
    let old = fs::read(start.path().join("results.json")).unwrap();
    let arguments = [&RUN[..], &["--out", "results.json"]].concat();
    let mut kept_before = BTreeMap::new();
    at_each_call(start.path(), &arguments, 8, |folder, mode, call, output| {
        // Old, or whole.
        let now = fs::read(folder.join("results.json")).unwrap();
        let results = Results::read(&folder.join("results.json")).unwrap();
        let kept = [folder.to_owned(), folder.join("tmp")].iter().map(|place| most_rows(place, now != old)).max();
        let kept = kept.unwrap_or(0);
        match output.status.code() {
            Some(0) => assert!(now != old && !results.has_failures(), "{mode} {call}"),
            // One failure is not enough to lose what was measured. Before the first experiment there is nothing to lose.
            Some(1) if mode == "fail" && stderr(output).contains("\n1/") => {
                assert!(kept > 0, "{mode} {call}: {}", stderr(output))
            }
            _ => {}
        }
        // A process that dies later has kept as much or more.
        if mode.starts_with("kill") {
            let before = kept_before.insert(mode.to_owned(), kept).unwrap_or(0);
            assert!(kept >= before, "{mode} {call}: {before} rows were kept by the call before, {kept} by this one");
        }
    });
}

/// The most rows with samples that a file of a folder holds: of checkpoints, and of the results where they are `new`.
fn most_rows(folder: &Path, new: bool) -> usize {
    let files = fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    let files = files.filter(|path| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        name.contains(".checkpoint") || new && name == "results.json"
    });
    let measured = |outcome: &Outcome| matches!(outcome, Outcome::Measured { .. } | Outcome::Derived { .. });
    let rows =
        |path: PathBuf| Results::read(&path).unwrap().outcomes().filter(|(_, outcome)| measured(outcome)).count();
    files.filter(|path| path.extension().is_some_and(|ending| ending == "json")).map(rows).max().unwrap_or(0)
}
