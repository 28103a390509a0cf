//! Notes what the program is built from, so that a results file can name it: the compiler and its flags, the lock file, and
//! for each experiment a digest of the code that measures.

#[path = "measuring_code.rs"]
mod measuring_code;

use std::fs;
use std::path::Path;
use std::process::Command;

use measuring_code::{digest, digests};

/// The root of the repository, from this folder.
const ROOT: &str = "../..";
/// Where the code lies that measures.
const MEASURES: [&str; 8] = [
    "../calls",
    "../syncscope",
    "../suite",
    "../../kernels",
    "../../book/peers/pytorch.py",
    "../../book/peers/pytorch_system",
    "build.rs",
    "measuring_code.rs",
];
const LOCK: &str = "../../Cargo.lock";

fn main() {
    println!("cargo::rustc-env=SYNCSCOPE_COMPILER={}", compiler());
    println!("cargo::rustc-env=SYNCSCOPE_FLAGS={}", shown(&flags()));
    println!("cargo::rustc-env=SYNCSCOPE_FEATURES={}", variable("CARGO_CFG_TARGET_FEATURE").replace(',', ", "));
    let digests = digests(Path::new(ROOT)).into_iter().map(|(name, digest)| format!("{name}={digest}"));
    println!("cargo::rustc-env=SYNCSCOPE_DIGESTS={}", digests.collect::<Vec<_>>().join(";"));
    println!("cargo::rustc-env=SYNCSCOPE_LOCK={:016x}", digest(fs::read_to_string(LOCK).ok().into_iter()));
    for path in MEASURES.iter().chain([&LOCK]) {
        println!("cargo::rerun-if-changed={path}");
    }
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

/// The flags that the user gives the compiler, `RUSTFLAGS` among them. They are separated by a character that no terminal shows.
fn flags() -> Vec<String> {
    variable("CARGO_ENCODED_RUSTFLAGS").split('\u{1f}').filter(|flag| !flag.is_empty()).map(str::to_owned).collect()
}

/// Flags for a results file. A path says whose machine it was.
fn shown(flags: &[String]) -> String {
    let named = |flag: &String| match flag.split_once('=') {
        _ if !flag.contains(['/', '\\']) => flag.clone(),
        Some((name, _)) if !name.contains(['/', '\\']) => format!("{name}=(a path)"),
        _ => "(a path)".to_owned(),
    };
    let all: Vec<String> = flags.iter().map(named).collect();
    if all.is_empty() { "none".to_owned() } else { all.join(" ") }
}

/// The compiler, the target, the level of optimisation.
fn compiler() -> String {
    let version = Command::new(variable("RUSTC")).arg("--version").output();
    let version = version.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default();
    format!("{version}, {}, opt-level {}", variable("TARGET"), variable("OPT_LEVEL"))
}
