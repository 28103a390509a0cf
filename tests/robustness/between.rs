//! What goes wrong between two runs of one results file: what was measured is in it, and the command says how to go on.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use syncscope::device::Device;
use syncscope_results::{Results, SYNCSCOPE};
use tempfile::TempDir;

use super::{RUN, code, folder, names, signals, stderr};

/// Two runs by turns with another system, which is `peer`, a shell script with the file to write as `$5`. `$REPORT` is the
/// program, a copy of its own.
fn by_turns(peer: &str) -> (TempDir, Output) {
    let folder = folder();
    let output = by_turns_in(folder.path(), peer, &folder.path().join("tmp"));
    (folder, output)
}

fn by_turns_in(folder: &Path, peer: &str, temporary: &Path) -> Output {
    command(folder, peer, temporary).output().unwrap()
}

fn command(folder: &Path, peer: &str, temporary: &Path) -> Command {
    signals::hear();
    let mut command = with(folder, &["--with", "pytorch", "--python", "bin/peer"]);
    script(&folder.join("bin/peer"), peer);
    command.env("TMPDIR", temporary);
    command
}

/// Two runs by a copy of the program in a folder of its own, by turns with other systems.
fn with(folder: &Path, systems: &[&str]) -> Command {
    let program = folder.join("bin/report");
    for made in [folder.join("bin"), folder.join("tmp")] {
        fs::create_dir(made).unwrap();
    }
    if fs::hard_link(env!("CARGO_BIN_EXE_report"), &program).is_err() {
        fs::copy(env!("CARGO_BIN_EXE_report"), &program).unwrap();
    }
    let mut command = Command::new(&program);
    command.args(RUN).args(["--runs", "2", "--out", "r.json"]).args(systems);
    command.current_dir(folder).env("REPORT", &program).env("TMPDIR", folder.join("tmp"));
    command
}

