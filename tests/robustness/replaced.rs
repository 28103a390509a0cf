//! What a file that the user names for output may hold before: nothing, or an earlier one of its kind.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::{RUN, code, folder, measured, names, report, stderr};

#[test]
fn a_file_of_another_kind_is_not_replaced_and_nothing_is_measured() {
    let folder = measured();
    fs::write(folder.path().join("notes.txt"), "mine").unwrap();
    let results = fs::read_to_string(folder.path().join("results.json")).unwrap();
    let part = results.replace("\"outcome\": \"complete\"", "\"outcome\": \"interrupted\"");
    fs::write(folder.path().join("part.json"), part).unwrap();
    let before = names(folder.path());
    let suite = fs::read(folder.path().join("suite.yaml")).unwrap();
    let bench = ["bench", "sync-points", "--device", "cpu:0", "--trace"];
    for arguments in [
        [&RUN[..], &["--out", "suite.yaml"]].concat(),
        [&RUN[..], &["--out", "notes.txt"]].concat(),
        vec!["run", "--resume", "part.json", "--out", "notes.txt"],
        [&bench[..], &["notes.txt"]].concat(),
        [&bench[..], &["results.json"]].concat(),
    ] {
        let output = report(&arguments, folder.path());
        assert_eq!(code(&output), 2, "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains("is not replaced"), "{arguments:?}: {}", stderr(&output));
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
    assert_eq!(names(folder.path()), before);
    assert_eq!(fs::read(folder.path().join("suite.yaml")).unwrap(), suite);
    assert_eq!(fs::read_to_string(folder.path().join("notes.txt")).unwrap(), "mine");
    assert_eq!(fs::read_to_string(folder.path().join("results.json")).unwrap(), results);
}

/// A trace of PyTorch's profiler.
const TRACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/audit/kineto.json");

/// Writes the first lab, with answers in its solutions.
fn answered_lab(path: &Path) {
    let lab = fs::read_to_string(super::of_crate("notebooks/00-quick-start.ipynb")).unwrap();
    let solution = r"// ### BEGIN SOLUTION\n42\n// ### END SOLUTION";
    let answered = lab.replace(r#"todo!(\"your answer\")"#, solution);
    assert!(answered != lab);
    fs::write(path, answered).unwrap();
}

#[test]
fn outputs_replace_only_files_of_their_own_kind() {
    let folder = measured();
    let put = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    put("page.html", "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>Mine</title>\n");
    put("mine.json", "{\n  \"mine\": true\n}\n");
    assert_eq!(code(&report(&["collect", "results.json", "--into", "store"], folder.path())), 0);
    let audit = &["audit", "--from", TRACE][..];
    let (history, machines) = (&["history", "store"][..], &["machines", "store"][..]);
    for (command, flag, own, others) in [
        (audit, "--json", "own.json", &["mine.json", "results.json"][..]),
        (audit, "--html", "audit.html", &["page.html"]),
        (history, "--page", "history.html", &["page.html"]),
        (machines, "--page", "machines.html", &["page.html"]),
    ] {
        for other in others {
            let before = fs::read(folder.path().join(other)).unwrap();
            let output = report(&[command, &[flag, other]].concat(), folder.path());
            assert_eq!(code(&output), 2, "{flag} {other}: {}", stderr(&output));
            assert!(stderr(&output).contains("is not replaced"), "{flag} {other}: {}", stderr(&output));
            assert!(fs::read(folder.path().join(other)).unwrap() == before, "{flag} {other}");
        }
        for _ in 0..2 {
            let output = report(&[command, &[flag, own]].concat(), folder.path());
            assert_eq!(code(&output), 0, "{flag} {own}: {}", stderr(&output));
        }
    }
}

#[test]
fn a_place_where_nothing_can_be_put_is_refused_before_the_work() {
    let folder = measured();
    fs::write(folder.path().join("mine"), "mine").unwrap();
    fs::create_dir_all(folder.path().join("made/slides")).unwrap();
    fs::write(folder.path().join("made/slides/mine"), "mine").unwrap();
    fs::create_dir(folder.path().join("labs")).unwrap();
    answered_lab(&folder.path().join("labs/last.ipynb"));
    answered_lab(&folder.path().join("first.ipynb"));
    answered_lab(&folder.path().join("last.ipynb"));
    let before = names(folder.path());
    // What is to be worked on is not there, so that a command that began its work would say that.
    for (arguments, place) in [
        (&["slides", "none.json", "--out", "made"][..], "made/slides"),
        (&["slides", "none.json", "--out", "mine/deeper"], "mine/deeper"),
        (&["render", "none.json", "--out", "mine/deeper"], "mine/deeper"),
        (&["history", "none", "--page", "mine"], "mine"),
        (&["machines", "none", "--page", "mine"], "mine"),
        (&["collect", "none", "--into", "none", "--csv", "mine"], "mine"),
        (&["submit", "none.json", "--yes", "--out", "mine"], "mine"),
        (&["audit", "--from", "none.json", "--html", "mine"], "mine"),
        (&["lab", "release", "first.ipynb", "last.ipynb", "--out", "labs"], "labs/last.ipynb"),
    ] {
        let output = report(arguments, folder.path());
        assert_eq!(code(&output), 2, "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(&format!("error: {place}")), "{arguments:?}: {}", stderr(&output));
        assert!(!stderr(&output).contains("none"), "{arguments:?}: {}", stderr(&output));
    }
    assert_eq!(names(folder.path()), before);
    assert_eq!(names(&folder.path().join("labs")), ["last.ipynb"]);
    assert_eq!(fs::read_to_string(folder.path().join("mine")).unwrap(), "mine");
}

#[test]
fn a_book_that_cannot_be_made_leaves_no_folder_for_it() {
    let folder = measured();
    for command in ["render", "slides"] {
        let output = report(&[command, "none.json", "--out", "new/deeper"], folder.path());
        assert_eq!(code(&output), 2, "{}", stderr(&output));
        assert_eq!(names(folder.path()), ["results.json", "suite.yaml"]);
    }
}

#[test]
fn a_file_that_a_command_reads_is_not_what_it_writes_to() {
    let folder = measured();
    fs::copy(TRACE, folder.path().join("trace.json")).unwrap();
    answered_lab(&folder.path().join("lab.ipynb"));
    let audit = ["audit", "--from", "trace.json"];
    assert_eq!(code(&report(&[&audit[..], &["--json", "audit.json"]].concat(), folder.path())), 0);
    std::os::unix::fs::symlink("results.json", folder.path().join("link.json")).unwrap();
    fs::hard_link(folder.path().join("results.json"), folder.path().join("same.json")).unwrap();
    for (arguments, read) in [
        (&["submit", "results.json", "--yes", "--out", "results.json"][..], "results.json"),
        (&["submit", "results.json", "--yes", "--out", "link.json"], "results.json"),
        (&["submit", "results.json", "--yes", "--out", "same.json"], "results.json"),
        (&[&audit[..], &["--trace", "trace.json"]].concat(), "trace.json"),
        (&[&audit[..], &["--baseline", "audit.json", "--json", "audit.json"]].concat(), "audit.json"),
        (&["lab", "release", "lab.ipynb", "--out", "."], "lab.ipynb"),
    ] {
        let before = fs::read(folder.path().join(read)).unwrap();
        let output = report(arguments, folder.path());
        assert_eq!(code(&output), 2, "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains("would be lost"), "{arguments:?}: {}", stderr(&output));
        assert!(fs::read(folder.path().join(read)).unwrap() == before, "{arguments:?}");
    }
}

#[test]
fn a_notebook_with_an_answer_is_not_replaced_by_one_without() {
    let folder = folder();
    fs::create_dir(folder.path().join("out")).unwrap();
    let to = folder.path().join("out/00-quick-start.ipynb");
    answered_lab(&folder.path().join("00-quick-start.ipynb"));
    let release = || report(&["lab", "release", "00-quick-start.ipynb", "--out", "out"], folder.path());
    answered_lab(&to);
    assert_eq!(code(&release()), 2, "the worked answers of another copy");
    fs::remove_file(&to).unwrap();
    for _ in 0..2 {
        assert_eq!(code(&release()), 0);
    }
    let answered = fs::read_to_string(&to).unwrap().replacen("todo!(\\\"your answer\\\")", "42", 1);
    fs::write(&to, &answered).unwrap();
    let output = release();
    assert_eq!(code(&output), 2);
    assert!(stderr(&output).contains("is not replaced"), "{}", stderr(&output));
    assert_eq!(fs::read_to_string(&to).unwrap(), answered);
}

#[test]
fn a_pipe_that_results_are_to_be_read_from_and_put_into_is_refused_at_once() {
    let folder = measured();
    assert!(std::process::Command::new("mkfifo").arg(folder.path().join("pipe")).status().unwrap().success());
    let output = report(&["attach", "results.json", "--into", "pipe"], folder.path());
    assert_eq!(code(&output), 2, "{}", stderr(&output));
    assert!(stderr(&output).contains("no plain file"), "{}", stderr(&output));
}

#[test]
fn a_disk_that_is_full_is_no_fault_of_the_command() {
    let folder = measured();
    assert_eq!(code(&report(&["collect", "results.json", "--into", "store"], folder.path())), 0);
    for arguments in
        [&["history", "store", "--page", "/dev/full"][..], &["audit", "--from", TRACE, "--json", "/dev/full"]]
    {
        let output = report(arguments, folder.path());
        assert_eq!(code(&output), 1, "{arguments:?}: {}", stderr(&output));
    }
}

#[test]
fn a_read_only_file_is_not_replaced() {
    let folder = measured();
    let file = folder.path().join("results.json");
    let before = fs::read(&file).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o444)).unwrap();
    let output = report(&[&RUN[..], &["--out", "results.json"]].concat(), folder.path());
    assert_eq!(code(&output), 2, "{}", stderr(&output));
    assert!(stderr(&output).contains("read-only"), "{}", stderr(&output));
    assert_eq!(fs::read(&file).unwrap(), before);
}

#[test]
fn where_the_folder_of_a_file_that_can_be_written_is_closed_the_folder_is_named() {
    let folder = measured();
    let closed = folder.path().join("closed");
    fs::create_dir(&closed).unwrap();
    fs::rename(folder.path().join("results.json"), closed.join("results.json")).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o500)).unwrap();
    // Root may write everywhere.
    if fs::write(closed.join("probe"), "").is_err() {
        let output = report(&[&RUN[..], &["--out", "closed/results.json"]].concat(), folder.path());
        assert_eq!(code(&output), 2, "{}", stderr(&output));
        assert!(stderr(&output).contains("no file can be made in its folder"), "{}", stderr(&output));
    }
}

#[test]
fn an_unwritable_output_is_found_before_anything_is_measured() {
    let folder = measured();
    // A checkpoint's name, and a name, that the file system does not take.
    let (long, longer) = (format!("{}.json", "x".repeat(245)), "x".repeat(256));
    for arguments in [
        vec!["render", "results.json", "--out", "suite.yaml"],
        vec!["init", "suite.yaml"],
        vec!["init", "suite.yaml", "--rust"],
        vec!["bench", "launch-path", "--device", "cpu:0", "--trace", "t.json"],
        vec!["bench", "sync-points", "--device", "cpu:0", "--trace", "suite.yaml/t.json"],
        vec!["bench", "sync-points", "--device", "cpu:0", "--trace", &longer],
        [&RUN[..], &["--out", &long]].concat(),
    ] {
        let output = report(&arguments, folder.path());
        assert_eq!(code(&output), 2, "{arguments:?}: {}", stderr(&output));
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
    assert_eq!(names(folder.path()), ["results.json", "suite.yaml"]);
}

#[test]
fn a_file_named_like_a_flag_is_written_and_named_readably() {
    let folder = folder();
    let output = report(&[&RUN[..], &["--out=-x.json"]].concat(), folder.path());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert_eq!(names(folder.path()), ["-x.json", "suite.yaml"]);
    let output = report(&["render", "./-x.json", "--out=-o"], folder.path());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(String::from_utf8_lossy(&output.stdout).contains("serve ./-o\n"));
}

#[test]
fn a_run_says_what_failed_and_why() {
    let folder = folder();
    let suite = fs::read_to_string(folder.path().join("suite.yaml")).unwrap();
    fs::write(folder.path().join("suite.yaml"), suite.replace("elements: 8", "elements: 60000000000")).unwrap();
    let output = report(&[&RUN[..], &["--out", "results.json"]].concat(), folder.path());
    assert_eq!(code(&output), 1, "{}", stderr(&output));
    assert!(stderr(&output).contains(" failed: "), "{}", stderr(&output));
}
