//! The program among broken pipes, full disks, signals and files from anybody: nothing measured is lost, nothing foreign
//! runs, nothing of the user's is deleted.

#![allow(clippy::unwrap_used)]
#![cfg(unix)]

mod between;
#[cfg(target_os = "linux")]
mod commands;
mod courses;
#[cfg(target_os = "linux")]
mod faults;
mod kept;
mod labs;
mod limits;
mod output;
mod places;
mod replaced;
mod serve;
#[path = "../fixtures/signals.rs"]
mod signals;

use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

const TINY: &str = "title: Tiny
runs: 1
sampling: { samples: 3, warmup: 1 }
experiments:
  - launch-path: { operations: [1, 2], elements: 8, iterations: 2 }
  - ceilings: { copies: [64], sizes: [8], link: [64] }
";

/// A file of the crate.
fn of_crate(path: &str) -> std::path::PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(path)
}

/// The program, in `folder`.
fn program(folder: &Path) -> Command {
    signals::hear();
    let mut command = Command::new(env!("CARGO_BIN_EXE_report"));
    command.current_dir(folder);
    // Programs that stand in for others.
    if folder.join("bin").is_dir() {
        let path = format!("{}:{}", folder.join("bin").display(), std::env::var("PATH").unwrap());
        command.env("PATH", path);
    }
    command
}

fn report(arguments: &[&str], folder: &Path) -> Output {
    program(folder).args(arguments).output().unwrap()
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap_or_else(|| panic!("{}: {}", output.status, stderr(output)))
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A folder with a suite of a second, `suite.yaml`.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("suite.yaml"), TINY).unwrap();
    folder
}

const RUN: [&str; 5] = ["run", "--suite", "suite.yaml", "--device", "cpu:0"];

/// A folder with the results of the suite, `results.json`.
fn measured() -> TempDir {
    let folder = folder();
    let output = report(&[&RUN[..], &["--out", "results.json"]].concat(), folder.path());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    folder
}

/// The names of the files in a folder, sorted.
fn names(folder: &Path) -> Vec<String> {
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}
