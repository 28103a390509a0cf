//! `report audit` on programs that use a stand-in for the CUDA driver and for CUPTI (`fake.c`), whose clock runs only when a
//! call takes time: what is found is the same on any machine.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod armed;
mod budget;
#[path = "../fixtures/signals.rs"]
mod hearing;
mod held;
#[cfg(feature = "nsys")]
mod nsys;
mod programs;
mod signals;
#[cfg(feature = "symbols")]
mod symbols;
mod traces;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use serde_json::Value;
use syncscope_audit::{AuditReport, Reason};
use tempfile::TempDir;

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/audit");

/// The folder with the stand-in, compiled once.
fn stand_in() -> &'static Path {
    static FOLDER: OnceLock<TempDir> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        compile("fake.c", &["-shared", "-fPIC", "-Wl,-soname,libcupti.so.13"], &folder.path().join("libcupti.so.13"));
        std::os::unix::fs::symlink("libcupti.so.13", folder.path().join("libcuda.so.1")).unwrap();
        folder
    });
    folder.path()
}

fn compile(source: &str, flags: &[&str], out: &Path) {
    let mut command = Command::new("cc");
    command.args(["-O1", "-g"]).arg("-o").arg(out).arg(Path::new(SOURCES).join(source)).args(flags);
    assert!(command.args(["-ldl", "-lpthread"]).status().unwrap().success(), "{source} does not compile");
}

/// A program of C with flags, beside the stand-in.
fn native(folder: &Path, source: &str, flags: &[&str]) -> String {
    let program = folder.join("native");
    let library = format!("-L{}", stand_in().display());
    compile(source, &[flags, &[&library, "-l:libcupti.so.13"]].concat(), &program);
    program.to_str().unwrap().to_owned()
}

/// `report audit` with the stand-in in the program's way.
fn audit(arguments: &[&str]) -> Command {
    hearing::hear();
    let mut command = Command::new(env!("CARGO_BIN_EXE_report"));
    command.arg("audit").args(arguments).env("LD_LIBRARY_PATH", stand_in()).stdin(Stdio::null());
    // A slow machine takes its time to hand the interpreter's lock over.
    command.env("SYNCSCOPE_AUDIT_PATIENCE", "20000");
    command
}

/// The audit of a program, and what the command printed.
struct Audited {
    report: AuditReport,
    output: Output,
    folder: TempDir,
}

impl Audited {
    fn of(program: &[&str], more: &[&str], environment: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let json = folder.path().join("audit.json");
        let arguments = [&["--json", json.to_str().unwrap()], more, &["--"], program].concat();
        let output = audit(&arguments).envs(environment.iter().copied()).current_dir(folder.path()).output().unwrap();
        let text = std::fs::read_to_string(&json).unwrap_or_else(|_| panic!("{}", said(&output)));
        Self { report: serde_json::from_str(&text).unwrap(), output, folder }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn train() -> String {
    format!("{SOURCES}/train.py")
}

/// The line of the script that holds `text`, as a place.
fn at(text: &str) -> String {
    let script = std::fs::read_to_string(train()).unwrap();
    let line = script.lines().position(|line| line.contains(text)).unwrap() + 1;
    format!("{}:{line}", train())
}

/// Place, call, reason, count and time of all places.
fn places(report: &AuditReport) -> Vec<(String, String, Reason, u64, u64)> {
    let of = |place: &syncscope_audit::WaitPlace| {
        (place.place.clone(), place.call.clone(), place.reason, place.count, place.total_ns)
    };
    report.places.iter().map(of).collect()
}

/// The shares of each host and each device add up to the wall time.
fn adds_up(report: &AuditReport) {
    for process in &report.processes {
        assert_eq!(process.host.iter().map(|share| share.ns).sum::<u64>(), process.wall_ns);
        for device in &process.devices {
            let idle: u64 = device.idle.iter().map(|share| share.ns).sum();
            assert_eq!(device.kernels_ns + device.copies_ns + idle, process.wall_ns, "{device:?}");
        }
    }
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn of_frame(frame: &syncscope_audit::Frame) -> String {
    format!("{}:{}", frame.file, frame.line)
}
