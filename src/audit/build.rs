//! Compiles the library that `report audit` puts into a program.

use std::fs;
use std::path::Path;
use std::process::Command;

/// Compiles it, or makes an empty file where the target is not Linux, or has no such libraries.
///
/// # Panics
/// The compiler or its linker fails: the program would lack a command without a word.
fn main() {
    let library = Path::new(&variable("OUT_DIR")).join("audit.so");
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
        command.arg("--cap-lints=allow").arg("-o").arg(&library).arg("injected/lib.rs");
        let output = command.output().unwrap_or_else(|error| panic!("cannot start the compiler: {error}"));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "the library for `report audit` does not compile:\n{said}");
    } else {
        fs::write(&library, []).unwrap_or_else(|error| panic!("{}: {error}", library.display()));
    }
    println!("cargo::rustc-env=SYNCSCOPE_INJECTED={}", library.display());
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=injected");
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}
