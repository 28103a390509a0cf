//! What holds of each command, and of those below it: an example, a page of the manual, the program's own name.

use std::path::Path;
use std::process::{Command, Output};

use syncscope_report::App;

use super::{code, report, stderr, stdout};

/// Each command below `command` that is shown, by the words that call it.
pub(crate) fn commands(command: clap::Command) -> Vec<(Vec<String>, clap::Command)> {
    let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
    shown
        .flat_map(|own| {
            let name = own.get_name().to_owned();
            let below = commands(own.clone()).into_iter().map({
                let name = name.clone();
                move |(path, command)| ([vec![name.clone()], path].concat(), command)
            });
            [(vec![name], own.clone())].into_iter().chain(below).collect::<Vec<_>>()
        })
        .collect()
}

/// The words that call each command.
fn paths() -> Vec<Vec<String>> {
    let paths: Vec<_> = commands(App::new().command()).into_iter().map(|(path, _)| path).collect();
    for known in ["bench", "init", "lab check"] {
        assert!(paths.iter().any(|path| path.join(" ") == known), "{known} is not found");
    }
    paths
}

#[test]
fn every_command_has_an_example_in_its_help() {
    let folder = tempfile::tempdir().unwrap();
    for path in paths() {
        let arguments: Vec<&str> = path.iter().map(String::as_str).chain(["--help"]).collect();
        let help = stdout(&report(&arguments, folder.path()));
        assert!(help.contains("Example") && help.contains(&format!("\n  report {}", path.join(" "))), "{help}");
    }
}

/// Runs the program by its other name where nothing is installed.
fn syncscope(arguments: &[&str], folder: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_syncscope"));
    let command = command.args(arguments).current_dir(folder).env("JUPYTER_DATA_DIR", folder.join("data"));
    command.env_remove("VIRTUAL_ENV").env_remove("CONDA_PREFIX").output().unwrap()
}

/// That a text advises nobody to start a program of another name.
#[track_caller]
fn names_no_other_program(said: &str, what: &str) {
    let words = said.replace(['\n', '\r'], " ");
    let of_another = ["`report ", "  report "];
    let found = of_another.iter().find(|other| words.contains(*other));
    assert_eq!(found, None, "{what}: {said}");
}

#[test]
fn help_names_the_program_that_was_started() {
    let folder = tempfile::tempdir().unwrap();
    for path in [vec![vec![]], paths()].concat() {
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        for arguments in [[&path[..], &["--help"]].concat(), [&path[..], &["-h"]].concat()] {
            let output = syncscope(&arguments, folder.path());
            assert_eq!(code(&output), 0, "{arguments:?}: {}", stderr(&output));
            names_no_other_program(&stdout(&output), &arguments.join(" "));
        }
    }
}

#[test]
fn a_refusal_names_the_program_that_was_started() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.nsys-rep"), "no trace").unwrap();
    std::fs::copy(
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("notebooks/00-quick-start.ipynb"),
        folder.path().join("lab.ipynb"),
    )
    .unwrap();
    for arguments in [
        &["lab", "check", "lab.ipynb"][..],
        &["audit", "--from", "a.nsys-rep"],
        &["bench", "nothing"],
        &["run", "--suite", "nothing"],
        &["run", "--only", "nothing"],
        &["render", "nothing.json"],
        &["collect", "nothing", "--into", "store"],
        &["history", "nothing"],
        &["machines", "nothing"],
        &["serve", "nothing"],
        &["check", "nothing"],
        &["--suite", "quick", "bench", "overlap"],
    ] {
        let output = syncscope(arguments, folder.path());
        let said = stdout(&output) + &stderr(&output);
        assert!(!said.is_empty(), "{arguments:?} says nothing");
        names_no_other_program(&said, &arguments.join(" "));
    }
}

/// Messages that no test can bring about are read from the sources: each takes the name from `program`.
#[test]
fn no_message_in_the_sources_of_the_command_line_names_the_program_itself() {
    let sources = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let mut folders = ["src/report", "src/results/store", "src/audit", "notebooks/runner/src"]
        .map(|folder| sources.join(folder))
        .to_vec();
    // The package has not all of them.
    folders.retain(|folder| folder.is_dir());
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            if path.extension().is_none_or(|ending| ending != "rs") || path.ends_with("build.rs") {
                continue;
            }
            let source = std::fs::read_to_string(&path).unwrap();
            let code = source.split("\n#[cfg(test)]").next().unwrap_or_default();
            let messages = code.split("after_help = ").enumerate().map(|(index, part)| match index {
                0 => part,
                // What clap shows passes `App::command`.
                _ => part.split_once("\")").map_or("", |(_, rest)| rest),
            });
            let lines = messages.flat_map(str::lines).filter(|line| !line.trim_start().starts_with("//"));
            let named: Vec<&str> = lines.filter(|line| line.contains("`report ")).collect();
            assert!(named.is_empty(), "{}: {named:?}", path.display());
        }
    }
}
