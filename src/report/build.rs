//! Notes the commit that the program is built from, so that a results file can name it. This crate alone is compiled anew by
//! a commit.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Outside of a checkout (a package from a registry) there is no commit to note.
    if !Path::new("../../.git").exists() {
        return;
    }
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
    // What makes a checkout one with changes.
    for folder in ["..", "../../kernels", "../../report-templates", "../../book"] {
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

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
