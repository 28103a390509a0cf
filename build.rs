//! Notes the commit that the program is built from, so that a results file can name it.

use std::path::Path;
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
        if let Some(changes) = git(&["status", "--porcelain", "--untracked-files=no"]) {
            println!("cargo::rustc-env=SYNCSCOPE_DIRTY={}", !changes.is_empty());
        }
    }
    let folders: &[&str] = if report { &["src", "kernels", "report-templates", "book"] } else { &["src", "kernels"] };
    for folder in folders {
        println!("cargo::rerun-if-changed={folder}");
    }
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
