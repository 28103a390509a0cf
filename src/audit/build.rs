//! Compiles the library that `report audit` puts into a program.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rustc-env=SYNCSCOPE_INJECTED={}", injected().display());
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=injected");
}

/// The library that `report audit` puts into a program, named by what it is made of; an empty file where the target is not
/// Linux, or has no such libraries. It has its name only once it is whole: a build that was stopped leaves none.
///
/// # Panics
/// The compiler or its linker fails: the program would lack a command without a word.
fn injected() -> PathBuf {
    let sources = files("injected");
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
        command.arg("--cap-lints=allow").arg("-o").arg(&partial).arg("injected/lib.rs");
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

/// The compiler, the target, the level of optimisation.
fn compiler() -> String {
    let version = Command::new(variable("RUSTC")).arg("--version").output();
    let version = version.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default();
    format!("{version}, {}, opt-level {}", variable("TARGET"), variable("OPT_LEVEL"))
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

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// FNV-1a (G. Fowler, L. C. Noll, K.-P. Vo), 64 bits, of texts.
fn digest(texts: impl Iterator<Item = String>) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    texts.fold(0xcbf2_9ce4_8422_2325, |hash, text| text.bytes().fold(hash, step))
}
