//! What a file that the user names for output may hold before: nothing, or an earlier one of its kind.

use std::fs;
use std::os::unix::fs::PermissionsExt;

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
        vec!["reproduce", "results.json", "--out", "notes.txt"],
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
fn a_place_where_nothing_can_be_put_is_the_users_to_change_and_found_before_anything_is_measured() {
    let folder = measured();
    let (long, longer) = (format!("{}.json", "x".repeat(225)), "x".repeat(240));
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
fn a_file_whose_name_begins_like_a_flag_is_written_and_named_so_that_it_can_be_read_again() {
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
