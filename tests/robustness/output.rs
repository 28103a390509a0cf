//! What the program writes, and to whom.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;

use super::{RUN, code, folder, measured, names, program, report, stderr};

/// Every way to have the program print much.
fn loud() -> Vec<Vec<&'static str>> {
    vec![
        vec!["experiments"],
        vec!["devices"],
        vec!["schema", "results"],
        vec!["--help"],
        vec!["claims", "results.json"],
        vec!["compare", "results.json", "results.json"],
        vec!["compare", "results.json", "results.json", "--json"],
        vec!["check", "suite.yaml"],
        vec!["check", "suite.yaml", "--json"],
        vec!["--version"],
        vec!["render", "results.json", "--out", "out"],
        vec!["bench", "launch-path", "--device", "cpu:0", "--iters", "1", "--samples", "2"],
        vec!["--suite", "suite.yaml", "--device", "cpu:0", "--out", "whole"],
    ]
}

#[test]
fn a_reader_that_has_gone_away_changes_neither_what_is_done_nor_the_exit_code() {
    let folder = measured();
    for arguments in loud() {
        // A pipe whose other end is closed from the start.
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let both = Stdio::from(writer.try_clone().unwrap());
        let status = program(folder.path()).args(&arguments).stdout(Stdio::from(writer)).stderr(both).status().unwrap();
        assert_eq!(status.code(), Some(0), "{arguments:?}");
    }
    assert!(
        folder.path().join("whole/results.json").is_file() && folder.path().join("whole/site/index.html").is_file()
    );
}

