//! Notes what the program is built from, so that a results file can name it: the compiler and its flags, the lock file, and
//! for each experiment a digest of the code that measures.

#[path = "measuring_code.rs"]
mod measuring_code;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use measuring_code::{code, digest, digests, files};

/// The root of the repository, from this folder.
const ROOT: &str = "../..";
/// Where the code lies that measures.
const MEASURES: [&str; 7] = [
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
    println!("cargo::rustc-env=SYNCSCOPE_SENTENCES={}", sentences().display());
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

/// A file with what devices, experiments and their errors say: the texts in their code, one a line.
fn sentences() -> PathBuf {
    let path = PathBuf::from(std::env::var("OUT_DIR").unwrap_or_default()).join("sentences.txt");
    let sources = ["../syncscope/device", "../suite/experiment", "../syncscope/error.rs"];
    let sources = sources.iter().flat_map(|path| files(Path::new(path)));
    let said: String = sources.flat_map(|source| texts(&code(&source))).collect();
    fs::write(&path, said).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    path
}

/// The texts between quotation marks in code, each on a line of its own. What they are filled with is left out.
fn texts(code: &str) -> Vec<String> {
    let code = code.replace("'\"'", "").replace("\\\"", "");
    let quoted = code.split('"').skip(1).step_by(2);
    let filled = |text: &str| text.split('{').map(|part| part.split_once('}').map_or(part, |(_, rest)| rest)).collect();
    quoted
        .map(|text| {
            let text: String = filled(text);
            format!("{}\n", text.replace('\n', " "))
        })
        .collect()
}
