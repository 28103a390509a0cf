//! Installing the kernel: its program, and what evcxr would compile for the first cell, in a folder that each started
//! kernel links.
//!
//! All is made in a new folder beside the installed one, and takes its place at the end, so an install that fails leaves
//! the kernel that works.
//!
//! Cargo takes what is linked for its own as long as sources, profile and flags are those that evcxr asks for. Should they
//! differ, the first cell compiles them again: slower, and not wrong.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use serde_json::{Value, json};

use crate::cli::UsageError;
use crate::cli::library::{dependency, source};
use crate::files::replace;

/// What a cell needs of the library.
const FEATURES: &str = ", default-features = false, features = [\"cuda\", \"notebook\"]";
/// The kernel's program, in its folder and as a package of the library's repository.
const PROGRAM: &str = "notebook-runner";

/// Installs the kernel in `folder`, in the place of an older one.
pub(super) fn install(folder: &Path, library: Option<&Path>) -> anyhow::Result<()> {
    let dependency = dependency(library, FEATURES)?;
    let source = source(library)?.filter(|source| source.join("notebooks/runner/Cargo.toml").exists());
    let Some(source) = source else {
        let text = "the kernel's program is in the library's repository: name the folder of a clone with --library";
        return Err(UsageError(text.to_owned()).into());
    };
    if folder.exists() && !is_kernel(folder) {
        let place = folder.display();
        return Err(UsageError(format!("{place}: this is no kernel of report, so it is not replaced")).into());
    }
    let kernels = folder.parent().context("a kernel needs a folder")?;
    fs::create_dir_all(kernels).with_context(|| kernels.display().to_string())?;
    let beside = tempfile::Builder::new().prefix(".syncscope-").tempdir_in(kernels)?;
    let new = beside.path().join("kernel");

    say!("compiling the kernel");
    let program = build(&source)?;
    say!("compiling the library for cells");
    let warm = new.join("warm");
    compile(&warm, &dependency)?;
    trim(&warm.join("target"))?;

    fs::copy(&program, new.join(PROGRAM)).with_context(|| program.display().to_string())?;
    write(&new.join("dependency.toml"), &format!("{dependency}\n"))?;
    let kernel = json!({
        "argv": [folder.join(PROGRAM), "kernel", "{connection_file}"],
        "display_name": "Rust (syncscope)",
        "language": "rust",
        "interrupt_mode": "message",
        // All queues of a GPU: where streams share one, a gate that holds a stream can hold another.
        "env": { "CUDA_DEVICE_MAX_CONNECTIONS": "32" },
    });
    write(&new.join("kernel.json"), &format!("{kernel:#}\n"))?;
    replace(&new, folder, &beside.path().join("old")).with_context(|| folder.display().to_string())?;
    say!("installed: {}", folder.display());
    Ok(())
}

/// Whether a folder holds a kernel that was installed by this program, today or before.
pub(super) fn is_kernel(folder: &Path) -> bool {
    folder.join("kernel.json").exists() && folder.join("warm").is_dir()
}

/// Compiles the kernel's program and says where it is.
fn build(source: &Path) -> anyhow::Result<PathBuf> {
    let mut command = Command::new("cargo");
    command.args([
        "build",
        "--release",
        "--locked",
        "--package",
        PROGRAM,
        "--message-format",
        "json-render-diagnostics",
    ]);
    let own = source.join("target");
    // A clone that cannot be written has no place for what is compiled.
    let beside = match fs::create_dir_all(&own).and_then(|()| tempfile::tempfile_in(&own)) {
        Ok(_) => None,
        Err(_) if std::env::var_os("CARGO_TARGET_DIR").is_some() => None,
        Err(_) => Some(std::env::temp_dir().join("syncscope-build")),
    };
    if let Some(beside) = beside {
        command.arg("--target-dir").arg(beside);
    }
    let output = command.current_dir(source).stderr(Stdio::inherit()).output();
    let output = output.context("cargo does not start; a notebook needs it, too")?;
    if !output.status.success() {
        bail!("the kernel does not compile");
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let messages = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut programs = messages.filter_map(|message| message["executable"].as_str().map(PathBuf::from));
    programs.next_back().context("cargo does not say where the kernel is")
}

/// Compiles what a cell needs as evcxr 0.22 does: a library without content in its profile and with its flags. It is a
/// workspace of its own: a Python environment may lie in another.
fn compile(warm: &Path, dependency: &str) -> anyhow::Result<()> {
    let manifest = format!(
        "[workspace]\n\n[package]\nname = \"ctx\"\nversion = \"1.0.0\"\nedition = \"2024\"\n\n[lib]\n\
         crate-type = [\"cdylib\"]\npath = \"src/lib.rs\"\n\n[profile.dev]\nopt-level = 2\ndebug = false\n\
         strip = \"debuginfo\"\nrpath = true\nlto = false\ndebug-assertions = true\ncodegen-units = 16\npanic = 'unwind'\n\
         incremental = true\noverflow-checks = true\n\n[dependencies]\nsyncscope = {dependency}\n"
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

/// Removes what was made of the empty crate around the library: cells take its place.
fn trim(folder: &Path) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        let own = name == "incremental"
            || ["ctx", "libctx"]
                .iter()
                .any(|own| name.strip_prefix(own).is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '.'])));
        match entry.file_type()?.is_dir() {
            true if own => fs::remove_dir_all(&path)?,
            true => trim(&path)?,
            false if own => fs::remove_file(&path)?,
            false => {}
        }
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

/// A program on the path.
fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).and_then(|()| fs::write(path, text)).with_context(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_another_kernel_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let other = folder.path().join("syncscope");
        write(&other.join("kernel.json"), "{}").unwrap();
        let error = install(&other, None).unwrap_err();
        assert!(error.to_string().contains("no kernel of report"), "{error}");
        assert_eq!(fs::read_to_string(other.join("kernel.json")).unwrap(), "{}");
    }
}