fn script(path: &Path, text: &str) {
    // `pytorch.py --plan PLAN --out FILE --attended`: the file is the fifth word.
    fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// How many runs a results file holds, all of this program.
fn runs(file: PathBuf) -> usize {
    let results = Results::read(&file).unwrap();
    assert_eq!(results.systems(), ["syncscope"]);
    assert!(!results.rows.is_empty());
    results.runs.len()
}

#[test]
fn whatever_the_other_system_leaves_the_own_runs_are_all_measured() {
    for (peer, says) in [
        (r#"printf '{"schema_version": 2, "na' > "$5""#, "not the measurements"),
        (r#"printf '\377\376' > "$5""#, "measured.json"),
        (r#"mkdir "$5""#, "pytorch.py ended with"),
        ("exit 3", "pytorch.py ended with"),
        ("kill -9 $$", "pytorch.py ended with"),
        (r#"rm -r "$(dirname "$5")""#, "pytorch.py ended with"),
    ] {
        let (folder, output) = by_turns(peer);
        assert_eq!(code(&output), 1, "{peer}: {}", stderr(&output));
        assert!(stderr(&output).contains("PyTorch is not measured: "), "{peer}: {}", stderr(&output));
        assert!(stderr(&output).contains(says), "{peer}: {}", stderr(&output));
        assert_eq!(runs(folder.path().join("r.json")), 2, "{peer}");
    }
}

/// A program that is beside this one is found there. One that is missing costs its own runs alone.
#[test]
fn programs_of_several_systems_are_measured_by_turns_and_a_missing_one_is_named() {
    let folder = folder();
    let mut command = with(folder.path(), &["--with", "candle", "--with", "cudarc"]);
    let system = r#"{"schema_version": 2, "name": "candle", "started": "2026-11-20T09:30:00Z", "versions": [["candle", "0.11"]],
        "machine": {"model": "MODEL", "fingerprint": null, "driver": null, "cpu": null},
        "rows": [{"id": "crate-calls.candle.blocks", "parameters": {"call": "to-vec1"}, "unit": "ratio",
            "outcome": {"measured": {"samples": [1.0], "stopped_by": "samples"}}}]}"#;
    let device = Device::open("cpu:0").unwrap();
    let system = system.replace("MODEL", &device.properties().model);
    // `syncscope-candle --plan PLAN --out FILE --attended`: the file is the fourth word.
    script(&folder.path().join("bin/syncscope-candle"), &format!("cat > \"$4\" <<'END'\n{system}\nEND"));
    let output = command.env("PATH", "/usr/bin:/bin").output().unwrap();
    let said = stderr(&output);
    assert_eq!(code(&output), 1, "{said}");
    assert!(
        said.contains("cudarc is not measured: there is no program syncscope-cudarc beside this one or on PATH"),
        "{said}"
    );
    let results = Results::read(&folder.path().join("r.json")).unwrap();
    assert_eq!(results.systems(), ["syncscope", "candle"]);
    assert_eq!([SYNCSCOPE, "candle"].map(|system| results.runs_of(system).count()), [2, 2]);
}

#[test]
fn the_process_of_another_system_is_told_of_the_end_of_a_run_that_is_killed() {
    let folder = folder();
    let peer = r#"echo "$6" > began; cat; if test -e killed; then touch ended; else touch early; fi"#;
    let mut command = command(folder.path(), peer, &folder.path().join("tmp"));
    let mut run = command.stderr(Stdio::null()).spawn().unwrap();
    let is_there = |name: &str| folder.path().join(name).exists();
    let until = |name| {
        (0..600).take_while(|_| !is_there(name)).for_each(|_| std::thread::sleep(Duration::from_millis(100)));
        assert!(is_there(name), "{name}");
    };
    until("began");
    fs::write(folder.path().join("killed"), "").unwrap();
    run.kill().unwrap();
    run.wait().unwrap();
    until("ended");
    assert!(!is_there("early"));
    assert_eq!(fs::read_to_string(folder.path().join("began")).unwrap(), "--attended\n");
}

#[test]
fn without_a_place_for_temporary_files_the_own_runs_are_all_measured() {
    let folder = folder();
    let output = by_turns_in(folder.path(), "exit 0", &folder.path().join("missing"));
    assert_eq!(code(&output), 1, "{}", stderr(&output));
    assert!(stderr(&output).contains("PyTorch is not measured: cannot make a folder"), "{}", stderr(&output));
    assert_eq!(runs(folder.path().join("r.json")), 2);
    assert!(!folder.path().join("missing").exists());
}

#[test]
fn an_error_between_two_runs_keeps_the_first_and_says_how_to_go_on() {
    // A link to a program that is gone is called so.
    let replaced = |text: &str| {
        format!(r##"rm "$REPORT"; printf '#!/bin/sh\n{text}\n' > "$REPORT (deleted)"; chmod +x "$REPORT (deleted)""##)
    };
    for (peer, says) in [
        (r#"rm "$REPORT""#.to_owned(), "cannot start a process for the run"),
        (replaced("exit 0"), "run 2 did not begin"),
        (replaced("exit 7"), "run 2 did not begin: its process ended with the exit code 7"),
        (replaced("kill -9 $$"), "run 2 did not begin: its process was ended by signal 9"),
    ] {
        let (folder, output) = by_turns(&peer);
        assert_eq!(code(&output), 1, "{peer}: {}", stderr(&output));
        assert!(stderr(&output).contains(&format!("error: {says}")), "{peer}: {}", stderr(&output));
        assert!(stderr(&output).contains("run --resume r.json"), "{peer}: {}", stderr(&output));
        assert_eq!(runs(folder.path().join("r.json")), 1, "{peer}");
        assert_eq!(names(folder.path()), ["bin", "r.json", "suite.yaml", "tmp"], "{peer}");
        // The program is there again.
        let resumed = super::report(&["run", "--resume", "r.json"], folder.path());
        assert_eq!(code(&resumed), 0, "{}", stderr(&resumed));
        assert_eq!(runs(folder.path().join("r.json")), 2, "{peer}");
    }
}

#[test]
fn what_a_process_sends_and_nobody_can_read_is_left_out_and_told() {
    let junk = "echo junk";
    let peer = format!(
        "rm \"$REPORT\"; cat > \"$REPORT (deleted)\" <<'END'\n#!/bin/sh\n{junk}\nEND\nchmod +x \"$REPORT (deleted)\""
    );
    let (folder, output) = by_turns(&peer);
    assert_eq!(code(&output), 1, "{}", stderr(&output));
    for says in ["a part of what run 2 left cannot be read", "error: run 2 did not begin"] {
        assert!(stderr(&output).contains(says), "{}", stderr(&output));
    }
    assert_eq!(runs(folder.path().join("r.json")), 1);
}
