//! Notes what the program is built by, so that a results file can name it: the compiler and its flags, and the lock file.

use std::fs;
use std::process::Command;

const LOCK: &str = "../../Cargo.lock";

fn main() {
    println!("cargo::rustc-env=SYNCSCOPE_COMPILER={}", compiler());
    println!("cargo::rustc-env=SYNCSCOPE_FLAGS={}", shown(&flags()));
    println!("cargo::rustc-env=SYNCSCOPE_FEATURES={}", variable("CARGO_CFG_TARGET_FEATURE").replace(',', ", "));
    println!("cargo::rustc-env=SYNCSCOPE_LOCK={:016x}", digest(&fs::read(LOCK).unwrap_or_default()));
    println!("cargo::rerun-if-changed={LOCK}");
    println!("cargo::rerun-if-changed=build.rs");
}

/// FNV-1a (G. Fowler, L. C. Noll, K.-P. Vo), 64 bits.
fn digest(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
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
