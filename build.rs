//! Compiles the library that `report audit` carries, and notes what the program is built from, so that a results file can
//! name it: the commit, the compiler and its flags, the lock file, and for each experiment a digest of the code that
//! measures.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    // A library for cells of a notebook writes no results, and must not be compiled anew whenever the checkout changes.
    let report = std::env::var_os("CARGO_FEATURE_REPORT").is_some();
    // Outside of a checkout (a package from a registry) there is no commit to note.
    if report && Path::new(".git").exists() {
        for path in watched() {
            println!("cargo::rerun-if-changed={path}");
        }
        if let Some(commit) = git(&["rev-parse", "--short=12", "HEAD"]) {
            println!("cargo::rustc-env=SYNCSCOPE_COMMIT={commit}");
        }
        // Without the option git may write the index, which can be what is watched: the next build would begin anew.
        if let Some(changes) = git(&["--no-optional-locks", "status", "--porcelain", "--untracked-files=no"]) {
            println!("cargo::rustc-env=SYNCSCOPE_DIRTY={}", !changes.is_empty());
        }
    }
    if report {
        println!("cargo::rustc-env=SYNCSCOPE_INJECTED={}", injected().display());
        println!("cargo::rustc-env=SYNCSCOPE_COMPILER={}", compiler());
        println!("cargo::rustc-env=SYNCSCOPE_FLAGS={}", shown(&flags()));
        println!("cargo::rustc-env=SYNCSCOPE_FEATURES={}", variable("CARGO_CFG_TARGET_FEATURE").replace(',', ", "));
        println!("cargo::rustc-env=SYNCSCOPE_DIGESTS={}", digests());
        println!("cargo::rerun-if-changed=Cargo.lock");
        println!("cargo::rustc-env=SYNCSCOPE_LOCK={:016x}", digest(fs::read_to_string("Cargo.lock").ok().into_iter()));
    }
    let folders: &[&str] = if report { &["src", "kernels", "report-templates", "book"] } else { &["src", "kernels"] };
    for folder in folders {
        println!("cargo::rerun-if-changed={folder}");
    }
}

/// The files that change with the commit: where it is named, and the log of its changes. Not the index, which git writes anew
/// when it is asked for the state of the checkout; it is watched where a checkout has no log.
fn watched() -> Vec<String> {
    // In a worktree they lie elsewhere.
    let path = |name: &str| git(&["rev-parse", "--git-path", name]).filter(|path| Path::new(path).exists());
    let log = path("logs/HEAD").or_else(|| path("index"));
    path("HEAD").into_iter().chain(log).collect()
}

/// The library that `report audit` puts into a program, named by what it is made of; an empty file where the target is not
/// Linux, or has no such libraries. It has its name only once it is whole: a build that was stopped leaves none.
///
/// # Panics
/// The compiler or its linker fails: the program would lack a command without a word.
fn injected() -> PathBuf {
    let sources = files("src/audit/injected");
    let made_of = sources.iter().map(|path| read(path)).chain([compiler(), flags().join(" ")]);
    let out = PathBuf::from(variable("OUT_DIR"));
    let library = out.join(format!("audit-{:016x}.so", digest(made_of)));
    if library.exists() {
        return library;
    }
    let partial = out.join("audit.partial");
    let is_linux = variable("CARGO_CFG_TARGET_OS") == "linux" && variable("CARGO_CFG_TARGET_POINTER_WIDTH") == "64";
    if is_linux && variable("CARGO_CFG_TARGET_FEATURE").split(',').all(|feature| feature != "crt-static") {
        let mut command = Command::new(variable("RUSTC"));
        command.args(["--edition=2024", "--crate-name=syncscope_audit", "--crate-type=cdylib", "-Copt-level=2"]);
        command.args(["-Cpanic=abort", "-Cstrip=symbols", "--target"]).arg(variable("TARGET"));
        let linker = variable("RUSTC_LINKER");
        if !linker.is_empty() {
            command.arg(format!("-Clinker={linker}"));
        }
        // `cargo clippy` gives its warnings, by the test target of these files.
        command.arg("--cap-lints=allow").arg("-o").arg(&partial).arg("src/audit/injected/lib.rs");
        let output = command.output().unwrap_or_else(|error| panic!("cannot start the compiler: {error}"));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "the library for `report audit` does not compile:\n{said}");
    } else {
        fs::write(&partial, []).unwrap_or_else(|error| panic!("{}: {error}", partial.display()));
    }
    fs::rename(&partial, &library).unwrap_or_else(|error| panic!("{}: {error}", library.display()));
    library
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
    let measures = |path: &PathBuf| !path.starts_with("src/measure/statistics");
    let shared: Vec<PathBuf> = ["src/affinity.rs", "src/measure", "src/device", "src/tensor", "kernels"]
        .iter()
        .flat_map(files)
        .filter(measures)
        .collect();
    let mut found = Vec::new();
    for entry in fs::read_dir("src/experiment").into_iter().flatten().flatten() {
        let path = entry.path();
        let Some(name) = path.file_stem().map(|stem| stem.to_string_lossy().replace('_', "-")) else { continue };
        let own = files(path.to_string_lossy());
        found.push(format!("{name}={:016x}", digest(own.iter().chain(&shared).map(|path| code(path)))));
    }
    // Of the system that is measured beside this one: as book/peers/pytorch_system/code.py computes it.
    let peer = ["book/peers/pytorch.py", "book/peers/pytorch_system"].iter().flat_map(files);
    let peer = peer.filter(|path| path.extension().is_some_and(|ending| ending == "py"));
    found.push(format!("PyTorch={:016x}", digest(peer.map(|path| without_comments(&read(&path), "#")))));
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

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
