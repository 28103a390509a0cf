//! No-wait tests, on the stand-in for the CUDA driver and for CUPTI (`tests/audit/fake.c`): by the header of C, and by the Python
//! package, which is built into a wheel and has its own tests here.
//!
//! Where Python, its package index or a compiler is missing the tests say so and pass, unless `SYNCSCOPE_REQUIRE_PYTEST` is set.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// What a source distribution is made of.
const SOURCES: [&str; 6] = [
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "python",
    "src/audit/injected",
    "src/audit/no_wait",
    "src/syncscope/device/cuda/profiling/cupti/waits.rs",
];

fn rustc() -> String {
    std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned())
}

fn said(output: &Output) -> String {
    [&*output.stdout, &*output.stderr].map(String::from_utf8_lossy).concat()
}

/// Runs a command, which has to succeed; what it printed.
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", said(&output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn compile(source: &str, flags: &[&str], out: &Path) {
    let mut command = Command::new("cc");
    command.args(["-O1", "-funwind-tables", "-Wall", "-Werror", "-o"]).arg(out).arg(format!("{ROOT}/tests/{source}"));
    run(command.args(flags).args(["-ldl", "-lpthread"]));
}

/// A folder with the driver, CUPTI, a driver without CUPTI, and operators.
fn stand_in() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    compile("audit/fake.c", &["-shared", "-fPIC", "-Wl,-soname,libcupti.so.13"], &file("libcupti.so.13"));
    std::os::unix::fs::symlink("libcupti.so.13", file("libcuda.so.1")).unwrap();
    compile("audit/fake.c", &["-shared", "-fPIC"], &file("libplain.so"));
    let library = format!("-L{}", folder.path().display());
    compile("no_wait/operators.c", &["-shared", "-fPIC", &library, "-l:libcupti.so.13"], &file("liboperators.so"));
    folder
}

#[test]
fn a_program_of_c_sees_what_its_thread_waits_for() {
    let folder = stand_in();
    let library = folder.path().join("libsyncscope_no_wait.so");
    let mut command = Command::new(rustc());
    command.args(["--edition=2024", "--crate-type=cdylib", "--crate-name=syncscope_no_wait", "-Cpanic=abort", "-o"]);
    run(command.arg(&library).arg(format!("{ROOT}/src/audit/no_wait/lib.rs")));
    let (include, libraries) = (format!("-I{ROOT}/src/audit/no_wait"), format!("-L{}", folder.path().display()));
    let program = folder.path().join("native");
    let link = ["-rdynamic", &include, &libraries, "-lsyncscope_no_wait", "-l:libcupti.so.13"];
    compile("no_wait/native.c", &link, &program);
    let native = || {
        let mut command = Command::new(&program);
        command.env("LD_LIBRARY_PATH", folder.path());
        command
    };
    let text = run(&mut native());
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "3 × cuStreamSynchronize: waits for a stream");
    assert!(lines[1..].contains(&"  native main"), "{text}");
    // The wait of the inner region is not the outer one's, and neither is that of the other thread.
    assert_eq!(lines.last(), Some(&"inner 1 outer 0 beyond 1"));
    let output = native().env("FAKE_NO_DEVICE", "1").output().unwrap();
    assert_eq!(said(&output), "1 the CUDA driver sees no GPU here\n");
    let output = native().env("FAKE_TAKEN", "1").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("another tool"), "{}", said(&output));
}

/// A virtual environment with what builds and tests the package. It is kept: only the first time needs the package index.
fn environment() -> Result<PathBuf, String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("no-wait-environment");
    let python = folder.join("bin/python");
    let works = |command: &mut Command| match command.output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(said(&output)),
        Err(error) => Err(format!("{command:?}: {error}")),
    };
    if works(Command::new(&python).args(["-c", "import pytest, setuptools.command.bdist_wheel, wheel"])).is_err() {
        works(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder))?;
        let mut install = Command::new(&python);
        install.args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "pytest",
            "setuptools>=77",
            "wheel",
        ]);
        works(&mut install)?;
    }
    Ok(python)
}

/// The checkout's part that the package is built of, in a folder of its own, as building leaves files there.
fn sources() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    run(Command::new("cp").args(["-r", "--parents"]).args(SOURCES).arg(folder.path()).current_dir(ROOT));
    folder
}

fn pip(python: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(python);
    command.args(["-m", "pip", "--disable-pip-version-check"]).args(arguments).env("RUSTC", rustc());
    command
}

/// The only file of a folder.
fn only(folder: &Path) -> PathBuf {
    let mut files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let file = files.next().unwrap();
    assert_eq!(files.next(), None);
    file
}

#[test]
fn the_package_is_built_into_a_wheel_that_passes_its_tests() {
    let python = match environment() {
        Err(missing) if std::env::var_os("SYNCSCOPE_REQUIRE_PYTEST").is_some() => panic!("{missing}"),
        Err(missing) => return println!("skipped: {missing}"),
        Ok(python) => python,
    };
    let (sources, built) = (sources(), tempfile::tempdir().unwrap());
    let package = sources.path().join("python");
    let build = ["wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir"];

    // Without a compiler, the reason is said.
    let output = pip(&python, &build).arg(built.path()).arg(&package).env("RUSTC", "no-rustc").output().unwrap();
    assert!(!output.status.success() && said(&output).contains("there is no `no-rustc`"), "{}", said(&output));

    // From the checkout to a source distribution, and from that alone to a wheel.
    let distribution = tempfile::tempdir().unwrap();
    let make = "import sys, setuptools.build_meta as build; build.build_sdist(sys.argv[1])";
    run(Command::new(&python).args(["-c", make]).arg(distribution.path()).current_dir(&package));
    drop(sources);
    run(pip(&python, &build).arg(built.path()).arg(only(distribution.path())));
    let wheel = only(built.path());
    let name = wheel.file_name().unwrap().to_string_lossy().into_owned();
    let machine = std::env::consts::ARCH;
    assert!(
        name.starts_with("syncscope-") && name.contains("-py3-none-") && name.ends_with(&format!("_{machine}.whl")),
        "{name}"
    );

    let (stand_in, installed) = (stand_in(), tempfile::tempdir().unwrap());
    run(pip(&python, &["install", "--quiet", "--no-deps", "--target"]).arg(installed.path()).arg(&wheel));
    let mut tests = Command::new(&python);
    tests.args(["-m", "pytest", "--quiet", "-p", "no:cacheprovider", "."]).current_dir(format!("{ROOT}/tests/no_wait"));
    tests.env("LD_LIBRARY_PATH", stand_in.path()).env("STANDIN_WITHOUT_CUPTI", stand_in.path().join("libplain.so"));
    print!("{}", run(tests.env("PYTHONPATH", installed.path()).env("PYTHONDONTWRITEBYTECODE", "1")));
}
