//! Notes what the program is built from, so that a results file can name it: the compiler and its flags, the lock file, and
//! for each experiment a digest of the code that measures.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the code lies that measures, from this folder.
const MEASURES: [&str; 6] = [
    "../syncscope",
    "../suite",
    "../../kernels",
    "../../book/peers/pytorch.py",
    "../../book/peers/pytorch_system",
    "build.rs",
];
const LOCK: &str = "../../Cargo.lock";

fn main() {
    println!("cargo::rustc-env=SYNCSCOPE_COMPILER={}", compiler());
    println!("cargo::rustc-env=SYNCSCOPE_FLAGS={}", shown(&flags()));
    println!("cargo::rustc-env=SYNCSCOPE_FEATURES={}", variable("CARGO_CFG_TARGET_FEATURE").replace(',', ", "));
    println!("cargo::rustc-env=SYNCSCOPE_DIGESTS={}", digests());
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

/// `name=digest` of each experiment that comes with the library: of its own files, of what takes samples, and of the
/// devices. Comments, tests and what is computed of samples later are left out: they measure nothing.
fn digests() -> String {
    let measures = |path: &PathBuf| !path.starts_with("../syncscope/measure/statistics");
    let shared: Vec<PathBuf> = [
        "../syncscope/affinity.rs",
        "../syncscope/measure",
        "../syncscope/device",
        "../syncscope/tensor",
        "../../kernels",
    ]
    .iter()
    .flat_map(files)
    .filter(measures)
    .collect();
    let mut found = Vec::new();
    for entry in fs::read_dir("../suite/experiment").into_iter().flatten().flatten() {
        let path = entry.path();
        let Some(name) = path.file_stem().map(|stem| stem.to_string_lossy().replace('_', "-")) else { continue };
        let own = files(path.to_string_lossy());
        found.push(format!("{name}={:016x}", digest(own.iter().chain(&shared).map(|path| code(path)))));
    }
    // Of the system that is measured beside this one: as book/peers/pytorch_system/code.py computes it.
    let peer = ["../../book/peers/pytorch.py", "../../book/peers/pytorch_system"].iter().flat_map(files);
    let peer = peer.filter(|path| path.extension().is_some_and(|ending| ending == "py"));
    found.push(format!("PyTorch={:016x}", digest(peer.map(|path| without_comments(&read(&path), "#")))));
    found.sort();
    found.join(";")
}

/// A file with what devices, experiments and their errors say: the texts in their code, one a line.
fn sentences() -> PathBuf {
    let path = PathBuf::from(std::env::var("OUT_DIR").unwrap_or_default()).join("sentences.txt");
    let sources = ["../syncscope/device", "../suite/experiment", "../syncscope/error.rs"].iter().flat_map(files);
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

/// The files in a folder, or the file itself, in the order of their names.
fn files(path: impl AsRef<str>) -> Vec<PathBuf> {
    let path = Path::new(path.as_ref());
    if path.is_file() {
        return vec![path.to_owned()];
    }
    let mut paths: Vec<PathBuf> =
        fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths.iter().flat_map(|path| files(path.to_string_lossy())).collect()
}

/// What a file of Rust or CUDA C++ has beside comments on lines of their own, and the tests at its end.
fn code(path: &Path) -> String {
    let text = read(path);
    let tests = ["mod tests", "pub(super) mod tests"].map(|module| format!("\n#[cfg(test)]\n{module}"));
    let end = tests.iter().filter_map(|tests| text.find(tests)).min().unwrap_or(text.len());
    without_comments(&text[..end], "//")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// The lines that do not begin with `comment`.
fn without_comments(text: &str, comment: &str) -> String {
    text.lines().filter(|line| !line.trim_start().starts_with(comment)).flat_map(|line| [line, "\n"]).collect()
}

/// FNV-1a (G. Fowler, L. C. Noll, K.-P. Vo), 64 bits, of texts.
fn digest(texts: impl Iterator<Item = String>) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    texts.fold(0xcbf2_9ce4_8422_2325, |hash, text| text.bytes().fold(hash, step))
}
