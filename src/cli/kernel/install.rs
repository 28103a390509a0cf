//! Installing the kernel: what evcxr would compile for the first cell is compiled here, in a folder that each started
//! kernel copies.
//!
//! Cargo takes the copy's crates for its own as long as their sources, profile and flags are those that evcxr asks for.
//! Should another version of evcxr ask for others, the first cell compiles them again: slower, and not wrong.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use serde_json::json;

use crate::cli::UsageError;
use crate::cli::library::dependency;

const START: &str = include_str!("start.sh");
const EVCXR: &str = "evcxr_jupyter";
/// What a cell needs of the library.
const FEATURES: &str = ", default-features = false, features = [\"cuda\", \"notebook\"]";

/// Installs the kernel in `folder`, which is made anew.
pub(super) fn install(folder: &Path, library: Option<PathBuf>) -> anyhow::Result<()> {
    let Some(evcxr) = find(EVCXR) else {
        let command = "cargo install evcxr_jupyter --version 0.22.0 --locked";
        return Err(UsageError(format!("{EVCXR} is not installed. Install it with\n\n  {command}\n")).into());
    };
    let dependency = dependency(library, FEATURES)?;
    if folder.exists() {
        // What an install that was cut short left has the first of these, a whole kernel both.
        if !["warm", "kernel.json"].iter().any(|name| folder.join(name).exists()) {
            let place = folder.display();
            return Err(UsageError(format!("{place}: this is no kernel of report, so it is not replaced")).into());
        }
        fs::remove_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    let (warm, config) = (folder.join("warm"), folder.join("config"));
    say!("compiling the library for cells");
    compile(&warm, &dependency)?;

    write(&config.join("init.evcxr"), &format!(":dep syncscope = {dependency}\n"))?;
    write(&config.join("prelude.rs"), "use syncscope::prelude::*;\n")?;
    let start = folder.join("start.sh");
    write(&start, &START.replace("@EVCXR@", &quoted(&evcxr)))?;
    let kernel = json!({
        "argv": ["sh", start, "{connection_file}"],
        "display_name": "Rust (syncscope)",
        "language": "rust",
        "interrupt_mode": "message",
        // All queues of a GPU: where streams share one, a gate that holds a stream can hold another.
        "env": { "CUDA_DEVICE_MAX_CONNECTIONS": "32" },
    });
    // Last: a folder without it is no kernel.
    write(&folder.join("kernel.json"), &format!("{kernel:#}\n"))?;
    say!("installed: {}", folder.display());
    Ok(())
}

/// Compiles what a cell needs as evcxr 0.22 does: a library without content in its profile and with its flags.
fn compile(warm: &Path, dependency: &str) -> anyhow::Result<()> {
    let manifest = format!(
        "[package]\nname = \"ctx\"\nversion = \"1.0.0\"\nedition = \"2024\"\n\n[lib]\ncrate-type = [\"cdylib\"]\n\
         path = \"src/lib.rs\"\n\n[profile.dev]\nopt-level = 2\ndebug = false\nstrip = \"debuginfo\"\nrpath = true\n\
         lto = false\ndebug-assertions = true\ncodegen-units = 16\npanic = 'unwind'\nincremental = true\n\
         overflow-checks = true\n\n[dependencies]\nsyncscope = {dependency}\n"
    );
    write(&warm.join("Cargo.toml"), &manifest)?;
    write(&warm.join("src/lib.rs"), "")?;
    let mut command = match find("mold") {
        Some(mold) => {
            let mut command = Command::new(mold);
            command.arg("-run").arg("cargo");
            command
        }
        None => Command::new("cargo"),
    };
    let linker = if find("mold").is_none() && find("lld").is_some() { " -Clink-arg=-fuse-ld=lld" } else { "" };
    let status = command
        .args(["build", "--target", &host()?])
        .current_dir(warm)
        .env("CARGO_TARGET_DIR", "target")
        .env("CARGO_BUILD_BUILD_DIR", "target")
        .env("RUSTFLAGS", format!("-Cprefer-dynamic{linker}"))
        .status()
        .context("cargo does not start; a notebook needs it, too")?;
    if !status.success() {
        bail!("the library does not compile for cells");
    }
    Ok(())
}

/// The target that rustc compiles for where it is not told.
fn host() -> anyhow::Result<String> {
    let output = Command::new("rustc").arg("-vV").output().context("rustc does not start")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("rustc does not say what it compiles for")
}

/// A program on the path, or beside cargo's.
fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let cargo = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let cargo = cargo.or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".cargo")));
    let folders = std::env::split_paths(&path).chain(cargo.map(|home| home.join("bin")));
    folders.map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// As one word of a shell.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', "'\\''"))
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let folder = path.parent().unwrap_or(Path::new(OsStr::new(".")));
    fs::create_dir_all(folder).and_then(|()| fs::write(path, text)).with_context(|| path.display().to_string())
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    /// A kernel's folder with a program in evcxr's place that notes where it works and what it finds there.
    fn kernel(folder: &Path) -> PathBuf {
        let (evcxr, notes) = (folder.join("it's evcxr"), folder.join("notes"));
        let program =
            "#!/bin/sh\nprintf '%s %s\\n' \"$EVCXR_TMPDIR\" \"$(cat \"$EVCXR_TMPDIR/target/library\")\" >> NOTES\n";
        write(&evcxr, &program.replace("NOTES", &quoted(&notes))).unwrap();
        assert!(Command::new("chmod").arg("+x").arg(&evcxr).status().unwrap().success());
        write(&folder.join("warm/target/library"), "compiled").unwrap();
        write(&folder.join("start.sh"), &START.replace("@EVCXR@", &quoted(&evcxr))).unwrap();
        notes
    }

    #[test]
    fn each_started_kernel_works_in_a_copy_of_its_own_that_ends_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let notes = kernel(folder.path());
        for _ in 0..2 {
            let start = folder.path().join("start.sh");
            let status = Command::new("sh").arg(start).arg("connection.json").env("TMPDIR", folder.path()).status();
            assert!(status.unwrap().success());
        }
        let notes = fs::read_to_string(notes).unwrap();
        let copies: Vec<(&str, &str)> = notes.lines().filter_map(|line| line.rsplit_once(' ')).collect();
        assert!(copies.len() == 2 && copies[0].0 != copies[1].0, "{notes}");
        assert!(copies.iter().all(|(copy, library)| *library == "compiled" && !Path::new(copy).exists()), "{notes}");
    }

    #[test]
    fn the_copy_of_a_kernel_that_was_killed_is_removed_by_the_next() {
        let folder = tempfile::tempdir().unwrap();
        kernel(folder.path());
        let mut gone = Command::new("true").spawn().unwrap();
        gone.wait().unwrap();
        let (left, living) =
            (format!("syncscope-kernel.{}.x", gone.id()), format!("syncscope-kernel.{}.x", std::process::id()));
        write(&folder.path().join(&left).join("file"), "").unwrap();
        write(&folder.path().join(&living).join("file"), "").unwrap();
        let start = folder.path().join("start.sh");
        assert!(Command::new("sh").arg(start).arg("c").env("TMPDIR", folder.path()).status().unwrap().success());
        assert!(!folder.path().join(left).exists() && folder.path().join(living).exists());
    }
}
