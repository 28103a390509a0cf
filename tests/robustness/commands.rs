//! The table of the commands that make files: each is held to what [`faults`](super::faults) does to it, and each file is
//! old or new then.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::faults::{at_each_call, copied, tree, with_course};
use super::{code, of_crate, report, stderr};

/// When a file counts as new.
#[derive(Clone, Copy, PartialEq)]
enum New {
    /// It is what a run without faults makes.
    Same,
    /// It is whole JSON: of other samples nobody knows the text.
    Json,
    /// It is what a run without faults makes, as far as it came: of a folder that is the user's from its first file on.
    Begun,
}

/// A command, how many of its calls fail at least, and when a file of it is new.
type Made = (&'static [&'static str], usize, New);

const COLLECT: &[&str] = &["collect", "later.json", "--into", "store", "--csv", "medians.csv"];
const OF_A_STORE: [Made; 3] = [
    (COLLECT, 4, New::Same),
    (&["history", "store", "--page", "history.html"], 4, New::Same),
    (&["machines", "store", "--page", "machines.html"], 4, New::Same),
];

const OF_RESULTS: [Made; 3] = [
    (&["render", "new.json", "--course", "course", "--audit", "audit.json", "--out", "out"], 2, New::Same),
    (&["slides", "new.json", "--course", "course", "--out", "out"], 2, New::Same),
    (&["submit", "results.json", "--yes", "--out", "submitted.json"], 2, New::Same),
];

const OF_OTHERS: [Made; 7] = [
    (&["init", "begun"], 4, New::Begun),
    (&["init", "--rust", "crate"], 2, New::Begun),
    (&["fleet", "--suite", "suite.yaml", "--device", "cpu:0", "--out", "job"], 4, New::Same),
    (&["lab", "release", "lab.ipynb", "--out", "labs"], 2, New::Same),
    (&["audit", "--from", "trace.json", "--json", "audit.json", "--html", "audit.html"], 2, New::Same),
    (&["audit", "--from", "trace.json", "--trace", "own.json", "--budget", "budget.yaml"], 2, New::Same),
    (
        &[
            "bench",
            "overlap",
            "--course",
            "course",
            "--device",
            "cpu:0",
            "--iters",
            "1",
            "--samples",
            "1",
            "--time-limit",
            "0.001",
            "--trace",
            "bench.json",
        ],
        2,
        New::Json,
    ),
];

/// The files of a folder but those that are temporary. A path of the folder in them is the same in each.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let place = folder.display().to_string();
    let same = |text: Vec<u8>| match String::from_utf8(text) {
        Ok(text) => text.replace(&place, "FOLDER").into_bytes(),
        Err(bytes) => bytes.into_bytes(),
    };
    let kept = tree(folder).into_iter().filter(|(path, _)| !path.starts_with("tmp"));
    kept.map(|(path, text)| (path, same(text))).collect()
}

impl New {
    /// Whether a file is new, where `made` is what a run without faults makes.
    fn is(self, there: &[u8], made: &[u8]) -> bool {
        match self {
            New::Same => there == made,
            New::Json => there == made || serde_json::from_slice::<serde_json::Value>(there).is_ok(),
            New::Begun => made.starts_with(there),
        }
    }
}

/// Holds a command to that: with a fault each file is old or new, none is lost, and the same command makes up for it and
/// leaves nothing else.
fn each_file_is_old_or_new(start: &Path, (arguments, most, new): Made) {
    let whole = copied(start);
    let output = report(arguments, whole.path());
    assert_eq!(code(&output), 0, "{arguments:?} {}", stderr(&output));
    let (old, made) = (files(start), files(whole.path()));
    assert!(old != made, "{arguments:?} changes nothing");
    at_each_call(start, arguments, most, |folder, mode, call, output| {
        let now = files(folder);
        assert!(old.keys().all(|path| now.contains_key(path)), "{arguments:?} {mode} {call}: a file is lost");
        // A folder that is not in its place yet is hidden, too, and what a run kept stays: no row of it is lost.
        let is_seen =
            |path: &Path| old.contains_key(path) || made.contains_key(path) || !is_hidden(path) && !is_kept(path);
        let seen = |files: &BTreeMap<PathBuf, Vec<u8>>| -> BTreeMap<PathBuf, Vec<u8>> {
            files.iter().filter(|(path, _)| is_seen(path)).map(|(path, text)| (path.clone(), text.clone())).collect()
        };
        let seen_now = seen(&now);
        let is_new = |path: &PathBuf, text: &[u8]| made.get(path).is_some_and(|made| new.is(text, made));
        for (path, text) in &seen_now {
            let is_whole = old.get(path) == Some(text) || is_new(path, text);
            assert!(is_whole, "{arguments:?} {mode} {call}: {} is neither old nor new", path.display());
        }
        let is_done = |now: &BTreeMap<PathBuf, Vec<u8>>| {
            let exact = if new == New::Begun { New::Same } else { new };
            now.len() == made.len()
                && made.iter().all(|(path, made)| now.get(path).is_some_and(|now| exact.is(now, made)))
        };
        assert!(output.status.code() != Some(0) || is_done(&seen_now), "{arguments:?} {mode} {call}: said to be done");
        let again = report(arguments, folder);
        let now = files(folder).into_iter().filter(|(path, _)| !is_kept(path)).collect();
        // A folder of the user's that was whole is not filled twice.
        if code(&again) == 2 && is_done(&seen_now) {
            return assert!(is_done(&seen(&now)), "{arguments:?} {mode} {call}: a refusal changed what was whole");
        }
        assert_eq!(code(&again), 0, "{arguments:?} {mode} {call}: {}", stderr(&again));
        let names = |files: &BTreeMap<PathBuf, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
        assert!(is_done(&now), "{arguments:?} {mode} {call}: {:?} and not {:?}", names(&now), names(&made));
    });
}