#[test]
fn output_that_cannot_be_written_is_an_error_and_the_book_is_made_all_the_same() {
    let folder = measured();
    for arguments in loud() {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = program(folder.path()).args(&arguments).stdout(full).output().unwrap();
        assert_eq!(code(&output), 1, "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains("standard output: "), "{}", stderr(&output));
    }
    assert!(
        folder.path().join("whole/site/index.html").is_file() && folder.path().join("out/site/index.html").is_file()
    );
}

#[test]
fn paths_and_arguments_that_are_not_utf8_work() {
    let folder = folder();
    let name = |text: &[u8]| OsStr::from_bytes(text).to_owned();
    fs::rename(folder.path().join("suite.yaml"), folder.path().join(name(b"s\xff.yaml"))).unwrap();
    let output = program(folder.path())
        .args(["run", "--device", "cpu:0", "--suite"])
        .args([name(b"s\xff.yaml"), name(b"--out"), name(b"r\xfe.json")])
        .output()
        .unwrap();
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let arguments = [name(b"render"), name(b"r\xfe.json"), name(b"--out"), name(b"o\xfd")];
    let output = program(folder.path()).args(arguments).output().unwrap();
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(folder.path().join(name(b"o\xfd/site/index.html")).is_file());
    let output = program(folder.path()).arg("check").arg(name(b"s\xff.yaml")).output().unwrap();
    assert_eq!(code(&output), 0, "{}", stderr(&output));
}

/// What a terminal would act on.
const EVIL: &str = "\u{1b}]0;owned\u{7}\r\u{9b}2J\u{202e}\nerror: owned";

#[test]
fn what_a_file_holds_does_not_act_on_the_terminal_nor_on_a_spreadsheet() {
    let folder = measured();
    let text = fs::read_to_string(folder.path().join("results.json")).unwrap();
    let mut results: serde_json::Value = serde_json::from_str(&text).unwrap();
    poison(&mut results, EVIL);
    fs::write(folder.path().join("evil.json"), results.to_string()).unwrap();
    super::places::system(folder.path(), "system");
    for (from, to) in [
        (folder.path().join("system"), "evil-system.json"),
        (super::of_crate("tests/audit/kineto.json"), "evil-trace.json"),
        (super::of_crate("notebooks/00-quick-start.ipynb"), "evil.ipynb"),
    ] {
        let mut content: serde_json::Value = serde_json::from_str(&fs::read_to_string(from).unwrap()).unwrap();
        for event in content["traceEvents"].as_array_mut().into_iter().flatten() {
            let name = event["name"].to_string();
            event["name"] = format!("{name}{EVIL}").into();
        }
        poison(&mut content, EVIL);
        fs::write(folder.path().join(to), content.to_string()).unwrap();
    }
    fs::write(folder.path().join("evil.yaml"), "title: \"\\e[2J\"\nsampling: {}\n\"\\e[2J\\u202e\": 1\n").unwrap();
    for arguments in [
        &["claims", "evil.json"][..],
        &["compare", "evil.json", "evil.json"],
        &["compare", "evil.json", "evil.json", "--json"],
        &["compare", "evil.json", "evil.json", "--format", "markdown"],
        &["compare", "results.json", "evil.json"],
        &["claims", "evil.json", "--json"],
        &["check", "evil.json"],
        &["check", "evil.json", "--json"],
        &["check", "evil.yaml", "--json"],
        &["attach", "evil.json"],
        &["attach", "evil-system.json"],
        &["audit", "--from", "evil-trace.json"],
        &["lab", "check", "evil.ipynb"],
        &["slides", "evil.json", "--out", "out"],
        &["submit", "evil.json"],
        &["collect", "evil.json", "--into", "store"],
        &["machines", "store"],
        &["history", "store"],
        &["check", "evil.yaml"],
        &["render", "evil.json", "--out", "out"],
        &["run", "--resume", "evil.json"],
    ] {
        let output = report(arguments, folder.path());
        for bytes in [&output.stdout, &output.stderr] {
            let text = String::from_utf8(bytes.clone()).unwrap();
            let acting = |c: char| (c.is_control() && c != '\n' && c != '\t') || ('\u{202a}'..='\u{202e}').contains(&c);
            assert!(!text.contains(acting), "{arguments:?}: {text:?}");
            // A foreign line break begins no line.
            assert!(text.lines().all(|line| !line.trim_start().starts_with("error: owned")), "{arguments:?}: {text}");
        }
    }
    for file in walk(&folder.path().join("out/site")) {
        // Fonts and pictures are no text.
        let Ok(text) = String::from_utf8(fs::read(&file).unwrap()) else { continue };
        assert!(!text.contains('\u{202e}') && !text.contains('\u{1b}'), "{}", file.display());
    }
}

/// Puts `text` into every string that is free to be anything.
fn poison(value: &mut serde_json::Value, text: &str) {
    const FREE: [&str; 11] = [
        "title",
        "label",
        "group",
        "model",
        "cpu",
        "commit",
        "version",
        "summary",
        "formula",
        "grade_id",
        "Kernel Name",
    ];
    match value {
        serde_json::Value::Object(map) => {
            for (name, value) in map {
                match value {
                    serde_json::Value::String(old) if FREE.contains(&name.as_str()) => old.insert_str(0, text),
                    other => poison(other, text),
                }
            }
        }
        serde_json::Value::Array(list) => list.iter_mut().for_each(|value| poison(value, text)),
        _ => {}
    }
}

fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

#[test]
fn the_name_of_a_file_does_not_act_on_the_terminal_that_it_is_refused_on() {
    let folder = folder();
    for arguments in
        [&["render", "--\u{1b}]0;owned\u{7}"][..], &["\u{1b}]0;owned\u{7}"], &["render", "\u{1b}]0;owned\u{7}"]]
    {
        // As on a terminal.
        let output = program(folder.path()).args(arguments).env("CLICOLOR_FORCE", "1").output().unwrap();
        assert_eq!(code(&output), 2, "{arguments:?}");
        let text = stderr(&output);
        assert!(!text.contains(['\u{1b}', '\u{7}']), "{text:?}");
    }
}

#[test]
fn a_line_break_in_the_name_of_a_file_or_in_a_reason_begins_no_line_of_a_message() {
    let folder = folder();
    fs::create_dir(folder.path().join("job")).unwrap();
    fs::write(folder.path().join("job/a\nerror: no.json"), "{}").unwrap();
    for arguments in [
        &["render", "none\nerror: no.json"][..],
        &["none\nerror: no"],
        &["collect", "job", "--into", "store"],
        &["lab", "release", "none\nerror: no", "--out", "x"],
    ] {
        let output = report(arguments, folder.path());
        for text in [String::from_utf8_lossy(&output.stdout).into_owned(), stderr(&output)] {
            assert!(!text.contains("\nerror: no"), "{arguments:?}: {text}");
        }
    }
}

#[test]
fn results_go_into_a_pipe_and_a_device_without_replacing_them() {
    let folder = folder();
    let output = report(&[&RUN[..], &["--out", "/dev/stdout"]].concat(), folder.path());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(serde_json::from_slice::<serde_json::Value>(&output.stdout).is_ok(), "it is the file alone");
    assert!(stderr(&output).contains("results: /dev/stdout"), "{}", stderr(&output));
    assert_eq!(names(folder.path()), ["suite.yaml"]);
}

#[test]
fn a_file_that_is_standard_output_has_it_alone() {
    let folder = measured();
    fs::copy(super::of_crate("tests/audit/kineto.json"), folder.path().join("trace.json")).unwrap();
    assert_eq!(code(&report(&["collect", "results.json", "--into", "store"], folder.path())), 0);
    for command in [
        &["submit", "results.json", "--yes", "--out"][..],
        &["collect", "--into", "store", "--csv"],
        &["history", "store", "--page"],
        &["machines", "store", "--json", "--page"],
        &["audit", "--from", "trace.json", "--json"],
        &["audit", "--from", "trace.json", "--html"],
    ] {
        let [whole, output] = ["file", "/dev/stdout"].map(|place| report(&[command, &[place]].concat(), folder.path()));
        assert_eq!((code(&whole), code(&output)), (0, 0), "{command:?}: {}", stderr(&output));
        let file = folder.path().join("file");
        assert!(output.stdout == fs::read(&file).unwrap(), "{command:?}");
        assert!(
            !whole.stdout.is_empty() && stderr(&output).len() >= whole.stdout.len(),
            "{command:?}: what it says is lost"
        );
        fs::remove_file(file).unwrap();
    }
}
