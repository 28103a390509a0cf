//! Notes the commit that the program is built from, so that a results file can name it.

use std::path::Path;
use std::process::Command;

fn main() {
    // Outside of a checkout (a package from a registry) there is no commit to note.
    if Path::new(".git").exists() {
        println!("cargo::rerun-if-changed=.git/HEAD");
        println!("cargo::rerun-if-changed=.git/index");
        if let Some(commit) = git(&["rev-parse", "--short=12", "HEAD"]) {
            println!("cargo::rustc-env=SYNCSCOPE_COMMIT={commit}");
        }
        if let Some(changes) = git(&["status", "--porcelain", "--untracked-files=no"]) {
            println!("cargo::rustc-env=SYNCSCOPE_DIRTY={}", !changes.is_empty());
        }
    }
    for folder in ["src", "kernels", "report-templates", "book"] {
        println!("cargo::rerun-if-changed={folder}");
    }
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
