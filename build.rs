//! Notes what the program is built from, so that a results file can name it: the commit, the compiler and its flags, the
//! lock file, and for each experiment a digest of the code that measures.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    // A library for cells of a notebook writes no results, and must not be compiled anew whenever the checkout changes.
    let report = std::env::var_os("CARGO_FEATURE_REPORT").is_some();
    // Outside of a checkout (a package from a registry) there is no commit to note.
    if report && Path::new(".git").exists() {
        for name in ["HEAD", "index"] {
            // In a worktree they lie elsewhere.
            if let Some(path) = git(&["rev-parse", "--git-path", name]) {
                println!("cargo::rerun-if-changed={path}");
            }
        }
        if let Some(commit) = git(&["rev-parse", "--short=12", "HEAD"]) {
            println!("cargo::rustc-env=SYNCSCOPE_COMMIT={commit}");
        }
        // Without the option git may write the index, which is watched: the next build would begin anew.
        if let Some(changes) = git(&["--no-optional-locks", "status", "--porcelain", "--untracked-files=no"]) {
            println!("cargo::rustc-env=SYNCSCOPE_DIRTY={}", !changes.is_empty());
        }
    }
    if report {
        println!("cargo::rustc-env=SYNCSCOPE_COMPILER={}", compiler());
        println!("cargo::rustc-env=SYNCSCOPE_DIGESTS={}", digests());
        println!("cargo::rerun-if-changed=Cargo.lock");
        println!("cargo::rustc-env=SYNCSCOPE_LOCK={:016x}", digest(fs::read_to_string("Cargo.lock").ok().into_iter()));
    }
    let folders: &[&str] = if report { &["src", "kernels", "report-templates", "book"] } else { &["src", "kernels"] };
    for folder in folders {
        println!("cargo::rerun-if-changed={folder}");
    }
}

/// The compiler, the target, the level of optimisation and the flags.
fn compiler() -> String {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let version = Command::new(variable("RUSTC")).arg("--version").output();
    let version = version.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default();
    // The flags are separated by a character that no terminal shows.
    let flags = variable("CARGO_ENCODED_RUSTFLAGS").replace('\u{1f}', " ");
    format!("{version}, {}, opt-level {} {flags}", variable("TARGET"), variable("OPT_LEVEL")).trim_end().to_owned()
}

/// `name=digest` of each experiment that comes with the library: of its own files, of what takes samples, and of the
/// devices. Comments and tests are left out: they measure nothing.
fn digests() -> String {
    let shared: Vec<PathBuf> = ["src/measure", "src/device", "src/tensor", "kernels"].iter().flat_map(files).collect();
    let mut found = Vec::new();
    for entry in fs::read_dir("src/experiment").into_iter().flatten().flatten() {
        let path = entry.path();
        let Some(name) = path.file_stem().map(|stem| stem.to_string_lossy().replace('_', "-")) else { continue };
        let own = files(path.to_string_lossy());
        found.push(format!("{name}={:016x}", digest(own.iter().chain(&shared).map(|path| code(path)))));
    }
    found.sort();
    found.join(";")
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
    let text = fs::read_to_string(path).unwrap_or_default();
    let text = text.split("\n#[cfg(test)]\nmod tests").next().unwrap_or_default();
    text.lines().filter(|line| !line.trim_start().starts_with("//")).flat_map(|line| [line, "\n"]).collect()
}

/// FNV-1a (G. Fowler, L. C. Noll, K.-P. Vo), 64 bits, of texts.
fn digest(texts: impl Iterator<Item = String>) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    texts.fold(0xcbf2_9ce4_8422_2325, |hash, text| text.bytes().fold(hash, step))
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