fn is_kept(path: &Path) -> bool {
    path.to_string_lossy().contains(".checkpoint")
}

fn is_hidden(path: &Path) -> bool {
    path.iter().any(|part| part.to_string_lossy().starts_with('.'))
}

/// A folder with results, others with another title and of another device, and a small course.
fn with_new_results() -> tempfile::TempDir {
    let start = with_course();
    fs::copy(of_crate("tests/audit/kineto-audit.json"), start.path().join("audit.json")).unwrap();
    let results = fs::read_to_string(start.path().join("results.json")).unwrap();
    let new = results.replace("\"Tiny\"", "\"Another title\"").replace("\"CPU engine\"", "\"Another engine\"");
    fs::write(start.path().join("new.json"), new).unwrap();
    let place = ["--course", "course", "--out", "out"];
    for command in [&["render", "results.json", "--audit", "audit.json"][..], &["slides", "results.json"]] {
        let output = report(&[command, &place].concat(), start.path());
        assert_eq!(code(&output), 0, "{}", stderr(&output));
    }
    start
}

#[test]
fn of_what_is_made_of_results_each_file_is_old_or_new_whatever_fails() {
    let start = with_new_results();
    OF_RESULTS.into_iter().for_each(|made| each_file_is_old_or_new(start.path(), made));
}

#[test]
fn of_a_store_and_what_is_written_of_it_each_file_is_old_or_new_whatever_fails() {
    let start = super::measured();
    let collect = |arguments: &[&str]| {
        let output = report(arguments, start.path());
        assert_eq!(code(&output), 0, "{}", stderr(&output));
    };
    let results = fs::read_to_string(start.path().join("results.json")).unwrap();
    for (file, day) in [("results.json", "2020-01-01"), ("later.json", "2021-01-01")] {
        let mut of_day: serde_json::Value = serde_json::from_str(&results).unwrap();
        of_day["runs"][0]["started"] = format!("{day}T00:00:00Z").into();
        fs::write(start.path().join(file), of_day.to_string()).unwrap();
    }
    collect(&["collect", "results.json", "--into", "store", "--csv", "medians.csv"]);
    collect(&["history", "store", "--page", "history.html"]);
    for made in OF_A_STORE {
        each_file_is_old_or_new(start.path(), made);
        if made.0 == COLLECT {
            collect(COLLECT);
        }
    }
}

#[test]
fn of_what_is_begun_handed_on_or_audited_each_file_is_old_or_new_whatever_fails() {
    let start = with_course();
    let at = |name: &str| start.path().join(name);
    fs::copy(of_crate("notebooks/00-quick-start.ipynb"), at("lab.ipynb")).unwrap();
    fs::copy(of_crate("tests/audit/kineto.json"), at("trace.json")).unwrap();
    fs::write(at("budget.yaml"), "waits: 1000\n").unwrap();
    // A scheduler that takes each job.
    fs::create_dir(at("bin")).unwrap();
    fs::write(at("bin/sbatch"), "#!/bin/sh\necho 1\n").unwrap();
    fs::set_permissions(at("bin/sbatch"), fs::Permissions::from_mode(0o755)).unwrap();
    OF_OTHERS.into_iter().for_each(|made| each_file_is_old_or_new(start.path(), made));
}
